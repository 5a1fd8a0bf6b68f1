"""Reads features, and candidates or labels, for an estimator; without torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from setwise.evidence.row_facts import present_rows
from setwise.labels.coerce import as_label_sets
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import is_collection
from setwise.labels.votes import Votes
from setwise.learn.feature_errors import FeatureError, check_finite, naming_features


def read_array(estimator: Any, X: Any, *, reset: bool) -> np.ndarray[Any, Any]:
    """X as one dense array of finite numbers, checked against what the estimator was fitted on."""
    with naming_features(X):
        array = validate_data(
            estimator, X=X, reset=reset, accept_sparse=True, dtype="numeric", ensure_all_finite=False, allow_nd=True
        )
        dense: np.ndarray[Any, Any] = array.toarray() if sparse.issparse(array) else np.asarray(array)
        if dense.dtype.kind in "Mm":
            raise FeatureError("X: holds a date")
        check_finite(dense)
    return dense


def as_training_sets(y: Any, *, missing: str = "error") -> LabelSets:
    """Candidate sets from `LabelSets`, `Votes`, a boolean mask, a 0/1 frame, lists of labels, or a label vector.

    >>> as_training_sets([["a", "b"], ["b"]])
    LabelSets(2 rows, 2 classes): {a, b}, {b}
    >>> as_training_sets([3, 5, 3]).sizes
    array([1, 1, 1])
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None; pass candidate sets or a label vector."
        )
    if hasattr(y, "__array__") and not isinstance(y, (LabelSets, Votes)) and not hasattr(y, "columns"):
        y = np.asarray(y)
        if y.dtype.kind == "c" or (y.dtype != bool and (y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1))):
            y = column_or_1d(y, warn=True)
            if y.dtype.kind != "O" or not any(is_collection(row) for row in y):
                check_array(y, ensure_2d=False, dtype=None, input_name="y")
                check_classification_targets(y)
    kept, rows = present_rows(as_label_sets(y, name="y"), missing)
    if rows is not None:
        raise ValueError("missing: 'drop' would have to drop rows of X too; leave those rows out yourself.")
    return kept
