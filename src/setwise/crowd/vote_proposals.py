"""How sure labels are by the votes of a row: which label is proposed, and in which order rows are accepted.

The annotator model is best where annotators err independently; where they copy each other its posterior is close to
0 or 1. Mixed with the share of the votes it loses little in the first case and gains in the second. Where it names
another label than most votes in many rows, it has followed a few copies, and the votes alone are better. No true
label takes part.
"""

from __future__ import annotations

import numpy as np

from setwise._arrays import Floats
from setwise.crowd.annotator_model import fit_annotators
from setwise.labels.votes import Votes

_POWER = 0.2  # of the posterior beside the share of votes
_FOLLOWED = 0.25  # share of rows with another label than most votes, beyond which the model is not used


def weigh_votes(votes: Votes, probabilities: Floats | None = None) -> Floats:
    """(n, K): how sure each label of a row is; with the probabilities of a classifier the posterior given both."""
    posterior = fit_annotators(votes, probabilities).posterior
    if probabilities is not None or votes.against is not None or not len(votes):
        return posterior
    total = votes.counts.sum(axis=1, keepdims=True)
    share: Floats = np.divide(votes.counts, total, out=posterior.copy(), where=total > 0)
    if (share.argmax(axis=1) != posterior.argmax(axis=1)).mean() > _FOLLOWED:
        return share
    mixed: Floats = posterior**_POWER * share
    mixed /= mixed.sum(axis=1, keepdims=True)
    return mixed
