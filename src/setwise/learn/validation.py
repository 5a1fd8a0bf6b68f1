"""Reading what people hand to an estimator, without torch: features, and candidates or plain labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from setwise._arrays import Floats
from setwise.contamination.annotator_model import fit_annotators
from setwise.evidence.row_facts import present_rows
from setwise.labels.coerce import read_sets
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


def read_candidates(y: Any, classes: Iterable[Hashable] | None = None, *, missing: str = "error") -> LabelSets:
    """Candidate sets from `LabelSets`, `Votes`, a boolean mask, a 0/1 frame, lists of labels, or a label vector.

    >>> read_candidates([["a", "b"], ["b"]])
    LabelSets(2 rows, 2 classes): {a, b}, {b}
    >>> read_candidates([3, 5, 3]).sizes
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
    sets = read_sets(y, name="y")
    if classes is not None:
        sets = sets.with_classes(classes)
    kept, rows = present_rows(sets, missing)
    if rows is not None:
        raise ValueError("missing: 'drop' would need rows of X dropped too; leave those rows out yourself.")
    return kept


def vote_targets(votes: Votes, sets: LabelSets, probabilities: Floats | None = None) -> Floats:
    """(n, K): how probable each label is given the answers, and probabilities of models that have not seen the row.

    Those of a model that has would confirm themselves; the annotator model also recalibrates them.
    """
    return fit_annotators(votes.recoded(sets.vocabulary), probabilities, compare=False).posterior
