"""How many rows may be wrong unseen: exact bounds from rows verified at random, for rows in any fixed order.

Of n rows m are verified, drawn at random without replacement, and the order has nothing to do with the draw. Accept
every row before the (k + 1)-th wrong verified one. Let w₁, w₂, … be the wrong rows in order. If more than L
unverified wrong rows are accepted, at most k of w₁ … w_N with N = L + k + 1 are verified: with k + 1 of them
verified, at most L unverified wrong rows come before the last of these. That event has the probability

    f(L, k) = P(Hypergeometric(n, N, m) ≤ k),

whatever rows are wrong; with fewer than N wrong rows it is part of the same event for rows that are added to
them. f grows with k and falls with L, so that κ, the largest k with f(L, k) ≤ δ, accepts most. Several (L, k) hold
together but for the probability that any of these events occurs: the number verified among the first j wrong rows
is a Markov chain in j, whose mass at or below k is dropped at j = L + k + 1 (`joint_failure`). Nothing is assumed
of rows, proposals or order, but that the order has not seen a verified label.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy.special import gammaln

from setwise._arrays import Floats, Ints
from setwise.ranks import log_choose

_T = TypeVar("_T")

_ROUNDING = 1 + 1e-9  # of δ: a probability that equals it does, whatever the last bits
_STEPS = 8  # of halving the level that several bounds have in common
_TAIL = 7.0  # standard deviations; what lies beyond counts as failure,
_DUST = 1e-15  # and so do numbers that are less probable than this


def failure(n: int, limit: int, allowed: int, m: int) -> float:
    """The largest probability that more than `limit` of the rows accepted are wrong and unverified.

    Accepted are, of n rows, those before the wrong verified row number `allowed` + 1.

    >>> round(failure(n=2000, limit=100, allowed=5, m=200), 4), round(failure(n=20, limit=0, allowed=0, m=19), 4)
    (0.0361, 0.05)
    """
    marked = limit + allowed + 1
    drawn = np.arange(max(0, m + marked - n), min(allowed, m, marked) + 1)
    log_p = log_choose(marked, drawn) + log_choose(n - marked, m - drawn) - log_choose(n, m)
    return min(float(np.exp(log_p).sum()), 1.0) if marked <= n else 0.0


def allowed_wrong(n: int, limit: int, m: int, delta: float) -> int | None:
    """κ, the most wrong verified rows before the last accepted one; None where no number is allowed."""
    if n - m <= limit:  # so few rows are unverified that no more of them can be wrong
        return m
    # From its mean on a count is exceeded in half of the cases, at most.
    above = min(n - limit, m, math.floor(((limit + 1) * m + n) / (n - m)) + 2)
    return _largest(range(above), lambda k: failure(n, limit, k, m) <= delta * _ROUNDING)


def wrong_at_most(n: int, allowed: int, m: int, delta: float) -> int:
    """The least limit that `allowed` wrong verified rows prove."""
    too_small = range(max(n - m, 0))
    found = _largest(too_small, lambda limit: failure(n, limit, allowed, m) > delta * _ROUNDING)
    return 0 if found is None else found + 1


def fewest_verified(
    candidates: Iterable[int], size: Callable[[Ints], tuple[Ints, Ints]], delta: float
) -> int | None:
    """The least of some numbers of verified rows that accepts anything; `size` gives n and limit for each."""
    m = np.fromiter(candidates, dtype=np.int64)
    n, limit = size(m)
    none_drawn = np.where(limit + 1 + m > n, -np.inf, log_choose(n - limit - 1, m) - log_choose(n, m))
    enough = np.flatnonzero(none_drawn <= math.log(delta * _ROUNDING))
    return int(m[enough[0]]) if len(enough) else None


# -------------------------------------------------------------------- several at once


def joint_failure(n: int, m: int, points: Iterable[tuple[int, int]]) -> float:
    """The probability that for any (limit, allowed) at most `allowed` of the first limit + allowed + 1 are drawn.

    These are rows in a fixed order, of n, of which m are drawn.
    """
    mass: Floats = np.ones(1)  # mass[i]: the probability that first + i are drawn so far, and no failure
    place, first = 0, 0
    for at, allowed in sorted((limit + allowed + 1, allowed) for limit, allowed in points):
        if at > n:
            break
        if at > place:
            first, mass = _advance(first, mass, n - place, m, at - place)
            place = at
        mass, first = mass[max(allowed + 1 - first, 0) :], max(first, allowed + 1)
        if not len(mass):
            return 1.0
    return max(1 - float(mass.sum()), 0.0)


@lru_cache
def joint_allowed(n: int, limits: tuple[int, ...], m: int, delta: float) -> list[int | None]:
    """κ for each limit, so that all hold together with probability 1 − `delta`; as `allowed_wrong` at one level."""

    def at(level: float) -> list[int | None]:
        return [allowed_wrong(n, limit, m, level) for limit in limits]

    def failing(found: list[int | None]) -> float:
        pairs = zip(limits, found, strict=True)
        return joint_failure(n, m, [(limit, k) for limit, k in pairs if k is not None and n - m > limit])

    return _at_common_level(at, failing, delta, len(limits))


@lru_cache
def joint_wrong(n: int, allowed: tuple[int, ...], m: int, delta: float) -> list[int]:
    """The limit that each number of wrong verified rows proves, all together with probability 1 − `delta`."""

    def at(level: float) -> list[int]:
        return [wrong_at_most(n, k, m, level) for k in allowed]

    def failing(limits: list[int]) -> float:
        return joint_failure(n, m, [pair for pair in zip(limits, allowed, strict=True) if n - m > pair[0]])

    return _at_common_level(at, failing, delta, len(allowed))


def _at_common_level(
    at: Callable[[float], list[_T]], failing: Callable[[list[_T]], float], delta: float, parts: int
) -> list[_T]:
    """The answers at the largest level, of those that halving finds, at which they fail together with `delta`."""
    low, high = delta / max(parts, 1), delta
    found, last = at(low), at(high)
    for _ in range(_STEPS):
        if found == last:
            break
        middle = (low + high) / 2
        tried = at(middle)
        if failing(tried) <= delta * _ROUNDING:
            low, found = middle, tried
        else:
            high, last = middle, tried
    return found


def _advance(first: int, mass: Floats, left: int, m: int, steps: int) -> tuple[int, Floats]:
    """The law of the number drawn after `steps` more of `left` rows; `mass` starts at `first` of m."""
    before = first + np.arange(len(mass))
    share = (m - before[[0, -1]]) / left
    mean, spread = before[[0, -1]] + steps * share, _TAIL * (np.sqrt(steps * share * (1 - share)) + _TAIL)
    lowest = max(first, math.floor(mean[0] - spread[0]))
    after = np.arange(lowest, min(first + len(mass) - 1 + steps, m, math.ceil(mean[1] + spread[1])) + 1)
    more = np.arange(after[0] - before[-1], after[-1] - before[0] + 1)  # each difference once
    undrawn = left - m
    to = -gammaln(m - after + 1) - gammaln(undrawn - steps + after + 1)
    by = -gammaln(more + 1) - gammaln(steps - more + 1)
    since = gammaln(m - before + 1) + gammaln(undrawn + before + 1)
    every = gammaln(left + 1) - gammaln(steps + 1) - gammaln(left - steps + 1)
    log_p = to[:, None] + since[None, :] + by[after[:, None] - before[None, :] - more[0]] - every
    law: Floats = np.exp(log_p) @ mass
    kept = np.flatnonzero(law > _DUST)
    return (lowest + int(kept[0]), law[kept[0] : kept[-1] + 1]) if len(kept) else (m + 1, law[:0])


def _largest(numbers: range, holds: Callable[[int], bool]) -> int | None:
    """The largest number for which something holds that holds for all smaller ones."""
    place = bisect_right(numbers, False, key=lambda k: not holds(k))
    return numbers[place - 1] if place else None
