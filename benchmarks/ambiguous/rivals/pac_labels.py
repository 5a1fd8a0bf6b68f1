"""Probably Approximately Correct Labels (Candès, Ilyas and Zrnic, 2025), from its formulas.

Labels are kept where the model is surer than a threshold: the last one, from above, at which an upper bound on the
share of all rows that are wrong and at least as sure stays below the error. The bound is the betting one of
Waudby-Smith and Ramdas (2024) on verified rows, or the normal one, which holds as their number grows. Ties of
confidence are broken at random. Where not even accepting nothing can be certified, nothing is accepted, unlike in
the authors' code, whose index then wraps around to the least sure row.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from ambiguous.registry import ALL_FOR_MANY, OF_ALL, answers
from ambiguous.rivals.proposals import SOURCES, first, in_order

DELTA = 0.05


def betting_wins(wrong, error, delta=DELTA):
    """Whether bets against a mean of `error` or more win 1/δ, for each column of verified rows in order.

    The bet on row t is λ_t = min(√(2 ln(1/δ) / (m σ²_{t−1})), ¾ / (1 − ε)), and the wealth Π (1 + λ_t (ε − wrong_t)).
    """
    m = len(wrong)
    seen = np.arange(1, m + 1)[:, None]
    mean = (0.5 + np.cumsum(wrong, axis=0)) / (seen + 1)
    spread = (0.25 + np.cumsum((wrong - mean) ** 2, axis=0)) / (seen + 1)
    before = np.vstack([np.full((1, wrong.shape[1]), 0.25), spread[:-1]])
    bet = np.minimum(np.sqrt(2 * np.log(1 / delta) / (m * before)), 0.75 / (1 - error))
    wealth = np.cumsum(np.log1p(bet * (error - wrong)), axis=0).max(axis=0)
    return wealth >= np.log(1 / delta)


def normal_wins(wrong, error, delta=DELTA):
    """Whether the normal upper bound is at most `error`, for each column."""
    upper = wrong.mean(axis=0) + norm.isf(delta) * wrong.std(axis=0) / len(wrong) ** 0.5
    return upper <= error


def accept(task, source, wins):
    """The rows before the wrong verified one whose threshold is the first that is not certified."""
    label, rows, _, wrong_above, place = in_order(task, source)
    most = np.count_nonzero(place < task.n)
    columns = np.arange(min(most, int(3 * task.max_error * len(place)) + 20) + 1)
    certified = wins((place[:, None] < columns).astype(float), task.max_error)
    # Column k holds the k surest of the wrong verified rows: k of them may stand above the last accepted row.
    passed = len(columns) if certified.all() else int(certified.argmin())
    return first(task, label, rows, int(np.searchsorted(wrong_above, passed - 1, side="right")) if passed else 0)


def register(name, source, needs, package):
    @answers("keep", f"PAC labels, {name}", guarantee=OF_ALL, needs=needs, package=package)
    def betting(task):
        return accept(task, source, betting_wins) if task.mode == "overall" else None

    @answers("keep", f"PAC labels, normal bound, {name}", guarantee=ALL_FOR_MANY, needs=needs, package=package)
    def normal(task):
        return accept(task, source, normal_wins) if task.mode == "overall" else None


for _name, _source in SOURCES.items():
    register(_name, *_source)
