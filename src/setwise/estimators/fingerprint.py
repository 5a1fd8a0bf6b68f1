"""What a saved model remembers of its data: some rows to recognise the model by, digests to recognise rows by."""

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
from setwise.container import believing_nothing, read_container, write_container
from setwise.errors import MisuseWarning, Remedy
from setwise.evidence.row_digests import coincidence, copies, row_digests
from setwise.parts import Source
from setwise.row_noise import Words
from setwise.stored_arrays import checked

FORMAT, VERSION = "setwise-probe", 2
USED_FORMAT, USED_VERSION = "setwise-used-rows", 2
_ROWS = 8
_PLAINLY = 6  # standard deviations: chance, in discrete features, takes no promise back on loading
_FRAMES = {"pandas", "polars"}
_NONE: Words = np.empty(0, dtype=np.uint64)


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


@dataclass(frozen=True)
class UsedRows:
    """Digests of the rows that a model was learned from and calibrated on; empty where they cannot be known.

    `seen` says which calibration rows were learned from, in words.
    """

    learned: Words = field(default_factory=lambda: _NONE)
    calibrated: Words = field(default_factory=lambda: _NONE)
    seen: str = ""

    @classmethod
    def of(cls, X: Any, learned: Ints, calibrated: Ints, part: Ints, *remedies: Remedy) -> UsedRows:
        """Of rows X by their numbers; warns if calibration rows are copies of rows in another part."""
        digests = row_digests(X)
        if digests is None:
            return cls()
        found = copies(X, digests, part, calibrated)
        if found is not None:
            problem = (
                f"X: {found} to calibrate on are copies of rows that were learned from: new rows, which are not, "
                "will be covered less often than promised"
            )
            warnings.warn(MisuseWarning(problem, "remove the copies", *remedies), stacklevel=3)
        seen = "" if found is None else f"{found} are copies of rows that it learned from"
        return cls(digests[learned], digests[np.setdiff1d(calibrated, learned)], seen)

    def calibrated_on(self, X: Any) -> UsedRows:
        """The same with other calibration rows; warns if they were learned from."""
        digests = row_digests(X)
        found = None if digests is None else coincidence(digests, self.learned)
        if found is not None:
            problem = (
                f"X: {found} were learned from: the model is surer of them than of new rows, which will be covered "
                "less often than promised"
            )
            warnings.warn(MisuseWarning(problem, "calibrate on rows that the model has not seen"), stacklevel=3)
        seen = "" if found is None else f"it learned from {found}"
        return UsedRows(self.learned, _NONE if digests is None else digests, seen)

    def seen_by_digests(self, fold: Ints | None = None) -> str:
        """Which calibration rows were learned from as the digests alone show plainly, in words.

        Parameters
        ----------
        fold
            The fold of each row, where every row is learned from and calibrated on.
        """
        if fold is None:
            found = coincidence(self.calibrated, self.learned, _PLAINLY)
            return "" if found is None else f"it learned from {found}"
        known = len(fold) == len(self.learned)
        found = copies(None, self.learned, fold, np.arange(len(fold))) if known else None
        return "" if found is None else f"{found} are copies of rows that it learned from"

    def learned_from(self, X: Any) -> Bools | None:
        """Which rows the model was trained on; None where that cannot be known."""
        digests = row_digests(X)
        return None if digests is None or not len(self.learned) else np.isin(digests, self.learned)

    def warn_if_used(self, X: Any) -> str:
        """Warns if new rows were learned from or calibrated on, and says so; empty where they were not."""
        used = self.among([row_digests(X)])
        if not used:
            return ""
        problem = f"X: {used}, so that new rows will be covered less often"
        warnings.warn(MisuseWarning(problem, "use rows that fit and conformalize were not given"), stacklevel=3)
        return used

    def among(self, digests: Sequence[Words | None]) -> str:
        """Whether rows, batch by batch by their digests, were learned from or calibrated on, in words."""
        known, batches = (
            np.concatenate([self.learned, self.calibrated]),
            [each for each in digests if each is not None],
        )
        found = coincidence(np.concatenate(batches), known) if batches and len(batches) == len(digests) else None
        return "" if found is None else f"{found} were learned from or calibrated on"

    def write(self, path: Path) -> None:
        """Writes the digests."""
        arrays = {"learned": self.learned, "calibrated": self.calibrated}
        write_container(path, {"format": USED_FORMAT, "version": USED_VERSION}, arrays)

    @classmethod
    def read(cls, source: Source) -> UsedRows:
        """Reads what `write` wrote."""
        arrays = read_container(source, USED_FORMAT, USED_VERSION)[1]
        with believing_nothing(source, USED_FORMAT):
            for name in ("learned", "calibrated"):
                checked(arrays[name], name, "u", (arrays[name].size,))
            return cls(arrays["learned"], arrays["calibrated"])


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


def read_probe(source: Source) -> tuple[Any, Floats]:
    """The rows as the model knew them, and its probabilities."""
    header, arrays = read_container(source, FORMAT, VERSION)
    with believing_nothing(source, FORMAT):
        probabilities: Floats = arrays.pop("probabilities")
        checked(probabilities, "probabilities", "f", (*probabilities.shape[:1], *probabilities.shape[1:2]), 0)
        if any(held.ndim == 0 or len(held) != len(probabilities) for held in arrays.values()):
            raise ValueError("rows and probabilities do not belong together")
        if header["frame"] is None:
            rows: Any = sparse.csr_array(arrays["rows"]) if header["sparse"] else arrays["rows"]
            return rows, probabilities
        if header["frame"] not in _FRAMES:
            raise ValueError(f"rows of a {str(header['frame'])[:40]!r} frame cannot be read")
        columns = {str(name): arrays[f"column.{i}"] for i, name in enumerate(header["columns"])}
        return import_module(header["frame"]).DataFrame(columns), probabilities


def _storable(values: Any) -> Array | None:
    """Numbers or text as an array without objects."""
    try:
        plain: Array = np.asarray(values)
        if plain.dtype.kind in "OT" and all(isinstance(value, str) for value in plain.ravel()):
            plain = plain.astype(np.str_)
    except Exception:  # noqa: BLE001 - rows may be anything the estimator reads
        return None
    return plain if plain.dtype.kind in "biufU" else None
