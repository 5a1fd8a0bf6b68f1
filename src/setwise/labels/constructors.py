"""Candidate sets from other sources: annotators, models.

Each function returns `(row, label)` pairs or codes for `LabelSets` to assemble; none knows `LabelSets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Bools, Floats, Ints
from setwise.labels.vocabulary import is_missing


def flatten(rows: Iterable[Any], name: str) -> tuple[list[Any], Ints, Bools]:
    """One list of all labels, the number of labels of each row, and which rows are missing altogether."""
    listed = [None if _is_absent(row) else row for row in rows]
    for i, row in enumerate(listed):
        if row is not None and (isinstance(row, (str, Mapping)) or not isinstance(row, Iterable)):
            raise TypeError(
                f"{name}: row {i} is {row!r}, not a collection of labels; "
                "use from_labels for one label per row, from_strings for delimited text."
            )
    present: list[Any] = [() if row is None else row if hasattr(row, "__len__") else list(row) for row in listed]
    sizes = np.fromiter((len(row) for row in present), dtype=np.intp, count=len(present))
    absent = np.fromiter((row is None for row in listed), dtype=bool, count=len(listed))
    return list(chain.from_iterable(present)), sizes, absent


def split_strings(texts: Iterable[Any], sep: str) -> tuple[list[str], Ints, Bools]:
    """The labels in delimited text, white space around them removed; blank text is a missing row."""
    if not sep:
        raise ValueError("sep: the separator is empty; give the character between labels, such as '|'.")
    listed = list(texts)
    for i, text in enumerate(listed):
        if not (isinstance(text, str) or is_missing(text)):
            raise TypeError(f"from_strings: row {i} is {text!r}, not text; use from_lists for collections.")
    rows = [
        [part.strip() for part in text.split(sep)] if isinstance(text, str) and text.strip() else None
        for text in listed
    ]
    for i, row in enumerate(rows):
        if row is not None and "" in row:
            raise ValueError(f"from_strings: row {i}, {listed[i]!r}, has an empty label between separators.")
    return flatten(rows, "from_strings")


def annotator_votes(table: Any, missing: Any = None) -> tuple[int, Ints, Ints, list[Any]]:
    """The number of rows, and row, annotator and label of every answer in a table with one column per annotator.

    A cell holds a label, a collection of labels, or no answer: None, NaN or the value `missing`.
    """
    columns = list(zip(*table.values(), strict=True)) if isinstance(table, Mapping) else table
    cells = columns.to_numpy() if hasattr(columns, "to_numpy") else columns
    if np.ma.isMaskedArray(cells):
        gone, cells = np.ma.getmaskarray(cells), cells.data.astype(object)
        cells[gone] = None
    odd = next((i for i, row in enumerate(cells) if isinstance(row, str) or not isinstance(row, Iterable)), None)
    if odd is not None:
        raise TypeError(f"from_matrix: row {odd} is {cells[odd]!r}, not a row of cells, one for each annotator.")
    rows = [list(row) for row in cells]
    cell_rows = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    annotators = np.fromiter(chain.from_iterable(range(len(row)) for row in rows), dtype=np.intp)
    answers = [as_collection(cell) for row in rows for cell in row]
    if missing is not None:
        answers = [[label for label in answer if label != missing] for answer in answers]
    sizes = [len(answer) for answer in answers]
    return (
        len(rows),
        np.repeat(cell_rows, sizes),
        np.repeat(annotators, sizes),
        list(chain.from_iterable(answers)),
    )


def elect(
    rows: Ints, annotators: Ints, codes: Ints, n_classes: int, rule: str, weight: Floats | None = None
) -> tuple[Ints, Ints]:
    """The (row, code) pairs that a rule keeps: "union", "at_least:k" votes, or those with the most, "plurality".

    Without weights an annotator counts once for a label of a row.
    """
    name, _, count = rule.partition(":")
    if rule not in {"union", "plurality"} and not (name == "at_least" and count.isdigit() and int(count) >= 1):
        raise ValueError(f"rule: {rule!r} is not known; use 'union', 'at_least:k' (k ≥ 1) or 'plurality'.")
    if len(rows) == 0:
        return rows, codes
    ballots = np.stack([rows, annotators, codes])
    if weight is None:
        ballots = np.unique(ballots, axis=1)
    pairs, which = np.unique(ballots[0] * n_classes + ballots[2], return_inverse=True)
    votes = np.bincount(which, weight)
    rows, codes = np.divmod(pairs, n_classes)
    needed = np.full(rows[-1] + 1, float(count) if count else 0.0)
    if rule == "plurality":
        np.maximum.at(needed, rows, votes)
    keep = votes >= needed[rows]
    return rows[keep], codes[keep]


def top_labels(probabilities: ArrayLike, k: int | None, mass: float | None) -> Bools:
    """The mask of each row's k most probable labels, or of the fewest whose probabilities reach `mass`."""
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 2 or np.isnan(values).any():
        raise ValueError("probabilities: expected one row of numbers per example, none of them NaN.")
    if (k is None) == (mass is None):
        raise ValueError("from_top_k: give either k (how many labels) or mass (how much probability).")
    order = np.argsort(-values, axis=1, kind="stable")
    if k is not None:
        if not 1 <= k <= values.shape[1]:
            raise ValueError(f"k: {k} is not between 1 and the number of classes, {values.shape[1]}.")
        keep = np.broadcast_to(np.arange(values.shape[1]) < k, values.shape)
    else:
        reach = float(mass or 0)
        if not 0 < reach <= 1:
            raise ValueError(f"mass: {mass} is not in (0, 1].")
        outside = np.flatnonzero(((values < 0) | (values > 1)).any(axis=1))
        if len(outside):
            raise ValueError(f"probabilities: row {outside[0]} holds a number outside [0, 1].")
        ordered = np.take_along_axis(values, order, axis=1)
        keep = np.cumsum(ordered, axis=1) - ordered < reach
    mask = np.empty(values.shape, dtype=bool)
    np.put_along_axis(mask, order, keep, axis=1)
    return mask


def arrow_lists(column: Any) -> tuple[Any, Ints, Bools]:
    """Labels, row sizes and missing rows of an Arrow list column (or a chunked one)."""
    chunks = getattr(column, "chunks", [column])
    if odd := [chunk for chunk in chunks if not hasattr(chunk, "value_lengths")]:
        raise TypeError(f"from_arrow: expected a list column, got {getattr(odd[0], 'type', type(odd[0]))}.")
    labels = [label for chunk in chunks for label in chunk.flatten().to_pylist()]
    sizes = [np.asarray(chunk.value_lengths().fill_null(0), dtype=np.intp) for chunk in chunks]
    absent = [np.asarray(chunk.is_null(), dtype=bool) for chunk in chunks]
    return labels, np.concatenate([np.empty(0, np.intp), *sizes]), np.concatenate([np.empty(0, bool), *absent])


def _is_absent(row: Any) -> bool:
    return row is None or (np.isscalar(row) and is_missing(row)) or type(row).__name__ == "NAType"


def as_collection(cell: Any) -> Sequence[Any]:
    """The labels in a cell: those of a collection, the cell itself, or none where it is missing."""
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        return cell.tolist() if isinstance(cell, np.ndarray) else list(cell)
    return [] if is_missing(cell) else [cell]
