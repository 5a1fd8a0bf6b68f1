"""Verified labels in a file of their own: a table with a column of answers, or a Label Studio export."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Array, Bools
from setwise.errors import DataError, MisuseWarning, Remedy
from setwise.findings import join_names
from setwise.labels.vocabulary import is_missing, missing_labels
from setwise.tables.arrow_reading import arrow_table
from setwise.tables.importers.imported import id_array
from setwise.tables.importers.label_studio import from_label_studio, is_export
from setwise.tables.key_join import matching_rows
from setwise.tables.label_notation import match_classes
from setwise.tables.table_files import TableFiles, names_files, source_name, table_files
from setwise.tables.tabular import read_table

_SHOWN = 8
_SOURCES = {"verified", "reviewed", "accepted", ""}
_DRAWN = dict.fromkeys(("true", "yes", "1", "1.0"), "verified") | dict.fromkeys(
    ("false", "no", "0", "0.0"), "reviewed"
)
"""What the values of the column `drawn` mean."""


def read_verified(
    file: Any,
    ids: Sequence[Any] | Array,
    classes: Sequence[Any],
    *,
    key: str,
    column: str | None = None,
    source: str = "the table",
    separator: str = "|",
    from_name: str | None = None,
    several: bool = False,
) -> tuple[Array, Bools]:
    """The verified label of each row of another table, or None; and which rows have a label that is only known.

    These were not drawn at random, as the column `drawn` (true or false) or `source` says. It is an error if no row
    was drawn: such a file holds the answers from review. `ids` are the values of the column `key` in the other
    table, whose name is `source`. In a Label Studio export, an annotation marked as ground truth takes precedence,
    `key` is a field of the data of a task, and `column` the control.

    >>> answers = {"id": ["b", "a", "c"], "verified": ["owl", "", "wren"]}
    >>> read_verified(answers, ["a", "b", "c", "d"], ["owl", "wren"], key="id")[0].tolist()
    [None, 'owl', 'wren', None]
    """
    where = source_name(file) if names_files(file) else "the verified labels"
    options: dict[str, Any] = {"separator": separator, "from_name": from_name, "several": several}
    found = read_answers(file, key, column, where=where, unmarked="verified", classes=classes, **options)
    rows = matching_rows(key, found.keys, ids, source=where, other=source)
    given = np.flatnonzero(~missing_labels(found.labels))
    different = {*zip(rows[given].tolist(), found.labels[given].tolist(), strict=True)}
    row, times = Counter(row for row, _ in different).most_common(1)[0] if different else (0, 0)
    if times > 1:
        raise DataError(f"{where}: {key} = {str(ids[row])!r} has {times} verified labels; keep one of them.")
    labels = set(classes)
    rows_of = [(place, found.labels[place]) for place in given]
    each = [
        (place, label) for place, row in rows_of for label in (row if several and isinstance(row, tuple) else [row])
    ]
    strange, label = next(((place, label) for place, label in each if label not in labels), (None, None))
    if strange is not None:
        names = join_names([*map(repr, classes)], _SHOWN)
        said = f"{key} = {found.keys[strange]!r} has the label {label!r}"
        ways = "correct it", Remedy("classes", None, "to list all labels")
        raise DataError(f"{where}: {said}, which is not one of {names}", *ways)
    drawn, others = (given[found.sources[given] == source] for source in ("verified", "reviewed"))
    if len(given) and not len(drawn):
        problem = f"{where}: none of its rows was drawn at random, as its column {found.marked_by!r} says"
        raise DataError(problem, "name the file of setwise suggest, and give answers from review to setwise merge")
    if len(others):
        problem = f"{where}: {len(others):,} rows with a known label were not drawn at random, and do not count"
        warnings.warn(MisuseWarning(f"{problem} as verified rows; {len(drawn):,} do"), stacklevel=2)
    verified, known = np.full(len(ids), None, dtype=object), np.zeros(len(ids), dtype=bool)
    verified[rows[drawn]], known[rows[others]] = found.labels[drawn], True
    return verified, known


@dataclass(frozen=True, eq=False)
class Answers:
    """The rows of a file of answers: keys, labels (None for none), where each comes from, and other columns.

    A label is "verified" if its row was drawn at random, "reviewed" if somebody chose it to look at, and "accepted"
    if nobody looked. `marked_by` is the column that says so.
    """

    keys: Array
    labels: Array
    sources: Array
    columns: Mapping[str, Sequence[Any]]
    marked_by: str | None


def read_answers(
    file: Any,
    key: str,
    column: str | None,
    *,
    where: str,
    unmarked: str,
    classes: Sequence[Any] | None = None,
    separator: str = "|",
    from_name: str | None = None,
    several: bool = False,
) -> Answers:
    """Reads a table or an export with labels; where no column marks them, all are `unmarked`."""
    files = table_files(file) if names_files(file) else None
    if files is not None and is_export(files):
        column = column or from_name
        keys, answers, data = _read_export(files, key, where, column, classes)
        names = dict.fromkeys(name for fields in data for name in fields)
        columns = {name: [fields.get(name) for fields in data] for name in names}
    else:
        whole, column = arrow_table(file), column or "verified"
        columns = {name: whole[name].to_pylist() for name in whole.column_names if name not in {key, column}}
        options: dict[str, Any] = {"features": [], "carry": [key], "separator": separator, "classes": classes}
        options["several"] = several
        table = read_table(file, truth=column, **options)
        said = match_classes(np.asarray(table.truth, dtype=object).tolist(), classes)  # JSON has numbers
        keys, answers = table.carried[key], id_array([*said, None])[:-1]
    if columns.keys() >= {"proposed", "rank"}:  # what triage writes for review
        return Answers(keys, answers, np.full(len(keys), "reviewed", dtype=object), columns, "rank")
    marks = _texts(columns.get("source", ()))
    if any(marks) and {*marks} <= _SOURCES:  # what merge writes; others may have a column of this name
        sources = [mark or "accepted" for mark in marks]
        return Answers(keys, answers, np.array(sources, dtype=object), columns, "source")
    if "drawn" not in columns:
        return Answers(keys, answers, np.full(len(keys), unmarked, dtype=object), columns, None)
    marks = _texts(columns["drawn"])
    unlabelled = missing_labels(answers) | (unmarked == "accepted")  # these need no mark
    known = _DRAWN | {"": "accepted"}
    for row, mark in enumerate(marks):
        if mark not in known or not (mark or unlabelled[row]):
            given = repr(columns["drawn"][row]) if mark else "nothing"
            problem = f"{where}: row {row} ({key} = {keys[row]!r}) has {given} in the column 'drawn'"
            raise DataError(problem, "say true or false in drawn, for a row drawn at random or not")
    return Answers(keys, answers, np.array([known[mark] for mark in marks], dtype=object), columns, "drawn")


def _texts(values: Sequence[Any]) -> list[str]:
    """The cells of a column as plain text, empty for missing ones."""
    return ["" if is_missing(value) else str(value).strip().lower() for value in values]


def merge_verified(ours: Array | None, others: Array, *, source: str, other: str) -> Array:
    """Merges two arrays of verified labels; an error if they differ in a row."""
    if ours is None:
        return others
    here, there = (~missing_labels(labels) for labels in (ours, others))
    differ = np.flatnonzero(here & there & (ours != others))
    if len(differ):
        row = int(differ[0])
        problem = f"{other}: the verified label of row {row} is {others[row]!r}, but {ours[row]!r} in {source}"
        raise DataError(problem, "correct one of them")
    return np.where(here, np.asarray(ours, dtype=object), others)


def _read_export(
    files: TableFiles, key: str, where: str, from_name: str | None, classes: Sequence[Any] | None
) -> tuple[Array, Array, list[Mapping[str, Any]]]:
    """The keys of all tasks, the label of each task, or None, and its data."""
    ids: list[Any] = []
    answers: list[Any] = []
    data: list[Mapping[str, Any]] = []
    for path in files.paths:
        found = from_label_studio(path, key=key, from_name=from_name, labels=classes, missing="empty")
        data.extend(found.data)
        truth = [None] * len(found) if found.truth is None else found.truth.tolist()
        for name, true, said in zip(found.ids.tolist(), truth, found.candidates.to_lists(), strict=True):
            if true is None and len(said) > 1:
                problem = f"{where}: {key} = {name!r} has several answers ({', '.join(said)})"
                raise DataError(problem, "mark one as the ground truth")
            answers.append(next(iter(said), None) if true is None else true)
            ids.append(name)
    if classes is not None:
        answers = match_classes(answers, classes)  # Label Studio has text only
    return id_array(ids), id_array([*answers, None])[:-1], data  # the extra None makes it an array of objects
