"""The best annotator, and whether a panel beats it: comparisons on the verified rows that both answered.

Of the rows where one is right and the other wrong, a half is expected each way if both are right equally often.
Verified rows drawn without replacement only make the exact test of that more careful. The annotators whom no other
one beats at δ / (number of others) contain the best in 19 of 20 draws: it is left out only if one of these tests
errs. Of one without a verified answer nothing is known, so that it may be the best, too. The panel beats all of its
annotators if it beats each by itself at δ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import betainc

from setwise._arrays import Floats, Ints

_DELTA = 0.05
_MOST = 2_000  # annotators that are compared with each other, those with most verified answers


@dataclass(frozen=True)
class Members:
    """Positions of the annotators who may be the best, and of those compared with the panel.

    `better` are annotators who beat the panel, and `beaten` says whether the panel beats all of its annotators.
    """

    best: Ints
    better: Ints
    beaten: bool


def compare_members(row: Ints, who: Ints, right: Ints, panel: Ints, answers: Ints) -> Members:
    """Compares annotators by single answers to verified rows; `panel` has the rows where the panel is right.

    `answers` are the numbers of all rows that each annotator answered.
    """
    shape = (len(panel), len(answers))
    given = sparse.csr_array((np.ones(len(row)), (row, who)), shape=shape)
    good = sparse.csr_array((right.astype(float), (row, who)), shape=shape)
    wrong = given - good
    only_panel, only_one = wrong.T @ panel, good.T @ (1 - panel)
    known = np.flatnonzero(given.sum(axis=0))
    better = known[_chance(only_one, only_panel)[known] <= _DELTA / max(len(known), 1)]
    beaten = len(known) and len(known) == np.count_nonzero(answers)
    beaten = bool(beaten and (_chance(only_panel, only_one)[known] <= _DELTA).all())
    known = known[np.argsort(-given.sum(axis=0)[known], kind="stable")][:_MOST]
    ahead = (good[:, known].T @ wrong[:, known]).toarray()  # [k, j]: k is right where j is wrong
    lost = (_chance(ahead, ahead.T) <= _DELTA / max(len(known) - 1, 1)).any(axis=0)
    return Members(np.setdiff1d(np.flatnonzero(answers), known[lost]), better, beaten)


def _chance(won: Floats, lost: Floats) -> Floats:
    """How probable so many wins, of those rows where one of two is right, are for equals."""
    return np.where(won > 0, betainc(np.maximum(won, 1), lost + 1, 0.5), 1.0)  # a binomial tail
