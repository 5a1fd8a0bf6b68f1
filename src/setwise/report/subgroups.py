"""Coverage within subgroups (true classes, categories) at every level; those with the lowest coverage first."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from setwise._arrays import Array, Ints
from setwise.report.label_entry_levels import Sweep
from setwise.report.level_facts import interval_text, tidy

_SHOWN = 10


def subgroup_facts(sweep: Sweep, codes: Ints, names: Array, level: Fraction) -> dict[str, Any] | None:
    """Coverage and mean size of each subgroup over the levels; `codes` say which one a row is in, −1 for none.

    Of many subgroups those with the lowest coverage at `level` are kept. None where no row has a subgroup and a
    known truth.
    """
    if sweep.truth is None:
        return None
    rows = np.flatnonzero((codes >= 0) & (sweep.truth >= 0))
    if len(rows) == 0:
        return None
    n_groups, n_levels = len(names), len(sweep.levels)
    entered = np.bincount(codes[rows] * (n_levels + 1) + sweep.truth[rows], minlength=n_groups * (n_levels + 1))
    hits = np.cumsum(entered.reshape(n_groups, n_levels + 1), axis=1)[:, :-1]
    counts = np.bincount(codes[rows], minlength=n_groups)
    member = csr_array((np.ones(len(rows)), (codes[rows], np.arange(len(rows)))), shape=(n_groups, len(rows)))
    totals = member @ sweep.sizes[rows]
    there = np.flatnonzero(counts)
    share = hits[there, sweep.levels.index(level)] / counts[there]
    kept = there[np.lexsort((-counts[there], share))][:_SHOWN]
    return {
        "total": len(there),
        "rows": [
            {
                "name": str(names[group]),
                "n": int(counts[group]),
                "cells": [_cell(sweep, rows[codes[rows] == group], i, totals[group, i]) for i in range(n_levels)],
            }
            for group in kept.tolist()
        ],
    }


def class_intervals(facts: dict[str, Any], classes: Array, at: int) -> dict[Any, dict[str, Any]]:
    """The interval of each class shown at one level, as in the entry `by_class` of `evaluate`."""
    labels = {str(label): label for label in classes.tolist()}
    ends = {labels[row["name"]]: tuple(row["cells"][at][1:3]) for row in facts["rows"]}
    return {label: {"coverage_interval": None if None in pair else pair} for label, pair in ends.items()}


def _cell(sweep: Sweep, rows: Ints, i: int, total: float) -> list[Any]:
    """Coverage and the ends of its interval as numbers; coverage, interval and mean size as they are shown."""
    assert sweep.truth is not None  # noqa: S101 - some truth is known
    hits = sweep.truth[rows] <= i
    interval = sweep.interval(rows, hits)
    numbers = [tidy(round(value, 5)) for value in (hits.mean(), *(interval or (math.nan, math.nan)))]
    return [*numbers, f"{hits.mean():.1%}", interval_text(interval), f"{total / len(rows):.2f}"]
