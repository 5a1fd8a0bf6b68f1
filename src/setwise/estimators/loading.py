"""`load`: reads a model or a calibration, whichever a path holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setwise.conformal.calibration import Calibration
from setwise.errors import InputError
from setwise.estimators.cross import CrossConformalClassifier
from setwise.estimators.model_directory import read_head
from setwise.estimators.split import ConformalClassifier

_KINDS: dict[str, type[ConformalClassifier | CrossConformalClassifier]] = {
    kind.__name__: kind for kind in (ConformalClassifier, CrossConformalClassifier)
}


def load(
    path: str | os.PathLike[str], estimator: Any = None, trusted: Sequence[str] | None = None
) -> ConformalClassifier | CrossConformalClassifier | Calibration:
    """Reads a model or a calibration, whichever was saved there.

    Parameters
    ----------
    path
        The directory of a model, as `ConformalClassifier.save` and ``setwise fit`` write it, or the file of a
        `Calibration`.
    estimator
        The trained model, where the directory does not hold it (a list of models, one per fold, for a
        `CrossConformalClassifier`). Stored rows show whether it is the same one.
    trusted
        Further types that a scikit-learn model may contain, as in `skops.io.load`.

    Returns
    -------
    ConformalClassifier, CrossConformalClassifier or Calibration
        A model that ``setwise fit --impute median --one-hot`` fitted fills gaps and encodes text by itself: pass
        the columns of the table as they are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import setwise
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> X = 3 * np.eye(3)[y] + rng.normal(size=(300, 3))
    >>> model = setwise.ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y)
    >>> folder = Path(tempfile.mkdtemp())
    >>> model.save(folder / "model")
    >>> setwise.load(folder / "model").predict_set([[3.0, 0.0, 0.0]]).to_lists()
    [[0]]
    >>> model.calibration_.save(folder / "model.cal")
    >>> setwise.load(folder / "model.cal")
    Calibration(strategy='auto', conformity_score='lac', 60 rows, 3 classes)
    """
    place = Path(path)
    if not place.is_dir():
        if not place.exists():
            raise FileNotFoundError(f"{place}: there is no such model directory, and no such calibration file.")
        if estimator is not None:
            raise InputError(f"estimator: {place} is a calibration file, which needs no model", "leave it out")
        return Calibration.load(place)
    kind = read_head(place)["kind"]
    if kind not in _KINDS:
        raise ValueError(f"{place}: holds a {kind[:40]}; use {kind[:40]}.load.")
    return _KINDS[kind].load(place, estimator, trusted)
