"""What a saved model keeps of its data: a few rows to recognise the model, and digests to recognise rows."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import betainc

from setwise._arrays import Array, Bools, Floats, Ints
from setwise.errors import MisuseWarning, Remedy
from setwise.evidence.row_digests import (
    NOTABLE,
    Coincidence,
    agreement,
    coincidence,
    copies,
    row_digests,
    with_labels,
)
from setwise.findings import Finding
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, missing_labels
from setwise.learn.feature_frame import FeatureFrame
from setwise.ranks import upper_bound
from setwise.row_noise import Words
from setwise.storage.container import read_container, reading_untrusted, write_container
from setwise.storage.directory import Source
from setwise.storage.stored_arrays import check_array

FORMAT, VERSION = "setwise-probe", 2
USED_FORMAT, USED_VERSION = "setwise-used-rows", 2
_ROWS = 8
_RARE = 1e-3  # the probability that equal events are called the same rows
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

    `labels` are the codes of the learned rows' labels, then of the others', `MISSING` for several candidates; empty
    where they are not known. `equal` says which calibration rows equal a training row and may be different events,
    and `seen` is the finding that calibration rows are training rows.
    """

    learned: Words = field(default_factory=lambda: _NONE)
    calibrated: Words = field(default_factory=lambda: _NONE)
    labels: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    equal: Bools = field(default_factory=lambda: np.empty(0, dtype=bool))
    seen: Finding | None = None

    @classmethod
    def of(
        cls, X: Any, sets: LabelSets, learned: Ints, calibrated: Ints, part: Ints, *remedies: Remedy
    ) -> UsedRows:
        """From rows X and their numbers; warns if calibration rows look like copies of rows in another part."""
        digests, equal = row_digests(X), np.zeros(len(calibrated), dtype=bool)
        if digests is None:
            return cls(equal=equal)
        overlap = copies(X, digests, part, calibrated)
        if overlap is not None:
            equal = overlap.again
            _warn_of_equal(overlap, *remedies)
        others = np.setdiff1d(calibrated, learned)
        labels = _single_labels(sets)[np.concatenate([learned, others])]
        return cls(digests[learned], digests[others], labels, equal)

    def with_calibration(self, X: Any, sets: LabelSets) -> UsedRows:
        """The same training rows with other calibration rows; warns if the model learned from these."""
        digests = row_digests(X)
        if digests is None:
            labels = self.labels[: len(self.learned)]
            return replace(self, calibrated=_NONE, labels=labels, equal=np.zeros(len(sets), dtype=bool), seen=None)
        known = len(self.labels) == len(self.learned) + len(self.calibrated) > 0
        labels = np.append(self.labels[: len(self.learned)], _single_labels(sets)) if known else self.labels
        used = replace(self, calibrated=digests, labels=labels, equal=np.zeros(len(sets), dtype=bool), seen=None)
        overlap = used._find_overlap()
        if overlap is None:
            return used
        if used._tells_events_apart():
            _warn_of_equal(overlap)
            return replace(used, equal=overlap.again)
        problem = (
            f"X: {overlap} were learned from. The model is surer of them than of new rows, which will be "
            "covered less often than guaranteed"
        )
        warnings.warn(MisuseWarning(problem, "calibrate on rows that the model has not seen"), stacklevel=3)
        return replace(used, seen=_overlap_finding(overlap))

    def _find_overlap(self) -> Coincidence | None:
        """More calibration rows that equal a training row, or one with its label, than chance explains."""
        overlap = coincidence(self.calibrated, self.learned)
        if overlap is not None or not len(self.labels):
            return overlap
        labels, others = np.split(self.labels, [len(self.learned)])
        pairs = with_labels(self.calibrated, others), with_labels(self.learned, labels)
        return coincidence(*pairs)

    def _tells_events_apart(self) -> bool:
        """Whether calibration rows that equal a training row differ from it in the label, as other events do.

        Rows that are used again agree with themselves, which shows beside how often equal training rows agree.
        """
        if not len(self.labels):
            return False
        labels, others = np.split(self.labels, [len(self.learned)])
        met, alike = agreement(self.calibrated, others, self.learned, labels)
        pairs, agreed = agreement(self.learned, labels, self.learned, labels)
        if met - alike <= NOTABLE * met:
            return False
        by_chance = upper_bound(agreed, pairs, _RARE) if pairs else 1.0
        return bool(alike == 0 or betainc(alike, met - alike + 1, by_chance) >= _RARE)  # a binomial tail

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
        arrays = {"learned": self.learned, "calibrated": self.calibrated, "labels": self.labels}
        write_container(path, {"format": USED_FORMAT, "version": USED_VERSION}, arrays)

    @classmethod
    def read(cls, source: Source) -> UsedRows:
        """Reads what `write` wrote."""
        arrays = read_container(source, USED_FORMAT, USED_VERSION)[1]
        with reading_untrusted(source, USED_FORMAT):
            for name in ("learned", "calibrated"):
                check_array(arrays[name], name, "u", (arrays[name].size,))
            labels = arrays.get("labels", np.empty(0, dtype=np.intp))
            size = len(arrays["learned"]) + len(arrays["calibrated"])
            check_array(labels, "labels", "iu", (size if len(labels) else 0,), MISSING)
            return cls(arrays["learned"], arrays["calibrated"], labels)


def _overlap_finding(overlap: Coincidence) -> Finding:
    return Finding(None, f"it learned from {overlap}", overlap.rows)


def _warn_of_equal(overlap: Coincidence, *remedies: Remedy) -> None:
    rows = f"{overlap.rows:,} of {len(overlap.again):,} calibration rows (the first is row {overlap.first})"
    problem = (
        f"X: {rows} equal a training row. If they are copies and not different events, new rows will be covered "
        "less often than guaranteed"
    )
    warnings.warn(MisuseWarning(problem, "remove the copies", *remedies), stacklevel=4)


def _single_labels(sets: LabelSets) -> Ints:
    """The code of each row's label, `MISSING` where it has several candidates."""
    start, codes = sets.rows
    found = np.full(len(sets), MISSING, dtype=np.intp)
    alone = sets.sizes == 1
    found[alone] = codes[start[:-1][alone]]
    return found


def write_probe(path: Path, rows: Any, probabilities: Floats) -> bool:
    """Writes rows and the probabilities a model gave them; False where the rows are not numbers or text."""
    header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "frame": None, "sparse": False}
    if hasattr(rows, "columns"):
        home = type(rows).__module__.partition(".")[0]
        plain = (_fill_text(rows[name]) if isinstance(rows, FeatureFrame) else rows[name] for name in rows.columns)
        columns = {f"column.{i}": _storable(values) for i, values in enumerate(plain)}
        kinds = [name for name in rows.columns if str(getattr(rows[name], "dtype", "")) == "category"]
        header |= {"frame": home, "columns": [str(name) for name in rows.columns], "categorical": kinds}
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
        frame = import_module(header["frame"]).DataFrame(columns)
        kinds = header.get("categorical")
        return frame.astype(dict.fromkeys(kinds, "category")) if kinds else frame, probabilities


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
