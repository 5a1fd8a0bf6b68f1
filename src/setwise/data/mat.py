"""The partial-label sets as MATLAB files, in both dialects that are in circulation, sparse or dense.

=============  ===============  ==========================  =============
dialect        features         candidates                  truth
=============  ===============  ==========================  =============
by columns     `data` (n × d)   `partial_target` (K × n)    `target`
by rows        `features`       `p_labels` (n × K)          `logitlabels`
=============  ===============  ==========================  =============
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setwise._arrays import Array, Bools, Ints, frozen
from setwise.data.mat5 import read_variables
from setwise.errors import DataError
from setwise.labels.label_sets import LabelSets
from setwise.limits import unpack_limit

_DIALECTS = (
    ("data", "partial_target", "target", True),
    ("features", "p_labels", "logitlabels", False),
)
_HDF5 = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class MatSet:
    """What a partial-label `.mat` file holds: features, candidate sets over 0..K−1, true labels or None."""

    X: Array
    candidates: LabelSets
    y: Ints | None


def read_mat(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> MatSet:
    """Reads a partial-label `.mat` file of either dialect; MATLAB levels 5 to 7, no HDF5.

    Parameters
    ----------
    path
        The file.
    max_bytes
        Refuse files whose compressed variables are larger than this; by default `setwise.limits` says.

    Examples
    --------
    >>> import tempfile, pathlib, scipy.io
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.mat")
    >>> sets, truth = [[1, 0], [1, 1]], [[1, 0], [0, 1]]
    >>> scipy.io.savemat(path, {"data": [[0.5], [1.5]], "partial_target": sets, "target": truth})
    >>> read_mat(path).candidates, read_mat(path).y
    (LabelSets(2 rows, 2 classes): {0, 1}, {1}, array([0, 1]))
    """
    file = Path(path)
    return decode_mat(file.read_bytes(), file, max_bytes=max_bytes)


def decode_mat(content: bytes, file: Path, *, max_bytes: int | None = None) -> MatSet:
    """The same from bytes that were read already."""
    _refuse_other_formats(content, file)
    names = [name for dialect in _DIALECTS for name in dialect[:3]]
    limit = unpack_limit(len(content)) if max_bytes is None else max_bytes
    variables = read_variables(content, file, names, limit)
    for features, candidates, truth, by_columns in _DIALECTS:
        if features in variables and candidates in variables:
            mask = _mask(variables[candidates], candidates, file, transpose=by_columns)
            true = _mask(variables[truth], truth, file, transpose=by_columns) if truth in variables else None
            return _assemble(variables[features], mask, true, file)
    found = ", ".join(sorted(variables)) or "nothing"
    raise DataError(
        f"{file}: expected the variables data, partial_target, target or features, p_labels, logitlabels; "
        f"found {found}."
    )


def _refuse_other_formats(content: bytes, file: Path) -> None:
    if content[:8] == _HDF5 or content[512:520] == _HDF5:
        raise DataError(f"{file}: an HDF5 (MATLAB 7.3) file; save it with `save(..., '-v7')` in MATLAB.")
    if content[:1] == b"\x80" or content[:6] == b"\x93NUMPY":
        raise DataError(f"{file}: a Python pickle or numpy file, which is not read as .mat; convert it first.")


def _mask(dense: Array, name: str, file: Path, *, transpose: bool) -> Bools:
    dense = dense.T if transpose else dense
    strange = ~((dense == 0) | (dense == 1))
    if strange.any():
        row, column = np.argwhere(strange)[0]
        raise DataError(
            f"{file}: {name} holds {dense[row, column]} for row {row}, class {column}; expected 0 or 1."
        )
    return np.ascontiguousarray(dense, dtype=bool)


def _assemble(X: Array, mask: Bools, true: Bools | None, file: Path) -> MatSet:
    for name, other in (("candidates", mask), ("true labels", true)):
        if other is not None and len(other) != len(X):
            raise DataError(f"{file}: {len(X)} rows of features, but {name} for {len(other)}.")
    if true is None:
        return MatSet(frozen(X), LabelSets.from_mask_view(mask, None), None)
    if true.shape != mask.shape:
        raise DataError(f"{file}: {mask.shape[1]} classes among the candidates, {true.shape[1]} among the truth.")
    several = np.flatnonzero(true.sum(axis=1) != 1)
    if len(several):
        row = int(several[0])
        raise DataError(f"{file}: row {row} has {int(true[row].sum())} true labels; expected exactly one.")
    return MatSet(frozen(X), LabelSets.from_mask_view(mask, None), frozen(true.argmax(axis=1)))
