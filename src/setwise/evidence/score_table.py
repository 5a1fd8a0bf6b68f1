"""The scores of all labels of many rows, a block of rows at a time: no (n, K) table of them is held.

Whoever counts over all scores reads ``table[block]`` for the blocks of ``blocks(table)``, of a `ScoreTable` as of an
array. Rows are put in order by integers where that is exact: a score that float32 holds, as 32 ordered bits, above the
position of its label, so that one sort gives the stable order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints
from setwise.errors import InputError
from setwise.ranks import ordered_bits
from setwise.row_noise import uniforms
from setwise.scores import LAC, Score


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The (n, K) scores of rows whose probabilities are kept as they were given, without a copy.

    A block of rows is scored when it is asked for. Whoever reads the table later than it was made has to `check` that
    the probabilities are still those that were given. `u` is the noise of the rows, where the score is randomised.
    """

    score: Score
    probabilities: Floats
    u: Floats | None = None
    digests: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digests", uniforms(self.probabilities, 0))

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

    def check(self) -> None:
        """Refuses probabilities that are no longer those that were given."""
        if not np.array_equal(uniforms(self.probabilities, 0), self.digests):
            raise InputError(
                "probabilities: the array was changed after it was calibrated on", "calibrate on a copy of it"
            )

    def take(self, chosen: Ints) -> ScoreTable:
        """The table of some rows, by their positions."""
        self.check()
        return ScoreTable(self.score, self.probabilities[chosen], None if self.u is None else self.u[chosen])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: ARG002 - always new
        self.check()
        return self[:].astype(dtype or np.float64, copy=False)


Table = ScoreTable | Floats


def row_order(scores: Floats) -> Ints:
    """The labels of each row from the least to the most strange score, equals in the order of the columns."""
    if scores.dtype == np.float32 or np.array_equal(scores.astype(np.float32), scores):
        packed = ordered_bits(scores).astype(np.int64) << 32
        packed |= np.arange(scores.shape[1])
        packed.sort(axis=1)
        packed &= 0xFFFFFFFF
        return packed
    order = np.argsort(scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    order[tied] = np.argsort(scores[tied], axis=1, kind="stable")
    return order
