"""`suggest_verification`: which rows to verify, and how much smaller the sets would become.

The gain follows from an estimated distribution G of the true labels' scores: that of the annotator model, or of the
model's probabilities among the candidates (at the temperature that makes the candidates most likely), corrected by
the rows verified so far where these are enough. Before, it is no better than the model: candidates that share its
confusions make the gain look too large. With m rows verified at random the threshold of these rows alone is G⁻¹(U),
with U the rank's order statistic of m uniform numbers, Beta(r, m + 1 − r); `auto` takes the larger of it and
`rectified`'s, which is near G⁻¹(level − δ).

Neither the draw nor the first estimate sees a true label. You may therefore decide by it how many rows to verify:
every guarantee stays as it is. If you inspect the sets before verifying more rows, use ``look=`` of `Rectified`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import betaincinv, softmax

from setwise._arrays import Floats, Ints, frozen
from setwise._types import Candidates, Column, Features, Seed
from setwise.crowd.annotator_model import fit_annotators
from setwise.crowd.verifiers import leave_out_verifiers
from setwise.errors import InputError, check_length
from setwise.evidence.evidence import gather
from setwise.evidence.row_facts import RowFacts, present_rows
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import missing_labels
from setwise.labels.votes import Votes
from setwise.probabilities.dense import DenseRows, as_probabilities
from setwise.ranks import as_level, instances_needed, rank
from setwise.scores import LAC
from setwise.strategies import Auto, Setting
from setwise.strategies.auto import half_step
from setwise.strategies.curves import Curve
from setwise.strategies.judgement import DELTA
from setwise.strategies.posterior import posterior_steps
from setwise.strategies.rectified import rectified_steps

_QUANTILES = (np.arange(50) + 0.5) / 50
_ENOUGH = 20  # verified rows, below which what they correct is mostly noise
_MORE = (10, 20, 50, 100, 200, 500, 1_000)


@dataclass(frozen=True, eq=False)
class Suggestion:
    """Rows to verify, and the mean size of the sets to expect.

    Attributes
    ----------
    rows
        Positions of the rows to verify, in the order of the draw: the first of them are a random sample, too.
    size_now, size_then
        The mean size of the sets on these rows now, and once these rows are verified.
    confidence_level
        The level that the sizes are for.
    curve
        The mean size to expect for other numbers of rows to verify.
    verified
        How many rows were verified before.
    """

    rows: Ints
    size_now: float
    size_then: float
    confidence_level: float
    curve: dict[int, float]
    verified: int = 0

    @property
    def gain(self) -> str:
        """How much smaller the sets are expected to become: sentences."""
        gain = f"At confidence {self.confidence_level:.12g}, sets then contain about {self.size_then:.2f} labels"
        gain += f" instead of {self.size_now:.2f}"
        if self.verified < _ENOUGH:
            gain += f", if the model is right. Ask again once {_ENOUGH} rows are verified"
        if self.curve:
            others = "; ".join(f"{count:,} rows: {size:.2f} labels" for count, size in self.curve.items())
            gain += f". With other numbers of rows to verify: {others}"
        return f"{gain}."

    def __str__(self) -> str:
        return f"Verify these {len(self.rows):,} rows and pass the labels as verified=…. {self.gain}"


def suggest_verification(
    model: Any,
    X: Features,
    candidates: Candidates,
    budget: int,
    *,
    verified: Column = None,
    learned: Column = None,
    confidence_level: float = 0.9,
    random_state: Seed = None,
) -> Suggestion:
    """Draws rows to verify, and estimates how much smaller the sets would become.

    Parameters
    ----------
    model
        A model with ``predict_proba`` that was not trained on these rows.
    X, candidates
        The calibration rows and their candidate sets or `Votes`.
    budget
        How many rows can be verified.
    verified
        The true label where a row is verified already, None or NaN elsewhere; these rows are not drawn again.
    learned
        Which rows the model was trained on, one bool per row. They may be drawn, because calibration uses verified
        rows first, but the estimate leaves them out.
    confidence_level
        The confidence level of the sets.
    random_state
        Seeds the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from setwise import suggest_verification
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 4, 900)
    >>> X = 2 * np.eye(4)[y] + rng.normal(size=(900, 4))
    >>> candidates = (np.arange(4) == y[:, None]) | (rng.random((900, 4)) < 0.3)
    >>> model = LogisticRegression().fit(X[:300], y[:300])
    >>> suggestion = suggest_verification(model, X[300:], candidates[300:], budget=50, random_state=0)
    >>> len(suggestion.rows), suggestion.size_then < suggestion.size_now
    (50, True)
    """
    level = as_level(confidence_level)
    P = as_probabilities(model.predict_proba(X))
    sets, _ = present_rows(as_candidates(candidates, P.shape[1], getattr(model, "classes_", None)), "error")
    n, fewest = len(sets), instances_needed(level)
    check_length("candidates", n, len(P), "rows of X")
    facts = RowFacts.read(n, sets.vocabulary, verified=verified)
    had = len(facts.verified_rows)
    unseen = np.arange(n) if learned is None else np.flatnonzero(~np.asarray(learned, dtype=bool))
    if not (1 <= budget <= n - had and budget + had >= fewest):  # type: ignore[operator]
        before = f", {had:,} of which are verified" if had else ""
        raise ValueError(
            f"budget: {budget} of {n} rows{before}; confidence {float(level):.12g} needs at least {fewest} "
            "verified labels."
        )
    if len(unseen) < instances_needed(level):  # type: ignore[operator]
        raise InputError("learned: the model was trained on all of these rows", "give rows that it has not seen")
    votes = candidates.recode(sets.vocabulary) if isinstance(candidates, Votes) else None
    votes = None if votes is None else leave_out_verifiers(votes, facts.verified)
    gain = _Gain.of(P[unseen], sets[unseen], replace(facts, votes=votes).take(unseen), level)
    more = [count for count in _MORE if fewest <= count + had and count <= n - had and count != budget]  # type: ignore[operator]
    return Suggestion(
        draw_to_verify(n, budget, verified=verified, random_state=random_state),
        gain.size(gain.now),
        gain.mean_size(had + budget),
        float(level),
        {count: gain.mean_size(had + count) for count in more},
        had,
    )


def draw_to_verify(n: int, budget: int, *, verified: Column = None, random_state: Seed = None) -> Ints:
    """Draws rows to verify at random, without a model: positions in the order of the draw.

    Rows come in the order of one permutation. With the same seed a larger budget therefore continues a draw, and
    rows that are `verified` already, one label or None for each, are passed over.

    Examples
    --------
    >>> first = draw_to_verify(600, 20, random_state=0)
    >>> draw_to_verify(600, 50, random_state=0)[:20].tolist() == first.tolist()
    True
    """
    order = np.random.default_rng(random_state).permutation(n)
    free = order if verified is None else order[missing_labels(np.asarray(verified, dtype=object))[order]]
    if not 1 <= budget <= len(free):
        before = f", {n - len(free):,} of which are verified" if len(free) < n else ""
        raise InputError(f"budget: {budget} of {n} rows{before}", f"draw 1 to {len(free):,} rows")
    return frozen(free[:budget])


@dataclass(frozen=True, eq=False)
class _Gain:
    """What verified rows are worth: the threshold now, the one without any, and G's thresholds at any level."""

    level: Fraction
    now: float
    without: float
    truth: Curve
    scores: Floats
    n: int

    @classmethod
    def of(cls, P: Floats, sets: LabelSets, facts: RowFacts, level: Fraction) -> _Gain:
        needs: tuple[str, ...] = ("every", "share")
        if facts.votes is not None:
            facts = replace(facts, posterior=fit_annotators(facts.votes, P).posterior)
            needs = ("every", "backing", "table", "posterior")
        evidence = tempered = gather(LAC(), DenseRows(P), sets, facts, needs)
        if facts.votes is None:
            rows = DenseRows(_temper(P, sets))
            tempered = replace(evidence, share=gather(LAC(), rows, sets, needs=("share",)).share)
        checked = len(facts.verified_rows)
        setting = Setting("lac", P.shape[1], checked=checked, votes=facts.votes is not None)
        blank = replace(evidence, truth=None, held=None, label=None)
        without = float(Auto().calibrate(blank, replace(setting, checked=0)).threshold(level))
        now = float(Auto().calibrate(evidence, setting).threshold(level)) if checked else without
        steps = rectified_steps(tempered) if checked >= _ENOUGH else posterior_steps(tempered)
        return cls(level, now, without, Curve(steps, "none", DELTA), np.sort(-P, axis=None), len(P))

    def size(self, threshold: float) -> float:
        """The mean size of these rows' sets at a threshold."""
        return float(np.searchsorted(self.scores, threshold, side="right") / self.n)

    def mean_size(self, m: int) -> float:
        """The mean size of the sets over samples of m verified rows."""
        r = rank(m, self.level)
        least = self._truth(max(float(self.level - half_step(m)), 0.0))
        alone = [self._truth(u) for u in betaincinv(r, m + 1 - r, _QUANTILES)]
        return float(np.mean([self.size(max(t, least)) for t in alone]))

    def _truth(self, level: float) -> float:
        """G⁻¹, and at most the threshold without verified rows."""
        return min(float(self.truth.certified.threshold(Fraction(level).limit_denominator(10**6))), self.without)


def _temper(P: Floats, sets: LabelSets) -> Floats:
    """The probabilities at the temperature that makes the candidates most likely."""
    from scipy.optimize import minimize_scalar  # it is heavy

    logits, mask = np.log(np.maximum(P, 1e-12)), sets.to_mask()

    def at(power: float) -> Floats:
        return np.asarray(softmax(power * logits, axis=1))

    found = minimize_scalar(
        lambda power: -float(np.log((at(power) * mask).sum(axis=1)).mean()), bounds=(0.05, 1), method="bounded"
    )
    return at(float(found.x))
