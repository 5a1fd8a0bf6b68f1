"""`ConformalClassifier`: split, learn, conformalize, predict sets, as one scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
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
from setwise.calibration import conformalize
from setwise.candidates import as_candidates, read_sets
from setwise.guarantees import Guarantee
from setwise.inputs import categories, chances
from setwise.labels import LabelSets
from setwise.metrics import evaluate
from setwise.persistence import load_model, save_model
from setwise.probes import digest, take_probe


class _ScoreAndScore:
    """`score` twice over: the constructor's parameter by assignment, scikit-learn's method by call."""

    def __set__(self, model: Any, value: Any) -> None:
        model.__dict__["score"] = value

    def __get__(self, model: Any, owner: Any = None) -> Any:
        return self if model is None else model.covering_rate


class ConformalClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from candidate sets, calibrates on candidate sets, and answers with prediction sets.

    Parameters
    ----------
    estimator
        What learns the probabilities: an estimator of `setwise.learn`; any scikit-learn classifier (on candidate
        sets it is wrapped in `EMClassifier`); a trained model as ``FrozenEstimator(model)`` or as a torch module,
        for which `fit` only calibrates. None is `PartialLabelClassifier`.
    strategy, score
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
        score: Any = "lac",
        confidence_level: float = 0.9,
        calibration_size: float = 0.2,
        random_state: Any = None,
        miss_rate: float = 0.0,
        assume: Any = "nothing",
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.score = score
        self.confidence_level = confidence_level
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.miss_rate = miss_rate
        self.assume = assume

    score = _ScoreAndScore()

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
            The true label where somebody checked, None or NaN elsewhere.
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
        model = self._learner(rng, sets)
        if isinstance(model, FrozenEstimator):
            kept, held = np.arange(0), np.arange(n)
            self.estimator_ = model
        else:
            kept, held = self._split(n, group, rng)
            self.estimator_ = model.fit(_safe_indexing(X, kept), as_y(sets[kept], model))
        self._fitted_on(X, sets)
        learner = type(getattr(model, "estimator", model) if len(kept) == 0 else model).__name__
        self._summary |= {"learned_from": len(kept), "learner": learner}
        checked = None if verified is None else _safe_indexing(_listed(verified, n, "verified"), held)
        return self.conformalize(
            _safe_indexing(X, held),
            sets[held],
            groups=None if group is None else group[held],
            verified=checked,
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
        strategy, score = settings.pop("strategy", self.strategy), settings.pop("score", self.__dict__["score"])
        self.calibration_ = conformalize(self.predict_proba(X), sets, strategy, score, **settings)
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
        found = np.asarray(model.predict_proba(X))
        columns = getattr(model, "classes_", self.classes_)
        positions = self._vocabulary.encode(np.asarray(columns))
        if np.array_equal(positions, np.arange(len(self.classes_))):
            return found
        if (positions < 0).any() or found.shape[1] != len(positions):
            raise ValueError(
                f"estimator: its {found.shape[1]} probability columns are not the {len(self.classes_)} classes "
                "of y; pass candidates whose vocabulary names all of its classes, in its order."
            )
        aligned = np.zeros((len(found), len(self.classes_)))
        aligned[:, positions] = found
        return aligned

    def predict(self, X: Any) -> Array:
        """The most probable label of each row."""
        check_is_fitted(self, "estimator_")
        labels: Array = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def predict_set(self, X: Any, confidence_level: Any = None, **options: Any) -> Any:
        """Prediction sets as `LabelSets` (a list of them for a list of levels); options as in `Calibration`."""
        check_is_fitted(self, "calibration_")
        return self.calibration_.predict_set(self.predict_proba(X), self._level(confidence_level), **options)

    def predict_p(self, X: Any, **options: Any) -> Floats:
        """The (n, K) p-values; options as in `Calibration.predict_p`."""
        check_is_fitted(self, "calibration_")
        return self.calibration_.predict_p(self.predict_proba(X), **options)

    def evaluate(
        self, X: Any, y: Any = None, confidence_level: Any = None, *, by: Any = None, **options: Any
    ) -> dict[str, Any]:
        """What the sets of these rows achieve, against truth y or ``candidates=``; see `setwise.evaluate`."""
        calibration = getattr(self, "calibration_", None)
        asks = calibration is not None and calibration.categories is not None and calibration.by == "given"
        sets = self.predict_set(X, confidence_level, **({"by": by} if asks else {}))
        return evaluate(sets, y, by=by, **options)

    def guarantee(self, confidence_level: Any = None) -> Guarantee:
        """What may be claimed about the sets, and why."""
        check_is_fitted(self, "calibration_")
        made: Guarantee = self.calibration_.guarantee(self._level(confidence_level))
        return made

    def covering_rate(self, X: Any, y: Any) -> float:
        """How often the predicted label is a candidate: scikit-learn's `score`, accuracy where labels are exact."""
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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters."""
        parameters: dict[str, Any] = super().get_params(deep)
        return parameters | {"score": self.__dict__["score"]}

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

    def _learner(self, rng: np.random.RandomState, sets: LabelSets) -> Any:
        """The estimator to fit: cloned, seeded, and able to read candidate sets."""
        model = self.estimator
        if model is None:
            from setwise.learn import PartialLabelClassifier  # noqa: PLC0415 - torch is optional

            model = PartialLabelClassifier()
        if hasattr(model, "state_dict") and hasattr(model, "eval"):
            return _as_trained(model, sets.classes)
        if isinstance(model, FrozenEstimator):
            return model
        model = clone(model)
        seeds = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        model.set_params(**{name: rng.randint(2**31 - 1) for name in sorted(seeds)})
        if not reads_candidates(model) and not (sets.sizes == 1).all():
            from setwise.learn import EMClassifier  # noqa: PLC0415

            return EMClassifier(model, random_state=rng.randint(2**31 - 1))
        return model

    def _split(self, n: int, group: Array | None, rng: np.random.RandomState) -> tuple[Ints, Ints]:
        kind = ShuffleSplit if group is None else GroupShuffleSplit
        try:
            splitter = kind(1, test_size=self.calibration_size, random_state=rng)
            kept, held = next(splitter.split(np.zeros(n), groups=group))
        except ValueError as error:
            raise ValueError(f"calibration_size: {self.calibration_size} of n_samples={n}: {error}") from error
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
        return _as_trained(model, self.classes_)

    def _level(self, confidence_level: Any) -> Any:
        return self.confidence_level if confidence_level is None else confidence_level


def reads_candidates(model: Any) -> bool:
    """Whether an estimator (or the last step of a pipeline) takes candidate sets as its `y`."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return bool(getattr(last, "reads_candidates", False))


def as_y(sets: LabelSets, model: Any) -> Any:
    """Candidate sets for an estimator that reads them, a label vector for one that does not."""
    return sets if reads_candidates(model) or (sets.sizes != 1).any() else sets.to_labels()


def _as_trained(model: Any, classes: Array) -> FrozenEstimator:
    """A trained model, scikit-learn's or a torch module, that is not to be fitted again."""
    if hasattr(model, "state_dict") and hasattr(model, "eval"):
        model = _TorchModel(model, classes)
    return model if isinstance(model, FrozenEstimator) else FrozenEstimator(model)


def _listed(values: Any, n: int, name: str) -> Sequence[Any]:
    listed = list(values)
    if len(listed) != n:
        raise ValueError(f"{name}: {len(listed)} entries for {n} rows; use None where nobody checked.")
    return listed


class _TorchModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A trained torch module, (batch, …) to logits, as a classifier."""

    def __init__(self, module: Any, classes: Array) -> None:
        self.module = module
        self.classes = classes

    @property
    def classes_(self) -> Array:
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Floats:
        import torch  # noqa: PLC0415 - torch is optional, and here it must be loaded already

        module = self.module.eval()
        place = next(iter(module.parameters()), torch.zeros(1))
        with torch.no_grad():
            rows = torch.as_tensor(np.asarray(X), device=place.device).to(place.dtype)
            starts = range(0, len(rows), 4096)
            parts = [module(rows[i : i + 4096]).double().softmax(-1).cpu().numpy() for i in starts]
        return np.concatenate(parts)
