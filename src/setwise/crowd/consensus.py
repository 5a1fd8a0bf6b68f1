"""What annotators say together: which label is proposed, and in which order rows are accepted.

The annotator model is best where annotators err independently. Where they copy each other its posterior is close to
0 or 1 and follows the copies; counting is better there. Which of the two is taken, other annotators tell: a family
of annotators who err together is left out, and its answers show which consensus of the others it confirms more
often. Where that leaves it open, the model is taken if the data do not contradict independence. A group of
near-copies counts once. No true label takes part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from setwise._arrays import Floats, Ints, frozen
from setwise.crowd.annotator_model import AnnotatorModel, fit_annotators
from setwise.crowd.dependence import calibrate_agreement, dependence
from setwise.crowd.resemblance import Resemblance, find_resemblance
from setwise.labels.votes import Votes

_POWER = 0.2  # of the posterior beside the share of votes
_ROWS = 10_000  # by which the rule is chosen; of more rows a part is used
_FEW = 30  # rows; with fewer, the answers left out tell nothing
_FOLDS = 5
_CLEAR = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class Consensus:
    """What annotators say together.

    Attributes
    ----------
    confidence
        (n, K): how sure each label of a row is. These are no probabilities.
    modelled
        Whether the annotator model takes part; otherwise answers are counted.
    resemblance
        How alike annotators answer; None where they are not named.
    model
        The annotator model.
    """

    confidence: Floats
    modelled: bool
    resemblance: Resemblance | None
    model: AnnotatorModel


def weigh_votes(votes: Votes, probabilities: Floats | None = None) -> Floats:
    """(n, K): how sure each label of a row is, by the answers and the probabilities of a classifier."""
    return find_consensus(votes, probabilities).confidence


def find_consensus(votes: Votes, probabilities: Floats | None = None) -> Consensus:
    """The consensus of all rows, by the rule that the answers confirm."""
    resemblance = None if votes.annotator is None else find_resemblance(votes)
    once = count_once(votes, resemblance)
    model = fit_annotators(once, probabilities)
    modelled = votes.against is not None or _model_pays(once, resemblance, probabilities, model)
    found = _mix(model.posterior, once, probabilities) if modelled else share_votes(once, model.posterior)
    return Consensus(found, modelled, resemblance, model)


def count_once(votes: Votes, resemblance: Resemblance | None) -> Votes:
    """The same answers, where a group of near-copies shares the weight of one annotator."""
    if resemblance is None or votes.annotator is None or (resemblance.weights == 1).all():
        return votes
    own = 1.0 if votes.weight is None else votes.weight
    return replace(votes, own_weight=frozen(own * resemblance.weights[votes.annotator]))


def share_votes(votes: Votes, otherwise: Floats) -> Floats:
    """(n, K): the share of each label among the answers of a row; where there are none, `otherwise`."""
    total = votes.counts.sum(axis=1, keepdims=True)
    share: Floats = np.divide(votes.counts, total, out=otherwise.copy(), where=total > 0)
    return share


def _mix(posterior: Floats, votes: Votes, probabilities: Floats | None) -> Floats:
    """The posterior; of votes alone tempered and mixed with the share of votes, for it is too close to 0 or 1."""
    if probabilities is not None or votes.against is not None:
        return posterior
    mixed: Floats = posterior**_POWER * share_votes(votes, posterior)
    mixed /= mixed.sum(axis=1, keepdims=True)
    return mixed


def _model_pays(
    votes: Votes, resemblance: Resemblance | None, probabilities: Floats | None, model: AnnotatorModel
) -> bool:
    """Whether the model is taken."""
    gain = _gain(votes, resemblance, probabilities)
    if abs(gain) > _CLEAR:
        return gain > 0
    found = dependence(*calibrate_agreement(model))
    return found is not None and not (found.refuted and found.excess > 0)


def _gain(votes: Votes, resemblance: Resemblance | None, probabilities: Floats | None) -> float:
    """By how many standard errors answers left out confirm the model more often than counting."""
    rng = np.random.default_rng(0)
    if len(votes) > _ROWS:
        rows = np.sort(rng.permutation(len(votes))[:_ROWS])
        votes, probabilities = votes[rows], None if probabilities is None else probabilities[rows]
    if resemblance is None or votes.annotator is None:  # the answers of nobody in particular
        fold = rng.integers(0, _FOLDS, len(votes.row))
    else:
        families = resemblance.families
        fold = (rng.permutation(families.max(initial=0) + 1) % _FOLDS)[families][votes.annotator]
    weight = np.ones(len(votes.row)) if votes.weight is None else votes.weight
    gained, judged = np.zeros(len(votes)), np.zeros(len(votes))
    for number in np.unique(fold):
        others = _answers(votes, np.flatnonzero(fold != number))
        held = np.flatnonzero((fold == number) & (others.sizes[votes.row] > 0))
        if not len(held):
            continue
        posterior = fit_annotators(others, probabilities).posterior
        row, label = votes.row[held], votes.label[held]
        by_model, by_count = (
            _hits(found, row, label)
            for found in (_mix(posterior, others, probabilities), share_votes(others, posterior))
        )
        gained += np.bincount(row, weight[held] * (by_model - by_count), len(votes))
        judged += np.bincount(row, weight[held], len(votes))
    gained = gained[judged > 0]
    if len(gained) < _FEW or not gained.any():
        return 0.0
    return float(gained.mean() / (gained.std(ddof=1) / len(gained) ** 0.5))


def _hits(found: Floats, row: Ints, label: Ints) -> Floats:
    """Whether each answer is the label that is most sure; where several are, a share."""
    top = found >= found.max(axis=1, keepdims=True) - 1e-9
    hits: Floats = top[row, label] / top.sum(axis=1)[row]
    return hits


def _answers(votes: Votes, chosen: Ints) -> Votes:
    """Some of the answers."""
    columns = {name: getattr(votes, name) for name in ("row", "label", "annotator", "own_weight", "against")}
    taken = {name: None if column is None else frozen(column[chosen]) for name, column in columns.items()}
    return replace(votes, **taken)  # type: ignore[arg-type]
