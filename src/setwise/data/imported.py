"""What every importer returns, and the counting of votes they share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Ints, frozen
from setwise.labels import constructors
from setwise.data.assemble import sets_from_encoded
from setwise.labels.label_sets import LabelSets, Missing

Classes = Iterable[Hashable] | None


@dataclass(frozen=True, eq=False)
class Imported:
    """Candidate sets, the identifier of each row, and the truth where the source had it (None elsewhere)."""

    candidates: LabelSets
    ids: Array = field(repr=False)
    truth: Array | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.candidates)


@dataclass(frozen=True, eq=False)
class Votes:
    """Answers as triples (row, worker, code into the distinct `labels`); a worker may vote for several labels."""

    n: int
    labels: Sequence[Any]
    rows: Ints
    workers: Ints
    codes: Ints


def elected(votes: Votes, rule: str, *, classes: Classes, missing: Missing, where: str) -> LabelSets:
    """The sets that a rule makes of votes; errors name the row."""
    held = sorted(set(votes.codes.tolist()))
    names = [votes.labels[code] for code in held]
    local = np.searchsorted(held, votes.codes)
    rows, codes = constructors.elect(votes.rows, votes.workers, local, max(len(names), 1), rule)
    order = np.argsort(rows, kind="stable")
    sizes = np.bincount(rows, minlength=votes.n)
    return sets_from_encoded(names, codes[order], sizes, sizes == 0, classes=classes, missing=missing, where=where)


def row_ids(ids: ArrayLike | None, n: int) -> Array:
    """The identifiers given, else the row numbers."""
    array = np.arange(n) if ids is None else np.array(ids)
    if array.shape != (n,):
        raise ValueError(f"ids: shape {array.shape} for {n} rows; give one identifier a row.")
    return frozen(array)


def id_array(values: list[Any]) -> Array:
    """Identifiers as an array that keeps their types."""
    if len({type(value) for value in values}) == 1:
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
