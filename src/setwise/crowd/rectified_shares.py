"""Shares of rows from verified ones and a proxy, valid whatever the proxy, and accuracies of annotators from these.

Of n rows m were verified, drawn without replacement; g says for every row, without any verified label, whether it
is probably a hit. Of the n_h rows with g = h m_h are verified and x_h are hits; p_h = x_h/m_h has the
Clopper–Pearson interval (l_h, u_h). With w_h = n_h/n and φ_h = 1 − m_h/n_h the share is Σ w_h·p_h, its interval

    Σ w_h·p_h − √Σ φ_h·(w_h·(p_h − l_h))²  to  Σ w_h·p_h + √Σ φ_h·(w_h·(u_h − p_h))²,

rounded outward to whole rows: where few rows are hits the next whole number lies just outside. With fewer than
`FEWEST` verified rows, or none where g = h, it is x/m with the exact hypergeometric interval. Which of the two is
used depends on m and g alone: the narrower of two intervals misses too often. With up to `_RARE` verified hits, or
misses, it is the union of both: two hits, one where g = 0 and one where g = 1, say less than their sum of squares.

The exact interval is proved. The coverage of the other was computed over all outcomes of the draw, in designs of up
to 20,000 rows: at least .956 in 8,000 designs with 60 to 300 verified rows, and .959 in 3,000 with 30 to 59
(`benchmarks/estimates.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setwise._arrays import Floats, Ints
from setwise.labels.vocabulary import MISSING
from setwise.labels.votes import Votes
from setwise.ranks import binomial_bounds, hypergeometric_bounds

FEWEST = 30
"""Fewer verified rows than these have the exact interval, without a proxy."""
_RARE = 5
_DUST = 1e-9


class Shares(NamedTuple):
    """Shares with 95 % intervals, and from how many verified rows; without any the share is NaN, from 0 to 1."""

    value: Floats
    lower: Floats
    upper: Floats
    verified: Ints


def rectify(hits: Ints, verified: Ints, rows: Ints, delta: float = 0.05) -> Shares:
    """Shares from counts (…, 2) of hits and verified rows, and of all rows, by their proxy.

    >>> found = rectify(np.array([2, 72]), np.array([20, 80]), np.array([80, 320]))
    >>> [float(end.round(3)) for end in found[:3]]
    [0.74, 0.675, 0.795]
    """
    (x, m, n), shape = (counts.reshape(-1, 2) for counts in (hits, verified, rows)), hits.shape[:-1]
    some = np.maximum(m, 1)
    weight, share = n / np.maximum(n.sum(axis=1, keepdims=True), 1), x / some
    low, high = binomial_bounds(x, m, delta)
    finite = np.sqrt(1 - m / np.maximum(n, 1)) * weight
    value = (weight * share).sum(axis=1)
    lower = value - np.sqrt(np.square(finite * (share - low)).sum(axis=1))
    upper = value + np.sqrt(np.square(finite * (high - share)).sum(axis=1))
    x, alone, m, n = x.sum(axis=1), (m.sum(axis=1) < FEWEST) | (m == 0).any(axis=1), m.sum(axis=1), n.sum(axis=1)
    value[alone] = np.divide(x[alone], m[alone], out=np.full(alone.sum(), np.nan), where=m[alone] > 0)
    lower[alone], upper[alone] = np.inf, -np.inf
    also = np.flatnonzero(alone | (np.minimum(x, m - x) <= _RARE))
    exact = hypergeometric_bounds(x[also], m[also], n[also], delta)
    lower[also], upper[also] = np.minimum(lower[also], exact[0]), np.maximum(upper[also], exact[1])
    whole = np.maximum(n, 1)
    lower = np.maximum(np.floor(lower * n + _DUST), x) / whole  # no fewer than the hits that are verified,
    upper = np.minimum(np.ceil(upper * n - _DUST), n - (m - x)) / whole  # no more than the misses leave
    upper[n == 0] = 1.0
    return Shares(*(part.reshape(shape) for part in (value, lower, upper, m)))


def annotator_shares(votes: Votes, consensus: Ints, verified: Ints) -> Shares:
    """How many of the rows that each annotator answered have the right answer; `verified` are codes of labels.

    The answer to a row is the label that the annotator gave it most often, of several the first; "not this label"
    is no answer. The proxy is whether the consensus, which has not seen a verified label, says the same.
    """
    row, who, label = single_answers(votes)
    cell = 2 * who + (consensus[row] == label)

    def count(answers: Ints) -> Ints:
        return np.bincount(answers, minlength=2 * len(votes.annotators)).reshape(-1, 2)

    return rectify(count(cell[verified[row] == label]), count(cell[verified[row] != MISSING]), count(cell))


def single_answers(votes: Votes) -> tuple[Ints, Ints, Ints]:
    """Row, annotator and label of all answers, one for each row and annotator, ordered by rows."""
    if votes.annotator is None:
        return (np.zeros(0, dtype=np.intp),) * 3
    if votes.own_weight is None and not votes.shared:
        return votes.row, votes.annotator, votes.label
    people, k = len(votes.annotators), votes.n_classes
    keys, place = np.unique((votes.row * people + votes.annotator) * k + votes.label, return_inverse=True)
    if len(keys) < len(place) or (len(keys) and (np.diff(keys // k) == 0).any()):
        weight = np.bincount(place.ravel(), votes.weight)
        keys = keys[np.lexsort([-weight, keys // k])]
        keys = keys[np.diff(keys // k, prepend=-1) > 0]
    cell, label = np.divmod(keys, k)
    row, who = np.divmod(cell, people)
    return row, who, label
