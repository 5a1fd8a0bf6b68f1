"""What annotators say together: which label is proposed, and in which order rows are accepted.

The annotator model is best where annotators err independently. Where they copy each other its posterior is close to
0 or 1 and follows the copies; counting is better there. Which of the two is taken, other annotators tell: a family
of annotators who err together is left out, and its answers show which consensus of the others it confirms more
often. Where that leaves it open, the model is taken if the data do not contradict independence. A group of
near-copies counts once. A proposal of probability .9 is .9 of an answer, and all labels share the rest alike. No
true label takes part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from setwise._arrays import Floats, Ints, frozen
from setwise._lazy import lazy
from setwise.crowd.annotator_model import TINY, AnnotatorModel, fit_annotators
from setwise.crowd.dependence import Dependence, calibrate_agreement, dependence
from setwise.crowd.resemblance import Resemblance, find_resemblance
from setwise.labels.votes import Votes

_POWER = 0.2  # of the posterior beside the share of votes
_ROWS = 10_000  # by which the rule is chosen; of more rows a part is used
_FEW = 30  # rows; with fewer, the answers left out tell nothing
_SOME = 100  # rows; with fewer, that nothing contradicts independence says little
_FOLDS = 5
_CLEAR = 2.0  # standard errors
_ROUNDS = 5  # of weighing annotators by their agreement with those weighed before
_CELLS = 20_000_000  # of a table of answers and labels
_DUST = 1e-9
_PRIOR = 10.0  # verified answers that the accuracy of all counts for in that of each annotator


@dataclass(frozen=True, eq=False)
class Consensus:
    """What annotators say together."""

    votes: Votes  # where a group of near-copies shares the weight of one annotator
    resemblance: Resemblance | None  # how alike annotators answer; None where they are not named
    probabilities: Floats | None  # those of a classifier, if there are any
    certainty: Floats  # of each row; see `answer_certainty`

    @lazy
    def model(self) -> AnnotatorModel:
        """The annotator model of these answers and the probabilities."""
        return fit_annotators(self.votes, self.probabilities)

    @lazy
    def dependence(self) -> Dependence | None:
        """Whether annotators share their errors; None where too few rows have two answers."""
        return dependence(*calibrate_agreement(self.model))

    @lazy
    def modelled(self) -> bool:
        """Whether the annotator model takes part; otherwise answers are counted."""
        if np.count_nonzero(self.votes.sizes > 1) < _FEW:  # they confirm nothing
            return self.probabilities is not None
        gain = _gain(self)
        if abs(gain) > _CLEAR:
            return gain > 0
        found = self.dependence
        return len(self.votes) >= _SOME and found is not None and not (found.refuted and found.excess > 0)

    @lazy
    def confidence(self) -> Floats:
        """(n, K): how sure each label of a row is. These are no probabilities."""
        return frozen(self.mixed if self.modelled else self.shares)

    @lazy
    def shares(self) -> Floats:
        """The share of each label among the answers of a row, a classifier's among them."""
        return self.share(self.votes)

    def share(self, votes: Votes) -> Floats:
        """The same for these answers, weighed in another way; where there are none, the posterior of the model."""
        total = votes.counts.sum(axis=1, keepdims=True)
        found = complete_shares(votes.counts / np.where(total > 0, total, 1), self.certainty)
        if self.probabilities is not None:
            full = total / self.certainty[:, None]
            found = (full * found + self.probabilities) / (full + 1)
        elif not (total > 0).all():
            found = np.where(total > 0, found, self.model.posterior)
        return found

    @lazy
    def mixed(self) -> Floats:
        """The posterior; of votes alone tempered and mixed with the shares, for it is too close to 0 or 1."""
        if self.probabilities is not None:
            return self.model.posterior
        found: Floats = self.model.posterior**_POWER * self.shares
        found /= found.sum(axis=1, keepdims=True)
        return found

    @property
    def rule(self) -> str:
        """How labels are found."""
        return "the annotator model" if self.modelled else "counting"


def weigh_votes(votes: Votes, probabilities: Floats | None = None) -> Floats:
    """(n, K): how sure each label of a row is, by the answers and the probabilities of a classifier."""
    return find_consensus(votes, probabilities).confidence


def find_consensus(
    votes: Votes, probabilities: Floats | None = None, resemblance: Resemblance | None = None
) -> Consensus:
    """The consensus of all rows, by the rule that the answers confirm."""
    if resemblance is None and votes.annotator is not None:
        resemblance = find_resemblance(votes)
    certainty = answer_certainty(votes, None if resemblance is None else resemblance.weights)
    if resemblance is not None and (resemblance.weights < 1).any():
        votes = _scale(votes, resemblance.weights)
    return Consensus(votes, resemblance, probabilities, certainty)


def learn_consensus(found: Consensus, verified: Ints) -> tuple[Floats, str]:
    """The confidence and the name of the rule that is right in most verified rows; `verified` are codes of labels.

    The consensus found without them stands against answers weighed by agreement with the others, by accuracy in
    verified rows, and the most accurate annotator alone; the last two in rows that they have not learned from. One
    of these takes its place if it is right more often by over a standard error: the best of several is so by luck.
    This is for learning and reading only: no guarantee may rest on a consensus that has seen verified labels.
    """
    rows, votes = np.flatnonzero(verified >= 0), found.votes
    if votes.annotator is None or len(rows) < _FEW:
        return found.confidence, found.rule
    truth, each = verified[rows], np.arange(len(rows))
    agreed = found.share(_scale(votes, _agreement(votes)))
    fixed = {found.rule: found.confidence, "answers weighed by agreement": agreed}
    right = {rule: _hits(values[rows], each, truth) for rule, values in fixed.items()}
    fold = np.random.default_rng(0).permutation(len(rows)) % _FOLDS
    for number in range(_FOLDS):
        held = np.flatnonzero(fold == number)
        for rule, values in _learn_weights(found, verified, rows[fold != number]).items():
            hits = right.setdefault(rule, np.zeros(len(rows)))
            hits[held] = _hits(values[rows[held]], np.arange(len(held)), truth[held])
    rule = max(right, key=lambda one: float(right[one].mean()))  # of equals the first, which has seen least
    gained = right[rule] - right[found.rule]
    if gained.mean() * len(rows) ** 0.5 <= gained.std(ddof=1) * (1 + _DUST):  # of a single row it is one
        rule = found.rule
    return fixed[rule] if rule in fixed else _learn_weights(found, verified, rows)[rule], rule


def _learn_weights(found: Consensus, verified: Ints, rows: Ints) -> dict[str, Floats]:
    """Consensus by accuracies in some verified rows: answers weighed by them, and the best annotator alone."""
    votes = found.votes
    used = np.isin(votes.row, rows)
    who, people, k = votes.who[used], len(votes.annotators), votes.n_classes
    right = verified[votes.row[used]] == votes.label[used]
    all_right = right.mean() if len(right) else 0.0
    share = (np.bincount(who, right, people) + _PRIOR * all_right) / (np.bincount(who, minlength=people) + _PRIOR)
    odds = np.log(np.maximum(share * max(k - 1, 1), TINY) / np.maximum(1 - share, TINY))
    best = votes.who == share.argmax()
    alone = found.confidence.copy()
    alone[votes.row[best]] = 0
    alone[votes.row[best], votes.label[best]] = 1
    by_accuracy = found.share(_scale(votes, np.maximum(odds, TINY)))
    return {"answers weighed by accuracy": by_accuracy, "the answers of the best annotator": alone}


def _agreement(votes: Votes) -> Floats:
    """How often each annotator says what most others do, these weighed alike, beyond 1/K."""
    weights = np.ones(len(votes.annotators))
    own = np.ones(len(votes.row)) if votes.weight is None else votes.weight
    for _ in range(_ROUNDS):
        counted = _scale(votes, weights).counts
        hits = np.zeros(len(votes.row))
        for part in np.array_split(np.arange(len(votes.row)), -(-len(votes.row) * votes.n_classes // _CELLS)):
            others = counted[votes.row[part]]
            others[np.arange(len(part)), votes.label[part]] -= (own * weights[votes.who])[part]
            hits[part] = (others.argmax(axis=1) == votes.label[part]) & (others.max(axis=1) > TINY)
        share = np.bincount(votes.who, hits, len(weights)) / np.maximum(
            np.bincount(votes.who, minlength=len(weights)), 1
        )
        weights = np.maximum(share - 1 / votes.n_classes, TINY)
    return weights


def _scale(votes: Votes, weights: Floats) -> Votes:
    """The same answers, each of which counts as its annotator does; the largest of these weights counts as one."""
    own = 1.0 if votes.weight is None else votes.weight
    return replace(votes, own_weight=frozen(own * (weights / weights.max())[votes.who]))


def answer_certainty(votes: Votes, weights: Floats | None = None) -> Floats:
    """Per row, the weight of its answers over what it would be if each counted as one at least; 1 without answers.

    `weights` are those of the annotators. Without annotators the answers of a row are of one person at least.
    """
    certainty = np.ones(len(votes))
    if votes.weight is None:
        return certainty
    row, who, which = votes.answers
    weight = np.bincount(which, votes.weight, len(row))
    if votes.annotator is None:
        total = np.bincount(row, weight, len(votes))
        return np.minimum(total, certainty, out=certainty, where=total > 0)
    each = 1.0 if weights is None else weights[who]
    total, full = (np.bincount(row, each * of, len(votes)) for of in (weight, np.maximum(weight, 1)))
    return np.divide(total, full, out=certainty, where=full > 0)


def complete_shares(shares: Floats, certainty: Floats) -> Floats:
    """Shares in which all labels have an equal part of what the answers of a row leave open."""
    if (certainty == 1).all():
        return shares
    completed: Floats = certainty[:, None] * shares + (1 - certainty[:, None]) / shares.shape[1]
    return completed


def _gain(found: Consensus) -> float:
    """By how many standard errors answers left out confirm the model more often than counting."""
    votes, probabilities = found.votes, found.probabilities
    rng = np.random.default_rng(0)
    if len(votes) > _ROWS:
        rows = np.sort(rng.permutation(len(votes))[:_ROWS])
        votes, probabilities = votes[rows], None if probabilities is None else probabilities[rows]
    if found.resemblance is None or votes.annotator is None:  # the answers of nobody in particular
        fold = rng.integers(0, _FOLDS, len(votes.row))
    else:
        families = found.resemblance.families
        fold = (rng.permutation(families.max(initial=0) + 1) % _FOLDS)[families][votes.annotator]
    weight = np.ones(len(votes.row)) if votes.weight is None else votes.weight
    gained, judged = np.zeros(len(votes)), np.zeros(len(votes))
    for number in np.unique(fold):
        others = votes.keep(fold != number)
        held = np.flatnonzero((fold == number) & (others.sizes[votes.row] > 0))
        if not len(held):
            continue
        panel = Consensus(others, None, probabilities, np.ones(len(others)))
        row, label = votes.row[held], votes.label[held]
        by_model, by_count = (_hits(values, row, label) for values in (panel.mixed, others.counts))
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
