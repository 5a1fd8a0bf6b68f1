"""The exact arithmetic of claims: levels as decimals, ranks, order statistics, binomial and Beta bounds.

The threshold of n scores at confidence level 1−ε is their ⌈(n+1)(1−ε)⌉-th smallest. The level is the
decimal the user wrote, so that 0.9 and n = 9 give rank 9; a rank above n means +∞: every label.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln, rel_entr, stdtrit

from setwise._arrays import Array, Bools, Floats, Ints
from setwise.errors import MisuseWarning, Remedy

Level: TypeAlias = float | Fraction
Levels: TypeAlias = Sequence[Level] | Floats

_T = TypeVar("_T")
FEWEST_GROUPS = 20
"""Fewer groups than these show too little of how groups differ for an interval."""

_WRITTEN = 10**6  # denominators that a person writes
_ROUNDING = Fraction(1, 10**12)
_CELLS = 8  # of a table for each value that it leads to
_WIDEST = 21  # bits of such a table
_STEPS = 4  # from the start of a cell, before the rest is searched


def as_fraction(value: Any, name: str) -> Fraction:
    """The decimal that was meant: 0.9 is 9/10, and 1 − 0.7 is 3/10; finer values stay as they are."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal, np.floating, np.integer)):
        raise TypeError(f"{name}: expected a number, got {value!r}.")
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value!r}.")
    return _as_written(value if isinstance(value, (Fraction, Decimal)) else float(str(value)))


@lru_cache(256)
def _as_written(value: Fraction | Decimal | float) -> Fraction:
    exact = Fraction(value)
    written = exact.limit_denominator(_WRITTEN)
    return written if abs(written - exact) < _ROUNDING else exact


def as_level(confidence_level: Any, name: str = "confidence_level") -> Fraction:
    """A confidence level strictly between 0 and 1, as the decimal that was written."""
    level = as_fraction(confidence_level, name)
    if not 0 < level.numerator < level.denominator:
        hint = f"; did you mean {float(level) / 100:g}?" if 2 <= level < 100 else "."
        raise ValueError(f"{name}: {confidence_level} is not between 0 and 1 (exclusive){hint}")
    return level


def doubt_level(confidence_level: Any) -> None:
    """Warns of a single level that looks like an error rate."""
    if isinstance(confidence_level, (int, float)) and 0 < confidence_level < 0.5:
        meant = Remedy(
            "confidence_level", round(1 - confidence_level, 12), "if this was meant as the error rate alpha"
        )
        problem = f"confidence_level: {confidence_level} asks for sets that miss the truth in most rows"
        warnings.warn(MisuseWarning(problem, meant), stacklevel=4)


def each_level(confidence_level: Level | Levels, answer: Callable[[Fraction], _T]) -> _T | list[_T]:
    """One level, one answer; a list of levels, a list of answers."""
    if isinstance(confidence_level, (list, tuple, np.ndarray)):
        return [answer(level) for level in [as_level(level) for level in confidence_level]]
    return answer(as_level(confidence_level))


def rank(n: int, level: Fraction) -> int:
    """⌈(n+1)·level⌉, exactly."""
    return math.ceil((n + 1) * level)


def order_statistic(scores: Floats, position: int) -> float:
    """The position-th smallest score (from 1), found by partition; +∞ where there are too few."""
    if position > len(scores):
        return math.inf
    return float(np.partition(scores, position - 1)[position - 1])


def instances_needed(level: Fraction) -> int | None:
    """The fewest instances whose rank is at most their number; None where no number is enough."""
    return None if level >= 1 else math.ceil(level / (1 - level))


def clopper_pearson(successes: float, trials: float, delta: float) -> tuple[float, float]:
    """The exact two-sided binomial interval: each side misses with probability at most delta/2.

    Counts that are not whole, such as effective ones, interpolate it.
    """
    lower, upper = binomial_bounds(np.array(successes), np.array(trials), delta)
    return float(lower), float(upper)


def binomial_bounds(successes: Array, trials: Array, delta: float) -> tuple[Floats, Floats]:
    """The intervals of `clopper_pearson` for arrays of counts; 0 to 1 without any trial."""
    x, n = np.broadcast_arrays(successes, trials)
    lower = np.where(x > 0, betaincinv(np.where(x > 0, x, 1), n - x + 1, delta / 2), 0.0)
    upper = np.where(x < n, betaincinv(x + 1, np.where(x < n, n - x, 1), 1 - delta / 2), 1.0)
    return lower, upper


def hypergeometric_cdf(count: Ints, rows: Ints, marked: Ints, drawn: Ints) -> Floats:
    """P(at most `count` of the `marked` rows are drawn), where `drawn` of `rows` are; elementwise for vectors.

    >>> hypergeometric_cdf(np.array([0, 1]), np.array([4, 4]), np.array([2, 2]), np.array([2, 2])).round(4)
    array([0.1667, 0.8333])
    """
    least, most = np.maximum(0, drawn + marked - rows), np.minimum(np.minimum(count, drawn), marked)
    k = least[:, None] + np.arange(int((most - least).max(initial=-1)) + 1)
    n, marks, m = rows[:, None], marked[:, None], drawn[:, None]
    inside = np.minimum(k, np.maximum(most, 0)[:, None])
    log_p = log_choose(marks, inside) + log_choose(n - marks, m - inside) - log_choose(n, m)
    chance: Floats = np.where(k <= most[:, None], np.exp(log_p), 0.0).sum(axis=1)
    return np.minimum(chance, 1.0)


def hypergeometric_bounds(hits: Ints, drawn: Ints, rows: Ints, delta: float) -> tuple[Floats, Floats]:
    """The exact two-sided interval of a share of `rows`, of which `drawn` were drawn without replacement.

    >>> [ends.round(2).tolist() for ends in hypergeometric_bounds(*np.array([[3], [4], [8]]), 0.05)]
    [[0.38], [0.88]]
    """
    counts, place = np.unique(np.stack([hits, drawn, rows]), axis=1, return_inverse=True)
    x, m, n = counts
    most = np.stack([_most_marked(found, m, n, delta / 2) for found in (x, m - x)])
    lower, upper = np.divide([n - most[1], most[0]], n, out=np.array([[0.0], [1.0]]) + 0.0 * n, where=n > 0)
    return lower[place.ravel()], upper[place.ravel()]


def _most_marked(hits: Ints, drawn: Ints, rows: Ints, delta: float) -> Ints:
    """The largest number of marked rows under which so few hits are more probable than `delta`."""
    low, high = hits, rows - drawn + hits
    while (low < high).any():
        middle = (low + high + 1) // 2
        probable = hypergeometric_cdf(hits, rows, middle, drawn) > delta * (1 + 1e-9)
        low, high = np.where(probable, middle, low), np.where(probable, high, middle - 1)
    return low


def log_choose(n: int | Ints, k: int | Ints) -> Floats:
    """The logarithm of the binomial coefficient."""
    chosen: Floats = gammaln(np.add(n, 1)) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1)
    return chosen


def share_interval(
    hits: Bools | Ints, sizes: Ints | None = None, delta: float = 0.05
) -> tuple[float, float] | None:
    """The interval of a share of rows; of rows in groups drawn at random from the hits and rows of each group.

    For groups it is that of Korn and Graubard (1998): Clopper–Pearson for as many independent rows as would vary
    like the ratio Σhits/Σrows of these groups. One more group of the largest size is taken to miss in all rows (or
    to hit, where most rows miss), since few groups seldom show how much groups differ. Fewer than 10 have none.

    >>> [round(end, 2) for end in share_interval(np.array([5, 5, 4, 5, 1] * 4), np.full(20, 5))]
    [0.6, 0.93]
    >>> [round(end, 2) for end in clopper_pearson(80, 100, 0.05)]
    [0.71, 0.87]
    """
    if sizes is None:
        return clopper_pearson(int(hits.sum()), len(hits), delta)
    if len(sizes) < FEWEST_GROUPS:
        return None
    n, share = int(sizes.sum()), float(hits.sum() / sizes.sum())
    largest = int(sizes.max())
    m, good = np.append(sizes, largest), np.append(hits, 0 if share > 0.5 else largest)
    ratio = good.sum() / m.sum()
    count = len(m)
    variance = count / (count - 1) * np.square(good - ratio * m).sum() / m.sum() ** 2
    few, many = n**2 / np.square(sizes).sum() - 1, n - 1  # groups of unequal size count as fewer
    wider = (stdtrit(many, 1 - delta / 2) / stdtrit(max(few, 1.0), 1 - delta / 2)) ** 2 if many else 1.0
    effective = min(ratio * (1 - ratio) / variance * wider, n)
    return clopper_pearson(share * effective, effective, delta)


def upper_bound(successes: int, trials: int, delta: float) -> float:
    """The exact one-sided upper bound on a probability: too small with probability at most delta."""
    return clopper_pearson(successes, trials, 2 * delta)[1]


def mean_exceeds(values: Floats, bound: float, delta: float) -> bool:
    """Whether independent values in [0, 1] refute that their mean is at most `bound` (Hoeffding, 1963, Theorem 1).

    >>> mean_exceeds(np.repeat([1.0, 0.0], [35, 65]), 0.2, 0.05), mean_exceeds(np.ones(1), 0.2, 0.05)
    (True, False)
    """
    mean = float(values.mean()) if len(values) else 0.0
    entropy = float(rel_entr(mean, bound) + rel_entr(1 - mean, 1 - bound))
    return mean > bound and len(values) * entropy > -math.log(delta)


def beta_interval(n: int, position: int, delta: float) -> tuple[float, float]:
    """Where P(e ≤ e_(r) | calibration set) lies in a share 1−delta of calibration sets: Beta(r, n+1−r)."""
    if position > n:
        return 1.0, 1.0
    a, b = position, n + 1 - position
    return float(betaincinv(a, b, delta / 2)), float(betaincinv(a, b, 1 - delta / 2))


def chance_of_so_few(covered: int, m: int, n: int, level: Fraction) -> float:
    """The chance that at most so many of m new rows are covered after calibration on n exchangeable ones.

    Their number is Beta-binomial, since calibration rows are random too.
    """
    from scipy.stats import betabinom  # slow to import, needed here alone

    position = min(rank(n, level), n)
    return float(betabinom.cdf(covered, m, position, n + 1 - position))


def dkw_band(n: int, delta: float) -> float:
    """√(log(2/δ)/2n): two one-sided Dvoretzky–Kiefer–Wolfowitz–Massart bands, together at level δ."""
    return math.sqrt(math.log(2 / delta) / (2 * n))


def sortable_bits(scores: Floats) -> NDArray[np.int32]:
    """Whole numbers that order scores as float32 does: equal for equal ones, never smaller for larger ones."""
    with np.errstate(over="ignore"):
        bits = (scores.astype(np.float32, copy=False) + np.float32(0)).view(np.int32)  # −0.0 is 0.0
    folded: NDArray[np.int32] = bits >> 31
    folded &= 0x7FFFFFFF
    folded ^= bits
    return folded


class Ascending:
    """Numbers in order, and how many of them lie strictly below others: as `np.searchsorted`, and faster for many.

    A table over the ordered bits says where to look, and most looks end there: what remains takes a few steps.

    >>> Ascending(np.array([0.1, 0.2, 0.2, 0.7])).count_below(np.array([[0.2, 0.3], [0.05, 0.9]]))
    array([[1, 3],
           [0, 4]])
    """

    def __init__(self, values: Floats) -> None:
        self.values = values
        bits = sortable_bits(values[[0, -1]]).astype(np.int64) if len(values) else np.zeros(2, np.int64)
        self._low, span = int(bits[0]), int(bits[1] - bits[0])
        self._shift = max(span.bit_length() - min((_CELLS * len(values)).bit_length(), _WIDEST), 0)
        self._last = (span >> self._shift) + 1
        self._starts = np.cumsum(np.bincount(self._cells(values) + 1, minlength=self._last + 1))
        self._bounded = np.append(values, np.inf)

    def count_below(self, scores: Floats) -> Ints:
        """For each score how many values lie strictly below it."""
        flat = scores.ravel()
        count = self._starts.take(self._cells(flat))  # those of earlier cells
        behind = np.flatnonzero(self._bounded.take(count) < flat)
        for _ in range(_STEPS):
            count[behind] += 1
            behind = behind[self._bounded[count[behind]] < flat[behind]]
        count[behind] = np.searchsorted(self.values, flat[behind], side="left")
        return count.reshape(scores.shape)

    def _cells(self, scores: Floats) -> Ints:
        """A cell for each score, the last one beyond all values."""
        cell = sortable_bits(scores).astype(np.intp)
        cell -= self._low
        cell >>= self._shift
        return np.clip(cell, 0, self._last, out=cell)
