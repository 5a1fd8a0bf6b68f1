"""The partial-label sets as MATLAB files, in both dialects that are in circulation, sparse or dense.

=============  ===============  ==========================  =============
dialect        features         candidates                  truth
=============  ===============  ==========================  =============
by columns     `data` (n × d)   `partial_target` (K × n)    `target`
by rows        `features`       `p_labels` (n × K)          `logitlabels`
=============  ===============  ==========================  =============

scipy reads them, and believes them: this is for files whose checksum is known, or that the user vouches for.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from setwise._arrays import Array, Bools, Ints, frozen
from setwise.errors import DataError
from setwise.labels.label_sets import LabelSets
from setwise.storage.stored_arrays import BROKEN

_BY_COLUMNS = ("data", "partial_target", "target")
_BY_ROWS = ("features", "p_labels", "logitlabels")


def read_mat(content: bytes, place: Path) -> tuple[Array, LabelSets, Ints]:
    """Features, candidate sets over 0..K−1 and true labels in the content of a .mat file.

    >>> from scipy.io import savemat
    >>> file = io.BytesIO()
    >>> savemat(file, {"data": [[0.5], [1.5]], "partial_target": [[1, 0], [1, 1]], "target": [[1, 0], [0, 1]]})
    >>> read_mat(file.getvalue(), Path("two.mat"))[1:]
    (LabelSets(2 rows, 2 classes): {0, 1}, {1}, array([0, 1]))
    """
    from scipy.io.matlab import MatReadError, loadmat  # slow to import, needed here alone

    try:
        variables = loadmat(io.BytesIO(content))
    except (MatReadError, *BROKEN) as error:
        reason = " ".join(str(error).split())[:150].rstrip(".")
        raise DataError(f"{place}: scipy.io.loadmat does not read it ({reason}).") from None
    names = next((names for names in (_BY_COLUMNS, _BY_ROWS) if variables.keys() >= {*names}), None)
    if names is None:
        found = ", ".join(sorted(name for name in variables if name[:2] != "__")) or "nothing"
        expected = f"{', '.join(_BY_COLUMNS)} or {', '.join(_BY_ROWS)}"
        raise DataError(f"{place}: expected the variables {expected}; found {found}.")
    X, mask, true = (_matrix(variables[name], name, place) for name in names)
    if names is _BY_COLUMNS:
        mask, true = mask.T, true.T
    mask, true = _flags(mask, names[1], place), _flags(true, names[2], place)
    if not len(X) == len(mask) == len(true) or mask.shape != true.shape:
        shapes = ", ".join(f"{name} {matrix.shape}" for name, matrix in zip(names, (X, mask, true), strict=True))
        raise DataError(f"{place}: its matrices do not belong together by rows and classes ({shapes}).")
    several = np.flatnonzero(true.sum(axis=1) != 1)
    if len(several):
        row = int(several[0])
        raise DataError(f"{place}: row {row} has {int(true[row].sum())} true labels; expected exactly one.")
    return frozen(X), LabelSets.from_mask_view(mask, None), frozen(true.argmax(axis=1))


def _matrix(stored: Any, name: str, place: Path) -> Array:
    matrix: Array = stored.toarray() if hasattr(stored, "toarray") else stored
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise DataError(f"{place}: {name} is not a matrix of real numbers.")
    return matrix


def _flags(matrix: Array, name: str, place: Path) -> Bools:
    strange = ~((matrix == 0) | (matrix == 1))
    if strange.any():
        row, column = np.argwhere(strange)[0]
        value = matrix[row, column]
        raise DataError(f"{place}: {name} holds {value} for row {row}, class {column}; expected 0 or 1.")
    return np.ascontiguousarray(matrix, dtype=bool)
