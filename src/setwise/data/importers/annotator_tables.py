"""Tables of annotators' answers: long, with one answer per line, or wide, with one column per annotator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from setwise._arrays import Bools, Ints, frozen
from setwise.data.arrow_tables import arrow_table
from setwise.data.importers.imported import Imported, id_array
from setwise.data.label_columns import distinct, one_chunk
from setwise.data.table_files import names_files, table_files
from setwise.errors import DataError, reading_from
from setwise.labels.label_sets import Missing
from setwise.labels.vocabulary import Classes, is_missing
from setwise.labels.votes import Votes

_WORKERS = ("worker", "annotator", "performer")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def from_annotators_long(
    table: Any,
    *,
    task: str = "task",
    worker: str | None = None,
    label: str = "label",
    weight: str | None = None,
    rule: str = "union",
    classes: Classes = None,
    missing: Missing = "error",
) -> Imported:
    """One answer per line, as crowd-kit and cleanlab keep them: task, worker, label.

    Parameters
    ----------
    table
        A file or a frame.
    task, worker, label
        Its columns; `worker` is by default the first of worker, annotator, performer that there is.
    weight
        The column of how much an answer counts, if it has one.
    rule
        ``"union"``, ``"at_least:k"`` or ``"plurality"``, as for `Votes.candidates`.
    classes, missing
        The vocabulary, and what to do with tasks that keep no label (no answer, or none often enough).

    Examples
    --------
    >>> votes = {"task": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "dog"]}
    >>> from_annotators_long(votes)
    Imported(candidates=LabelSets(2 rows, 2 classes): {cat, dog}, {dog})
    >>> from_annotators_long(votes).votes
    Votes(3 answers by 2 annotators on 2 rows, 2 classes): {cat: 1, dog: 1}, {dog: 1}
    """
    where = str(table_files(table)) if names_files(table) else "the table"
    names = [task, *([worker] if worker else _WORKERS)] if _is_text(table) else []
    lines = arrow_table(table, text=names)
    worker = worker or next((name for name in _WORKERS if name in lines.column_names), _WORKERS[0])
    for name in (task, worker, label, *([weight] if weight else [])):
        if name not in lines.column_names:
            raise DataError(f"{where}: there is no column {name!r}; it has {', '.join(lines.column_names)}.")
    tasks, rows = distinct(one_chunk(lines[task]))
    workers, who = distinct(one_chunk(lines[worker]))
    labels, codes = distinct(one_chunk(lines[label]))
    tasks, workers = (_names(values) if names else values for values in (tasks, workers))
    labels = _whole_numbers(labels)
    given = np.array([not (is_missing(value) or value == "") for value in labels], dtype=bool)[codes]
    _refuse_gaps(rows, tasks, np.ones_like(given), f"{where}: row", task)
    _refuse_gaps(who, workers, given, f"{where}: row", worker)
    ids = frozen(id_array(tasks))
    with reading_from(where):
        votes = Votes.from_codes(
            len(tasks),
            rows[given],
            labels,
            codes[given],
            workers,
            who[given],
            None if weight is None else lines[weight].cast("float64").to_numpy()[given],
            classes=classes,
            items=ids,
        )
        return Imported(votes.candidates(rule, missing=missing), ids, votes=votes)


def _is_text(table: Any) -> bool:
    """Whether it is read from delimited text, in which numbers are not told from names."""
    if not names_files(table):
        return False
    files = table_files(table)
    return {files.form(path) for path in files.paths} <= {"csv", "tsv"}


def _names(values: list[str]) -> list[Any]:
    """Numbers where all are whole numbers as they are written; 007 is the name of another than 7."""
    numbers = all(_NUMBER.fullmatch(value) for value in values if value)
    return [int(value) if value and numbers else value for value in values]


def _refuse_gaps(codes: Ints, values: list[Any], given: Bools, where: str, name: str) -> None:
    """Refuses answers of nobody, and tasks without an identifier."""
    empty = np.array([is_missing(value) or value == "" for value in values], dtype=bool)
    if empty.any() and (lost := given & empty[codes]).any():
        raise DataError(f"{where} {int(np.argmax(lost))} has no {name}.")


def from_annotators_wide(
    table: Any,
    *,
    annotators: Sequence[str] | None = None,
    ids: str | None = None,
    rule: str = "union",
    classes: Classes = None,
    missing: Missing = "error",
) -> Imported:
    """One column per annotator, gaps where somebody gave no answer.

    >>> votes = {"id": ["a", "b"], "ann": [0, 1], "bob": [2, None]}
    >>> from_annotators_wide(votes, ids="id").candidates
    LabelSets(2 rows, 3 classes): {0, 2}, {1}
    """
    where = str(table_files(table)) if names_files(table) else "the table"
    lines = arrow_table(table)
    named = [name for name in lines.column_names if name != ids] if annotators is None else list(annotators)
    for name in [*named, *([ids] if ids else [])]:
        if name not in lines.column_names:
            raise DataError(f"{where}: there is no column {name!r}; it has {', '.join(lines.column_names)}.")
    n = len(lines)
    labels: list[Any] = []
    position: dict[Any, int] = {}
    rows, workers, codes = [], [], []
    for number, name in enumerate(named):
        found, local = distinct(one_chunk(lines[name]))
        found = _whole_numbers(found)
        for value in found:
            if value not in position and not is_missing(value):
                position[value] = len(labels)
                labels.append(value)
        known = np.array([-1 if is_missing(value) or value == "" else position[value] for value in found] or [-1])
        held = np.flatnonzero(known[local] >= 0)
        rows.append(held)
        workers.append(np.full(len(held), number))
        codes.append(known[local][held])
    nobody = [np.empty(0, dtype=np.int64)]  # a table without annotators
    row, who, code = (np.concatenate(part or nobody) for part in (rows, workers, codes))
    identifiers = frozen(lines[ids].to_numpy() if ids else np.arange(n))
    with reading_from(where):
        votes = Votes.from_codes(n, row, labels, code, named, who, classes=classes, items=identifiers)
        return Imported(votes.candidates(rule, missing=missing), identifiers, votes=votes)


def _whole_numbers(values: list[Any]) -> list[Any]:
    """Floats that stand for integers, as frames with gaps make them, back to integers."""
    floats = [value for value in values if isinstance(value, float) and not is_missing(value)]
    whole = floats and all(value.is_integer() for value in floats)
    return [
        int(value) if whole and isinstance(value, float) and not is_missing(value) else value for value in values
    ]
