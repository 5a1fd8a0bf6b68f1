"""Tables as arrays in npz archives.

An archive may hold `X`, `candidates` (an n × K mask) or `candidates_indptr` and `candidates_indices`, `y`
(missing truth as NaN or an empty text), `classes` (names), and `ids`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from setwise._arrays import Array, sizes_between
from setwise.errors import DataError, reading_from
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Classes, Vocabulary, missing_labels
from setwise.storage.container import reading_untrusted
from setwise.storage.stored_arrays import read_arrays
from setwise.tables.stored_vocabulary import over_classes, parse_vocabulary


def read_npz(path: Path, classes: Classes) -> tuple[Array, LabelSets | None, Array | None, dict[str, Array]]:
    """Features, candidates, true labels and identifiers in an archive."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    with path.open("rb") as file:
        arrays = read_arrays(file, path)
    with reading_untrusted(path, "npz"):
        sets = _sets(arrays, classes, path)
        X = _features(arrays, path, None if sets is None else len(sets))
        if sets is not None and len(sets) != len(X):
            raise DataError(f"{path}: {len(X)} rows of features, but {len(sets)} candidate sets.")
        truth = _truth(arrays, path, len(X))
        return X, sets, truth, {name: arrays[name] for name in ("ids",) if name in arrays}


def _sets(arrays: dict[str, Array], classes: Classes, path: Path) -> LabelSets | None:
    """The sets. If the file stores no class names, `classes` names the positions; otherwise it selects labels."""
    stored, relative = _classes(arrays, path)
    vocabulary = Vocabulary.of(classes, ()) if stored is None and classes is not None else stored
    if "candidates" in arrays:
        try:
            sets = LabelSets.from_mask_view(np.array(arrays["candidates"]), vocabulary)
        except ValueError as error:
            raise DataError(f"{path}: candidates cannot be read: {error}") from None
    elif "candidates_indptr" in arrays and "candidates_indices" in arrays:
        sets = _sets_of_indices(arrays["candidates_indptr"], arrays["candidates_indices"], vocabulary, path)
    else:
        return None
    return over_classes(sets, relative, classes, str(path))


def _sets_of_indices(indptr: Array, indices: Array, vocabulary: Vocabulary | None, path: Path) -> LabelSets:
    if indptr.ndim != 1 or indices.ndim != 1 or indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise DataError(f"{path}: candidates_indptr and candidates_indices must be vectors of integers.")
    try:
        sizes = sizes_between(indptr, len(indices))
    except ValueError as error:
        raise DataError(f"{path}: candidates_indptr {error}.") from None
    with reading_from(f"{path}, candidates_indices"):
        vocabulary = Vocabulary.up_to_largest(indices) if vocabulary is None else vocabulary
    outside = np.flatnonzero((indices < 0) | (indices >= len(vocabulary)))
    if len(outside):
        row = int(np.searchsorted(indptr, outside[0], side="right")) - 1
        raise DataError(f"{path}: row {row} has the label {indices[outside[0]]}, outside 0..{len(vocabulary) - 1}.")
    return LabelSets.from_codes(vocabulary, indices.astype(np.int64), sizes)


def _classes(arrays: dict[str, Array], path: Path) -> tuple[Vocabulary | None, bool]:
    """The vocabulary, from JSON or an array of names, and whether full sets mean "every label seen"."""
    if "classes_json" in arrays:
        return parse_vocabulary(arrays["classes_json"].tobytes(), str(path))
    return (Vocabulary.declare(arrays["classes"]) if "classes" in arrays else None), False


def _features(arrays: dict[str, Array], path: Path, n: int | None) -> Array:
    X: Any = next((arrays[name] for name in ("X", "features", "data") if name in arrays), None)
    if X is None:
        if n is None:
            raise DataError(f"{path}: holds neither X nor candidates; found {', '.join(arrays) or 'nothing'}.")
        return np.empty((n, 0))
    if X.ndim < 2 or X.dtype.kind not in "biuf":
        raise DataError(f"{path}: X is {X.dtype} of shape {X.shape}; expected numbers, (rows, features).")
    rows: Array = X.reshape(len(X), math.prod(X.shape[1:]))
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        raise DataError(f"{path}: row {int(wrong[0])} of X holds NaN or infinity; fill or remove such rows.")
    return rows if rows.dtype in {np.dtype("f4"), np.dtype("f8")} else rows.astype(np.float64)


def _truth(arrays: dict[str, Array], path: Path, n: int) -> Array | None:
    y: Array | None = next((arrays[name] for name in ("y", "truth") if name in arrays), None)
    if y is None:
        return None
    if y.shape != (n,):
        raise DataError(f"{path}: y has shape {y.shape} for {n} rows; expected one label per row.")
    absent = missing_labels(y) | (y == "" if y.dtype.kind == "U" else False)
    if not absent.any() and y.dtype.kind != "f":
        return np.asarray(y)
    labels = np.full(n, None, dtype=object)
    whole = y.dtype.kind == "f" and ((y[~absent] == np.floor(y[~absent])) & (np.abs(y[~absent]) < 2**53)).all()
    labels[~absent] = (y[~absent].astype(np.int64) if whole else y[~absent]).tolist()
    return labels
