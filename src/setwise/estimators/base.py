"""What split and cross-conformal classifiers share: everything but how they learn and calibrate."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Never, Self, Unpack, overload

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import (
    _check_feature_names,
    _get_feature_names,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from setwise._arrays import Array, Bools, Floats, Ints, frame_columns
from setwise._types import Candidates, Column, Features, NewRowOptions, Seed
from setwise.conformal.calibration import Calibration, PooledCalibration
from setwise.conformal.class_advice import class_advice
from setwise.decisions.verification import Suggestion, suggest_verification
from setwise.drift.comparison import Comparison, RowTally
from setwise.drift.feature_summary import FeatureSummary
from setwise.drift.monitor import Monitor
from setwise.errors import InputError, MisuseWarning, Remedy, check_length, refuse_names
from setwise.estimators.adapters import answers, gives_inclusion
from setwise.estimators.default_learner import covers_whole_sets
from setwise.estimators.model_directory import FORMAT, StoredModel, read_stored, save_model
from setwise.estimators.used_rows import UsedRows, digest
from setwise.evidence.row_names import check_row_names
from setwise.guarantees import Guarantee
from setwise.labels.coerce import as_candidates, as_label_sets
from setwise.labels.label_sets import LabelSets
from setwise.labels.spellings import doubt_spellings
from setwise.labels.votes import Votes
from setwise.learn.feature_errors import naming_features
from setwise.metrics import evaluate, groups_of_new_rows
from setwise.ranks import Level, Levels, as_level, doubt_level
from setwise.scores import LAC, RPS, Score, as_score, check_order
from setwise.storage.container import reading_untrusted

_OTHER_NAMES = {  # what other libraries call an argument, and its name here
    "alpha": "confidence_level",
    "confidence": "confidence_level",
    "method": "conformity_score",
    "test_size": "calibration_size",
    "model": "estimator",
    "y_true": "y",
}


class BaseConformalClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction sets from a calibration and the probabilities of one or several models.

    A subclass learns in `fit` and sets `calibration_`, `classes_`, `used_rows_` and what `fitted_models` returns.
    """

    confidence_level: float
    classes_: Array
    learned_: list[Bools | None]
    calibration_: Calibration | PooledCalibration
    used_rows_: UsedRows
    feature_summary_: FeatureSummary | None

    @property
    @abstractmethod
    def fitted_models(self) -> list[Any]:
        """The fitted models, one per part of `calibration_`."""

    def __new__(cls, *_: Any, **named: Any) -> Self:  # noqa: D102 - documented by __init__
        _refuse_other_names(named)
        return object.__new__(cls)

    # ---------------------------------------------------------------- predict

    def predict_proba(self, X: Features) -> Floats:
        """The model's probabilities, one column per class of `classes_`; the average of several models."""
        check_is_fitted(self, "classes_")
        self._check_names(X)
        return _average([self.probabilities_of(model, X) for model in self.fitted_models])

    def predict(self, X: Features) -> Array:
        """The most probable label of each row."""
        check_is_fitted(self, "classes_")
        labels: Array = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    @overload
    def predict_set(
        self, X: Features, confidence_level: Level | None = None, **given: Unpack[NewRowOptions]
    ) -> LabelSets: ...
    @overload
    def predict_set(
        self, X: Features, confidence_level: Levels, **given: Unpack[NewRowOptions]
    ) -> list[LabelSets]: ...
    def predict_set(
        self,
        X: Features,
        confidence_level: Level | Levels | None = None,
        *,
        by: Column = None,
        candidates: Candidates = None,
        sample_weight: Column = None,
        row_ids: Column = None,
        allow_empty: bool = True,
        **others: Never,
    ) -> LabelSets | list[LabelSets]:
        """Prediction sets as `LabelSets` (a list of them for a list of levels).

        Parameters
        ----------
        X
            New rows, with the same columns as in `fit`.
        confidence_level
            One level or several; by default the estimator's own.
        by, candidates, sample_weight, row_ids, allow_empty
            As in `Calibration.predict_set`.
        """
        check_is_fitted(self, "calibration_")
        refuse_names(others, alpha="confidence_level")
        options = _drop_none(by=by, candidates=candidates, sample_weight=sample_weight, row_ids=row_ids)
        level = self._level(confidence_level)
        sets: LabelSets | list[LabelSets] = self.calibration_.predict_set(
            self.predict_conformed(X), level, allow_empty=allow_empty, **options
        )
        return sets

    def predict_p(
        self, X: Features, *, by: Column = None, sample_weight: Column = None, row_ids: Column = None
    ) -> Floats:
        """The (n, K) p-values; arguments as in `Calibration.predict_p`."""
        check_is_fitted(self, "calibration_")
        options = _drop_none(by=by, sample_weight=sample_weight, row_ids=row_ids)
        return self.calibration_.predict_p(self.predict_conformed(X), **options)

    def predict_conformed(self, X: Features) -> Any:
        """What `calibration_` expects of X: (n, K) probabilities, or one such matrix per fold."""
        check_is_fitted(self, "calibration_")
        self._check_names(X)
        asked = zip(self.fitted_models, self._methods, strict=True)
        matrices = [self.probabilities_of(model, X, method) for model, method in asked]
        return matrices[0] if len(matrices) == 1 else matrices

    def predict_with_conformed(self, X: Features) -> tuple[Array, Any]:
        """What `predict` and `predict_conformed` give: a model that both need is asked once."""
        conformed = self.predict_conformed(X)
        if "predict_inclusion" in self._methods:
            return self.predict(X), conformed
        matrices = conformed if isinstance(conformed, list) else [conformed]
        labels: Array = self.classes_[_average(matrices).argmax(axis=1)]
        return labels, conformed

    def evaluate(
        self,
        X: Features,
        y: Column = None,
        confidence_level: Level | None = None,
        *,
        by: Column = None,
        candidates: Candidates = None,
        groups: Column = None,
        sample_weight: Column = None,
        row_ids: Column = None,
        delta: float = 0.05,
        **others: Never,
    ) -> dict[str, Any]:
        """Evaluates the sets of these rows against true labels y or ``candidates=``; see `setwise.evaluate`.

        `row_ids` and `sample_weight` are those of `predict_set`. A warning says if the rows differ from the
        calibration rows, and the entry `comparison` holds what `compare` finds. Where the model was calibrated with
        groups, intervals need `groups`. With the score `rps` classes are `ordered`. The entry `advice` says what
        helps classes that are covered too seldom.
        """
        check_is_fitted(self, "calibration_")
        _refuse_other_names(others)
        check_row_names(X=X, y=y, candidates=candidates, by=by, groups=groups)
        self.used_rows_.warn_if_used(X)
        options = _drop_none(row_ids=row_ids, sample_weight=sample_weight)
        of_category: dict[str, Any] = {"by": by} if "by" in self.calibration_.parts[0].reader.requirements else {}
        matrix = self.predict_conformed(X)
        sets = self.calibration_.predict_set(matrix, self._level(confidence_level), **options, **of_category)
        calibrated = any(part.evidence.group is not None for part in self.calibration_.parts)
        compared_by = groups if calibrated else None
        comparison = self.row_tally().add(matrix, X=X, groups=compared_by, **of_category).compare()
        if comparison.refuted:
            problem = (
                f"X: these rows differ from the calibration rows, so nothing is guaranteed: {comparison.differs}"
            )
            warnings.warn(MisuseWarning(problem, "calibrate on rows like these"), stacklevel=2)
        compared = {"p_value": comparison.p_value, "refuted": comparison.refuted}
        groups = groups_of_new_rows(groups, len(sets), calibrated=calibrated)
        ordered = isinstance(self.calibration_.parts[0].conformity_score, RPS)
        known: dict[str, Any] = {"candidates": candidates, "by": by, "groups": groups}
        achieved = evaluate(sets, y, **known, delta=delta, ordered=ordered, **others)
        if y is not None and len(self.calibration_.parts) == 1:
            level = as_level(self._level(confidence_level))
            achieved["advice"] = class_advice(self.calibration_.parts[0], achieved["by_class"], level)
        return achieved | {"comparison": compared}

    def suggest(
        self,
        X: Features,
        y: Candidates,
        budget: int,
        confidence_level: Level | None = None,
        *,
        verified: Column = None,
        random_state: Seed = None,
    ) -> Suggestion:
        """Draws rows to verify, and estimates what that is worth; arguments as in `suggest_verification`.

        The rows may be those of `fit`, which keeps them for calibration once they are passed as verified.
        """
        check_is_fitted(self, "calibration_")
        check_row_names(X=X, y=y, verified=verified)
        return suggest_verification(
            self,
            X,
            y,
            budget,
            verified=verified,
            learned=self.used_rows_.training_mask(X),
            confidence_level=self._level(confidence_level),
            random_state=random_state,
        )

    @overload
    def guarantee(self, confidence_level: Level | None = None, *, votes: bool = False) -> Guarantee: ...
    @overload
    def guarantee(self, confidence_level: Levels, *, votes: bool = False) -> list[Guarantee]: ...
    def guarantee(
        self, confidence_level: Level | Levels | None = None, *, votes: bool = False, **others: Never
    ) -> Guarantee | list[Guarantee]:
        """What is guaranteed about the sets, and on which assumptions (a list for a list of levels).

        Use ``votes=True`` for new rows whose votes you pass to `predict_set` as candidates.
        """
        check_is_fitted(self, "calibration_")
        refuse_names(others, alpha="confidence_level")
        level = self._level(confidence_level)
        claims: Guarantee | list[Guarantee] = self.calibration_.guarantee(level, **_drop_none(votes=votes or None))
        return claims

    def score(self, X: Features, y: Candidates) -> float:
        """How often the predicted label is a candidate: the accuracy where labels are exact."""
        sets = as_candidates(y, len(self.classes_), self.vocabulary_, name="y")
        return float(sets.contains(self.predict(X)).mean())

    # ---------------------------------------------------------------- new rows beside calibration rows

    def compare(
        self, X: Features, *, by: Column = None, candidates: Candidates = None, groups: Column = None
    ) -> Comparison:
        """Whether rows X are like the calibration rows, judged by their probabilities and their features.

        Parameters
        ----------
        X
            New rows. Features are compared where X is a table of up to 1,000 columns.
        by, candidates, groups
            As in `Calibration.compare`.
        """
        check_row_names(X=X, by=by, candidates=candidates, groups=groups)
        matrices = self.predict_conformed(X)
        return self.row_tally().add(matrices, by=by, candidates=candidates, groups=groups, X=X).compare()

    def monitor(
        self, delta: float = 0.05, *, random_state: Seed = None, resume: str | os.PathLike[str] | None = None
    ) -> Monitor:
        """Watches rows as they arrive, by ``update(X)``; see `Calibration.monitor`."""
        check_is_fitted(self, "calibration_")
        options: dict[str, Any] = {"delta": delta, "random_state": random_state, "resume": resume}
        summary = getattr(self, "feature_summary_", None)
        return Monitor(self.calibration_, **options, give=self.predict_conformed, features=summary)

    def row_tally(self) -> RowTally:
        """Compares rows with the calibration rows batch by batch: ``add(predict_conformed(X), X=X)``."""
        check_is_fitted(self, "calibration_")
        summary = getattr(self, "feature_summary_", None)
        names = getattr(self, "feature_names_in_", None)
        return RowTally(self.calibration_, None if summary is None else summary.rename(names))

    # ---------------------------------------------------------------- keep

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as a directory, without pickle; ``docs/model-directory.md`` describes it.

        An earlier model there is replaced in one step. An estimator that cannot be loaded without running code from
        the file is left out, and `load` asks for it.
        """
        save_model(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], estimator: Any = None, trusted: Sequence[str] | None = None
    ) -> Self:
        """Reads what `save` wrote; arguments as in `setwise.load`, which reads any model or calibration."""
        stored = read_stored(path, cls.__name__, estimator, trusted)
        with reading_untrusted(path, FORMAT):
            return cls._restore(stored)

    @classmethod
    def _restore(cls, stored: StoredModel) -> Self:
        """The classifier with the stored content."""
        try:
            model = cls(**stored.parameters)
        except TypeError as error:
            raise ValueError(f"its parameters are those of another class ({error})") from error
        first = stored.calibrations[0]
        named = {"strategy": first.strategy, "conformity_score": first.conformity_score}
        objects = {"estimator": stored.models[0], "assume": first.setting.assume, **named}
        model.set_params(**{name: value for name, value in objects.items() if name not in stored.parameters})
        model._set_parts(stored.models, stored.calibrations)
        model.__dict__.update(stored.notes)
        return model

    @abstractmethod
    def _set_parts(self, models: list[Any], calibrations: list[Calibration]) -> None:
        """Takes over fitted models and their calibrations."""

    # ---------------------------------------------------------------- scikit-learn

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---------------------------------------------------------------- parts

    def probabilities_of(self, model: Any, X: Features, method: str = "predict_proba") -> Floats:
        """What a method of one of the models answers, its columns in the order of the classes."""
        with naming_features(X):
            return answers(model, X, self.vocabulary_, method, learned=self._training_labels(model))

    @property
    def _methods(self) -> list[str]:
        """What each model is asked for `calibration_`."""
        pairs = zip(self.fitted_models, self.calibration_.parts, strict=True)
        covers = [part.conformity_score.domain == "unit" and gives_inclusion(model) for model, part in pairs]
        return ["predict_inclusion" if whole else "predict_proba" for whole in covers]

    def _calibration_matrix(
        self,
        model: Any,
        X: Any,
        strategy: Any,
        conformity_score: Any,
        assume: Any,
        n_verified: int,
        *,
        votes: bool = False,
    ) -> tuple[Floats, Score]:
        """The matrix to calibrate on, and its score: inclusion probabilities where whole sets must be covered."""
        self._check_names(X)
        covers = covers_whole_sets(strategy, conformity_score, assume, n_verified, votes=votes)
        if covers and gives_inclusion(model):
            return self.probabilities_of(model, X, "predict_inclusion"), LAC(domain="unit")
        return self.probabilities_of(model, X), as_score(conformity_score)

    def _training_labels(self, model: Any) -> Bools | None:
        """Which labels occur in the rows that this model learned from; None where labels were declared."""
        pairs = zip(self.fitted_models, getattr(self, "learned_", []), strict=False)
        return next((learned for fitted, learned in pairs if fitted is model), None)

    def _note_labels(self, sets: LabelSets, parts: Sequence[Ints]) -> None:
        """Keeps which labels occur in the training rows of each model, where labels were inferred."""
        declared = sets.vocabulary.declared
        self.learned_ = [None if declared or len(rows) == 0 else sets[rows].occurring for rows in parts]

    def _novel(self, sets: LabelSets, model: Any) -> int:
        """How many rows have labels that occur in none of the model's training rows."""
        learned = self._training_labels(model)
        if learned is None:
            return 0
        known = LabelSets.from_mask(np.broadcast_to(learned, sets.shape), sets.classes)
        return int((~sets.issubset(known)).sum())

    def _check_names(self, X: Any) -> None:
        """Refuses masked values, and column names that are not those of the training rows in their order."""
        _refuse_masked(X)
        known = getattr(self, "feature_names_in_", None)
        if known is not None and frame_columns(X) == known.tolist():
            return  # found in a tenth of the time that scikit-learn takes
        if hasattr(X, "columns") and _get_feature_names(X) is not None:
            _check_feature_names(self, X, reset=False)

    def _read(self, X: Any, y: Any, *, unanswered: bool = False) -> LabelSets:
        as_level(self.confidence_level)  # refused before anything is learned
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None; pass candidate sets or labels.")
        if isinstance(X, (str, os.PathLike)):
            raise TypeError(f"X: {X!r} is a path; pass its features, read with setwise.tables.read_table.")
        _refuse_masked(X)
        _refuse_same_names(X)
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1 and not isinstance(y, (LabelSets, Votes)):
            y = column_or_1d(y, warn=True)
        sets = as_label_sets(y, name="y")
        check_order(self.conformity_score, sets.vocabulary)
        if not sets.vocabulary.declared:
            doubt_spellings(sets.classes.tolist(), "y")
        check_length("y", len(sets), _num_samples(X), "rows of X")
        if (sets.sizes == 0).any() and not unanswered:
            row = int(np.flatnonzero(sets.sizes == 0)[0])
            raise ValueError(
                f"y: row {row} is empty; leave it out, or use LabelSets.fill_empty() if nothing is known."
            )
        if sets.relative:
            raise InputError(
                "y: some rows stand for every label, but only the labels that occur are known",
                Remedy("classes", None, "for all labels when you make the sets"),
                "leave those rows out",
            )
        if sets.n_classes < 2:
            only = f", {sets.classes.tolist()[0]!r}" if sets.n_classes else ""
            raise ValueError(f"y: {sets.n_classes} class{only}; prediction sets need at least two.")
        if sets.vocabulary.holds_numbers and not sets.vocabulary.holds_integers:
            raise ValueError(
                f"y: Unknown label type: continuous, such as {sets.classes[0]}; pass classes, not measurements."
            )
        return sets

    def _note_rows(self, X: Any, sets: LabelSets) -> None:
        self.classes_ = np.array(sets.classes)
        self.vocabulary_ = replace(sets.vocabulary, declared=True)
        _check_feature_names(self, X, reset=True)
        first = self.fitted_models[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        self.summary_: dict[str, Any] = {
            "rows": len(sets),
            "mean_candidates": float(sets.sizes.mean()),
            "data": {"X": digest(X), "candidates": digest(*sets.rows)},
        }

    def _level(self, confidence_level: Any) -> Any:
        level = self.confidence_level if confidence_level is None else confidence_level
        doubt_level(level)
        return level


def _average(matrices: list[Floats]) -> Floats:
    """The mean of the probabilities of several models."""
    return matrices[0] if len(matrices) == 1 else np.mean(matrices, axis=0)


def _drop_none(**options: Any) -> dict[str, Any]:
    """The options that are not None: a calibration refuses those that it does not know."""
    return {name: value for name, value in options.items() if value is not None}


def _refuse_other_names(named: Mapping[str, Any]) -> None:
    refuse_names({name: value for name, value in named.items() if name in _OTHER_NAMES}, **_OTHER_NAMES)


def _refuse_same_names(X: Any) -> None:
    names = list(getattr(X, "columns", ()))
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"X: several columns are called {twice!r}", "give each a name of its own")


def _refuse_masked(X: Any) -> None:
    """Refuses masked values: estimators take what lies under the mask."""
    if np.ma.is_masked(X):
        row = int(np.flatnonzero(np.ma.getmaskarray(X).reshape(len(X), -1).any(axis=1))[0])
        raise ValueError(f"X: row {row} holds a masked value; fill it, or remove such rows.")
