"""Votes that verified labels show to say more than is known are doubted."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from setwise import ConformalClassifier, Votes
from setwise.errors import MisuseWarning

N, K = 600, 4
_rng = np.random.default_rng(0)
Y = _rng.integers(0, K, N)
X = 2 * np.eye(K)[Y] + _rng.normal(size=(N, K))
OTHER = (Y + 1) % K
CHECKED = np.where(np.arange(N) % 4, None, Y)


def said(right):
    """Five answers about each row, right with a probability of its own."""
    return np.where(_rng.random((N, 5)) < right[:, None], Y[:, None], OTHER[:, None]).tolist()


HARD = np.where(np.arange(N) % 3, 0.9, 0.2)  # of some rows most answers are wrong, all in the same way
INDEPENDENT, DEPENDENT = Votes.from_lists(said(np.full(N, 0.8))), Votes.from_lists(said(HARD))


def fit(y, **given):
    return ConformalClassifier(GaussianNB(), random_state=0).fit(X, y, **given)


def test_checks_tell_votes_that_depend_on_each_other_from_those_that_do_not():
    fit(INDEPENDENT, verified=CHECKED)
    fit(DEPENDENT)  # which nothing shows
    with pytest.warns(MisuseWarning, match=r"given the votes, but 0.50 if candidates .*y\.candidates\(\)"):
        fit(DEPENDENT, verified=CHECKED)
    fit(DEPENDENT.candidates(), verified=CHECKED)  # as the warning advises
    fit(DEPENDENT, verified=np.where(np.arange(N) < 40, CHECKED, None))  # too few to tell
