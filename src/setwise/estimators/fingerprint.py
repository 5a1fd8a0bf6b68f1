"""What a saved model remembers of its data: a few rows to be recognised by, and a digest of all of them."""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from setwise._arrays import Array, Floats
from setwise.container import read_container, write_container

FORMAT, VERSION = "setwise-probe", 1
_ROWS = 8
_FRAMES = {"pandas", "polars"}


def take_probe(X: Any) -> Any:
    """The first rows of X, of the same kind as X; None where X cannot be cut."""
    try:
        cut = X.iloc[:_ROWS] if hasattr(X, "iloc") else X[:_ROWS]
        return cut.copy() if hasattr(cut, "copy") else cut
    except Exception:  # noqa: BLE001 - X may be anything the estimator reads
        return None


def digest(*arrays: Any) -> str | None:
    """A SHA-256 over arrays with their shapes and types; None where they are not arrays of numbers.

    >>> digest([[1.0, 2.0]]) == digest(np.array([[1.0, 2.0]]))
    True
    """
    total = hashlib.sha256()
    for array in arrays:
        parts = (array.indptr, array.indices, array.data) if sparse.issparse(array) else (array,)
        for part in parts:
            try:
                plain = np.ascontiguousarray(part)
            except Exception:  # noqa: BLE001 - data sets, ragged lists and the like
                return None
            if plain.dtype.kind not in "biufU":
                return None
            total.update(f"{plain.dtype.str}{plain.shape}".encode())
            total.update(plain.view(np.uint8).data if plain.size else b"")
    return total.hexdigest()


def write_probe(path: Path, rows: Any, probabilities: Floats) -> bool:
    """Writes rows and the probabilities a model gave them; False where the rows are not numbers or text."""
    header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "frame": None, "sparse": False}
    if hasattr(rows, "columns"):
        home = type(rows).__module__.partition(".")[0]
        columns = {f"column.{i}": _storable(rows[name]) for i, name in enumerate(rows.columns)}
        header |= {"frame": home, "columns": [str(name) for name in rows.columns]}
        if home not in _FRAMES or not all(isinstance(name, str) for name in rows.columns):
            return False
    else:
        header["sparse"] = bool(sparse.issparse(rows))
        columns = {"rows": _storable(rows.toarray() if sparse.issparse(rows) else rows)}
    arrays = {name: column for name, column in columns.items() if column is not None}
    if len(arrays) < len(columns):
        return False
    write_container(path, header, arrays | {"probabilities": np.asarray(probabilities)})
    return True


def read_probe(path: Path) -> tuple[Any, Floats]:
    """The rows as the model knew them, and its probabilities."""
    header, arrays = read_container(path, FORMAT, VERSION)
    probabilities: Floats = arrays.pop("probabilities")
    if header["frame"] is not None:
        columns = {name: arrays[f"column.{i}"] for i, name in enumerate(header["columns"])}
        if header["frame"] not in _FRAMES:
            raise ValueError(f"{path}: rows of a {header['frame']!r} frame cannot be read.")
        frames = import_module(header["frame"])
        return frames.DataFrame(columns), probabilities
    return sparse.csr_array(arrays["rows"]) if header["sparse"] else arrays["rows"], probabilities


def _storable(values: Any) -> Array | None:
    """Numbers or text as an array without objects."""
    try:
        plain: Array = np.asarray(values)
        if plain.dtype.kind in "OT" and all(isinstance(value, str) for value in plain.ravel()):
            plain = plain.astype(np.str_)
    except Exception:  # noqa: BLE001 - rows may be anything the estimator reads
        return None
    return plain if plain.dtype.kind in "biufU" else None
