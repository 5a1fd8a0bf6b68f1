"""Conformal selection (Jin and Candès, JMLR 2023) from its formulas; Conformal Labeling is the same for labels.

Row j has the p-value (1 + #verified rows that are wrong and at least as sure) / (m + 1), and Benjamini–Hochberg at
the error bounds the expected share of wrong labels among those selected. The second form compares with the wrong
verified rows alone, (1 + #) / (m₀ + 1), as libraries of conformal outlier detection do. Turned round, with right and
wrong exchanged, it finds labels that look wrong.
"""

from __future__ import annotations

import numpy as np

from ambiguous.registry import OF_FLAGGED, ON_AVERAGE, answers
from ambiguous.rivals import doubts
from ambiguous.rivals.proposals import SOURCES, first, in_order


def benjamini_hochberg(p_values, level):
    """How many of the p-values, in rising order, are rejected."""
    p_values = np.sort(p_values)
    below = np.flatnonzero(p_values <= level * np.arange(1, len(p_values) + 1) / len(p_values) * (1 + 1e-12))
    return int(below[-1]) + 1 if len(below) else 0


def accept(task, source, alone):
    label, rows, _, wrong_above, place = in_order(task, source)
    others = np.count_nonzero(place < task.n) if alone else len(place)
    count = benjamini_hochberg((1 + wrong_above) / (others + 1), task.max_error)
    return first(task, label, rows, count)


def register(name, source, needs, package):
    @answers("keep", f"conformal selection, {name}", guarantee=ON_AVERAGE, needs=needs, package=package)
    def selection(task):
        return accept(task, source, alone=False) if task.mode == "average" else None

    @answers("keep", f"conformal selection, wrong rows, {name}", guarantee=ON_AVERAGE, needs=needs, package=package)
    def among_wrong(task):
        return accept(task, source, alone=True) if task.mode == "average" else None


def flag(task, source, alone):
    """The rows that Benjamini–Hochberg takes, by doubt; equal doubts are put in random order."""
    noise = np.random.default_rng((task.seed, 1)).random(task.n)
    order = np.lexsort((noise, -source(task)))
    known = task.known[order]
    right = known & (task.verified == task.given)[order]
    others = np.count_nonzero(right if alone else known)
    p_values = (1 + np.cumsum(right)[~known]) / (others + 1)
    flagged = np.zeros(task.n, dtype=bool)
    flagged[order[~known][: benjamini_hochberg(p_values, task.max_false)]] = True
    return flagged


def register_doubt(name, source, needs, package):
    @answers("suspects", f"conformal selection, {name}", guarantee=OF_FLAGGED, needs=needs, package=package)
    def selection(task):
        return flag(task, source, alone=False)

    @answers(
        "suspects", f"conformal selection, right rows, {name}", guarantee=OF_FLAGGED, needs=needs, package=package
    )
    def among_right(task):
        return flag(task, source, alone=True)


for _name, _source in SOURCES.items():
    register(_name, *_source)
for _name, _source in doubts.SOURCES.items():
    register_doubt(_name, *_source)
