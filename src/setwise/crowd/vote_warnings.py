"""Warnings about votes: rows that nobody answered, and annotators whose shared errors verified labels show.

The annotator model treats answers as independent given the truth. Where annotators err in the same way, a wrong
label becomes nearly certain.
"""

from __future__ import annotations

import warnings

import numpy as np

from setwise._arrays import Ints
from setwise.crowd.annotator_model import FittedVotes
from setwise.errors import MisuseWarning
from setwise.labels.votes import Votes

_FEW = 20  # verified rows with several candidates; with fewer there is no warning
_LEAST = 1e-4  # the smallest probability that counts, so that no single row decides
_AS_SETS = "try them as candidate sets (y.candidates(), or a file of votes converted to candidates)"


class UnansweredWarning(MisuseWarning):
    """Rows are left out because nobody answered them."""


def warn_of_unanswered(missing: int, n: int) -> None:
    """Warns that rows are left out because nobody answered them."""
    problem = f"votes: nobody answered {missing:,} of {n:,} rows, which are left out"
    warnings.warn(UnansweredWarning(problem, "leave them out of the votes"), stacklevel=4)


def doubt_by_verified(votes: Votes, verified: Ints, rows: Ints, learned: FittedVotes) -> None:
    """Warns if verified labels are less probable given the votes than if all candidates were equally probable.

    It compares logarithms of probabilities, in the verified `rows` that have the true label among several
    candidates. The annotator model comes from the votes that are `learned` from.
    """
    sets = votes.candidates(missing="empty")[rows]
    truth = verified[rows]
    useful = sets.to_mask()[np.arange(len(rows)), truth] & (sets.sizes > 1)
    if useful.sum() < _FEW:
        return
    posterior = learned.answer_model.parameters.posterior(votes[rows[useful]])
    right = posterior[np.arange(len(posterior)), truth[useful]]
    gained = np.log(np.maximum(right, _LEAST)) + np.log(sets.sizes[useful])
    if gained.mean() + 2 * gained.std() / np.sqrt(len(gained)) < 0:
        alike = np.exp(-np.log(sets.sizes[useful]).mean())
        where = f"y: in {len(gained)} verified rows with several candidates the true label has probability"
        given = f"{np.exp(gained.mean()) * alike:.2f} given the votes, but {alike:.2f} if candidates count the same"
        problem = f"{where} {given} (geometric means): answers depend on each other"
        warnings.warn(MisuseWarning(problem, _AS_SETS), stacklevel=3)
