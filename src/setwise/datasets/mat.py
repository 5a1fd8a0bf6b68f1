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

import numpy as np

from setwise._arrays import Array, Ints, frozen
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
    stored = [variables[name] for name in names]
    X, mask, true = (matrix.toarray() if hasattr(matrix, "toarray") else matrix for matrix in stored)
    if names is _BY_COLUMNS:
        mask, true = mask.T, true.T
    fits = all(matrix.ndim == 2 and matrix.dtype.kind in "biuf" for matrix in (X, mask, true))
    fits = fits and len(X) == len(mask) and mask.shape == true.shape
    fits = fits and all(np.isin(matrix, (0, 1)).all() for matrix in (mask, true))
    if not fits or not (true.sum(axis=1) == 1).all():
        shapes = ", ".join(f"{name} {matrix.shape}" for name, matrix in zip(names, stored, strict=True))
        expected = "numbers, 0 or 1 for each candidate, and 1 for the one true label of each row"
        raise DataError(f"{place}: its matrices ({shapes}) do not hold {expected}.")
    return frozen(X), LabelSets.from_mask_view(mask, None), frozen(true.argmax(axis=1))
