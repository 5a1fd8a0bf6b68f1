"""Formulas: intervals from the verified rows alone; the most frequent answer as the label and as the truth."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import hypergeom, norm

from ambiguous.questions.estimates import LEVEL, clopper_pearson
from ambiguous.registry import ANY_DATA, LARGE_SAMPLE, answers

TAIL = (1 - LEVEL) / 2


def shares(hits, seen):
    """The share of hits; NaN where nobody looked."""
    return np.divide(hits, seen, out=np.full(len(seen), np.nan), where=seen > 0)


@answers("estimates", "Clopper–Pearson", guarantee=ANY_DATA, needs=["verified"])
def binomial(task):
    hits, seen, _ = task.counts()
    return np.stack([shares(hits, seen), *clopper_pearson(hits, seen)], axis=1)


@answers("estimates", "exact hypergeometric", guarantee=ANY_DATA, needs=["verified"])
def hypergeometric(task):
    hits, seen, rows = counts = task.counts()
    ends = np.array([exact(*column) for column in counts.T.tolist()])
    return np.column_stack([shares(hits, seen), ends / rows[:, None]])


@lru_cache(maxsize=100_000)
def exact(hits, seen, rows):
    """The least and the largest number of hits among all rows under which so many, or so few, are not too improbable."""

    def most(x):
        low, high = x, rows - seen + x
        while low < high:
            middle = (low + high + 1) // 2
            probable = hypergeom.cdf(x, rows, middle, seen) > TAIL
            low, high = (middle, high) if probable else (low, middle - 1)
        return low

    return rows - most(seen - hits), most(hits)


def normal(value, error):
    """Both ends of a normal interval."""
    reach = norm.isf(TAIL) * error
    return value - reach, value + reach


@answers("estimates", "Wald", guarantee=LARGE_SAMPLE, needs=["verified"])
def wald(task):
    hits, seen, _ = task.counts()
    value = shares(hits, seen)
    return np.stack([value, *normal(value, np.sqrt(value * (1 - value) / np.maximum(seen, 1)))], axis=1)


@answers("estimates", "Wilson", guarantee=LARGE_SAMPLE, needs=["verified"])
def wilson(task):
    hits, seen, _ = task.counts()
    value, z2 = shares(hits, seen), norm.isf(TAIL) ** 2
    middle = (value + z2 / (2 * seen)) / (1 + z2 / seen)
    error = np.sqrt(value * (1 - value) / seen + z2 / (4 * seen**2)) / (1 + z2 / seen)
    return np.stack([value, *normal(middle, error)], axis=1)


def as_truth(task, labels):
    """The figures if these labels were true; no intervals."""
    value = [np.mean(labels[figure.rows] == figure.said) for figure in task.figures]
    return np.column_stack([value, np.full((len(value), 2), np.nan)])


@answers("estimates", "the most frequent answer as the truth", needs=["unverified"])
def plurality(task):
    return as_truth(task, task.votes.counts.argmax(axis=1))


@answers("consensus", "the most frequent answer", needs=["unverified"])
def most_frequent(task):
    return task.votes.counts
