"""How many of the most confident labels may be accepted: the three modes of triage, and the curve.

Verified rows and rows to decide, together n, stand in the order of falling confidence, which treats both alike and
has seen no verified label. Every mode accepts the first rows to decide, and differs in how many:

``"overall"``   all before the (κ + 1)-th wrong verified row: at most `max_error` of the finished data set is
                wrong (`overall`). The curve has such a κ for each of a list of errors, all holding together.
``"accepted"``  as many as there are before the wrong verified row that is too many for some size fixed beforehand,
                if they are that many: at most `max_error` of that size are wrong. All sizes hold together.
``"average"``   conformal selection (Jin and Candès, JMLR 2023): row j has the p-value (1 + #wrong verified rows
                at or above j) / (m + 1), and Benjamini–Hochberg at `max_error` bounds the expected share of wrong
                labels among the accepted. `wrong_in_this_draw` bounds it in this draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints
from setwise._lazy import lazy
from setwise.decisions.overall import allowed_wrong, fewest_verified, joint_allowed, joint_wrong
from setwise.errors import InputError, Remedy
from setwise.probabilities.proposed_labels import Proposals
from setwise.ranks import as_level

Mode = Literal["overall", "accepted", "average"]
MODES: tuple[Mode, ...] = ("overall", "accepted", "average")
ERRORS = tuple(Fraction(percent, 100) for percent in (1, 2, 5, 10, 20))
"""The errors of the curve, beside the one that is asked for."""

ALONE = "Settle before you look: take the first decision, or choose from the curve alone."
"""With the curve's bounds those of the first decision, at a larger κ, do not hold together."""

_SIZES = 20  # shares of the rows that "accepted" may accept
_EACH = 40  # wrong verified rows up to which each number has a bound of its own


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """How many labels each max error would accept; all bounds hold together, so that you may look and then choose.

    The first decision is not among them: settle before you look whether you take it or choose from the curve.

    Attributes
    ----------
    max_error
        The errors, fixed beforehand.
    bound
        The share of all rows that may be wrong, for each of them.
    accepted, unseen
        How many labels it accepts, and their share of the rows that are not verified.
    """

    max_error: Floats
    bound: Floats
    accepted: Ints
    unseen: Floats

    @property
    def least(self) -> float | None:
        """The smallest max error that accepts something."""
        return float(self.max_error[self.accepted > 0].min()) if self.accepted.any() else None

    def __len__(self) -> int:
        return len(self.max_error)

    def to_frame(self) -> Any:
        """A pandas frame with one line per max error."""
        import pandas as pd  # pandas is optional

        return pd.DataFrame({name: getattr(self, name) for name in self.__dataclass_fields__})

    def __str__(self) -> str:
        lines = ["max error  accepted  unseen"]
        for error, taken, share in zip(self.max_error, self.accepted, self.unseen, strict=True):
            lines.append(f"{error:>9.4g}  {taken:>8,}  {share:>6.1%}")
        return "\n".join([*lines, ALONE])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Verified rows with their truth and the rows to decide, and what they allow.

    `new` says whether the rows to decide are new ones, of which alone the error is a share; `delta` in which share
    of draws a bound may fail.
    """

    verified: Proposals
    truth: Ints
    rows: Proposals
    new: bool
    delta: float

    @property
    def m(self) -> int:
        """How many rows are verified."""
        return len(self.verified)

    @property
    def n(self) -> int:
        """How many rows there are, verified or to be decided."""
        return len(self.verified) + len(self.rows)

    @property
    def total(self) -> int:
        """The rows whose share of wrong labels "overall" bounds: all at hand, or the new ones alone."""
        return len(self.rows) if self.new else self.n

    @lazy
    def wrong(self) -> Bools:
        """Which verified rows have a wrong proposal."""
        differ: Bools = self.verified.label != self.truth
        return differ

    @lazy
    def _ranking(self) -> tuple[Ints, Ints]:
        """The rows to decide, most confident first, and how many wrong verified rows stand above each."""
        both = (self.verified, self.rows)
        confidence = np.concatenate([part.confidence for part in both])
        # Where confidence and noise are equal, verified rows come first, as here: a tie counts against acceptance.
        order = np.argsort(-confidence, kind="stable")
        if (np.diff(confidence[order]) == 0).any():
            noise = np.concatenate([np.zeros(len(part)) if part.noise is None else part.noise for part in both])
            order = np.lexsort((-noise, -confidence))
        above = np.cumsum(np.append(self.wrong, np.zeros(len(self.rows), dtype=bool))[order])
        to_decide = order >= self.m
        return order[to_decide] - self.m, above[to_decide]

    @property
    def order(self) -> Ints:
        """The rows to decide, most confident first."""
        return self._ranking[0]

    @property
    def above(self) -> Ints:
        """How many wrong verified rows stand above each of them, in this order."""
        return self._ranking[1]

    @lazy
    def contradicted(self) -> Ints:
        """The verified rows whose proposal is wrong, most confident first."""
        wrong, noise = np.flatnonzero(self.wrong), self.verified.noise
        keys = (-self.verified.confidence[wrong],)
        return wrong[np.lexsort(keys if noise is None else (-noise[wrong], *keys))]

    def limit(self, error: Fraction) -> int:
        """How many labels of the finished data set may be wrong."""
        return math.floor(error * self.total)

    def accept(self, mode: Mode, error: Fraction) -> int:
        """How many of the most confident rows are accepted."""
        if not len(self.rows) or not self.m:
            return 0
        return int(
            {"overall": self._take_overall, "accepted": self._take_sized, "average": self._take_average}[mode](
                error
            )
        )

    def before(self, allowed: int | None) -> int:
        """How many rows to decide stand before the wrong verified row that is one too many."""
        return 0 if allowed is None else int(np.searchsorted(self.above, allowed, side="right"))

    def _take_overall(self, error: Fraction) -> int:
        return self.before(allowed_wrong(self.n, self.limit(error), self.m, self.delta))

    def _take_sized(self, error: Fraction) -> int:
        sizes = np.unique(np.ceil(len(self.rows) * np.arange(1, _SIZES + 1) / _SIZES).astype(int)).tolist()
        allowed = joint_allowed(self.n, tuple(math.floor(error * size) for size in sizes), self.m, self.delta)
        # At most ⌊ε·size⌋ unverified rows are wrong before the wrong verified one that is too many.
        before = [self.before(k) for k in allowed]
        return max((rows for rows, size in zip(before, sizes, strict=True) if rows >= size), default=0)

    def _take_average(self, error: Fraction) -> int:
        # p_(k) ≤ α·k/n in whole numbers: k is at least (1 + wrong)·n / (α·(m + 1)).
        needed = [
            math.ceil((1 + wrong) * len(self.rows) / (error * (self.m + 1)))
            for wrong in range(int(self.wrong.sum()) + 1)
        ]
        enough = np.arange(1, len(self.rows) + 1) >= np.array(needed)[self.above]
        return int(np.flatnonzero(enough).max(initial=-1)) + 1

    def fewest(self, mode: Mode, error: Fraction) -> int | None:
        """With how many verified rows this mode can accept something; None where no number suffices."""
        if mode == "average":
            return math.ceil(1 / error) - 1

        def size(m: Ints) -> tuple[Ints, Ints]:
            n = m + len(self.rows) if self.new else np.full_like(m, self.n)
            accepted = len(self.rows) if self.new else self.n - m
            if mode == "overall":
                return n, np.full_like(m, self.limit(error))
            return n, np.asarray(accepted * error.numerator // error.denominator + 0 * m)

        # P(none of L + 1 is drawn) ≤ (N / (N + m))^(L + 1), which is δ at the latest here.
        fewer = self.delta ** (-1 / (self.limit(error) + 1)) - 1
        most = math.ceil(len(self.rows) * fewer) + 1 if self.new else self.n
        return fewest_verified(range(1, most + 1), size, self.delta)

    def wrong_in_this_draw(self, accepted: int) -> int:
        """How many of the accepted labels may be wrong in this draw, by bounds that hold together."""
        numbers = list(range(min(_EACH, self.m) + 1))
        while numbers[-1] < self.m:
            numbers.append(min(math.ceil(1.1 * numbers[-1]), self.m))
        seen = int(self.above[accepted - 1])
        place = int(np.searchsorted(numbers, seen))
        return min(joint_wrong(self.n, tuple(numbers), self.m, self.delta)[place], accepted)

    def curve(self, error: Fraction) -> ErrorCurve:
        """What each error of the list accepts, all at once."""
        errors = sorted({*ERRORS, error})
        limits = tuple(self.limit(each) for each in errors)
        allowed: Sequence[int | None] = [None] * len(errors)
        if self.m and len(self.rows):
            allowed = joint_allowed(self.n, limits, self.m, self.delta)
        taken: Array = np.array([self.before(k) for k in allowed])
        shares = np.array([float(each) for each in errors]), np.array(limits) / max(self.total, 1)
        return ErrorCurve(*shares, taken, taken / max(len(self.rows), 1))

    def expect(self, m: int, error: Fraction) -> float:
        """The share of rows that "overall" would accept with m verified rows; an estimate.

        Wrong verified rows would stand where they stand now, m over the present number times as many.
        """
        n = m + len(self.rows) if self.new else self.n
        allowed = allowed_wrong(n, self.limit(error), m, self.delta)
        if allowed is None:
            return 0.0
        stop, wrong = (allowed + 1) * self.m / m, int(self.wrong.sum())
        if stop > wrong:
            return 1.0
        before = np.searchsorted(self.above, np.arange(wrong), side="right")
        return float(np.interp(stop, np.arange(1, wrong + 1), before)) / len(self.rows)


def as_error(max_error: Any, mode: Any) -> tuple[Fraction, Mode]:
    """The max error as the decimal that was written, and the mode."""
    if mode not in MODES:
        raise InputError(f"mode: {mode!r} is not known", *(Remedy("mode", each) for each in MODES))
    return as_level(max_error, "max_error"), mode
