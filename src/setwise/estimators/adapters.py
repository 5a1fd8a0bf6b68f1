"""Estimators for a conformal classifier, and their probabilities in the order of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from setwise._arrays import Array, Bools, Floats
from setwise.errors import InputError, Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.labels.votes import Votes
from setwise.learn.base import clone_unfitted


def learner_for(estimator: Any, sets: LabelSets, rng: np.random.RandomState) -> Any:
    """The estimator to fit: cloned, seeded, and able to read candidate sets; frozen where it is trained already."""
    if hasattr(estimator, "state_dict") and hasattr(estimator, "eval"):
        return as_trained(estimator, sets.classes)
    if isinstance(estimator, FrozenEstimator):
        if not hasattr(estimator, "classes_") and not sets.vocabulary.declared and not sets.vocabulary.is_range:
            if hasattr(estimator.estimator, "fit"):
                check_is_fitted(estimator.estimator)
            raise InputError(
                f"estimator: {type(estimator.estimator).__name__} has no classes_ that say what its columns mean",
                Remedy("classes", None, "for the labels in its order when you make the sets"),
            )
        return estimator
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise TypeError(f"estimator: expected an object such as LogisticRegression(), got {estimator!r}.")
    if isinstance(estimator, RegressorMixin):
        raise TypeError(f"estimator: {type(estimator).__name__} is a regressor; pass a classifier.")
    model = clone_unfitted(estimator)
    seeds = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    model.set_params(**{name: rng.randint(2**31 - 1) for name in sorted(seeds)})
    if not reads_candidates(model) and not (sets.sizes == 1).all():
        from setwise.learn import EMClassifier

        return EMClassifier(model, random_state=rng.randint(2**31 - 1))
    return model


def gives_inclusion(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, gives inclusion probabilities."""
    return hasattr(last_step(model), "predict_inclusion")


def answers(
    model: Any, X: Any, vocabulary: Vocabulary, method: str = "predict_proba", *, learned: Bools | None = None
) -> Floats:
    """The (n, K) answers of a model's method, its columns in the order of the vocabulary.

    Labels that are in no training row (see `learned`) or unknown to the model get 0.
    """
    values = _in_order(model, X, vocabulary, method)
    if learned is None or learned.all():
        return values
    kept = values * learned
    if method != "predict_proba":
        return kept
    total = kept.sum(axis=1, keepdims=True)
    equal = np.where(learned, 1 / learned.sum(), np.zeros_like(kept))
    shares: Floats = np.divide(kept, total, out=equal, where=total > 0)
    return shares


def _in_order(model: Any, X: Any, vocabulary: Vocabulary, method: str) -> Floats:
    ask = getattr(model, method, None)
    if ask is not None:
        values = np.asarray(ask(X))
    elif hasattr(model, "steps"):  # pipelines pass on only what scikit-learn knows
        values = np.asarray(getattr(last_step(model), method)(model[:-1].transform(X)))
    else:
        raise InputError(
            f"estimator: {type(model).__name__} gives no probabilities (it has no {method})",
            "wrap it in sklearn.calibration.CalibratedClassifierCV",
        )
    columns, k = np.asarray(getattr(model, "classes_", vocabulary.classes)), len(vocabulary)
    if columns.tolist() == vocabulary.classes.tolist():
        return values
    positions = vocabulary.encode(columns)
    if np.array_equal(positions, np.arange(k)):
        return values
    if (positions < 0).any() or values.shape[1] != len(positions):
        raise ValueError(
            f"estimator: its {values.shape[1]} probability columns are not the {k} classes "
            "of y; pass candidates whose vocabulary names all of its classes, in its order."
        )
    aligned = np.zeros((len(values), k))
    aligned[:, positions] = values
    return aligned


def reads_candidates(model: Any) -> bool:
    """Whether an estimator (or the last step of a pipeline) takes candidate sets as its `y`."""
    return bool(getattr(last_step(model), "reads_candidates", False))


def last_step(model: Any) -> Any:
    """The last step of a pipeline; any other model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def feature_readers(model: Any) -> list[Any]:
    """The parts of a model that read X: itself and the networks of a covering one, or a pipeline's first step."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    networks = [getattr(first, name, None) for name in ("posterior_", "inclusion_")]
    return [first, *(network for network in networks if network is not None)]


def as_y(sets: LabelSets, model: Any, votes: Votes | None = None) -> Any:
    """Votes or candidate sets for an estimator that reads them, a label vector for one that does not."""
    if votes is not None and getattr(last_step(model), "reads_votes", False):
        return votes
    return sets if reads_candidates(model) or (sets.sizes != 1).any() else sets.to_labels()


def as_trained(model: Any, classes: Array) -> FrozenEstimator:
    """A trained model, of scikit-learn or a torch module, frozen so that nothing fits it again."""
    if hasattr(model, "state_dict") and hasattr(model, "eval"):
        model = _TorchModel(model, classes)
    return model if isinstance(model, FrozenEstimator) else FrozenEstimator(model)


class _TorchModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A trained torch module, (batch, …) to logits or to an object that holds them as `logits`, as a classifier."""

    def __init__(self, module: Any, classes: Array) -> None:
        self.module = module
        self.classes = classes

    @property
    def classes_(self) -> Array:
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Floats:
        import torch  # torch is optional, and here it must be loaded already

        from setwise.learn.networks import module_logits

        module = self.module.eval()
        place = next(iter(module.parameters()), torch.zeros(1))
        with torch.no_grad():
            rows = torch.as_tensor(np.require(X, requirements="W"), device=place.device).to(place.dtype)
            starts = range(0, len(rows), 4096)
            parts = [module_logits(module, rows[i : i + 4096]).double().softmax(-1).cpu() for i in starts]
        return torch.cat(parts).numpy()
