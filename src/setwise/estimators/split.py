"""`ConformalClassifier`: split, learn, conformalize, predict sets, as one scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import (
    _check_feature_names,
    _get_feature_names,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from setwise._arrays import Array, Floats, Ints
from setwise.calibration.conformalize import conformalize
from setwise.estimators.adapters import answers, as_trained, as_y, gives_inclusion, learner_for
from setwise.estimators.fingerprint import digest, take_probe
from setwise.estimators.model_directory import load_model, save_model
from setwise.evidence.row_facts import categories, chances, verified_codes
from setwise.guarantees import Guarantee
from setwise.labels.coerce import as_candidates, read_sets
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import label_vector, missing_labels
from setwise.metrics import evaluate
from setwise.scores import LAC, as_score
from setwise.strategies import as_strategy
from setwise.strategies.auto import ENOUGH


class ConformalClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from candidate sets, calibrates on candidate sets, and answers with prediction sets.

    Parameters
    ----------
    estimator
        What learns the probabilities: an estimator of `setwise.learn`; any scikit-learn classifier (on candidate
        sets it is wrapped in `EMClassifier`); a trained model as ``FrozenEstimator(model)`` or as a torch module,
        for which `fit` only calibrates. None is `CoveringClassifier` for `max` (and `auto` with nothing declared or
        verified), else `PartialLabelClassifier`.
    strategy, conformity_score
        As in `conformalize`.
    confidence_level
        What `predict_set` uses unless told otherwise.
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
        What calibration found, a `Calibration`.

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

    def __init__(
        self,
        estimator: Any = None,
        strategy: Any = "auto",
        conformity_score: Any = "lac",
        confidence_level: float = 0.9,
        calibration_size: float = 0.2,
        random_state: Any = None,
        miss_rate: float = 0.0,
        assume: Any = "nothing",
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
        X: Any,
        y: Any,
        groups: Any = None,
        verified: Any = None,
        by: Any = None,
        verified_probability: Any = None,
    ) -> ConformalClassifier:
        """Splits the rows, learns on one part, calibrates on the other.

        Parameters
        ----------
        X
            One row an example, as the estimator takes it.
        y
            Candidate sets: `LabelSets`, a boolean mask, lists of labels, or a label vector.
        groups
            Rows that belong together: a group stays on one side of the split, and groups are then what the
            promise counts.
        verified
            The true label where somebody checked, None or NaN elsewhere. For `auto` and `rectified` these rows are
            kept for calibration before others.
        by
            A category per row: each is calibrated and promised for itself, and `predict_set` asks for it; or
            ``"predicted"``, the most probable label.
        verified_probability
            With which probability each row was to be verified, where it was not the same for all.
        """
        (X,) = indexable(X)
        sets = self._read(X, y)
        n = len(sets)
        group = None if groups is None else categories(groups, n, "groups")
        category = by if by is None or isinstance(by, str) else categories(by, n)
        chance = chances(verified_probability, n)
        rng = check_random_state(self.random_state)
        truth = None if verified is None else label_vector(_listed(verified, n), "verified")
        verified_codes(truth, sets.vocabulary, n)  # names the row of a label that is not known
        checked = np.arange(0) if truth is None else np.flatnonzero(~missing_labels(truth))
        covers = self._covers(self.strategy, self.conformity_score, self.assume, len(checked))
        model = learner_for(self.estimator, sets, rng, covers=covers)
        if isinstance(model, FrozenEstimator):
            kept, held = np.arange(0), np.arange(n)
            self.estimator_ = model
        else:
            first = checked if group is None and chance is None and len(checked) else None
            named = as_strategy(self.strategy).name
            if not (named == "rectified" or (named == "auto" and len(checked) >= ENOUGH)):
                first = None  # whoever does not ask for checks makes no premise of how rows were chosen for them
            kept, held = self._split(n, group, rng, first)
            self.estimator_ = model.fit(_safe_indexing(X, kept), as_y(sets[kept], model))
        self._fitted_on(X, sets)
        self.calibration_rows_ = held
        learner = type(getattr(model, "estimator", model) if len(kept) == 0 else model).__name__
        self._summary |= {"learned_from": len(kept), "learner": learner}
        return self.conformalize(
            _safe_indexing(X, held),
            sets[held],
            groups=None if group is None else group[held],
            verified=None if truth is None else truth[held],
            by=category if category is None or isinstance(category, str) else category[held],
            verified_probability=None if chance is None else chance[held],
            random_state=rng.randint(2**31 - 1),
        )

    def conformalize(self, X: Any, y: Any, **options: Any) -> ConformalClassifier:
        """Calibrates (again) on rows the model was not trained on; options as in `setwise.conformalize`."""
        check_is_fitted(self, "estimator_")
        sets = as_candidates(y, len(self.classes_), self._vocabulary, name="y")
        settings = {
            "miss_rate": self.miss_rate,
            "assume": self.assume,
            "random_state": self.random_state,
            **options,
        }
        strategy, score = (
            settings.pop("strategy", self.strategy),
            settings.pop("conformity_score", self.conformity_score),
        )
        told = settings.get("verified")
        checked = 0 if told is None else int((~missing_labels(label_vector(told, "verified"))).sum())
        if gives_inclusion(self.estimator_) and self._covers(strategy, score, settings["assume"], checked):
            matrix, score = self._inclusion(X), LAC(domain="unit")
        else:
            matrix = self.predict_proba(X)
        self.calibration_ = conformalize(matrix, sets, strategy, score, **settings)
        self._probe = take_probe(X)
        return self

    # ---------------------------------------------------------------- predict

    def predict_proba(self, X: Any) -> Floats:
        """The model's probabilities, one column a class of `classes_`."""
        check_is_fitted(self, "estimator_")
        self._check_names(X)
        return self._probabilities(self.estimator_, X)

    def _check_names(self, X: Any) -> None:
        """Columns with names are those of the training rows, in their order."""
        if _get_feature_names(X) is not None:
            _check_feature_names(self, X, reset=False)

    def _probabilities(self, model: Any, X: Any) -> Floats:
        return answers(model, X, self._vocabulary)

    def predict_conformed(self, X: Any) -> Floats:
        """The (n, K) numbers that the calibration is asked with: probabilities, or inclusion probabilities."""
        if self.calibration_.conformity_score.domain == "unit" and gives_inclusion(self.estimator_):
            return self._inclusion(X)
        return self.predict_proba(X)

    def _inclusion(self, X: Any) -> Floats:
        self._check_names(X)
        return answers(self.estimator_, X, self._vocabulary, "predict_inclusion")

    def predict(self, X: Any) -> Array:
        """The most probable label of each row."""
        check_is_fitted(self, "estimator_")
        labels: Array = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def predict_set(self, X: Any, confidence_level: Any = None, **options: Any) -> Any:
        """Prediction sets as `LabelSets` (a list of them for a list of levels); options as in `Calibration`."""
        check_is_fitted(self, "calibration_")
        return self.calibration_.predict_set(self.predict_conformed(X), self._level(confidence_level), **options)

    def predict_p(self, X: Any, **options: Any) -> Floats:
        """The (n, K) p-values; options as in `Calibration.predict_p`."""
        check_is_fitted(self, "calibration_")
        return self.calibration_.predict_p(self.predict_conformed(X), **options)

    def evaluate(
        self, X: Any, y: Any = None, confidence_level: Any = None, *, by: Any = None, **options: Any
    ) -> dict[str, Any]:
        """What the sets of these rows achieve, against truth y or ``candidates=``; see `setwise.evaluate`."""
        calibration = getattr(self, "calibration_", None)
        asks = calibration is not None and calibration.categories is not None and calibration.by == "given"
        sets = self.predict_set(X, confidence_level, **({"by": by} if asks else {}))
        return evaluate(sets, y, by=by, **options)

    def report(
        self, path: str | os.PathLike[str], X: Any, y: Any = None, candidates: Any = None, **options: Any
    ) -> Path:
        """Writes an HTML report on the sets of rows X, which the model did not see; see `setwise.report`."""
        from setwise.report import report_model  # noqa: PLC0415 - templates are loaded when a report is made

        check_is_fitted(self, "estimator_")
        return report_model(path, self, X, y, candidates, **options)

    def guarantee(self, confidence_level: Any = None) -> Guarantee:
        """What may be claimed about the sets, and why."""
        check_is_fitted(self, "calibration_")
        made: Guarantee = self.calibration_.guarantee(self._level(confidence_level))
        return made

    def score(self, X: Any, y: Any) -> float:
        """How often the predicted label is a candidate: the accuracy where labels are exact."""
        sets = as_candidates(y, len(self.classes_), self._vocabulary, name="y")
        return float(sets.contains(self.predict(X)).mean())

    # ---------------------------------------------------------------- keep

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as a directory, without pickle; ``docs/model-directory.md`` describes it.

        An earlier model there is replaced in one step. An estimator that could only come back by running code from
        the file is left out, and `load` asks for it.
        """
        save_model(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], estimator: Any = None, trusted: Sequence[str] | None = None
    ) -> Self:
        """Reads what `save` wrote.

        Parameters
        ----------
        path
            The directory.
        estimator
            The trained model, where the directory could not hold it; checked on rows kept with the calibration.
        trusted
            Types that a scikit-learn model may be made of beyond scikit-learn's plain ones, as in `skops.io.load`.
        """
        return load_model(cls, path, estimator, trusted)

    # ---------------------------------------------------------------- scikit-learn

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------- parts

    def _read(self, X: Any, y: Any) -> LabelSets:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None; pass candidate sets or labels.")
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        sets = read_sets(y, name="y")
        if len(sets) != _num_samples(X):
            raise ValueError(f"y: {len(sets)} rows for {_num_samples(X)} rows of X.")
        if (sets.sizes == 0).any():
            row = int(np.flatnonzero(sets.sizes == 0)[0])
            raise ValueError(f"y: row {row} is empty; leave it out, or use LabelSets.filled() if nothing is known.")
        if sets.n_classes < 2:
            raise ValueError(f"y: {sets.n_classes} class; prediction sets need at least two.")
        return sets

    def _covers(self, strategy: Any, score: Any, assume: Any, checked: int) -> bool:
        """Whether whole candidate sets are what the sets must cover: `max`, or `auto` with nothing to go by."""
        name = as_strategy(strategy).name
        told = checked >= ENOUGH or not (isinstance(assume, str) and assume == "nothing")
        return as_score(score) == LAC() and (name in {"max", "all"} or (name == "auto" and not told))

    def _split(
        self, n: int, group: Array | None, rng: np.random.RandomState, first: Ints | None = None
    ) -> tuple[Ints, Ints]:
        """Rows to learn from and rows to calibrate on, among these those that come `first`."""
        kind = ShuffleSplit if group is None else GroupShuffleSplit
        try:
            splitter = kind(1, test_size=self.calibration_size, random_state=rng)
            kept, held = next(splitter.split(np.zeros(n), groups=group))
        except ValueError as error:
            raise ValueError(f"calibration_size: {self.calibration_size} of n_samples={n}: {error}") from error
        if first is not None:
            order = np.concatenate([held, kept])
            ahead = np.isin(order, first)
            kept, held = np.split(np.concatenate([order[~ahead][::-1], order[ahead][::-1]]), [len(kept)])
        return kept, held

    def _fitted_on(self, X: Any, sets: LabelSets) -> None:
        self.classes_ = np.array(sets.classes)
        self._vocabulary = replace(sets.vocabulary, declared=True)
        _check_feature_names(self, X, reset=True)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self._summary: dict[str, Any] = {
            "rows": len(sets),
            "mean_candidates": float(sets.sizes.mean()),
            "data": {"X": digest(X), "candidates": digest(*sets.rows)},
        }

    def _as_given(self, model: Any) -> FrozenEstimator:
        """A trained model brought along to `load`."""
        return as_trained(model, self.classes_)

    def _level(self, confidence_level: Any) -> Any:
        return self.confidence_level if confidence_level is None else confidence_level


def _listed(values: Any, n: int) -> Sequence[Any]:
    listed = list(values)
    if len(listed) != n:
        raise ValueError(f"verified: {len(listed)} entries for {n} rows; use None where nobody checked.")
    return listed
