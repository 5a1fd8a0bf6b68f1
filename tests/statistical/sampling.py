"""Repeated sampling with exact bounds, and the mutations that every such test must notice.

A trial calibrates once and asks about many new rows: the share that it covers varies far less than the answer for
one row, so that few calibrations tell a level from one that is a little lower.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from setwise import conformalize

LEVEL = 0.9
N = 10  # ⌈11·0.9⌉ = 10 of 10 scores; one rank lower covers 9/11 = 0.818
NEW = 100  # rows that a trial asks about
SAMPLES = 150  # of which 0.818 is told from 0.9 with p-values below 1e-10
RARE = 1e-6  # the error of every test here

MUTATIONS = {
    "without the +1": lambda n, level: math.ceil(n * level),
    "without the ceiling": lambda n, level: math.floor((n + 1) * level),
}
"""Of the rank of N scores. Both give the same one, so that one of them is sampled."""


def shares(trial: Callable[[np.random.Generator], np.ndarray], samples: int = SAMPLES, seed: int = 0) -> np.ndarray:
    """For which share of its new rows each of the independent trials succeeds."""
    rng = np.random.default_rng(seed)
    return np.array([np.mean(trial(rng)) for _ in range(samples)])


def mean_at_least(found: np.ndarray, probability: float) -> bool:
    """Whether shares this small are still plausible if they have at least this mean."""
    return average_p(np.full(len(found), probability), found) > RARE


def mean_at_most(found: np.ndarray, probability: float) -> bool:
    """Whether shares this large are still plausible if they have at most this mean."""
    return mean_at_least(1 - found, 1 - probability)


def average_p(promised: np.ndarray, measured: np.ndarray) -> float:
    """How surprising values c in [0, 1] are if their means are at least p: 1/e, whatever their distribution.

    The mean of Π(1 + λ(p − c)) over a grid of λ is an e-value (Waudby-Smith and Ramdas, JRSS B 2024);
    1 + λ(p − c) is never negative.
    """
    most = 0.98 / (1 - promised[0] + 1e-9) if np.ptp(promised) == 0 else 0.98
    rates = np.geomspace(0.05, max(most, 0.06), 16)
    wealth = np.log1p(np.outer(rates, promised - measured)).sum(axis=1)
    return float(min(1.0, math.exp(-min(max(logsumexp(wealth) - math.log(len(rates)), -700), 700))))


def at_least(hits: int, probability: float, trials: int) -> bool:
    """Whether so few hits are still plausible if each has at least this probability."""
    return bool(binom.cdf(hits, trials, probability) > RARE)


def at_most(hits: int, probability: float, trials: int) -> bool:
    """Whether so many hits are still plausible if each has at most this probability."""
    return bool(binom.sf(hits - 1, trials, probability) > RARE)


def assert_valid_and_sharp(
    monkeypatch,
    trial: Callable[[np.random.Generator], np.ndarray],
    level: float = LEVEL,
    samples: int = SAMPLES,
) -> None:
    """The event has at least its promised probability, and not without either part of the rank (of N)."""
    assert mean_at_least(shares(trial, samples), level)
    with monkeypatch.context() as patch:
        patch.setattr("setwise.strategies.threshold_rules.rank", MUTATIONS["without the +1"])
        assert not mean_at_least(shares(trial, samples), level)


def draw(rng: np.random.Generator, n: int, k: int, sharpness: float = 2.0, new: int = 1):
    """n calibration rows and some new ones: probabilities, and labels drawn from them."""
    logits = sharpness * rng.normal(size=(n + new, k))
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    y = np.minimum((p.cumsum(axis=1) < rng.random((n + new, 1))).sum(axis=1), k - 1)
    return p, y


def one_hot(y: np.ndarray, k: int) -> np.ndarray:
    return np.arange(k) == y[:, None]


def predicted(p: np.ndarray, candidates: np.ndarray, strategy, score="lac", level=LEVEL, n=N, **options):
    """The sets of all rows after the first n, calibrated on those."""
    calibration = conformalize(p[:n], candidates[:n], strategy, score, **options)
    return calibration.predict_set(p[n:], level).to_mask()


def inside(sets: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which of the sets hold their label; those of the last rows of y."""
    return sets[np.arange(len(sets)), y[-len(sets) :]]
