"""Reading what people hand to an estimator: features of many kinds, and candidates or plain labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from setwise.inputs import present_rows
from setwise.labels import LabelSets
from setwise.learn.sources import Resident, Source, Streamed
from setwise.vocabulary import is_collection


def read_source(estimator: Any, X: Any, device: torch.device, *, reset: bool) -> Source:
    """The rows of X on the device as they are stored, or a torch `Dataset` read as needed."""
    if isinstance(X, torch.utils.data.Dataset):
        source: Source = Streamed(X, device)
        _check_width(estimator, source.shape, reset=reset)
        return source
    if isinstance(X, torch.Tensor):
        if X.ndim < 2 or len(X) == 0:
            raise ValueError(f"X: expected shape (rows, features, …) with rows, got {tuple(X.shape)}.")
        _check_width(estimator, tuple(X.shape[1:]), reset=reset)
        check_finite(X)
        return Resident(X.detach().to(device))
    tensor = torch.from_numpy(_storable(read_array(estimator, X, reset=reset)))
    return Resident(tensor.to(device))


def read_array(estimator: Any, X: Any, *, reset: bool) -> np.ndarray[Any, Any]:
    """X as one dense array of finite numbers, checked against what the estimator was fitted on."""
    array = validate_data(
        estimator,
        X=X,
        reset=reset,
        accept_sparse=True,
        dtype="numeric",
        ensure_all_finite=False,
        allow_nd=True,
    )
    dense: np.ndarray[Any, Any] = array.toarray() if sparse.issparse(array) else np.asarray(array)
    check_finite(dense)
    return dense


def read_candidates(y: Any, classes: Iterable[Hashable] | None = None, *, missing: str = "error") -> LabelSets:
    """Candidate sets from `LabelSets`, a boolean mask, a 0/1 frame, lists of labels, or a label vector.

    >>> read_candidates([["a", "b"], ["b"]])
    LabelSets(2 rows, 2 classes): {a, b}, {b}
    >>> read_candidates([3, 5, 3]).sizes
    array([1, 1, 1])
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None; pass candidate sets or a label vector."
        )
    names = None if classes is None else list(classes)
    sets = _read_sets(y, names)
    if names is not None:
        sets = sets.with_classes(names)
    kept, rows = present_rows(sets, missing)
    if rows is not None:
        raise ValueError("missing: 'drop' would need rows of X dropped too; leave those rows out yourself.")
    return kept


def _read_sets(y: Any, names: list[Hashable] | None) -> LabelSets:
    if isinstance(y, LabelSets):
        return y
    if isinstance(y, torch.Tensor):
        y = y.detach().cpu().numpy()
    if sparse.issparse(y) or (hasattr(y, "columns") and len(y.columns) > 1):
        return LabelSets.from_mask(y)
    if hasattr(y, "value_lengths") or hasattr(y, "combine_chunks"):
        return LabelSets.from_arrow(y, names, missing="empty")
    if not isinstance(y, np.ndarray):
        rows = y.to_list() if hasattr(y, "to_list") else y
        if isinstance(rows, (list, tuple)) and any(is_collection(row) or row is None for row in rows):
            if all(is_collection(row) and len(row) and _all_bool(row) for row in rows):
                return LabelSets.from_mask(np.array(rows, dtype=bool), names)
            return LabelSets.from_lists(rows, names, missing="empty")
    array = np.asarray(y)
    if array.ndim == 2 and array.dtype == bool and array.shape[1] > 1:
        return LabelSets.from_mask(array, names)
    if array.ndim == 1 and array.dtype == object and any(is_collection(row) for row in array):
        return LabelSets.from_lists(array.tolist(), names, missing="empty")
    labels = column_or_1d(array, warn=True)
    check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(labels)
    return LabelSets.from_labels(labels, names)


def _all_bool(row: Any) -> bool:
    return all(isinstance(value, (bool, np.bool_)) for value in row)


def _storable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array torch can hold and nobody else writes to."""
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float64 if array.dtype.itemsize > 8 else np.float32)
    elif array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return array if array.flags.writeable else array.copy()


def _check_width(estimator: Any, shape: tuple[int, ...], *, reset: bool) -> None:
    if reset:
        estimator.n_features_in_ = shape[0]
    elif estimator.n_features_in_ != shape[0]:
        raise ValueError(
            f"X has {shape[0]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def check_finite(X: Any) -> None:
    """Names the first row that holds NaN or infinity."""
    if isinstance(X, torch.Tensor):
        fine = bool(torch.isfinite(X).all()) if X.is_floating_point() else True
    else:
        fine = X.dtype.kind != "f" or bool(np.isfinite(X).all())
    if fine:
        return
    rows = np.asarray(X.detach().cpu() if isinstance(X, torch.Tensor) else X).reshape(len(X), -1)
    row, column = np.argwhere(~np.isfinite(rows))[0]
    kind = "NaN" if np.isnan(rows[row, column]) else "infinity (inf)"
    raise ValueError(
        f"X: row {row} holds {kind} in column {column}; remove or impute such values "
        "(sklearn.impute.SimpleImputer)."
    )
