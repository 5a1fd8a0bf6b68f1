"""Votes that say more than is known: repeated answers of one annotator, and what checks show of all votes.

The annotator model takes answers for independent given the truth. One annotator, or one language model, is wrong in
the same way every time, and its repeated answers then make a wrong label nearly certain.
"""

from __future__ import annotations

import warnings

import numpy as np

from setwise._arrays import Ints
from setwise.crowd.annotator_model import FittedVotes
from setwise.errors import MisuseWarning
from setwise.labels.votes import Votes

_FEW = 20  # checked rows with several candidates, below which nothing is said
_LEAST = 1e-4  # of a probability, so that no single row decides
_AS_SETS = "try them as candidate sets (y.candidates(), or a file of votes converted to candidates)"


def doubt_repeated(votes: Votes, source: str = "y") -> None:
    """Warns of several answers about a row where all are by one annotator."""
    amount = np.bincount(votes.row, votes.weight, minlength=len(votes))
    if len(votes.annotators) > 1 or not len(amount) or amount.max() < 1.5:
        return
    row = int(amount.argmax())
    who = f"{source}: all answers are by one annotator, {votes.sizes[row]} of them about row {row}"
    problem = f"{who}; they count as independent, but who errs does so in the same way again"
    warnings.warn(MisuseWarning(problem, _AS_SETS), stacklevel=3)


def doubt_by_checks(votes: Votes, verified: Ints, checked: Ints, learned: FittedVotes) -> None:
    """Warns where checked labels are less probable given the votes than if all candidates were equally probable.

    Compared by the logarithm of the probability, in rows that have the true label among several candidates. What
    votes say is known from the rows that are `learned` from.
    """
    sets = votes.candidates(missing="empty")[checked]
    truth = verified[checked]
    told = sets.to_mask()[np.arange(len(checked)), truth] & (sets.sizes > 1)
    if told.sum() < _FEW:
        return
    posterior = learned.answer_model.parameters.posterior(votes[checked[told]])
    right = posterior[np.arange(len(posterior)), truth[told]]
    gained = np.log(np.maximum(right, _LEAST)) + np.log(sets.sizes[told])
    if gained.mean() + 2 * gained.std() / np.sqrt(len(gained)) < 0:
        alike = np.exp(-np.log(sets.sizes[told]).mean())
        rows = f"y: in {len(gained)} checked rows with several candidates the true label has probability"
        given = f"{np.exp(gained.mean()) * alike:.2f} given the votes, and {alike:.2f} if candidates count the same"
        problem = f"{rows} {given} (geometric means): answers depend on each other"
        warnings.warn(MisuseWarning(problem, _AS_SETS), stacklevel=3)
