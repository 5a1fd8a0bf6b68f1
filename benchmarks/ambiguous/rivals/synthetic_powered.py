"""Synthetic-powered inference (Bashari and others, 2025), from its formulas in `few_verified.py`.

The synthetic scores are those of a label per row that nobody verified, drawn from the probabilities among the labels
that are candidates or somebody gave.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ambiguous.registry import ANY_DATA, answers
from ambiguous.split import of_true


def scores(task):
    """The scores of the true labels of verified rows and of synthetic labels of the others, in order."""
    known = (task.candidates if task.votes is None else task.votes.candidates()).to_mask()
    inside = np.where(known, task.probabilities, 0)
    inside = np.where(inside.sum(axis=1, keepdims=True) > 0, inside, known)
    upto = inside.cumsum(axis=1)
    noise = np.random.default_rng(task.seed).random((len(upto), 1)) * upto[:, -1:]
    drawn = (upto[:, :-1] <= noise).sum(axis=1)
    synthetic = -task.probabilities[np.arange(len(drawn)), drawn]
    return np.sort(of_true(task)), np.sort(synthetic[task.verified < 0])


@answers("sets", "SPI, β = 0.4", guarantee=ANY_DATA, needs=["verified"])
def spi(task):
    from few_verified import spi as threshold

    return -task.new <= threshold(*scores(task), 0.4)


@answers("sets", "GESPI, e = 0.02", guarantee=ANY_DATA, needs=["verified"])
def gespi(task):
    from few_verified import gespi as threshold

    return -task.new <= threshold(*scores(task), Fraction(1, 50))
