"""Repeated sampling with exact bounds, and the mutations that every such test must notice."""

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from setwise import conformalize

LEVEL = 0.9
N = 10  # ⌈11·0.9⌉ = 10 of 10 scores; one rank lower covers 9/11 = 0.818
REPETITIONS = 1200  # 0.818 is then told from 0.9 in 99.9 of 100 samples

MUTATIONS = {
    "without the +1": lambda n, level: math.ceil(n * level),
    "without the ceiling": lambda n, level: math.floor((n + 1) * level),
}
"""Of the rank of N scores. Both give the same one, so that one of them is sampled."""


def count(trial: Callable[[np.random.Generator], bool], repetitions: int = REPETITIONS, seed: int = 0) -> int:
    """How many of the independent trials succeed."""
    rng = np.random.default_rng(seed)
    return sum(bool(trial(rng)) for _ in range(repetitions))


def at_least(hits: int, probability: float, repetitions: int = REPETITIONS) -> bool:
    """Whether so few hits are still plausible if each has at least this probability (error 1e-6)."""
    return bool(binom.cdf(hits, repetitions, probability) > 1e-6)


def at_most(hits: int, probability: float, repetitions: int = REPETITIONS) -> bool:
    """Whether so many hits are still plausible if each has at most this probability (error 1e-6)."""
    return bool(binom.sf(hits - 1, repetitions, probability) > 1e-6)


def assert_valid_and_sharp(
    monkeypatch,
    trial: Callable[[np.random.Generator], bool],
    level: float = LEVEL,
    repetitions: int = REPETITIONS,
) -> None:
    """The event has at least its promised probability, and not without either part of the rank (of N)."""
    assert at_least(count(trial, repetitions), level, repetitions)
    with monkeypatch.context() as patch:
        patch.setattr("setwise.strategies.base.rank", MUTATIONS["without the +1"])
        assert not at_least(count(trial, repetitions), level, repetitions)


def draw(rng: np.random.Generator, n: int, k: int, sharpness: float = 2.0):
    """n calibration rows and one new row: probabilities, and labels drawn from them."""
    logits = sharpness * rng.normal(size=(n + 1, k))
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    y = np.minimum((p.cumsum(axis=1) < rng.random((n + 1, 1))).sum(axis=1), k - 1)
    return p, y


def one_hot(y: np.ndarray, k: int) -> np.ndarray:
    return np.arange(k) == y[:, None]


def predicted(p: np.ndarray, candidates: np.ndarray, strategy, score="lac", level: float = LEVEL, **options):
    """The set of the last row, calibrated on the others."""
    n = len(p) - 1
    calibration = conformalize(p[:n], candidates[:n], strategy, score, **options)
    return calibration.predict_set(p[n:], level).to_mask()[0]
