"""What a saved model keeps of its data: a few rows to recognise the model, and digests to recognise rows."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from setwise._arrays import Array, Bools, Floats, Ints
from setwise.errors import MisuseWarning, Remedy
from setwise.evidence.row_digests import Coincidence, coincidence, copies, row_digests
from setwise.findings import Finding
from setwise.labels.vocabulary import missing_labels
from setwise.learn.feature_frame import FeatureFrame
from setwise.row_noise import Words
from setwise.storage.container import read_container, reading_untrusted, write_container
from setwise.storage.directory import Source
from setwise.storage.stored_arrays import check_array

FORMAT, VERSION = "setwise-probe", 2
USED_FORMAT, USED_VERSION = "setwise-used-rows", 2
_ROWS = 8
_PLAINLY = 6  # standard deviations, so that coincidences in discrete features void no guarantee on loading
_FRAMES = {"pandas", "polars", "setwise"}
_NONE: Words = np.empty(0, dtype=np.uint64)


def take_probe(X: Any) -> Any:
    """The first rows of X, of the same kind as X; None where X cannot be sliced."""
    try:
        cut = X.iloc[:_ROWS] if hasattr(X, "iloc") else X[:_ROWS]
        return cut.copy() if hasattr(cut, "copy") else cut
    except Exception:  # noqa: BLE001 - X may be anything the estimator reads
        return None


def digest(*arrays: Any) -> str | None:
    """A SHA-256 over arrays or tables with their shapes and types; None where they hold neither numbers nor text.

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
                rows = row_digests(part)  # of a table with text and numbers
                if rows is None:
                    return None
                plain = rows
            total.update(f"{plain.dtype.str}{plain.shape}".encode())
            total.update(plain.view(np.uint8).data if plain.size else b"")
    return total.hexdigest()


@dataclass(frozen=True)
class UsedRows:
    """Digests of the rows that a model learned from and was calibrated on; empty where they cannot be computed.

    `seen` is the finding that calibration rows are training rows.
    """

    learned: Words = field(default_factory=lambda: _NONE)
    calibrated: Words = field(default_factory=lambda: _NONE)
    seen: Finding | None = None

    @classmethod
    def of(cls, X: Any, learned: Ints, calibrated: Ints, part: Ints, *remedies: Remedy) -> UsedRows:
        """From rows X and their numbers; warns if calibration rows are copies of rows in another part."""
        digests = row_digests(X)
        if digests is None:
            return cls()
        overlap = copies(X, digests, part, calibrated)
        if overlap is not None:
            problem = (
                f"X: {overlap} to calibrate on are copies of training rows. New rows will be covered less often "
                "than guaranteed"
            )
            warnings.warn(MisuseWarning(problem, "remove the copies", *remedies), stacklevel=3)
        seen = None if overlap is None else _copies_finding(overlap)
        return cls(digests[learned], digests[np.setdiff1d(calibrated, learned)], seen)

    def with_calibration(self, X: Any) -> UsedRows:
        """The same training rows with other calibration rows; warns if the model learned from these."""
        digests = row_digests(X)
        overlap = None if digests is None else coincidence(digests, self.learned)
        if overlap is not None:
            problem = (
                f"X: {overlap} were learned from. The model is surer of them than of new rows, which will be "
                "covered less often than guaranteed"
            )
            warnings.warn(MisuseWarning(problem, "calibrate on rows that the model has not seen"), stacklevel=3)
        seen = None if overlap is None else _overlap_finding(overlap)
        return UsedRows(self.learned, _NONE if digests is None else digests, seen)

    def find_seen(self, fold: Ints | None = None) -> Finding | None:
        """The finding that calibration rows are training rows, where the digests alone leave no doubt.

        Parameters
        ----------
        fold
            The fold of each row, where every row is learned from and calibrated on.
        """
        if fold is None:
            overlap = coincidence(self.calibrated, self.learned, _PLAINLY)
            return None if overlap is None else _overlap_finding(overlap)
        known = len(fold) == len(self.learned)
        overlap = copies(None, self.learned, fold, np.arange(len(fold))) if known else None
        return None if overlap is None else _copies_finding(overlap)

    def training_mask(self, X: Any) -> Bools | None:
        """Which rows are training rows; None where that cannot be known."""
        digests = row_digests(X)
        return None if digests is None or not len(self.learned) else np.isin(digests, self.learned)

    def warn_if_used(self, X: Any) -> Finding | None:
        """Warns if new rows were learned from or calibrated on, and returns the finding."""
        used = self.among([row_digests(X)])
        if used is None:
            return None
        problem = f"X: {used}. New rows will be covered less often"
        warnings.warn(MisuseWarning(problem, "use rows that were not passed to fit or conformalize"), stacklevel=3)
        return used

    def among(self, digests: Sequence[Words | None]) -> Finding | None:
        """The finding that rows, as batches of digests, were learned from or calibrated on."""
        known, batches = (
            np.concatenate([self.learned, self.calibrated]),
            [each for each in digests if each is not None],
        )
        overlap = coincidence(np.concatenate(batches), known) if batches and len(batches) == len(digests) else None
        if overlap is None:
            return None
        return Finding(None, f"{overlap} were learned from or calibrated on", overlap.rows)

    def write(self, path: Path) -> None:
        """Writes the digests."""
        arrays = {"learned": self.learned, "calibrated": self.calibrated}
        write_container(path, {"format": USED_FORMAT, "version": USED_VERSION}, arrays)

    @classmethod
    def read(cls, source: Source) -> UsedRows:
        """Reads what `write` wrote."""
        arrays = read_container(source, USED_FORMAT, USED_VERSION)[1]
        with reading_untrusted(source, USED_FORMAT):
            for name in ("learned", "calibrated"):
                check_array(arrays[name], name, "u", (arrays[name].size,))
            return cls(arrays["learned"], arrays["calibrated"])


def _overlap_finding(overlap: Coincidence) -> Finding:
    return Finding(None, f"it learned from {overlap}", overlap.rows)


def _copies_finding(overlap: Coincidence) -> Finding:
    return Finding(None, f"{overlap} are copies of rows that it learned from", overlap.rows)


def write_probe(path: Path, rows: Any, probabilities: Floats) -> bool:
    """Writes rows and the probabilities a model gave them; False where the rows are not numbers or text."""
    header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "frame": None, "sparse": False}
    if hasattr(rows, "columns"):
        home = type(rows).__module__.partition(".")[0]
        plain = (_fill_text(rows[name]) if isinstance(rows, FeatureFrame) else rows[name] for name in rows.columns)
        columns = {f"column.{i}": _storable(values) for i, values in enumerate(plain)}
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


def read_probe(source: Source) -> tuple[Any, Floats]:
    """The stored rows, and the probabilities that the model gave them."""
    header, arrays = read_container(source, FORMAT, VERSION)
    with reading_untrusted(source, FORMAT):
        probabilities: Floats = arrays.pop("probabilities")
        check_array(probabilities, "probabilities", "f", (*probabilities.shape[:1], *probabilities.shape[1:2]), 0)
        if any(held.ndim == 0 or len(held) != len(probabilities) for held in arrays.values()):
            raise ValueError("rows and probabilities do not belong together")
        if header["frame"] is None:
            rows: Any = sparse.csr_array(arrays["rows"]) if header["sparse"] else arrays["rows"]
            return rows, probabilities
        if header["frame"] not in _FRAMES:
            raise ValueError(f"rows of a {str(header['frame'])[:40]!r} frame cannot be read")
        columns = {str(name): arrays[f"column.{i}"] for i, name in enumerate(header["columns"])}
        if header["frame"] == "setwise":
            return FeatureFrame(columns), probabilities
        return import_module(header["frame"]).DataFrame(columns), probabilities


def _fill_text(values: Array) -> Array:
    """Text with empty strings for missing values, which a `ColumnEncoder` treats alike."""
    return np.where(missing_labels(values), "", values) if values.dtype.kind == "O" else values


def _storable(values: Any) -> Array | None:
    """Numbers or text as an array without objects."""
    try:
        plain: Array = np.asarray(values)
        if plain.dtype.kind in "OT" and all(isinstance(value, str) for value in plain.ravel()):
            plain = plain.astype(np.str_)
    except Exception:  # noqa: BLE001 - rows may be anything the estimator reads
        return None
    return plain if plain.dtype.kind in "biufU" else None
