"""Annotators as noisy instruments: how each errs, and how probable each label is given all answers.

The truth Y of row i has q_ik ∝ exp(β·log f_ik + b_k) with the model's probabilities f (without a model, shares b of
the classes alone). Given Y = k annotator j answers l with probability C^j_kl, independently of the others (Dawid
and Skene, 1979; with a classifier: Raykar et al., JMLR 2010). EM finds the posterior R_ik ∝ q_ik·Π C^j_{k,l} over
the answers of the row, the confusions from R-weighted counts, and β and b, without which an overconfident model
would outvote the annotators. An annotator's own confusions are shrunk to those of all, C, by as many answers as
`_SHRINK`, or as held-out answers choose; nameless answers use C itself. "Not this label" is an answer of its own.

Only pairs of annotator and label that occur are held: with S the sparse matrix of answers, pairs by rows, a step of
EM is two products, SᵀlogC and SR.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from setwise._arrays import Array, Floats, Ints, blocks, for_blocks, frozen, take_rows
from setwise.labels.vocabulary import Vocabulary
from setwise.labels.votes import Votes

_SHRINK = 5.0  # answers of a class that C weighs in an annotator's own confusions
_SHRINKS = (5.0, 20.0, 80.0, 320.0)  # of which held-out answers choose one
_HALVED = 1_000_000  # rows times classes, of which they do
_RIGHT = 2.0  # answers that start C: as if so many were right in each class
_SPREAD = 1.0  # and so many spread over all labels
_STEPS = 200
_CLOSE = 1e-5  # mean change of the log likelihood per row
_TINY = 1e-12
_CELLS = 20_000_000  # of a table
_PART = 500_000  # of which some are made at a time
_PAIRS = 30  # rows with two answers or more, below which nothing is said of independence
_FITTED = 10.0  # how much smaller fitting may make the standard error of the agreement
_DRAWS = ((5, 1.96), (10, 1.32))  # of answers, and how unsure they leave mean and deviation (Student's t at 0.01)
_CLEAR = 4.0  # deviations after which the first draws will do
_REDRAWN = 200_000  # rows times classes up to which that is done: with more, fitting explains next to nothing
REFUTED = 0.01
"""Independent annotators are called dependent with about this probability."""


@dataclass(frozen=True)
class AnswerLaw:
    """How answers arise under a fitted model: who gave each, confusions (people, K, A), and q."""

    who: Ints
    confusions: Floats
    prior: _Prior

    def draw(self, votes: Votes, rng: np.random.Generator) -> Votes:
        """Other answers of the same people to the same rows."""
        truth = _drawn(np.broadcast_to(self.prior.of(slice(None))[2], votes.shape), rng)
        answer = _drawn(self.confusions[self.who, truth[votes.row]], rng)
        against, label = np.divmod(answer, votes.n_classes)
        denied = None if votes.against is None else frozen(against.astype(bool))
        return replace(votes, label=frozen(label), against=denied)


@dataclass(frozen=True, eq=False)
class AnnotatorParameters:
    """What EM found of the annotators and of the classifier; gives the posterior of any rows.

    Attributes
    ----------
    names
        The annotators; None where nobody is named.
    confusion
        (K, A): how often the annotators together answer l where k is true. The first K columns are the labels;
        where somebody said "not this label", the next K are what they denied.
    people, said, own
        Positions of the annotator and the answer of each pair that occurs, and its (pairs, K) probabilities.
    total
        (annotators, K): how many answers each annotator gave to rows of each class.
    temperature, shift
        β and b.
    shrink
        How many answers of a class the confusions of all weigh in an annotator's own.
    """

    names: Vocabulary | None
    confusion: Floats
    people: Ints
    said: Ints
    own: Floats
    total: Floats
    temperature: float
    shift: Floats
    shrink: float = _SHRINK

    def posterior(self, votes: Votes, probabilities: Floats | None = None) -> Floats:
        """(n, K): how probable each label is given the row's answers and the probabilities.

        Annotators are known by their names; answers of others have the confusions of all. Labels are positions in
        the vocabulary of the answers that were fitted.
        """
        return self._weighed(votes, probabilities)[0]

    def likelihood(self, votes: Votes, probabilities: Floats | None = None) -> float:
        """The logarithm of the probability of these answers."""
        return self._weighed(votes, probabilities)[1]

    def _weighed(self, votes: Votes, probabilities: Floats | None) -> tuple[Floats, float]:
        answer, count = _answers(votes)
        given = _Given.of(votes, self._positions(votes), answer, count)
        prior = _Prior(probabilities, self.temperature, self.shift)
        found = np.empty(votes.shape)
        return found, given.weigh(self._probabilities(given.people, given.said, count), prior, found).likelihood

    def to_arrays(self) -> dict[str, Array]:
        """The arrays, by name."""
        return {f.name: held for f in fields(self) if isinstance(held := getattr(self, f.name), np.ndarray)}

    def _positions(self, votes: Votes) -> Ints:
        """Of each answer the position of its annotator, one past the last for one that is not known."""
        unknown = len(self.total)
        if votes.annotator is None or self.names is None:
            return np.full(len(votes.label), unknown)
        found = self.names.encode(votes.annotators)
        return np.where(found < 0, unknown, found)[votes.annotator]

    def _probabilities(self, people: Ints, said: Ints, count: int) -> Floats:
        """(pairs, K): the probability of each pair's answer under each label."""
        shared = self.confusion
        if count > shared.shape[1]:  # nobody said "not this label" before
            start = _start(len(shared), count)
            shared = np.hstack([shared, (start / start.sum(axis=1, keepdims=True))[:, shared.shape[1] :]])
        found = shared.T[said]
        known = people < len(self.total)
        found[known] *= self.shrink / (self.total[people[known]] + self.shrink)
        keys = self.people * shared.shape[1] + self.said  # in order
        wanted = people * shared.shape[1] + said
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        held = known & (keys[place] == wanted) if len(keys) else np.zeros_like(known)
        found[held] = self.own[place[held]]
        return found


@dataclass(frozen=True)
class AnnotatorModel:
    """What EM found of the rows.

    Attributes
    ----------
    parameters
        What it found of the annotators.
    posterior
        (n, K): how probable each label is given the answers of its row and the model's probabilities.
    agreed, excess
        Per row, the share of pairs of answers that agree, and by how much it exceeds what the model predicts,
        without what fitting explains (the standard error of its mean is then that under the model); NaN below two
        answers.
    law
        How answers arise under this model.
    """

    parameters: AnnotatorParameters
    posterior: Floats
    agreed: Floats
    excess: Floats
    law: AnswerLaw


@dataclass(frozen=True)
class Dependence:
    """How often pairs of answers agree, by how much that exceeds independence, and how surprising the excess is."""

    agreed: float
    excess: float
    p_value: float

    @property
    def refuted(self) -> bool:
        """Whether independent annotators would hardly agree like this."""
        return self.p_value < REFUTED

    def __str__(self) -> str:
        p = f"p = {self.p_value:.2g}" if self.p_value >= 0.001 else "p < 0.001"
        seen = f"Two answers agree in {self.agreed:.1%} of cases"
        if not self.refuted:
            return f"{seen}, {self.excess:+.1%} from what independent annotators would: not refuted ({p})."
        how = "share their errors" if self.excess > 0 else "avoid each other's answers"
        return f"{seen}, {self.excess:+.1%} from what independent annotators would ({p}): they {how}."

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"refuted": self.refuted}


def dependence(agreed: Floats, excess: Floats) -> Dependence | None:
    """Agreement beyond that of independent annotators; None where too few rows have two answers.

    A model with many parameters fits its rows too well and expects too much agreement: too little of it is held
    against the standard error that it would have without fitting, and too much never against much less than that,
    or than one row: of annotators who always agree the model thinks a little worse.
    """
    known = ~np.isnan(excess)
    agreed, excess = agreed[known], excess[known]
    if len(excess) < _PAIRS:
        return None
    mean, deviation, plain = float(excess.mean()), float(excess.std(ddof=1)), float(agreed.std(ddof=1))
    deviation = max(deviation, plain if mean < 0 else plain / _FITTED) / len(excess) ** 0.5
    p_value = 2 * float(ndtr(-abs(mean) / max(deviation, 1 / len(excess))))
    return Dependence(float(agreed.mean()), mean, p_value)


def fit_annotators(
    votes: Votes, probabilities: Floats | None = None, *, compare: bool = True, shrink: float = _SHRINK
) -> AnnotatorModel:
    """Fits the annotator model to the answers, with the probabilities of a classifier that has not seen them.

    Without `compare` the excess of agreement stays as it is; see `compared`.
    """
    model = _fitted(votes, probabilities, shrink)
    return compared(model, votes, probabilities) if compare else model


def held_out_shrinkage(votes: Votes, probabilities: Floats) -> float:
    """How much annotators' own confusions are best shrunk: the answers of each half of the rows, given the other.

    With too little, few answers per annotator and class confirm whatever the classifier says. Of many rows some are
    looked at: how much annotators differ does not depend on how many rows there are.
    """
    if votes.annotator is None or len(votes) < 2:
        return _SHRINK
    order = np.random.default_rng(0).permutation(len(votes))[: max(_HALVED // votes.n_classes, 2)]
    parts = [(votes[rows], probabilities[rows]) for rows in (order[::2], order[1::2])]

    def likelihood(shrink: float) -> float:
        return sum(
            _fit(*ours, shrink)[1].likelihood(*others) for ours, others in zip(parts, parts[::-1], strict=True)
        )

    return max(_SHRINKS, key=likelihood)


def compared(model: AnnotatorModel, votes: Votes, probabilities: Floats | None) -> AnnotatorModel:
    """The model with its excess of agreement compared with that of answers drawn from the model itself.

    With few answers per parameter a model that was fitted to independent answers has an excess, too. This is done
    where independence would be refuted otherwise, and data are not large.
    """
    found = dependence(model.agreed, model.excess)
    if found is None or not found.refuted or len(votes) * votes.n_classes > _REDRAWN:
        return model
    rng, means, deviation = np.random.default_rng(0), np.empty(0), 0.0
    for draws, unsure in _DRAWS:
        again = (model.law.draw(votes, rng) for _ in range(draws - len(means)))
        drawn = (_fitted(other, probabilities, model.parameters.shrink).excess for other in again)
        means = np.append(means, [np.nanmean(excess) for excess in drawn])
        deviation = unsure * float(means.std(ddof=1))
        if abs(found.excess - means.mean()) > _CLEAR * deviation:
            break
    spread = model.excess - found.excess
    error = np.nanstd(spread, ddof=1) / np.count_nonzero(~np.isnan(spread)) ** 0.5
    return replace(model, excess=found.excess - means.mean() + spread * max(deviation / max(error, _TINY), 1.0))


def _fitted(votes: Votes, probabilities: Floats | None, shrink: float) -> AnnotatorModel:
    """The model, found by EM, and what it says of the agreement."""
    given, found, posterior, prior = _fit(votes, probabilities, shrink)
    confusions, who = found.confusion[None], np.zeros_like(given.who)
    if given.named and len(found.total) * found.confusion.size <= _CELLS:
        confusions = np.broadcast_to(found.confusion, (len(found.total), *found.confusion.shape)) * shrink
        confusions = confusions / (found.total + shrink)[:, :, None]
        confusions[found.people, :, found.said] = found.own
        who = given.who
    law = AnswerLaw(who, confusions, prior)
    agreed, expected = _agreement(votes, _answers(votes)[0], law)
    return AnnotatorModel(found, posterior, agreed, _excess(agreed - expected, votes, posterior, prior), law)


def fit_parameters(votes: Votes, probabilities: Floats | None = None) -> AnnotatorParameters:
    """The same, for rows other than these; without any answers what EM starts from."""
    return _fit(votes, probabilities)[1]


def _fit(
    votes: Votes, probabilities: Floats | None, shrink: float = _SHRINK
) -> tuple[_Given, AnnotatorParameters, Floats, _Prior]:
    """EM: the answers as matrices, what it found, and the posterior and prior probabilities of the rows."""
    n, k = votes.shape
    answer, count = _answers(votes)
    people = max(len(votes.annotators), 1)
    who = np.zeros(len(answer), dtype=np.intp) if votes.annotator is None else votes.annotator
    given = _Given.of(votes, who, answer, count, people)
    shared = given.prior / given.prior.sum(axis=1, keepdims=True)
    posterior, counted, own = np.empty((n, k)), np.zeros((len(given.said), k)), shared.T[given.said]
    if probabilities is None:  # from the shares of answers: what EM finds depends on where it starts
        np.add(votes.counts, _TINY, out=posterior)
        posterior /= posterior.sum(axis=1, keepdims=True)
        given.confuse(posterior, counted, own, shrink)
    temperature, shift, last = float(probabilities is not None), np.zeros(k), -np.inf
    prior = _Prior(probabilities, temperature, shift)
    for _ in range(_STEPS if n else 0):
        prior = _Prior(probabilities, temperature, shift)
        seen = given.weigh(own, prior, posterior)
        mean = seen.likelihood / n
        shared = given.confuse(posterior, counted, own, shrink)
        shift = shift + np.log((seen.posterior + 1 / k) / (seen.prior + 1 / k))
        temperature = max(temperature + seen.slope / max(seen.bend, _TINY), 0.0)
        if abs(mean - last) < _CLOSE:
            break
        last = mean
    names = None if votes.annotator is None else Vocabulary.declare(votes.annotators.tolist())
    total = given.of_person @ counted if given.named else np.empty((0, k))
    found = AnnotatorParameters(names, shared, given.people, given.said, own, total, temperature, shift, shrink)
    return given, found, posterior, prior


@dataclass(frozen=True)
class _Given:
    """The answers as sparse matrices, and what a step of EM does with them, in blocks shared among threads.

    `pairs` has a line for each pair of annotator (`people`) and answer (`said`) that occurs and a column for each
    row; `of_row` is its transpose; both are cut into blocks, by where each starts. `of_answer` and `of_person` sum
    over pairs. `who` answered, `prior` stands for classes with few answers, and `named` says whether annotators are
    known.
    """

    pairs: dict[int, Any]
    of_row: dict[int, Any]
    of_answer: Any
    of_person: Any
    people: Ints
    said: Ints
    who: Ints
    prior: Floats
    named: bool

    @classmethod
    def of(cls, votes: Votes, who: Ints, answer: Ints, count: int, people: int = 0) -> _Given:
        keys, which = np.unique(who * count + answer, return_inverse=True)
        asked, said = np.divmod(keys, count)
        weight = np.ones(len(answer)) if votes.weight is None else votes.weight
        each, ones = np.arange(len(keys)), np.ones(len(keys))
        pairs = sparse.csr_array((weight, (which, votes.row)), shape=(len(keys), len(votes)))
        of_answer = sparse.csr_array((ones, (said, each)), shape=(count, len(keys)))
        rows = max(people, int(asked.max(initial=0)) + 1)
        of_person = sparse.csr_array((ones, (asked, each)), shape=(rows, len(keys)))
        prior, named = _start(votes.n_classes, count), votes.annotator is not None
        by_pair, by_row = (_in_blocks(matrix, votes.n_classes) for matrix in (pairs, pairs.T.tocsr()))
        return cls(by_pair, by_row, of_answer, of_person, asked, said, who, prior, named)

    def weigh(self, own: Floats, prior: _Prior, posterior: Floats) -> _Weighed:
        """Writes the posterior that confusions and prior probabilities give."""
        log_own = np.log(own)

        def part(block: slice) -> _Weighed:
            z, log_q, q = prior.of(block)
            log_r = self.of_row[block.start] @ log_own + log_q
            most = log_r.max(axis=1, keepdims=True)
            r = np.exp(log_r - most)
            total = r.sum(axis=1, keepdims=True)
            r /= total
            posterior[block] = r
            rows, likelihood = len(r) / len(q), float((most + np.log(total)).sum())
            centred = z - (q * z).sum(axis=1, keepdims=True)
            slope, bend = float(((r - q) * z).sum()), float((q * centred**2).sum())
            return _Weighed(likelihood, r.sum(axis=0), q.sum(axis=0) * rows, slope, bend)

        parts = for_blocks(posterior, part)
        return _Weighed(*(sum(column) for column in zip(*parts, strict=True))) if parts else _Weighed()

    def confuse(self, posterior: Floats, counted: Floats, own: Floats, weight: float) -> Floats:
        """Writes posterior-weighted counts of the pairs and the confusions of each; returns those of all."""

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
class _Prior:
    """q, made of the probabilities of a block of rows at a time; without any, one row for all."""

    probabilities: Floats | None
    temperature: float
    shift: Floats

    def of(self, rows: slice | Ints) -> tuple[Floats, Floats, Floats]:
        """The logarithms of f and q, and q, of some rows."""
        z = np.zeros((1, len(self.shift)))
        if self.probabilities is not None:
            z = np.log(np.maximum(self.probabilities[rows], _TINY))
        logits = self.temperature * z + self.shift
        logits -= logits.max(axis=1, keepdims=True)
        values = np.exp(logits)
        total = values.sum(axis=1, keepdims=True)
        return z, logits - np.log(total), values / total


def _in_blocks(matrix: Any, k: int) -> dict[int, Any]:
    """The blocks of a sparse matrix that fit those of its product with k columns."""
    return {block.start: matrix[block] for block in blocks(np.broadcast_to(0.0, (matrix.shape[0], k)))}


def _drawn(law: Floats, rng: np.random.Generator) -> Ints:
    """A position for each row of a table of probabilities."""
    below: Ints = (law[:, :-1].cumsum(axis=1) < rng.random((len(law), 1))).sum(axis=1)
    return below


def _answers(votes: Votes) -> tuple[Ints, int]:
    """Each answer as a number, and how many there may be: labels, and then "not this label"."""
    if votes.against is None:
        return votes.label, votes.n_classes
    return votes.label + votes.n_classes * votes.against, 2 * votes.n_classes


def _start(k: int, count: int) -> Floats:
    """The answers that C starts from, and that stand for classes with few."""
    start = np.full((k, count), _SPREAD / k)
    start[:, :k] += _RIGHT * np.eye(k)
    if count > k:
        start[:, k:] = np.where(np.eye(k), _SPREAD / k / 10, (_RIGHT + _SPREAD) / k)
    return start


def _agreement(votes: Votes, answer: Ints, law: AnswerLaw) -> tuple[Floats, Floats]:
    """Of each row the share of pairs of answers that are equal, and its expectation under the model.

    With answers a of weight w and annotators' confusions C^a the expectation is Σ_k q_k Σ_l ((Σ_a w_a C^a_kl)² −
    Σ_a (w_a C^a_kl)²) over ((Σ w)² − Σ w²). Of many rows some are looked at.
    """
    agreed, expected = np.full(len(votes), np.nan), np.full(len(votes), np.nan)
    several = np.flatnonzero(votes.sizes > 1)
    size = law.confusions[0].size
    chosen = several[:: max(int(votes.sizes[several].sum()) * size // _CELLS, 1)]
    for rows in _in_parts(chosen, votes.sizes, size):
        agreed[rows], expected[rows] = _agreement_of(votes, answer, law, rows)
    return agreed, expected


def _in_parts(rows: Ints, sizes: Ints, width: int) -> list[Ints]:
    """The rows in parts whose answers, `width` numbers each, stay small."""
    return np.split(rows, np.flatnonzero(np.diff(np.cumsum(sizes[rows]) * width // _PART)) + 1) if len(rows) else []


def _agreement_of(votes: Votes, answer: Ints, law: AnswerLaw, rows: Ints) -> tuple[Floats, Floats]:
    """The same of some rows."""
    taken = take_rows(votes.sizes, rows)
    weight = np.ones(len(taken)) if votes.weight is None else votes.weight[taken]
    starts = np.cumsum(votes.sizes[rows]) - votes.sizes[rows]

    def pairs(values: Floats) -> Floats:
        """(Σ v)² − Σ v² over the answers of each row."""
        return np.add.reduceat(values, starts) ** 2 - np.add.reduceat(values**2, starts)

    all_pairs = pairs(weight)
    all_pairs[all_pairs <= 0] = np.nan  # one answer outweighs the others beyond what numbers hold
    said = np.zeros((len(taken), law.confusions.shape[2]))
    said[np.arange(len(taken)), answer[taken]] = weight
    chances = pairs(weight[:, None] * law.confusions[law.who[taken]].reshape(len(taken), -1))
    chances = chances.reshape(len(rows), votes.n_classes, -1).sum(axis=2)
    expected: Floats = (law.prior.of(rows)[2] * chances).sum(axis=1) / all_pairs
    return pairs(said).sum(axis=1) / all_pairs, expected


def _excess(difference: Floats, votes: Votes, posterior: Floats, prior: _Prior) -> Floats:
    """The differences less their regression on what the parameters were fitted to.

    Fitting makes some sums of the rows right, and so the mean difference varies less than the differences do: its
    variance is that of what this regression leaves (the outer-product form of the information matrix test).
    """
    rows = np.flatnonzero(~np.isnan(difference))
    if not len(rows):
        return difference
    given = votes[rows].counts
    given = given / np.maximum(given.sum(axis=1, keepdims=True), _TINY)
    own = posterior[rows]
    fitted = np.hstack([own * given, own, given, (own * prior.of(rows)[0]).sum(axis=1, keepdims=True)])
    fitted -= fitted.mean(axis=0)
    excess = difference.copy()
    free = len(rows) - fitted.shape[1]
    if free > len(rows) / 2:
        centred = difference[rows] - difference[rows].mean()
        left = centred - fitted @ np.linalg.lstsq(fitted, centred, rcond=None)[0]
        excess[rows] = difference[rows].mean() + left * np.sqrt(len(rows) / free)
    return excess
