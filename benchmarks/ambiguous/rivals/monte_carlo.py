"""Monte Carlo conformal prediction (Stutz, Roy, Matejovicova, Strachan, Cemgil and Doucet, TMLR 2023), from its formulas.

Each calibration row gets m labels, drawn from its plausibilities: the shares of its votes, or alike of its candidates.
A label is in the set where the average over j of the p-values of the j-th labels exceeds α, which is a threshold among
all n·m scores. A label drawn from the plausibilities is covered with probability 1 − 2α at least, and nearly 1 − α; of
the true label nothing is guaranteed.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ambiguous.registry import answers

SAMPLES = 10


@answers("sets", "Monte Carlo conformal prediction", needs=["unverified"])
def sets(task):
    known = task.votes.counts if task.votes is not None else task.candidates.to_mask().astype(float)
    upto = known.cumsum(axis=1) / known.sum(axis=1, keepdims=True)
    n = len(upto)
    drawn = np.random.default_rng(task.seed).random((n, SAMPLES))
    labels = (upto[:, None, :-1] <= drawn[:, :, None]).sum(axis=2)
    scores = np.sort(-task.probabilities[np.arange(n)[:, None], labels], axis=None)
    position = math.floor((1 - Fraction(str(task.level))) * SAMPLES * (n + 1)) - SAMPLES + 1
    return -task.new <= (scores[-position] if position > 0 else math.inf)
