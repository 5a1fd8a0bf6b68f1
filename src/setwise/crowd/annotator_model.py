"""The annotator model: how each annotator errs, and how probable each label is given all answers.

The truth Y of row i has q_ik ∝ exp(β·log f_ik + b_k) with the model's probabilities f (without a model, shares b of
the classes alone). Given Y = k annotator j answers l with probability C^j_kl, independently of the others (Dawid
and Skene, 1979; with a classifier: Raykar et al., JMLR 2010). EM finds the posterior R_ik ∝ q_ik·Π C^j_{k,l} over
the answers of the row, the confusions from R-weighted counts, and β and b, without which an overconfident model
would outvote the annotators. An annotator's own confusions are shrunk to those of all, C, by as many answers as
`_SHRINK`, or as many as held-out answers choose; anonymous answers use C itself.

Only pairs of annotator and label that occur are stored: with S the sparse matrix of answers, pairs by rows, a step
of EM is two products, SᵀlogC and SR.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from setwise._arrays import Array, Floats, Ints, along_rows, blocks, for_blocks, frozen
from setwise._lazy import lazy
from setwise.labels.vocabulary import Vocabulary
from setwise.labels.votes import Votes

_SHRINK = 5.0  # how many answers of a class C counts for in an annotator's own confusions
_SHRINKS = (5.0, 20.0, 80.0, 320.0)  # held-out answers choose one of these
_HALVED = 1_000_000  # rows times classes that are used for this choice
_RIGHT = 2.0  # C starts as if so many answers were right in each class
_SPREAD = 1.0  # and as if so many were spread over all labels
_STEPS = 200
_CLOSE = 1e-5  # mean change of the log likelihood per row
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class AnnotatorParameters:
    """The parameters of annotators and classifier that EM found; they give the posterior of any rows."""

    names: Vocabulary | None  # of the annotators; None where answers are anonymous
    confusion: Floats
    """(K, K): how often the annotators together answer l where k is true. Files of earlier versions may have K
    columns more, for answers that denied a label."""
    people: Ints  # the position of the annotator of each pair that occurs,
    said: Ints  # that of the answer,
    own: Floats  # and its (pairs, K) probabilities
    total: Floats  # (annotators, K): how many answers each annotator gave to rows of each class
    temperature: float  # β
    shift: Floats  # b
    shrink: float = _SHRINK  # how many answers of a class the confusions of all count for in an annotator's own

    def posterior(self, votes: Votes, probabilities: Floats | None = None) -> Floats:
        """(n, K): the probability of each label given the row's answers and the model's probabilities.

        Annotators are known by their names; answers of others have the confusions of all. Labels are positions in
        the vocabulary of the answers that were fitted.
        """
        return self._weigh(votes, probabilities)[0]

    def likelihood(self, votes: Votes, probabilities: Floats | None = None) -> float:
        """The logarithm of the probability of these answers."""
        return self._weigh(votes, probabilities)[1]

    def _weigh(self, votes: Votes, probabilities: Floats | None) -> tuple[Floats, float]:
        who = self._positions(votes)
        if isinstance(votes, FittedVotes) and np.array_equal(who, votes.who):
            given = votes.matrices
        else:
            given = AnswerMatrices.of(votes, who)
        prior = Prior(probabilities, self.temperature, self.shift)
        found = np.empty(votes.shape)
        return found, given.weigh(self._probabilities(given.people, given.said), prior, found).likelihood

    def to_arrays(self) -> dict[str, Array]:
        """The arrays, by name."""
        return {f.name: held for f in fields(self) if isinstance(held := getattr(self, f.name), np.ndarray)}

    def _positions(self, votes: Votes) -> Ints:
        """The position of each answer's annotator; one past the last for an unknown annotator."""
        unknown = len(self.total)
        if votes.annotator is None or self.names is None:
            return np.full(len(votes.label), unknown)
        found = self.names.encode(votes.annotators)
        return np.where(found < 0, unknown, found)[votes.annotator]

    def _probabilities(self, people: Ints, said: Ints) -> Floats:
        """(pairs, K): the probability of each pair's answer under each label."""
        shared = self.confusion
        found = shared.T[said]
        known = people < len(self.total)
        found[known] *= self.shrink / (self.total[people[known]] + self.shrink)
        keys = self.people * shared.shape[1] + self.said  # in order
        wanted = people * shared.shape[1] + said
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        held = known & (keys[place] == wanted) if len(keys) else np.zeros_like(known)
        found[held] = self.own[place[held]]
        return found


@dataclass(frozen=True, eq=False)
class AnnotatorModel:
    """The annotator model fitted to the answers of some rows."""

    votes: Votes
    parameters: AnnotatorParameters
    posterior: Floats  # (n, K): the probability of each label given the row's answers and the model's probabilities
    prior: Prior  # given the model's probabilities alone


@dataclass(frozen=True, eq=False, repr=False)
class FittedVotes(Votes):
    """Votes that store the fits of the annotator model to them.

    The answers are arranged once for all fits, and the fit to the answers alone is made at first use: learner,
    warnings and calibration share one object. Rows taken out of it store fits of their own, without the other rows.
    """

    @lazy
    def answer_model(self) -> AnnotatorModel:
        """The model fitted to the answers alone."""
        return self.fit()

    def fit(self, probabilities: Floats | None = None, *, shrink: float = _SHRINK) -> AnnotatorModel:
        """The model fitted to the answers and the probabilities of a classifier that has not seen them."""
        parameters, posterior, prior = _fit(self, self.matrices, probabilities, shrink)
        return AnnotatorModel(self, parameters, frozen(posterior), prior)

    def label_targets(self, probabilities: Floats | None = None) -> Floats:
        """(n, K): the probability of each label given the answers and, recalibrated, the probabilities.

        These must come from models that have not seen the row, or they would confirm themselves.
        """
        return (self.answer_model if probabilities is None else self.fit(probabilities)).posterior

    @lazy
    def matrices(self) -> AnswerMatrices:
        """The answers as EM takes them."""
        return AnswerMatrices.of(self, self.who, max(len(self.annotators), 1))


def own_fits(votes: Votes) -> FittedVotes:
    """The same votes, which now store the fits to them; unchanged where they do already."""
    if isinstance(votes, FittedVotes):
        return votes
    return FittedVotes(**{field.name: getattr(votes, field.name) for field in fields(Votes)})


def fit_annotators(votes: Votes, probabilities: Floats | None = None, *, shrink: float = _SHRINK) -> AnnotatorModel:
    """Fits the annotator model to the answers, with the probabilities of a classifier that has not seen them."""
    return own_fits(votes).fit(probabilities, shrink=shrink)


def choose_shrinkage(votes: Votes, probabilities: Floats) -> float:
    """How much to shrink annotators' own confusions: the best value for each half of the rows given the other.

    With too little shrinkage, few answers per annotator and class confirm whatever the classifier says. Where there
    are many rows, a part of them is used: how much annotators differ does not depend on how many rows there are.
    """
    if votes.annotator is None or len(votes) < 2:
        return _SHRINK
    order = np.random.default_rng(0).permutation(len(votes))[: max(_HALVED // votes.n_classes, 2)]
    halves = [(own_fits(votes[rows]), probabilities[rows]) for rows in (order[::2], order[1::2])]

    def likelihood(shrink: float) -> float:
        models = [half.fit(p, shrink=shrink) for half, p in halves]
        return sum(model.parameters.likelihood(*other) for model, other in zip(models, halves[::-1], strict=True))

    return max(_SHRINKS, key=likelihood)


def _fit(
    votes: Votes, given: AnswerMatrices, probabilities: Floats | None, shrink: float
) -> tuple[AnnotatorParameters, Floats, Prior]:
    """EM: the parameters that it found, and the posterior and prior probabilities of the rows."""
    n, k = votes.shape
    shared = given.prior / given.prior.sum(axis=1, keepdims=True)
    posterior, counted, own = np.empty((n, k)), np.zeros((len(given.said), k)), shared.T[given.said]
    if probabilities is None:  # from the shares of answers: what EM finds depends on where it starts
        np.add(votes.counts, TINY, out=posterior)
        posterior /= posterior.sum(axis=1, keepdims=True)
        given.confuse(posterior, counted, own, shrink)
    temperature, shift, last = float(probabilities is not None), np.zeros(k), -np.inf
    prior = Prior(probabilities, temperature, shift)
    for _ in range(_STEPS if n else 0):
        prior = Prior(probabilities, temperature, shift)
        seen = given.weigh(own, prior, posterior)
        mean = seen.likelihood / n
        shared = given.confuse(posterior, counted, own, shrink)
        shift = shift + np.log((seen.posterior + 1 / k) / (seen.prior + 1 / k))
        temperature = max(temperature + seen.slope / max(seen.bend, TINY), 0.0)
        if abs(mean - last) < _CLOSE:
            break
        last = mean
    names = None if votes.annotator is None else Vocabulary.declare(votes.annotators.tolist())
    total = given.of_person @ counted if given.named else np.empty((0, k))
    found = AnnotatorParameters(names, shared, given.people, given.said, own, total, temperature, shift, shrink)
    return found, posterior, prior


@dataclass(frozen=True)
class AnswerMatrices:
    """The answers as sparse matrices, and the steps of EM on them, in blocks shared among threads.

    `pairs` has a line for each pair of annotator (`people`) and answer (`said`) that occurs and a column for each
    row; `of_row` is its transpose; both are cut into blocks, by where each starts. `of_answer` and `of_person` sum
    over pairs. `prior` stands for classes with few answers, and `named` says whether annotators are known.
    """

    pairs: dict[int, Any]
    of_row: dict[int, Any]
    of_answer: Any
    of_person: Any
    people: Ints
    said: Ints
    prior: Floats
    named: bool

    @classmethod
    def of(cls, votes: Votes, who: Ints, people: int = 0) -> AnswerMatrices:
        """From the number of each answer's annotator, for at least so many annotators."""
        count = votes.n_classes
        keys, which = np.unique(who * count + votes.label, return_inverse=True)
        asked, said = np.divmod(keys, count)
        weight = np.ones(len(who)) if votes.weight is None else votes.weight
        each, ones = np.arange(len(keys)), np.ones(len(keys))
        pairs = sparse.csr_array((weight, (which, votes.row)), shape=(len(keys), len(votes)))
        of_answer = sparse.csr_array((ones, (said, each)), shape=(count, len(keys)))
        rows = max(people, int(asked.max(initial=0)) + 1)
        of_person = sparse.csr_array((ones, (asked, each)), shape=(rows, len(keys)))
        prior = np.full((count, count), _SPREAD / count) + _RIGHT * np.eye(count)  # the answers that C starts from
        by_pair, by_row = (_in_blocks(matrix, count) for matrix in (pairs, pairs.T.tocsr()))
        return cls(by_pair, by_row, of_answer, of_person, asked, said, prior, votes.annotator is not None)

    def weigh(self, own: Floats, prior: Prior, posterior: Floats) -> _Weighed:
        """Writes the posterior that follows from confusions and prior probabilities."""
        log_own = np.log(own)

        def part(block: slice) -> _Weighed:
            z, log_q, q = prior.of(block)
            log_r = self.of_row[block.start] @ log_own + log_q
            most = _row_maxima(log_r)
            r = np.exp(log_r - most)
            total = r.sum(axis=1, keepdims=True)
            r /= total
            posterior[block] = r
            rows, likelihood = len(r) / len(q), float((most + np.log(total)).sum())
            sums = likelihood, r.sum(axis=0), q.sum(axis=0) * rows
            if prior.probabilities is None:
                return _Weighed(*sums)
            centred = z - (q * z).sum(axis=1, keepdims=True)
            return _Weighed(*sums, float(((r - q) * z).sum()), float((q * centred**2).sum()))

        parts = for_blocks(posterior, part)
        return _Weighed(*(sum(column) for column in zip(*parts, strict=True))) if parts else _Weighed()

    def confuse(self, posterior: Floats, counted: Floats, own: Floats, weight: float) -> Floats:
        """Writes posterior-weighted counts of the pairs and each annotator's confusions; returns those of all."""

        def count(block: slice) -> None:
            counted[block] = self.pairs[block.start] @ posterior

        for_blocks(counted, count)
        shared: Floats = (self.of_answer @ counted).T + self.prior
        shared /= shared.sum(axis=1, keepdims=True)
        pull, total = np.ascontiguousarray(weight * shared.T), self.of_person @ counted + weight

        def shrink(block: slice) -> None:
            said = self.said[block]
            own[block] = (counted[block] + pull[said]) / total[self.people[block]] if self.named else shared.T[said]

        for_blocks(own, shrink)
        return shared


class _Weighed(NamedTuple):
    """The log likelihood, sums over the rows of posterior and prior, and a Newton step of β: slope over bend."""

    likelihood: float = 0.0
    posterior: Any = 0.0
    prior: Any = 0.0
    slope: float = 0.0
    bend: float = 0.0


@dataclass(frozen=True)
class Prior:
    """q, computed from the probabilities of a block of rows at a time; without any, one row for all."""

    probabilities: Floats | None
    temperature: float
    shift: Floats

    def of(self, rows: slice | Ints) -> tuple[Floats, Floats, Floats]:
        """The logarithms of f and q, and q itself, for some rows."""
        z = np.zeros((1, len(self.shift)))
        if self.probabilities is not None:
            z = np.log(np.maximum(self.probabilities[rows], TINY))
        logits = self.temperature * z + self.shift
        logits -= _row_maxima(logits)
        values = np.exp(logits)
        total = values.sum(axis=1, keepdims=True)
        return z, logits - np.log(total), values / total


def _in_blocks(matrix: Any, k: int) -> dict[int, Any]:
    """The blocks of a sparse matrix that fit those of its product with k columns."""
    return {block.start: matrix[block] for block in blocks(np.broadcast_to(0.0, (matrix.shape[0], k)))}


def _row_maxima(values: Floats) -> Floats:
    """(n, 1): many times faster than `max` for rows of few columns."""
    return along_rows(values, values.argmax(axis=1)[:, None])
