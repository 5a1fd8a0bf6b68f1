"""Label Studio's exports: choices (single and multiple) and taxonomies, from one annotator or several.

JSON holds one object per task; JSON-MIN, CSV and TSV have one row per annotation. Cancelled and empty annotations
are not votes. A taxonomy path that ends at an inner node stands for every leaf below it. An annotation marked as
ground truth is a vote too, and gives the true label if it names a single one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from setwise._arrays import Array, frozen
from setwise.errors import DataError, InputError, Remedy, reading_from
from setwise.labels.label_sets import Missing
from setwise.labels.trees import leaves_below
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.labels.votes import Votes
from setwise.tables.arrow_reading import arrow_table, column_names, file_text, reading
from setwise.tables.importers.imported import Imported, check_identifier, id_array
from setwise.tables.json_objects import read_objects
from setwise.tables.label_notation import match_classes
from setwise.tables.table_files import TableFiles, is_path, table_files

PathLabel = tuple[str, ...]
_ADDED = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history")
"""What an export adds to the data of a row of annotations, beside the number of the task and the answers."""
_NESTED, _TABLES = {"annotations", "completions"}, {"csv", "tsv"}
_EMPTY: tuple[Any, ...] = (None, "", [])
_NAME_CONTROL = Remedy("from_name", None, "to name the control")
_TASKS = ("drawn", "draw", "rank", "confidence")  # data of the tasks that setwise writes
_TELLING = {"annotator", "annotation_id", "lead_time"}


def from_label_studio(
    export: Any,
    *,
    key: str | None = None,
    from_name: str | None = None,
    rule: str = "union",
    classes: Classes = None,
    missing: Missing = "error",
    path_separator: str = "/",
    labels: Classes = None,
) -> Imported:
    """Candidate sets from a Label Studio export (JSON, JSON-MIN, CSV or TSV).

    Parameters
    ----------
    export
        The file, or the list of tasks or annotations it holds.
    key
        The field of the data of a task that identifies the row; by default the number of the task.
    from_name
        The control of the labelling interface to read; needed if tasks have several, or if no column of CSV stands
        out as that of answers.
    rule
        ``"union"``, ``"at_least:k"`` or ``"plurality"`` over the annotations of a task.
    classes, missing
        The vocabulary, and what to do with tasks without an answer.
    path_separator
        The character between the names of a taxonomy path; the whole path to a leaf is a label.
    labels
        Labels to expect, which tell the column of answers where nothing else does.

    Examples
    --------
    >>> task = {"id": 7, "annotations": [{"completed_by": 1, "result": [
    ...     {"from_name": "animal", "type": "choices", "value": {"choices": ["cat", "dog"]}}]}]}
    >>> from_label_studio([task])
    Imported(candidates=LabelSets(1 rows, 2 classes): {cat, dog})
    """
    files = table_files(export) if is_path(export) or isinstance(export, TableFiles) else None
    where = "the export" if files is None else str(files)
    tasks = _tasks(export if files is None else files, where)
    if all(isinstance(task, Mapping) and not _NESTED & task.keys() for task in tasks):
        if key == "id":
            problem = f"{where}: its column id holds Label Studio's own numbers in place of yours"
            raise DataError(problem, "export as JSON, or give your column another name")
        tasks = _nest(tasks, key, from_name, classes if labels is None else labels, where)
    names: set[str] = set()
    given: list[Any] = []
    found: list[_Annotation] = []
    for i, task in enumerate(tasks):
        place = f"{where}: task {i}"
        if not isinstance(task, Mapping):
            raise DataError(f"{place} is not a JSON object; export as JSON or JSON-MIN.")
        name = task.get("id", i) if key is None else _field(task, key, place)
        given.append(check_identifier(name, f"{place}: its id"))
        found.extend(_annotations(task, i, from_name, names, place))
    if len(names) > 1 if from_name is None else names and from_name not in names:
        lacks = (
            "tasks have several controls" if from_name is None else f"there is no control {from_name!r}; there is"
        )
        raise DataError(f"{where}: {lacks} {' and '.join(sorted(names))}", _NAME_CONTROL)
    ids = frozen(id_array(given))
    with reading_from(where):
        votes, truth = _votes_and_truth(found, path_separator, classes, ids)
        sets, data = votes.candidates(rule, missing=missing), [task.get("data") or {} for task in tasks]
        return Imported(sets, ids, votes, truth, data=data)


def is_export(source: Any) -> bool:
    """Whether files are exports with annotations: tasks, or one annotation per row."""
    files = table_files(source)
    path = files.paths[0]
    with reading(path, files), suppress(ValueError, RecursionError):  # reading it as a table raises the error
        if files.form(path) in _TABLES:
            return {*column_names(files)} >= _TELLING
        if files.form(path) == "json":
            tasks = json.loads(file_text(files, path))
            first = tasks[0] if isinstance(tasks, list) and tasks else None
            return isinstance(first, Mapping) and (bool(_NESTED & first.keys()) or first.keys() >= _TELLING)
    return False


class _Annotation(NamedTuple):
    """An annotation: the number of its task, who made it, its labels, and whether it is the ground truth."""

    row: int
    who: Any
    paths: list[PathLabel]
    is_true: bool


def _tasks(export: Any, where: str) -> list[Any]:
    if isinstance(export, TableFiles):
        path, *others = export.paths
        if others:
            raise DataError(f"{where}: exports of Label Studio are read one by one", "export all tasks as one file")
        if export.form(path) in _TABLES:
            names = column_names(export)
            export = arrow_table(
                export, text=[name for name in names if name not in {"id", "annotator"}]
            ).to_pylist()
        else:
            with reading(path, export):
                export = read_objects(file_text(export, path), f"{where}:")
    if not isinstance(export, list):
        raise DataError(
            f"{where}: expected a list of tasks, got {type(export).__name__}; export as JSON or JSON-MIN."
        )
    if not export:
        raise DataError(f"{where}: holds no tasks.")
    return export


def _annotations(
    task: Mapping[str, Any], row: int, from_name: str | None, names: set[str], place: str
) -> Iterator[_Annotation]:
    """The annotations of a task that are not cancelled."""
    annotations = task.get("annotations", task.get("completions"))
    if annotations is None:
        raise DataError(f"{place} has no annotations, but other tasks have; export all as JSON or all as JSON-MIN.")
    try:
        for number, annotation in enumerate(annotations):
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                continue
            who = annotation.get("completed_by", annotation.get("annotator"))
            if isinstance(who, Mapping):
                who = who.get("email") or who.get("id")
            if not isinstance(who, (str, int)) or isinstance(who, bool):
                who = f"annotation {number}"
            paths = _labels_of(annotation.get("result") or [], from_name, names, place)
            yield _Annotation(row, who, paths, bool(annotation.get("ground_truth")))
    except (AttributeError, TypeError):
        raise DataError(f"{place} is not a task as Label Studio exports it.") from None


def _labels_of(regions: list[Any], from_name: str | None, names: set[str], place: str) -> list[PathLabel]:
    """The paths in one annotation; without `from_name`, `names` collects the controls."""
    paths: list[PathLabel] = []
    for region in regions:
        value = region.get("value")
        if not isinstance(value, Mapping) or not {"choices", "taxonomy"} & value.keys():
            continue  # other kinds of answer: text, boxes, ratings
        name = str(region.get("from_name"))
        names.add(name)
        if from_name in {None, name}:
            paths += _paths(value, place)
    return paths


def _paths(value: Any, place: str) -> list[PathLabel]:
    """The labels in an answer as paths of names; a plain choice is a path of one name."""
    if isinstance(value, Mapping):
        value = value.get("taxonomy", value.get("choices"))
    found = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping):  # a region
            found += _paths(item, place)
            continue
        path = (item,) if isinstance(item, str) else tuple(item) if isinstance(item, list) else ()
        if not path or not all(isinstance(name, str) and name for name in path):
            raise DataError(f"{place}: {item!r} is neither a choice nor a taxonomy path.")
        found.append(path)
    return found


def _votes_and_truth(
    found: list[_Annotation], path_separator: str, classes: Classes, ids: Array
) -> tuple[Votes, Array | None]:
    """The votes for leaves, and the true labels where an annotation is marked as ground truth."""
    paths = sorted({path for one in found for path in one.paths})
    leaves = leaves_below((path[:depth], path[: depth + 1]) for path in paths for depth in range(len(path)))
    told = [[path_separator.join(leaf) for path in one.paths for leaf in leaves[path]] for one in found]
    pairs = [*zip(found, told, strict=True)]
    said = dict.fromkeys((one.row, one.who, label) for one, named in pairs for label in named)
    rows, people, texts = zip(*said, strict=True) if said else ((), (), ())
    classes, each = Vocabulary.or_none(classes), np.arange(len(said))
    labels = match_classes(texts, classes)  # Label Studio has text only
    row = np.array(rows, dtype=np.int64)
    votes = Votes.from_codes(len(ids), row, labels, each, people, each, classes=classes, items=ids)
    marked: dict[int, list[list[str]]] = defaultdict(list)
    for one, named in pairs:
        if one.is_true:
            marked[one.row].append(named)
    truth = np.full(len(ids), None, dtype=object)
    for place, answers in marked.items():
        true = sorted({label for named in answers for label in named})
        if len(true) > 1 and len(answers) > 1:
            problem = f"task {place}: two annotations are marked as ground truth, {true[0]!r} and {true[1]!r}"
            raise InputError(problem, "keep one of them")
        if len(true) == 1:
            (truth[place],) = match_classes(true, classes)
    return votes, frozen(truth) if marked else None


def _nest(
    rows: list[Mapping[str, Any]], key: str | None, from_name: str | None, classes: Classes, where: str
) -> list[Mapping[str, Any]]:
    """The tasks of rows with one annotation each, with the data and the annotations of each task."""
    control = from_name or _control(rows, key, classes, where)
    if not any(control in row for row in rows):
        names = ", ".join(name for name in rows[0] if name not in _ADDED)
        raise DataError(f"{where}: there is no column {control!r}; it has {names}", _NAME_CONTROL)
    tasks: dict[Any, dict[str, Any]] = {}
    for i, row in enumerate(rows):
        name = check_identifier(row.get("id", i), f"{where}: row {i}: its id")
        data = {field: value for field, value in row.items() if field not in {"id", control, *_ADDED}}
        task = tasks.setdefault(name, {"id": name, "data": data, "annotations": []})
        if row.get(control) not in _EMPTY:
            paths = _paths(_parse(row[control]), f"{where}: row {i}")
            region = {"from_name": control, "value": {"choices": [list(path) for path in paths]}}
            task["annotations"].append({"completed_by": row.get("annotator"), "result": [region]})
    return [*tasks.values()]


def _parse(value: Any) -> Any:
    """An answer in a cell of text: several choices and taxonomies are JSON there."""
    if isinstance(value, str) and value.startswith(('{"', "[{")):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _control(rows: list[Mapping[str, Any]], key: str | None, classes: Classes, where: str) -> str:
    """The column of answers: what differs between the annotations of a task, or is empty where there are none.

    Where every task has one annotation, it is the only one after the data in JSON-MIN, or the only one of labels.
    """
    others = {"id", key, *_ADDED, *_TASKS}
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in others]
    first: dict[str, Mapping[str, Any]] = {}
    varied = {
        name
        for row in rows
        for name in names
        if first.setdefault(repr(row.get("id")), row).get(name) != row.get(name)
    }
    blank = [row for row in rows if row.get("annotation_id") in _EMPTY]
    vacant = [name for name in names if blank and all(row.get(name) in _EMPTY for row in blank)]
    order = [*rows[0]]
    after = order[order.index("id") + 1 : order.index("annotator")] if {"id", "annotator"} <= {*order} else []
    after = [name for name in after if name in names]
    declared = Vocabulary.or_none(classes)
    known = {"", "None", *(() if declared is None else map(str, declared.classes.tolist()))}
    labels = [name for name in names if {str(row.get(name)) for row in rows} <= known]
    found = next((way for way in (varied, vacant, after, labels) if len(way) == 1), varied or vacant or names)
    if len(found) != 1:
        problem = f"the answers may be in any of {', '.join(sorted(found))}" if found else "there are no answers"
        raise DataError(f"{where}: {problem}", _NAME_CONTROL)
    return next(iter(found))


def _field(task: Mapping[str, Any], key: str, place: str) -> Any:
    held = task.get("data")
    if not isinstance(held, Mapping) or key not in held:
        names = ", ".join(map(str, held)) if isinstance(held, Mapping) else ""
        raise DataError(f"{place}: its data have no {key!r}; they have {names or 'nothing'}.")
    return held[key]
