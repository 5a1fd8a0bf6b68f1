"""Tables of annotators' answers: long, with one answer per line, or wide, with one column per annotator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setwise._arrays import frozen
from setwise.data.arrow_tables import arrow_table, is_path
from setwise.data.importers.imported import Answers, Imported, id_array
from setwise.data.label_columns import distinct, one_chunk
from setwise.errors import DataError
from setwise.labels.label_sets import Missing
from setwise.labels.vocabulary import Classes, is_missing


def from_annotators_long(
    table: Any,
    *,
    task: str = "task",
    worker: str | None = None,
    label: str = "label",
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
    rule
        ``"union"``, ``"at_least:k"`` or ``"plurality"``, as for `LabelSets.from_annotators`.
    classes, missing
        The vocabulary, and what to do with tasks that keep no label (no answer, or none often enough).

    Examples
    --------
    >>> votes = {"task": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "dog"]}
    >>> from_annotators_long(votes)
    Imported(candidates=LabelSets(2 rows, 2 classes): {cat, dog}, {dog})
    """
    where = str(table) if is_path(table) else "the table"
    votes = arrow_table(table)
    worker = worker or next(
        (name for name in ("worker", "annotator", "performer") if name in votes.column_names), "worker"
    )
    for name in (task, worker, label):
        if name not in votes.column_names:
            raise DataError(f"{where}: there is no column {name!r}; it has {', '.join(votes.column_names)}.")
    tasks, rows = distinct(one_chunk(votes[task]))
    _, workers = distinct(one_chunk(votes[worker]))
    labels, codes = distinct(one_chunk(votes[label]))
    if None in tasks:
        raise DataError(f"{where}: row {int(np.flatnonzero(rows == tasks.index(None))[0])} has no {task}.")
    labels = _whole_numbers(labels)
    given = np.array([not (is_missing(value) or value == "") for value in labels], dtype=bool)[codes]
    answers = Answers(len(tasks), labels, rows[given], workers[given], codes[given])
    sets = answers.elected(rule, classes=classes, missing=missing, where=where)
    return Imported(sets, frozen(id_array(tasks)))


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
    where = str(table) if is_path(table) else "the table"
    votes = arrow_table(table)
    named = [name for name in votes.column_names if name != ids] if annotators is None else list(annotators)
    for name in [*named, *([ids] if ids else [])]:
        if name not in votes.column_names:
            raise DataError(f"{where}: there is no column {name!r}; it has {', '.join(votes.column_names)}.")
    n = len(votes)
    labels: list[Any] = []
    position: dict[Any, int] = {}
    rows, workers, codes = [], [], []
    for who, name in enumerate(named):
        found, local = distinct(one_chunk(votes[name]))
        found = _whole_numbers(found)
        for value in found:
            if value not in position and not is_missing(value):
                position[value] = len(labels)
                labels.append(value)
        known = np.array([-1 if is_missing(value) or value == "" else position[value] for value in found] or [-1])
        held = np.flatnonzero(known[local] >= 0)
        rows.append(held)
        workers.append(np.full(len(held), who))
        codes.append(known[local][held])
    nobody = [np.empty(0, dtype=np.int64)]  # a table without annotators
    answers = Answers(n, labels, *(np.concatenate(part or nobody) for part in (rows, workers, codes)))
    sets = answers.elected(rule, classes=classes, missing=missing, where=where)
    return Imported(sets, frozen(votes[ids].to_numpy() if ids else np.arange(n)))


def _whole_numbers(values: list[Any]) -> list[Any]:
    """Floats that stand for integers, as frames with gaps make them, back to integers."""
    floats = [value for value in values if isinstance(value, float) and not is_missing(value)]
    whole = floats and all(value.is_integer() for value in floats)
    return [
        int(value) if whole and isinstance(value, float) and not is_missing(value) else value for value in values
    ]
