"""What all estimators here share: predict by the most probable class, and be scored by the covering rate."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from setwise.errors import check_length
from setwise.labels.vocabulary import Vocabulary
from setwise.learn.inputs import as_training_sets


class CandidateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier whose `y` may be candidate sets; a subclass defines `fit` and `predict_proba`."""

    classes_: NDArray[Any]
    reads_candidates = True
    """Whether `ConformalClassifier` passes candidate sets to it unchanged."""
    reads_votes = False
    """Whether votes are weighed; if not, every label that an annotator gave is a candidate."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row."""
        probabilities: NDArray[np.float64] = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def score(self, X: Any, y: Any) -> float:
        """The covering rate: how often the predicted label is a candidate (accuracy for exact labels)."""
        return covering(self.predict(X), y, self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def clone_unfitted(estimator: Any) -> Any:
    """A clone; a deep copy where scikit-learn cannot clone, as with lists among the parameters of CatBoost."""
    try:
        return clone(estimator)
    except RuntimeError:
        return deepcopy(estimator)


def covering(predicted: Any, y: Any, classes: Any) -> float:
    """How often the predicted label is among a row's candidates; accuracy where labels are exact.

    In an unlabelled row every label is a candidate.

    >>> covering(["a", "b"], [["a", "b"], ["a"]], ["a", "b"])
    0.5
    """
    sets = as_training_sets(y, missing="full")
    same = set(sets.classes.tolist()) == set(np.asarray(classes).tolist())
    if (
        not same and sets.vocabulary.is_range and sets.n_classes == len(classes)
    ):  # a mask without names: its columns are our classes
        sets = sets.rename_classes(Vocabulary.declare(list(classes)))
    check_length("y", len(sets), len(predicted), "rows of X")
    return float(sets.contains(predicted).mean())
