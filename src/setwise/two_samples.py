"""Tests of whether two samples come from one distribution, exact or conservative at every size.

Kolmogorov–Smirnov on counts: with F and G the empirical distributions of n and m rows, D = max |F − G| may be taken
over any points, also over points chosen from the data; over fewer points D is smaller, and so is D where values are
tied, so that p-values are conservative. The exact law counts lattice paths: a random path from (0, 0) to (n, m)
leaves the band |i/n − j/m| < D with probability v(n, m), v(i, j) = (i·v(i − 1, j) + j·v(i, j − 1))/(i + j) inside
it and 1 outside. Where that takes too long, D is treated as that of N = nm/(n + m) values against a known
law, and P(D ≥ d) ≤ 2 P(D⁺ ≥ d) ≤ 2 exp(−2Nd²): Smirnov's one-sided law, and Massart's bound. Shares are compared by
Fisher's exact test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import smirnov

from setwise._arrays import Floats, Ints

_STEPS = 4000  # rows in both samples up to which the exact law is computed
_SMIRNOV = (
    1000  # values up to which Smirnov's law is computed: time grows with them, and Massart's bound is near it
)
_EXACT = 32  # of many tests so many, the most significant ones, are computed exactly


@dataclass(frozen=True, eq=False)
class Points:
    """A sample of `n` values, kept as how many of them lie below, and up to, each of some points in order."""

    values: Floats
    below: Ints
    upto: Ints
    n: int

    @classmethod
    def of(cls, sample: Floats, most: int | None = None) -> Points:
        """Every value as a point, or at most so many of them, at equal steps through the sample."""
        ordered = np.sort(sample)
        taken = ordered
        if most is not None and len(ordered) > most:
            taken = ordered[np.linspace(0, len(ordered) - 1, most).astype(int)]
        points = np.unique(taken)
        return cls(points, *counts_at(points, ordered), len(ordered))

    def gap(self, below: Ints, upto: Ints, m: int) -> tuple[int, int]:
        """n·m·D for another sample of `m` values by its counts at these points, and the point where it is found."""
        if m == 0 or self.n == 0:
            return 0, 0
        apart = np.maximum(self.upto * m - upto * self.n, below * self.n - self.below * m)
        at = int(apart.argmax())
        return max(int(apart[at]), 0), at


def counts_at(points: Floats, ordered: Floats) -> tuple[Ints, Ints]:
    """How many of some values in order lie below, and up to, each point."""
    return np.searchsorted(ordered, points, side="left"), np.searchsorted(ordered, points, side="right")


def gap_between(old: Floats, new: Floats) -> int:
    """n·m·D for two samples of n and m values."""
    points = Points.of(old)
    return points.gap(*counts_at(points.values, np.sort(new)), len(new))[0]


def kolmogorov_smirnov(
    gaps: Sequence[int], n: Sequence[int] | Ints, m: Sequence[int] | Ints, *, exact_below: float = 1.0
) -> Floats:
    """The p-value of each gap n·m·D between samples of n and m values.

    It is exact where a bound, which is quick, lies below `exact_below` after a Bonferroni correction.

    >>> kolmogorov_smirnov([3 * 3], [3], [3]).round(6)  # all of one sample below all of the other: 2 of 20 orders
    array([0.1])
    """
    sizes = np.asarray(n, dtype=float) * np.asarray(m, dtype=float)
    both = np.asarray(n, dtype=float) + np.asarray(m, dtype=float)
    alike = np.maximum(sizes // np.maximum(both, 1), 1)
    # Less one step of the larger sample: without, a single row beyond all others would be impossible.
    less = np.maximum(np.asarray(gaps) - np.minimum(n, m), 0)
    d = less / np.maximum(sizes, 1)
    one_sided = np.where(alike > _SMIRNOV, np.exp(-2 * d**2 * alike), smirnov(np.minimum(alike, _SMIRNOV), d))
    p_values: Floats = np.minimum(2 * one_sided, 1.0)
    first = np.argsort(one_sided)[:_EXACT]
    # Those that one Bonferroni correction turns into one, and those behind many others, need not be exact.
    for i in first[one_sided[first] * len(p_values) < exact_below]:
        if both[i] <= _STEPS:
            p_values[i] = outside_band(int(gaps[i]), int(n[i]), int(m[i]))
    return p_values


@lru_cache(maxsize=1024)
def outside_band(gap: int, n: int, m: int) -> float:
    """P(n·m·D ≥ gap) for two samples of n and m values from one continuous distribution."""
    if gap <= 0:
        return 1.0
    n, m = min(n, m), max(n, m)
    points = np.arange(n + 1.0)
    left = np.ones(n + 2)  # v on the diagonal i + j = s, at i + 1
    left[1] = 0.0
    for s in range(1, n + m + 1):
        # Inside the band |i(n + m) − s·n| < gap. From one diagonal to the next its ends move by one at most.
        low, high = max((s * n - gap) // (n + m) + 1, 0), min(-(-(s * n + gap) // (n + m)), n + 1)
        i = points[low:high]
        left[low + 1 : high + 1] = (i * left[low:high] + (s - i) * left[low + 1 : high + 1]) / s
        left[low] = 1.0
    return float(min(left[n + 1], 1.0))


def fisher(inside: Ints, n: int, new_inside: Ints, m: int) -> Floats:
    """The two-sided p-value of each share `inside`/n against `new_inside`/m, by Fisher's exact test.

    >>> fisher(np.array([3]), 3, np.array([0]), 3).round(6)
    array([0.1])
    """
    return np.array([_fisher(int(a), n, int(b), m) for a, b in zip(inside, new_inside, strict=True)])


def _fisher(inside: int, n: int, new_inside: int, m: int) -> float:
    """Twice the smaller tail of the hypergeometric law of `new_inside`, by the ratios of its probabilities."""
    together = inside + new_inside
    lowest = max(together - n, 0)
    i = np.arange(lowest, min(together, m))
    steps = np.log((together - i) * (m - i)) - np.log((i + 1.0) * (n - together + i + 1))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    law = np.exp(logs - logs.max())
    at = new_inside - lowest
    return float(min(2 * min(law[: at + 1].sum(), law[at:].sum()) / law.sum(), 1.0))
