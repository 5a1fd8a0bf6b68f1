"""The entry level of each label, the first level of a grid at which it is in the set; and the set sizes.

Sets grow with the level, so one number per label is enough: it is in the set at level l if and only if entry ≤ l.
Entries come from scores and thresholds, from p-values, or from sets that are there already (a grid of one level).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, for_blocks
from setwise._lazy import lazy
from setwise.conformal.calibration import Calibration
from setwise.ranks import as_level, share_interval

DELTA = 0.05
"""Intervals miss with at most this probability."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A calibration and the probabilities of new rows; `codes` are their categories, `weight` their weights."""

    calibration: Calibration
    matrix: Floats
    levels: list[Fraction]
    by: Array | None = None
    codes: Ints | None = None
    weight: Floats | None = None
    row_ids: Array | None = None

    def entries(self, rows: Array) -> Ints:
        """How many thresholds lie below each label's score."""
        cal = self.calibration
        part = self.matrix[rows]
        ids = None if self.row_ids is None else self.row_ids[rows]
        scores = cal.reader.read(part, row_ids=ids).scores
        found = np.zeros(scores.shape, dtype=np.intp)
        codes = np.zeros(len(rows), dtype=np.intp) if self.codes is None else self.codes[rows]
        for code in np.unique(codes[codes >= 0]):  # a category without calibration rows gets every label
            inside = codes == code
            weight = None if self.weight is None else self.weight[rows][inside]
            limits = self._limits[code] if weight is None else self._thresholds(code, weight)
            found[inside] = _entries(scores[inside], limits)
        return found

    @lazy
    def _limits(self) -> list[list[Any]]:
        return [self._thresholds(code, None) for code in range(len(self.calibration.rules))]

    def _thresholds(self, code: int, weight: Floats | None) -> list[Any]:
        return [self.calibration.rules[code].threshold(level, weight) for level in self.levels]

    def p_values(self, rows: Array) -> Floats:
        """As the calibration gives them."""
        return self.calibration.predict_p(
            self.matrix[rows],
            by=None if self.codes is None or self.by is None else self.by[rows],
            sample_weight=None if self.weight is None else self.weight[rows],
            row_ids=None if self.row_ids is None else self.row_ids[rows],
        )


@dataclass(frozen=True, eq=False)
class Valued:
    """P-values, wherever they come from: a label is in the set at level 1−ε if and only if its own exceeds ε."""

    matrix: Floats
    levels: list[Fraction]

    def entries(self, rows: Array) -> Ints:
        """How many levels leave an ε that is not exceeded."""
        errors = np.array([-float(1 - level) for level in self.levels])
        return np.searchsorted(errors, -self.matrix[rows], side="right")

    def p_values(self, rows: Array) -> Floats:
        """They are given."""
        return self.matrix[rows]


@dataclass(frozen=True, eq=False)
class Given:
    """Sets of one level that somebody made."""

    matrix: Bools
    levels: list[Fraction]

    def entries(self, rows: Array) -> Ints:
        """Zero inside the set, one outside."""
        return (~self.matrix[rows]).astype(np.intp)

    def p_values(self, rows: Array) -> None:
        """Sets alone do not tell."""


EntrySource = Scored | Valued | Given
"""What gives the entries of labels, `len(levels)` where a label enters at no level; rows are positions."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Set sizes of every row at every level, and where the true label enters.

    `truth` is the entry of each row's true label: `len(levels)` where it enters nowhere (also if it is outside the
    vocabulary), −1 where nobody knows the truth. It is None where no truth is given at all. Rows of a
    `group` belong together.
    """

    levels: list[Fraction]
    n_classes: int
    sizes: Ints
    truth: Ints | None
    group: Ints | None = None

    def hits(self) -> tuple[Ints, int]:
        """How many sets hold the truth at each level, and how many rows have a known one."""
        if self.truth is None:
            return np.zeros(len(self.levels), dtype=np.intp), 0
        known = self.truth[self.truth >= 0]
        return np.cumsum(np.bincount(known, minlength=len(self.levels) + 1))[:-1], len(known)

    def interval(self, rows: Ints, hits: Bools) -> tuple[float, float] | None:
        """In which the share of hits among some rows lies; None where too few groups tell."""
        if self.group is None:
            return share_interval(hits, None, DELTA)
        _, of = np.unique(self.group[rows], return_inverse=True)
        return share_interval(np.bincount(of, hits).astype(np.intp), np.bincount(of), DELTA)


def grid(confidence_level: float) -> list[Fraction]:
    """The levels of the slider: 0.5 to 0.995 in steps of 0.005, and the level asked for."""
    return sorted({Fraction(i, 200) for i in range(100, 200)} | {as_level(confidence_level)})


def sweep(source: EntrySource, codes: Ints | None, group: Ints | None = None) -> Sweep:
    """Goes once over all rows, in blocks; `codes` are the positions of the true labels."""
    (n, k), n_levels = source.matrix.shape, len(source.levels)
    sizes = np.empty((n, n_levels), dtype=np.int32)
    truth = None if codes is None else np.full(n, -1, dtype=np.intp)

    def work(block: slice) -> None:
        rows = np.arange(block.start, block.stop)
        entries = source.entries(rows)
        keys = entries + np.arange(len(rows))[:, None] * (n_levels + 1)
        counts = np.bincount(keys.ravel(), minlength=len(rows) * (n_levels + 1)).reshape(len(rows), -1)
        sizes[block] = np.cumsum(counts, axis=1)[:, :-1]
        if truth is not None and codes is not None:
            held = codes[block]
            found = entries[np.arange(len(rows)), np.maximum(held, 0)]
            truth[block] = np.where(held >= 0, found, np.where(held == -1, n_levels, -1))

    for_blocks(np.broadcast_to(np.float64(0), (n, max(k, n_levels))), work)
    return Sweep(source.levels, k, sizes, truth, group)


def _entries(scores: Floats, limits: list[Any]) -> Ints:
    """How many limits lie below each score; a limit is one number, one per row, or (1, K), one per label."""
    if all(np.ndim(limit) == 0 for limit in limits):
        return np.searchsorted(np.asarray(limits), scores, side="left")
    found = np.zeros(scores.shape, dtype=np.intp)
    for limit in limits:
        found += scores > (np.reshape(limit, (-1, 1)) if np.ndim(limit) == 1 else limit)
    return found
