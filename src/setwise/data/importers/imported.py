"""What every importer returns, and how answers become candidate sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Ints, frozen
from setwise.errors import reading_from
from setwise.labels import constructors
from setwise.labels.label_sets import LabelSets, Missing
from setwise.labels.vocabulary import Classes


@dataclass(frozen=True, eq=False)
class Imported:
    """Candidate sets, the identifier of each row, and the truth where the source had it (None elsewhere)."""

    candidates: LabelSets
    ids: Array = field(repr=False)
    truth: Array | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.candidates)


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers as triples (row, worker, code into the distinct `labels`); a worker may give several labels."""

    n: int
    labels: Sequence[Any]
    rows: Ints
    workers: Ints
    codes: Ints

    def elected(self, rule: str, *, classes: Classes, missing: Missing, where: str) -> LabelSets:
        """The sets that a rule makes of them; errors name the row."""
        held = sorted(set(self.codes.tolist()))
        local = np.searchsorted(held, self.codes)
        rows, codes = constructors.elect(self.rows, self.workers, local, max(len(held), 1), rule)
        sizes = np.bincount(rows, minlength=self.n)
        labels = [self.labels[code] for code in held]
        with reading_from(where):
            return LabelSets.from_codes(labels, codes, sizes, classes, absent=sizes == 0, missing=missing)


def row_ids(ids: ArrayLike | None, n: int) -> Array:
    """The identifiers given, else the row numbers."""
    array = np.arange(n) if ids is None else np.array(ids)
    if array.shape != (n,):
        raise ValueError(f"ids: shape {array.shape} for {n} rows; give one identifier per row.")
    return frozen(array)


def id_array(values: list[Any]) -> Array:
    """Identifiers as an array that keeps their types."""
    if len({type(value) for value in values}) == 1:
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
