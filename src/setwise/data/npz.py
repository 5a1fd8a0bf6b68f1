"""Tables kept as arrays in npz archives.

An archive may hold `X`, `candidates` (an n × K mask) or `candidates_indptr` and `candidates_indices`, `y`
(missing truth as NaN or an empty text), `classes` (names), and `ids`.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from setwise._arrays import Array, Ints
from setwise.data.assemble import sets_from_keys
from setwise.errors import DataError
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Classes, Vocabulary, missing_labels

# what numpy and zipfile raise over a damaged archive
_BROKEN = (
    *(OSError, ValueError, LookupError, AttributeError, TypeError, EOFError, MemoryError, RuntimeError),
    *(BadZipFile, zlib.error, struct.error),
)


def read_npz(path: Path, classes: Classes) -> tuple[Array, LabelSets | None, Array | None, dict[str, Array]]:
    """Features, candidates, true labels and identifiers in an archive; `classes` names its labels anew."""
    arrays = _load(path)
    sets = _sets(arrays, None if classes is None else Vocabulary.of(classes, ()), path)
    X = _features(arrays, path, None if sets is None else len(sets))
    if sets is not None and len(sets) != len(X):
        raise DataError(f"{path}: {len(X)} rows of features, but {len(sets)} candidate sets.")
    return X, sets, _truth(arrays, path, len(X)), {name: arrays[name] for name in ("ids",) if name in arrays}


def _load(path: Path) -> dict[str, Array]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _BROKEN as error:
        reason = " ".join(str(error).split())[:150]
        raise DataError(f"{path}: not a readable npz archive of plain arrays ({reason}).") from None


def _sets(arrays: dict[str, Array], vocabulary: Vocabulary | None, path: Path) -> LabelSets | None:
    vocabulary = vocabulary or _classes(arrays, path)
    if "candidates" in arrays:
        try:
            names = None if vocabulary is None else vocabulary.classes
            return LabelSets.from_mask_view(np.array(arrays["candidates"]), names)
        except ValueError as error:
            raise DataError(f"{path}: candidates cannot be read: {error}") from None
    if "candidates_indptr" not in arrays or "candidates_indices" not in arrays:
        return None
    indptr, indices = arrays["candidates_indptr"], arrays["candidates_indices"]
    if indptr.ndim != 1 or indices.ndim != 1 or indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise DataError(f"{path}: candidates_indptr and candidates_indices must be vectors of integers.")
    bounds: Ints = indptr.astype(np.int64)
    sizes = bounds[1:] - bounds[:-1]
    if not len(indptr) or indptr[0] != 0 or (sizes < 0).any() or indptr[-1] != len(indices):
        raise DataError(
            f"{path}: candidates_indptr does not describe {len(indices)} indices; it must rise from 0 to that."
        )
    vocabulary = vocabulary or Vocabulary.positions(int(indices.max(initial=0)) + 1)
    outside = np.flatnonzero((indices < 0) | (indices >= len(vocabulary)))
    if len(outside):
        row = int(np.searchsorted(indptr, outside[0], side="right")) - 1
        raise DataError(f"{path}: row {row} has the label {indices[outside[0]]}, outside 0..{len(vocabulary) - 1}.")
    keys = np.repeat(np.arange(len(sizes)), sizes) * len(vocabulary) + indices
    return sets_from_keys(vocabulary, len(sizes), keys)


def _classes(arrays: dict[str, Array], path: Path) -> Vocabulary | None:
    """The vocabulary: JSON as setwise writes it (types kept), or an array of names."""
    if "classes_json" in arrays:
        try:
            stored = json.loads(arrays["classes_json"].tobytes())
            return Vocabulary(Vocabulary.declare(stored["classes"]).classes, declared=bool(stored["declared"]))
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path}: its vocabulary cannot be read ({error}).") from None
    return Vocabulary.declare(arrays["classes"]) if "classes" in arrays else None


def _features(arrays: dict[str, Array], path: Path, n: int | None) -> Array:
    X: Any = next((arrays[name] for name in ("X", "features", "data") if name in arrays), None)
    if X is None:
        if n is None:
            raise DataError(f"{path}: holds neither X nor candidates; found {', '.join(arrays) or 'nothing'}.")
        return np.empty((n, 0))
    if X.ndim < 2 or X.dtype.kind not in "biuf":
        raise DataError(f"{path}: X is {X.dtype} of shape {X.shape}; expected numbers, (rows, features).")
    rows: Array = X.reshape(len(X), -1)
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        raise DataError(f"{path}: row {int(wrong[0])} of X holds NaN or infinity; fill or remove such rows.")
    return rows if rows.dtype in {np.dtype("f4"), np.dtype("f8")} else rows.astype(np.float64)


def _truth(arrays: dict[str, Array], path: Path, n: int) -> Array | None:
    y: Array | None = next((arrays[name] for name in ("y", "truth") if name in arrays), None)
    if y is None:
        return None
    if y.shape != (n,):
        raise DataError(f"{path}: y has shape {y.shape} for {n} rows; expected one label a row.")
    absent = missing_labels(y) | (y == "" if y.dtype.kind == "U" else False)
    if not absent.any() and y.dtype.kind != "f":
        return np.asarray(y)
    labels = np.full(n, None, dtype=object)
    whole = y.dtype.kind == "f" and (y[~absent] == np.floor(y[~absent])).all()
    labels[~absent] = (y[~absent].astype(np.int64) if whole else y[~absent]).tolist()
    return labels
