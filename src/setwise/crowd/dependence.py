"""Whether annotators err independently: how much more often answers agree than the annotator model expects."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from setwise._arrays import Floats, Ints, frozen, take_rows
from setwise.crowd.annotator_model import TINY, AnnotatorModel, Prior, fit_annotators
from setwise.labels.votes import Votes

_CELLS = 20_000_000  # the most cells of a table
_PART = 500_000  # cells that are computed at a time
_PAIRS = 30  # rows with two answers or more; with fewer, independence is not tested
_FITTED = 10.0  # the factor by which fitting may shrink the standard error of the agreement
_DRAWS = ((5, 1.96), (10, 1.32))  # draws of answers, and how unsure mean and deviation are (Student's t at 0.01)
_CLEAR = 4.0  # deviations; beyond, the first draws suffice
_REDRAWN = 200_000  # rows times classes; with more, fitting explains next to nothing and nothing is drawn
REFUTED = 0.01
"""Independent annotators are called dependent with about this probability."""


@dataclass(frozen=True)
class AnswerLaw:
    """How answers arise under a fitted model: who gave each, confusions (people, K, A), and q."""

    who: Ints
    confusions: Floats
    prior: Prior

    @classmethod
    def of(cls, model: AnnotatorModel) -> AnswerLaw:
        """The law of the answers that the model was fitted to."""
        found, people = model.parameters, model.votes.annotator
        if people is None or len(found.total) * found.confusion.size > _CELLS:
            return cls(np.zeros(len(model.votes.label), dtype=np.intp), found.confusion[None], model.prior)
        confusions = np.broadcast_to(found.confusion, (len(found.total), *found.confusion.shape)) * found.shrink
        confusions = confusions / (found.total + found.shrink)[:, :, None]
        confusions[found.people, :, found.said] = found.own
        return cls(people, confusions, model.prior)

    def draw(self, votes: Votes, rng: np.random.Generator) -> Votes:
        """Draws new answers of the same people to the same rows."""
        truth = _draw(np.broadcast_to(self.prior.of(slice(None))[2], votes.shape), rng)
        answer = _draw(self.confusions[self.who, truth[votes.row]], rng)
        return replace(votes, label=frozen(answer))


class Agreement(NamedTuple):
    """What pairs of answers show, one number per row, NaN below two answers.

    `agreed` is the share of pairs that agree. `excess` is by how much it exceeds what the model expects, without
    what fitting explains, so that the standard error of its mean is the one under the model.
    """

    agreed: Floats
    excess: Floats


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

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"refuted": self.refuted}


def dependence(agreed: Floats, excess: Floats) -> Dependence | None:
    """Agreement beyond that of independent annotators; None where too few rows have two answers.

    A model with many parameters fits its rows too well and expects too much agreement, and fitting shrinks the
    standard error. A negative excess is therefore compared with the error without fitting, and a positive one with
    at least a tenth of that. No error is smaller than one row: the model slightly underrates annotators who always
    agree.
    """
    known = ~np.isnan(excess)
    agreed, excess = agreed[known], excess[known]
    if len(excess) < _PAIRS:
        return None
    mean, deviation, plain = float(excess.mean()), float(excess.std(ddof=1)), float(agreed.std(ddof=1))
    deviation = max(deviation, plain if mean < 0 else plain / _FITTED) / len(excess) ** 0.5
    p_value = 2 * float(ndtr(-abs(mean) / max(deviation, 1 / len(excess))))
    return Dependence(float(agreed.mean()), mean, p_value)


def measure_agreement(model: AnnotatorModel, law: AnswerLaw | None = None) -> Agreement:
    """How often answers agree, and by how much that exceeds what a fitted model expects, whose law may be known."""
    agreed, expected = _pairs(model.votes, law or AnswerLaw.of(model))
    return Agreement(agreed, _excess(agreed - expected, model))


def calibrate_agreement(model: AnnotatorModel) -> Agreement:
    """The same, with the excess compared to that of answers drawn from the model itself.

    With few answers per parameter, even a model fitted to independent answers has an excess. The comparison is made
    where independence would otherwise be refuted and the data are not large.
    """
    law = AnswerLaw.of(model)
    seen = measure_agreement(model, law)
    found = dependence(*seen)
    if found is None or not found.refuted or len(model.votes) * model.votes.n_classes > _REDRAWN:
        return seen
    rng, means, deviation = np.random.default_rng(0), np.empty(0), 0.0
    for draws, unsure in _DRAWS:
        again = (law.draw(model.votes, rng) for _ in range(draws - len(means)))
        models = (
            fit_annotators(votes, model.prior.probabilities, shrink=model.parameters.shrink) for votes in again
        )
        means = np.append(means, [np.nanmean(measure_agreement(drawn).excess) for drawn in models])
        deviation = unsure * float(means.std(ddof=1))
        if abs(found.excess - means.mean()) > _CLEAR * deviation:
            break
    spread = seen.excess - found.excess
    error = np.nanstd(spread, ddof=1) / np.count_nonzero(~np.isnan(spread)) ** 0.5
    wider = max(deviation / max(error, TINY), 1.0)
    return seen._replace(excess=found.excess - means.mean() + spread * wider)


def _draw(law: Floats, rng: np.random.Generator) -> Ints:
    """A position for each row of a table of probabilities."""
    below: Ints = (law[:, :-1].cumsum(axis=1) < rng.random((len(law), 1))).sum(axis=1)
    return below


def _pairs(votes: Votes, law: AnswerLaw) -> tuple[Floats, Floats]:
    """The share of pairs of answers that agree in each row, and its expectation under the model.

    With answers a of weight w and annotators' confusions C^a the expectation is Σ_k q_k Σ_l ((Σ_a w_a C^a_kl)² −
    Σ_a (w_a C^a_kl)²) over ((Σ w)² − Σ w²). Where there are many rows, a part of them is used.
    """
    agreed, expected = np.full(len(votes), np.nan), np.full(len(votes), np.nan)
    several = np.flatnonzero(votes.sizes > 1)
    size = law.confusions[0].size
    chosen = several[:: max(int(votes.sizes[several].sum()) * size // _CELLS, 1)]
    for rows in _in_parts(chosen, votes.sizes, size):
        agreed[rows], expected[rows] = _pairs_of(votes, law, rows)
    return agreed, expected


def _in_parts(rows: Ints, sizes: Ints, width: int) -> list[Ints]:
    """The rows in parts whose answers, `width` numbers each, stay small."""
    return np.split(rows, np.flatnonzero(np.diff(np.cumsum(sizes[rows]) * width // _PART)) + 1) if len(rows) else []


def _pairs_of(votes: Votes, law: AnswerLaw, rows: Ints) -> tuple[Floats, Floats]:
    """The same for some rows; the labels of one annotator in a row are one answer."""
    taken = take_rows(votes.lines, rows)
    which = votes.answers[2][taken]
    if votes.shared:
        order = np.argsort(which, kind="stable")
        taken, which = taken[order], which[order]
    heads = np.flatnonzero(np.diff(which, prepend=-1))
    weight = np.ones(len(taken)) if votes.weight is None else votes.weight[taken]
    starts = np.cumsum(votes.sizes[rows]) - votes.sizes[rows]

    def pairs(values: Floats) -> Floats:
        """(Σ v)² − Σ v² over the answers of each row."""
        values = np.add.reduceat(values, heads) if votes.shared else values
        return np.add.reduceat(values, starts) ** 2 - np.add.reduceat(values**2, starts)

    all_pairs = pairs(weight)
    all_pairs[all_pairs <= 0] = np.nan  # one answer outweighs the others beyond floating-point precision
    said = np.zeros((len(taken), law.confusions.shape[2]))
    said[np.arange(len(taken)), votes.label[taken]] = weight
    chances = pairs(weight[:, None] * law.confusions[law.who[taken]].reshape(len(taken), -1))
    chances = chances.reshape(len(rows), votes.n_classes, -1).sum(axis=2)
    expected: Floats = (law.prior.of(rows)[2] * chances).sum(axis=1) / all_pairs
    return pairs(said).sum(axis=1) / all_pairs, expected


def _excess(difference: Floats, model: AnnotatorModel) -> Floats:
    """The differences minus their regression on what the parameters were fitted to.

    Fitting makes some sums over the rows exact, so that the mean difference varies less than the differences do:
    its variance is that of the residuals of this regression (the outer-product form of the information matrix
    test).
    """
    rows = np.flatnonzero(~np.isnan(difference))
    if not len(rows):
        return difference
    given = model.votes.counts[rows]
    given = given / np.maximum(given.sum(axis=1, keepdims=True), TINY)
    own = model.posterior[rows]
    fitted = np.hstack([own * given, own, given, (own * model.prior.of(rows)[0]).sum(axis=1, keepdims=True)])
    fitted -= fitted.mean(axis=0)
    excess = difference.copy()
    free = len(rows) - fitted.shape[1]
    if free > len(rows) / 2:
        centred = difference[rows] - difference[rows].mean()
        left = centred - fitted @ np.linalg.lstsq(fitted, centred, rcond=None)[0]
        excess[rows] = difference[rows].mean() + left * np.sqrt(len(rows) / free)
    return excess
