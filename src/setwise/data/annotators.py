"""Candidate sets from several voices: annotator tables in long and wide form, and labelling functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from setwise._arrays import Ints, frozen
from setwise.data.arrow_tables import arrow_table, is_path
from setwise.data.imported import Classes, Imported, Votes, elected, id_array, row_ids
from setwise.data.label_columns import is_text
from setwise.errors import DataError
from setwise.labels.label_sets import Missing
from setwise.labels.vocabulary import is_missing


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
    """One answer a line, as crowd-kit and cleanlab keep them: task, worker, label.

    Parameters
    ----------
    table
        A file or a frame.
    task, worker, label
        Its columns; `worker` is by default the first of worker, annotator, performer that there is.
    rule
        ``"union"``, ``"at_least:k"`` or ``"largest"``, as for `LabelSets.from_annotators`.
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
    tasks, rows = _factor(votes[task])
    _, workers = _factor(votes[worker])
    labels, codes = _factor(votes[label])
    if None in tasks:
        raise DataError(f"{where}: row {int(np.flatnonzero(rows == tasks.index(None))[0])} has no {task}.")
    labels = _whole_numbers(labels)
    given = np.array([not (is_missing(value) or value == "") for value in labels], dtype=bool)[codes]
    answers = Votes(len(tasks), labels, rows[given], workers[given], codes[given])
    sets = elected(answers, rule, classes=classes, missing=missing, where=where)
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
    """One column an annotator, gaps where somebody gave no answer.

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
        found, local = _factor(votes[name])
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
    answers = Votes(n, labels, *(np.concatenate(part or nobody) for part in (rows, workers, codes)))
    sets = elected(answers, rule, classes=classes, missing=missing, where=where)
    return Imported(sets, frozen(votes[ids].to_numpy() if ids else np.arange(n)))


def from_snorkel(
    matrix: ArrayLike,
    *,
    classes: Classes = None,
    ids: ArrayLike | None = None,
    rule: str = "union",
    missing: Missing = "full",
) -> Imported:
    """A Snorkel label matrix, one column a labelling function, −1 where it abstains.

    Rows where every function abstains may be anything: they are full by default.

    >>> from_snorkel([[0, 1, -1], [-1, -1, -1]], classes=["ham", "spam", "other"]).candidates.to_lists()
    [['ham', 'spam'], ['ham', 'spam', 'other']]
    """
    votes = np.asarray(matrix)
    if votes.ndim != 2 or votes.dtype.kind not in "iu":
        raise DataError(
            f"matrix: expected integers, one column a function, got {votes.dtype} of shape {votes.shape}."
        )
    names = list(range(int(votes.max(initial=0)) + 1)) if classes is None else list(classes)
    outside = np.argwhere((votes < -1) | (votes >= len(names)))
    if len(outside):
        row, column = outside[0]
        raise DataError(
            f"matrix: row {row}, function {column}: {votes[row, column]} is outside −1..{len(names) - 1}."
        )
    rows, workers = np.nonzero(votes >= 0)
    answers = Votes(len(votes), names, rows, workers, votes[rows, workers])
    sets = elected(answers, rule, classes=names, missing=missing, where="matrix")
    return Imported(sets, row_ids(ids, len(votes)))


def _factor(column: Any) -> tuple[list[Any], Ints]:
    """Distinct values in order of first appearance, and a code for each row."""
    plain = pc.cast(column, pa.large_string()) if is_text(column.type) else column
    encoded = pc.dictionary_encode(plain, null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().chunk(0) if encoded.num_chunks else pa.array([]).dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices, dtype=np.int64)


def _whole_numbers(values: list[Any]) -> list[Any]:
    """Floats that stand for integers, as frames with gaps make them, back to integers."""
    floats = [value for value in values if isinstance(value, float) and not is_missing(value)]
    whole = floats and all(value.is_integer() for value in floats)
    return [
        int(value) if whole and isinstance(value, float) and not is_missing(value) else value for value in values
    ]
