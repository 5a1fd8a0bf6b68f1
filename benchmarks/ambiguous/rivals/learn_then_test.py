"""Selective risk from formulas: Learn then Test (Angelopoulos and others, 2022) and SGR (Geifman and El-Yaniv, 2017).

Learn then Test puts sizes, 5 % to 100 % of the rows, in a fixed order, and stops at the first whose binomial test at δ does
not reject that too many are wrong. SGR halves the range of sizes ⌈log₂ m⌉ times and takes the largest whose
Clopper–Pearson bound, at an equal part of δ, is below the error. For the error of all labels the risk is that a row
is accepted and wrong, and the order of rows itself is the fixed one.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta, binom

from ambiguous.registry import OF_ACCEPTED, OF_ALL, answers
from ambiguous.rivals.proposals import SOURCES, first, in_order

DELTA = 0.05
SIZES = 20


def of_all(task, source):
    """Accepts before the wrong verified row at which P(Bin(m, ε) ≤ number) exceeds δ."""
    label, rows, _, wrong_above, place = in_order(task, source)
    allowed = int(np.count_nonzero(binom.cdf(np.arange(len(place) + 1), len(place), task.max_error) <= DELTA))
    return first(task, label, rows, int(np.searchsorted(wrong_above, allowed - 1, side="right")) if allowed else 0)


def fixed_sequence(above, wrong_above, error, delta=DELTA):
    """The last size, from small to large, before the first that is not certified; too few rows certify nothing."""
    sizes = np.unique(np.ceil(len(above) * np.arange(1, SIZES + 1) / SIZES).astype(int))
    enough = (1 - error) ** above[sizes - 1] <= delta  # with fewer no number of wrong rows is small enough
    sizes = sizes[enough]
    certified = binom.cdf(wrong_above[sizes - 1], above[sizes - 1], error) <= delta
    passed = len(sizes) if certified.all() else int(certified.argmin())
    return int(sizes[passed - 1]) if passed else 0


def by_halving(above, wrong_above, error, delta=DELTA):
    """The largest size found whose bound is below the error."""
    m, low, high, best = int(above[-1]), 0, len(above), 0
    steps = max(math.ceil(math.log2(max(m, 2))), 1)
    for _ in range(steps):
        size = math.ceil((low + high) / 2)
        seen, wrong = int(above[size - 1]), int(wrong_above[size - 1])
        if seen > wrong and beta.isf(delta / steps, wrong + 1, seen - wrong) <= error:
            best, low = max(best, size), size
        else:
            high = size
    return best


def of_accepted(task, source, rule):
    label, rows, above, wrong_above, _ = in_order(task, source)
    return first(task, label, rows, rule(above, wrong_above, task.max_error))


def register(name, source, needs, package):
    options = {"needs": needs, "package": package}

    @answers("keep", f"Learn then Test, {name}", guarantee=OF_ALL, **options)
    def everything(task):
        return of_all(task, source) if task.mode == "overall" else None

    @answers("keep", f"Learn then Test of the accepted, {name}", guarantee=OF_ACCEPTED, **options)
    def sequence(task):
        return of_accepted(task, source, fixed_sequence) if task.mode == "accepted" else None

    @answers("keep", f"SGR, {name}", guarantee=OF_ACCEPTED, **options)
    def halving(task):
        return of_accepted(task, source, by_halving) if task.mode == "accepted" else None


for _name, _source in SOURCES.items():
    register(_name, *_source)
