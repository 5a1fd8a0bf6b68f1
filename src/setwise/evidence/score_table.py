"""The scores of all labels of many rows, a block of rows at a time: no (n, K) table of them is held.

Whoever looks at all scores reads ``table[rows]`` for the slices of ``blocks(table)``, of a `ScoreTable` as of an
array.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints
from setwise.probabilities.kept_arrays import Digest
from setwise.ranks import sortable_bits
from setwise.scores import LAC, Score


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The (n, K) scores of rows whose probabilities are kept as they were given, without a copy.

    A block of rows is scored when it is read. `u` is the noise of the rows, where the score is randomised. By the
    `digest` of the probabilities it is seen whether whoever gave them changed them since (`check_unchanged`).
    """

    score: Score
    probabilities: Floats
    u: Floats | None = None
    digest: Digest = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", Digest.of(self.probabilities))

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, K)."""
        return self.probabilities.shape

    @property
    def itemsize(self) -> int:
        """The bytes of a score."""
        return 8

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, rows: slice) -> Floats:
        """The scores of a block of rows; of LAC in the type of the probabilities, which holds them exactly."""
        if isinstance(self.score, LAC):
            return np.negative(self.probabilities[rows])
        return self.score.score(self.probabilities[rows], u=None if self.u is None else self.u[rows])

    def take(self, chosen: Ints) -> ScoreTable:
        """The table of some rows, by their positions."""
        given = check_unchanged(self).probabilities
        return ScoreTable(self.score, given[chosen], None if self.u is None else self.u[chosen])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        scores: Array = check_unchanged(self)[:].astype(dtype or np.float64, copy=False)
        return scores


Table = ScoreTable | Floats


def check_unchanged(table: Any) -> Any:
    """The table, if its probabilities are those that were given; whoever reads one made earlier asks first."""
    if isinstance(table, ScoreTable):
        table.digest.check(table.probabilities)
    return table


def row_order(scores: Floats) -> Ints:
    """The labels of each row from the least to the most strange score, equals in the order of the columns.

    Where float32 holds the scores, one sort of integers does: the ordered bits of the score above the label.

    >>> row_order(np.array([[0.5, 0.25, 0.25], [0.1, 0.3, 0.2]]))
    array([[1, 2, 0],
           [0, 2, 1]])
    """
    if scores.dtype == np.float32 or np.array_equal(scores.astype(np.float32), scores):
        packed = sortable_bits(scores).astype(np.int64) << 32
        packed |= np.arange(scores.shape[1])
        packed.sort(axis=1)
        packed &= 0xFFFFFFFF
        return packed
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    order[tied] = np.argsort(scores[tied], axis=1, kind="stable")
    return order
