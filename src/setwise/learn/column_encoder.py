"""`ColumnEncoder`: the columns of a table as numbers, the first step of a model that reads text and gaps.

What it learns is plain data and kept as JSON, so that a network behind it loads without skops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from setwise._arrays import Array, Floats
from setwise.errors import DataError
from setwise.labels.vocabulary import missing_labels
from setwise.learn.feature_frame import Impute, category_codes


class ColumnEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fills the gaps of numbers, and turns each text into one column of 0 and 1 per category.

    Parameters
    ----------
    impute
        What fills the gaps of a column: the ``"mean"`` or ``"median"`` of the rows of `fit` (0 where all are
        missing), a number, or a number per column; None or ``"nan"`` leaves them.
    categories
        The columns of text, with all known values of each. A known value that occurs in no row of `fit` gets no
        column: like a missing value it is 0 everywhere. Any other value is an error.

    Attributes
    ----------
    feature_names_in_
        The names of the columns; an array must have them in this order.
    fillings_
        The number that fills the gaps of each column.
    categories_
        The values that occur in the rows of `fit`, for each column of text.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, None, 4.0], "colour": ["red", "blue", None]})
    >>> encoder = ColumnEncoder(impute="mean", categories={"colour": ["blue", "green", "red"]}).fit(frame)
    >>> encoder.transform(frame).tolist()
    [[1.0, 0.0, 1.0], [2.5, 1.0, 0.0], [4.0, 0.0, 0.0]]
    """

    def __init__(self, impute: Impute = None, categories: Mapping[str, Sequence[str]] | None = None) -> None:
        self.impute = impute
        self.categories = categories

    def fit(self, X: Any, y: Any = None) -> ColumnEncoder:  # noqa: ARG002 - scikit-learn passes y
        """Learns what fills gaps, and which categories there are."""
        self.feature_names_in_ = np.array(list(X.columns), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.fillings_, self.categories_ = {}, {}
        for name, values in self._columns(X):
            known = self._known.get(name)
            if known is not None:
                codes = {*category_codes(values, known, f"X, column {name!r}").tolist()}
                self.categories_[name] = tuple(value for code, value in enumerate(known) if code in codes)
            elif (filling := _filling(name, values, self.impute)) is not None:
                self.fillings_[name] = filling
        return self

    def transform(self, X: Any) -> Floats:
        """The matrix of numbers: float32 where all columns are, else float64."""
        check_is_fitted(self, "fillings_")
        parts: list[Array] = []
        for name, values in self._columns(X):
            known = self._known.get(name)
            if known is not None:
                codes = category_codes(values, known, f"X, column {name!r}")
                parts += [codes == known.index(value) for value in self.categories_[name]]
            else:
                gaps = np.isnan(values) if name in self.fillings_ else np.zeros(0, dtype=bool)
                parts.append(np.where(gaps, self.fillings_[name], values) if gaps.any() else values)
        narrow = not self._known and all(part.dtype == np.float32 for part in parts)
        matrix = np.empty((len(X), len(parts)), dtype=np.float32 if narrow else np.float64)
        for place, part in enumerate(parts):
            matrix[:, place] = part
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> Array:  # noqa: ARG002 - as scikit-learn asks
        """The names of the numbers: ``colour=red`` for a category."""
        check_is_fitted(self, "fillings_")
        names: list[str] = []
        for name in self.feature_names_in_:
            values = self.categories_.get(name)
            names += [name] if values is None else [f"{name}={value}" for value in values]
        return np.array(names, dtype=object)

    def to_json(self) -> dict[str, Any]:
        """The fitted encoder, as JSON can hold it."""
        return {
            "columns": self.feature_names_in_.tolist(),
            "impute": self.impute,
            "fillings": self.fillings_,
            "categories": {name: list(values) for name, values in self._known.items()},
            "learned": {name: list(values) for name, values in self.categories_.items()},
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ColumnEncoder:
        """The encoder that `to_json` described; impossible content is refused."""
        columns, fillings = list(content["columns"]), dict(content["fillings"])
        known, learned = dict(content["categories"]), dict(content["learned"])
        texts = [text for names in (columns, *known.values(), *learned.values()) for text in names]
        numbers = [value for value in fillings.values() if type(value) in {int, float} and np.isfinite(value)]
        fits = all(isinstance(text, str) for text in texts) and len(numbers) == len(fillings)
        fits = fits and {*known, *fillings} <= {*columns} and not {*known} & {*fillings}
        if not fits or known.keys() != learned.keys() or any({*learned[name]} - {*known[name]} for name in known):
            raise ValueError("columns, fillings and categories do not belong together")
        encoder = cls(content["impute"], known or None)
        encoder.feature_names_in_, encoder.n_features_in_ = np.array(columns, dtype=object), len(columns)
        encoder.fillings_, encoder.categories_ = fillings, {name: tuple(values) for name, values in learned.items()}
        return encoder

    @property
    def _known(self) -> Mapping[str, Sequence[str]]:
        return self.categories or {}

    def _columns(self, X: Any) -> Iterator[tuple[str, Array]]:
        """The columns by name: of a frame in any order and beside others, of an array by their places."""
        names = getattr(X, "column_names", getattr(X, "columns", None))  # as Arrow says it, and others
        rows = np.asarray(X) if names is None else None
        if rows is not None and rows.shape[1:] != (self.n_features_in_,):
            raise ValueError(f"X: shape {rows.shape}; the model was fitted on {self.n_features_in_} columns.")
        for place, name in enumerate(self.feature_names_in_.tolist()):
            if names is not None and name not in names:
                raise DataError(f"X: there is no column {name!r}, which the model was fitted on")
            values = np.asarray(X[name]) if rows is None else rows[:, place]
            yield name, values if name in self._known else _numbers(values, f"X, column {name!r}")


def _filling(name: str, values: Floats, impute: Impute) -> float | None:
    if isinstance(impute, Mapping):
        return float(impute[name]) if name in impute else None
    if isinstance(impute, (int, float)):
        return float(impute)
    if impute not in {"mean", "median"}:
        return None
    if np.isnan(values).all():
        return 0.0
    return float((np.nanmean if impute == "mean" else np.nanmedian)(values))


def _numbers(values: Array, where: str) -> Floats:
    """A column as floating numbers, NaN where one is missing."""
    if values.dtype.kind == "f":
        return values
    if values.dtype.kind not in "biuOUT":
        raise DataError(
            f"{where}: holds {values.dtype}, not numbers", "convert them to numbers, or leave the column out"
        )
    missing = missing_labels(values)
    numbers = np.full(len(values), np.nan)
    for row in np.flatnonzero(~missing) if values.dtype.kind in "OUT" else ():
        if not isinstance(values[row], (Real, Decimal, np.bool_)):
            raise DataError(f"{where}: row {row} is {str(values[row])!r}, not a number")
    numbers[~missing] = values[~missing].astype(np.float64)
    return numbers
