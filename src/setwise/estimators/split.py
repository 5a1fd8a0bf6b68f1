"""`ConformalClassifier`: split, learn, conformalize, predict sets, as one scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from setwise._arrays import Array, Ints
from setwise._types import Candidates, Column, Features, RandomState, Seed, Truth
from setwise.conformal.calibration import Calibration
from setwise.conformal.conformalize import calibrate
from setwise.contamination.assumption import AssumptionLike
from setwise.crowd.annotator_model import own_fits
from setwise.crowd.verifiers import with_votes
from setwise.crowd.vote_warnings import doubt_by_verified, warn_of_unanswered
from setwise.decisions.modes import Mode
from setwise.decisions.triage import Triage, triage_new_rows
from setwise.drift.comparison import Comparison
from setwise.drift.feature_summary import FeatureSummary, Reference
from setwise.errors import MisuseWarning, Remedy, check_length
from setwise.estimators.adapters import as_y, learner_for
from setwise.estimators.base import BaseConformalClassifier
from setwise.estimators.default_learner import default_learner
from setwise.estimators.used_rows import UsedRows, take_probe
from setwise.evidence.right_labels import read_truth
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.row_names import check_row_names
from setwise.evidence.verified_rows import (
    sizes_differ,
    surer_of_verified,
    warn_about_choice,
    warn_of_written,
    warn_outside,
)
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes
from setwise.learn.feature_errors import FeatureError, naming_features
from setwise.probabilities.dense import precision_of
from setwise.probabilities.readers import read_probabilities
from setwise.scores import Score, check_order
from setwise.strategies import Strategy, as_strategy


class CalibrationOptions(TypedDict, total=False):
    """Options of `ConformalClassifier.conformalize`; by default the estimator's own settings."""

    strategy: str | Strategy
    conformity_score: str | Score
    by: Column
    verified: Column
    miss_rate: float
    assume: AssumptionLike
    sample_weight: Column
    groups: Column
    row_ids: Column
    random_state: Seed
    missing: Literal["error", "full", "drop"] | None
    verified_probability: Column
    truth: Truth
    empty: Literal["error", "drop"]


class ConformalClassifier(BaseConformalClassifier):
    """Learns from candidate sets, calibrates on candidate sets, and answers with prediction sets.

    Parameters
    ----------
    estimator
        The model that learns probabilities: an estimator of `setwise.learn`; any scikit-learn classifier (for
        candidate sets it is wrapped in `EMClassifier`); or a trained model, as ``FrozenEstimator(model)`` or torch
        module, for which `fit` only calibrates. None means `CoveringClassifier` for `max` (and for `auto` without
        votes, verified rows or an assumption), otherwise `PartialLabelClassifier`.
    strategy, conformity_score
        As in `conformalize`.
    confidence_level
        The level that `predict_set` uses by default.
    calibration_size
        The share (or number) of rows kept for calibration.
    random_state
        Seeds the split, the learner where it takes one, and the noise of randomised scores.
    miss_rate, assume
        As in `conformalize`.

    Attributes
    ----------
    classes_
        The labels.
    estimator_
        The model.
    calibration_
        The `Calibration`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from setwise import ConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 600)
    >>> X = 3 * np.eye(3)[y] + rng.normal(size=(600, 3))
    >>> candidates = np.eye(3)[y] + (rng.random((600, 3)) < 0.1) > 0
    >>> model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, candidates)
    >>> model.predict_set([[3.0, 0.0, 0.0]], confidence_level=0.7).to_lists()
    [[0]]
    """

    calibration_: Calibration

    def __init__(
        self,
        estimator: Any = None,
        strategy: str | Strategy = "auto",
        conformity_score: str | Score = "lac",
        confidence_level: float = 0.9,
        calibration_size: float = 0.2,
        random_state: RandomState = None,
        miss_rate: float = 0.0,
        assume: AssumptionLike = "nothing",
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.conformity_score = conformity_score
        self.confidence_level = confidence_level
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.miss_rate = miss_rate
        self.assume = assume

    # ---------------------------------------------------------------- learn and calibrate

    def fit(
        self,
        X: Features,
        y: Candidates,
        groups: Column = None,
        verified: Column = None,
        by: Column = None,
        verified_probability: Column = None,
        missing: Literal["drop", "full"] = "drop",
        truth: Truth = None,
    ) -> ConformalClassifier:
        """Splits the rows, learns on one part, calibrates on the other.

        Parameters
        ----------
        X
            One row per example, in a form that the estimator reads.
        y
            Candidate sets: `LabelSets`, a boolean mask, lists of labels, or a label vector; or `Votes`, of which
            rows that nobody answered are left out.
        groups
            The group of each row. A group stays on one side of the split, and the guarantee is then about rows of
            a new group.
        verified
            The true label of verified rows, None or NaN elsewhere. For `auto` and `rectified` these rows are kept
            for calibration before others.
        by
            A category per row: each has its own calibration and guarantee, and `predict_set` asks for it; or
            ``"predicted"``, the most probable label; or ``"label"``, the true one, as in `setwise.conformalize`.
        verified_probability
            The probability with which each row was chosen to be verified, where they differ.
        missing
            What to do with calibration rows that nobody answered: "drop", or "full" to make every label a
            candidate there, which keeps those that are verified. The model learns from neither.
        truth
            Where several labels may be right, how many of them a set must contain, as in `conformalize`.
        """
        (X,) = indexable(X)
        given = {"verified": verified, "verified_probability": verified_probability, "by": by, "groups": groups}
        check_row_names(X=X, y=y, **given)
        sets = self._read(X, y, unanswered=isinstance(y, Votes))
        n, named = len(sets), by if isinstance(by, str) else "given"
        facts = replace(RowFacts.read(n, sets.vocabulary, **given, truth=read_truth(truth)), position=np.arange(n))
        _check_learnable(sets, facts)
        rng = check_random_state(self.random_state)
        task = (self.strategy, self.conformity_score, self.assume, len(facts.verified_rows))
        votes = y.recode(sets.vocabulary) if isinstance(y, Votes) else None
        if votes is not None:
            facts, sets = with_votes(facts, votes, sets)
            votes = facts.votes
        written = warn_of_written(sets, facts.verified)
        default = default_learner(*task, votes=votes is not None) if self.estimator is None else self.estimator
        model = learner_for(default, sets, rng)
        choice, first = None, self._first(facts)
        trained = isinstance(model, FrozenEstimator)
        kept, held = (np.arange(0), np.arange(n)) if trained else self._split(n, facts.group, rng, first)
        if missing == "drop" and (blank := int((sets.sizes == 0).sum())):
            warn_of_unanswered(blank, n)
        kept = kept[sets.sizes[kept] > 0]
        learned = None if votes is None else own_fits(votes if trained else votes[kept])
        if votes is not None and learned is not None and facts.verified is not None:
            doubt_by_verified(votes, facts.verified, facts.verified_rows, learned)
        if trained:
            self.estimator_ = model
        else:
            if first is not None and named in _AS_THEY_ARE and not written:  # the others may all be learned from
                choice = warn_about_choice(sizes_differ(sets.sizes, first, facts.category_codes, facts.group))
            if first is None and votes is None and not self.miss_rate:  # then the guarantee rests on the candidates
                warn_outside(sets, facts, np.intersect1d(kept, facts.verified_rows))
            targets = as_y(sets[kept], model, learned)
            with naming_features(X):
                self.estimator_ = model.fit(_safe_indexing(X, kept), targets)
        self._reference = Reference.of(_safe_indexing(X, kept))
        together = Remedy("groups", None, "with one number for each distinct row, so that copies stay together")
        self.used_rows_ = UsedRows.of(X, sets, kept, held, np.isin(np.arange(n), held).astype(int), together)
        self._note_labels(sets, [kept])
        self._note_rows(X, sets)
        if written and first is not None and named in _AS_THEY_ARE and len(kept):  # its candidates tell nothing
            confidence = self.probabilities_of(self.estimator_, X).max(axis=1)
            choice = warn_about_choice(surer_of_verified(confidence, first, facts.category_codes, facts.group))
        self.calibration_rows_ = held
        learner = type(getattr(model, "estimator", model) if len(kept) == 0 else model).__name__
        self.summary_ |= {"learned_from": len(kept), "learner": learner}
        with naming_features(X, of=FeatureError):
            return self._calibrate(
                _safe_indexing(X, held),
                sets[held].recode(self.vocabulary_),
                facts.take(held),
                by=named,
                equal=int(self.used_rows_.equal.sum()),
                choice=choice,
                written=written,
                missing="error" if votes is None else missing,
                random_state=rng.randint(2**31 - 1),
                truth=read_truth(truth),
            )

    def conformalize(
        self, X: Features, y: Candidates, **options: Unpack[CalibrationOptions]
    ) -> ConformalClassifier:
        """Calibrates (again) on rows the model was not trained on; options as in `setwise.conformalize`."""
        check_is_fitted(self, "estimator_")
        settings: dict[str, Any] = {**options}
        declared = self._training_labels(self.estimator_) is None
        score = settings.get("conformity_score", self.conformity_score)
        check_order(score, replace(self.vocabulary_, declared=declared))
        columns = {name: settings.pop(name, None) for name in _FACTS}
        check_row_names(X=X, y=y, row_ids=settings.get("row_ids"), **columns)
        sets = as_candidates(y, len(self.classes_), self.vocabulary_, name="y")
        named = columns["by"] if isinstance(columns["by"], str) else "given"
        settings["truth"] = read_truth(settings.get("truth"))
        facts = RowFacts.read(len(sets), self.vocabulary_, **columns, truth=settings["truth"])
        if isinstance(y, Votes):
            facts, sets = with_votes(facts, y.recode(self.vocabulary_), sets)
        used = self.used_rows_.with_calibration(X, sets)
        settings |= {"seen": used.seen, "equal": int(used.equal.sum())}
        self._calibrate(X, sets, facts, by=named, **settings)
        self.used_rows_ = used
        return self

    def triage(
        self,
        X: Features | None = None,
        candidates: Candidates = None,
        max_error: float = 0.05,
        mode: Mode = "overall",
        *,
        by: Column = None,
        look: int = 1,
        random_state: Seed = None,
        comparison: Comparison | None = None,
    ) -> Triage:
        """Which rows can be accepted with their proposed label; arguments as in `Calibration.triage`.

        Without X it decides the rows kept for calibration that are not verified, numbered as in `fit`.
        """
        check_is_fitted(self, "calibration_")
        calibration = self.calibration_
        options: dict[str, Any] = {"by": by, "look": look, "random_state": random_state}
        if X is None:
            return calibration.triage(None, candidates, max_error, mode, **options)
        check_row_names(X=X, candidates=candidates)
        if used := self.used_rows_.warn_if_used(X):
            calibration = calibration.withdraw(used)
        plain = calibration.categories is None
        return triage_new_rows(
            calibration,
            self.predict_conformed(X),
            candidates,
            max_error,
            mode,
            comparison=comparison,
            tally=self.row_tally() if plain else None,
            X=X if plain else None,
            **options,
        )

    @property
    def fitted_models(self) -> list[Any]:
        """The one model."""
        return [self.estimator_]

    def _set_parts(self, models: list[Any], calibrations: list[Calibration]) -> None:
        (self.estimator_,), (self.calibration_,) = models, calibrations

    # ---------------------------------------------------------------- parts

    def _calibrate(self, X: Any, sets: LabelSets, facts: RowFacts, **options: Any) -> ConformalClassifier:
        """Calibrates on rows that are already read; options replace the estimator's settings."""
        names = ("strategy", "conformity_score", "miss_rate", "assume", "random_state")
        settings = {name: getattr(self, name) for name in names} | options
        strategy, score = settings.pop("strategy"), settings.pop("conformity_score")
        task = (strategy, score, settings["assume"], len(facts.verified_rows))
        matrix, score = self._calibration_matrix(self.estimator_, X, *task, votes=facts.votes is not None)
        precision = precision_of(matrix)
        rows = read_probabilities(matrix, score.domain, len(self.classes_))
        check_length("y", len(sets), len(rows), "rows of X")
        settings |= {"precision": precision, "novel": self._novel(sets, self.estimator_)}
        self.calibration_ = calibrate(rows, sets, facts, strategy, score, **settings)
        self.probe_ = take_probe(X)
        known = getattr(self, "feature_summary_", None)
        reference = getattr(self, "_reference", None if known is None else known.reference)
        self.feature_summary_ = FeatureSummary.of(X, reference)
        return self

    def _first(self, facts: RowFacts) -> Ints | None:
        """Verified rows to keep for calibration before others, where the strategy uses them."""
        rests = as_strategy(self.strategy).uses_verified_rows and len(facts.verified_rows) > 0
        # A strategy that ignores verified rows must not assume how they were chosen.
        rows = facts.verified_rows
        alike = facts.weight is None and facts.chance is None
        if facts.group is not None and np.isin(np.delete(facts.group, rows), facts.group[rows]).any():
            return None  # of groups that were verified in part nothing is known
        return rows if rests and alike else None

    def _split(
        self, n: int, group: Array | None, rng: np.random.RandomState, first: Ints | None = None
    ) -> tuple[Ints, Ints]:
        """Rows to learn from and rows to calibrate on; those in `first`, or their groups, go to calibration."""
        kind = ShuffleSplit if group is None else GroupShuffleSplit
        try:
            splitter = kind(1, test_size=self.calibration_size, random_state=rng)
            kept, held = next(splitter.split(np.zeros(n), groups=group))
        except ValueError as error:
            raise ValueError(f"calibration_size: {self.calibration_size} of n_samples={n}: {error}") from error
        if first is not None and group is not None:
            codes, which = np.unique(group, return_inverse=True)
            turn = rng.permutation(len(codes)) - len(codes) * np.isin(codes, group[first])
            chosen = np.argsort(turn)[: len(np.unique(group[held]))]
            return np.flatnonzero(~np.isin(which, chosen)), np.flatnonzero(np.isin(which, chosen))
        if first is not None:
            order = np.concatenate([held, kept])
            ahead = np.isin(order, first)
            kept, held = np.split(np.concatenate([order[~ahead][::-1], order[ahead][::-1]]), [len(kept)])
        return kept, held


def _check_learnable(sets: LabelSets, facts: RowFacts) -> None:
    """Warns about verified labels that are candidates nowhere, since the model cannot learn them."""
    if facts.verified is None:
        return
    never = facts.verified_rows[~sets.occurring[facts.verified[facts.verified_rows]]]
    if len(never):
        label = sets.classes.tolist()[facts.verified[never[0]]]
        problem = f"verified: the label of row {never[0]}, {label!r}, is not a candidate in any row"
        remedy = "add it to the candidates of rows where it is possible, so that a model can learn it"
        warnings.warn(MisuseWarning(problem, remedy), stacklevel=3)


_AS_THEY_ARE = {"given", "label"}
"""Words for `by` with which rows are not sorted by what the model finds."""
_FACTS = ("verified", "verified_probability", "sample_weight", "by", "groups")
