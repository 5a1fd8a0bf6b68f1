"""Errors about features: which value a model could not read, by its row and column in the user's own X."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import numpy as np
from scipy import sparse

from setwise._arrays import Array
from setwise.errors import DataError, InputError

_ABOUT_GAPS = re.compile(r"nan\b|\binf\b|infinity|missing value", re.IGNORECASE)
_ABOUT_KINDS = re.compile(r"convert|promote|dtype|datetime|timestamp|not 'str'|holds (text|a date)", re.IGNORECASE)
_IMPUTE = "remove or impute such values (sklearn.impute.SimpleImputer)"
_ENCODE = "encode it in a pipeline (sklearn.compose.ColumnTransformer with OneHotEncoder)"
_COUNT = "convert it to a number, such as days since the first date"
_OMIT = "leave the column out"


class FeatureError(InputError):
    """A model cannot learn from a value among the features; the message names its row and column."""


@contextmanager
def naming_features(X: Any, *, of: type[Exception] = Exception) -> Iterator[None]:
    """Makes an error about features that a model cannot read name the row and the column of X, and a remedy.

    It looks at errors `of` this type: `FeatureError` for work on a part of X, where others speak of other things.

    >>> with naming_features([["7", "owl"]]):
    ...     float("owl")
    Traceback (most recent call last):
    setwise.learn.feature_errors.FeatureError: X: row 0 holds text ('owl') in column 1; encode it in a pipeline
    (sklearn.compose.ColumnTransformer with OneHotEncoder), or leave the column out.
    """
    try:
        yield
    except DataError:  # names the place already
        raise
    except of as error:
        parts = _first_unread(X, str(error))
        if parts is None:
            raise
        raise FeatureError(*parts) from error


def check_finite(X: Any) -> None:
    """Names the first row of an array that holds NaN or infinity."""
    if X.dtype.kind != "f" or np.isfinite(X).all():
        return
    with naming_features(X.reshape(len(X), -1)):
        raise FeatureError("X: holds NaN or infinity", _IMPUTE)


def _first_unread(X: Any, message: str) -> tuple[str, ...] | None:
    """The first value of the kind that a message is about, and what helps.

    A model may read gaps, and text in one column and not in another: the text that the message quotes, and whether
    it speaks of dates or infinity, show where to look.
    """
    infinite = "infinity" in message and "NaN" not in message
    kinds, gaps = None if infinite else _ABOUT_KINDS.search(message), _ABOUT_GAPS.search(message)
    dates = re.search(r"datetime|timestamp|holds a date", message, re.IGNORECASE)
    parts = [(name, values, _suspects(values, infinite=infinite)) for name, values in _columns(X) if kinds or gaps]
    parts.sort(key=lambda column: not _holds_quoted(column[1], column[2], message))
    for name, values, rows in parts:
        for row in rows:
            place, value = f"in column {name!r}", values[row]
            if kinds and isinstance(value, str) and not dates:
                return f"X: row {row} holds text ({str(value)!r}) {place}", _ENCODE, _OMIT
            if kinds and isinstance(value, (date, np.datetime64)):
                day = np.datetime_as_string(value, unit="auto") if isinstance(value, np.datetime64) else value
                return f"X: row {row} holds a date ({day}) {place}", _COUNT, _OMIT
            if gaps and not isinstance(value, (str, date, np.datetime64)):
                endless = isinstance(value, (float, np.floating)) and np.isinf(value)
                return f"X: row {row} holds {'infinity (inf)' if endless else 'NaN'} {place}", _IMPUTE
    return None


def _holds_quoted(values: Array, rows: list[int], message: str) -> bool:
    texts = {str(values[row]) for row in rows if isinstance(values[row], str)}
    return any(repr(text) in message for text in texts)


def _suspects(values: Array, *, infinite: bool) -> list[int]:
    """The rows of a column whose values are not finite numbers; only the first in a column of numbers."""
    if values.dtype.kind in "fc":
        return np.flatnonzero(np.isinf(values) if infinite else ~np.isfinite(values)).tolist()[:1]
    if values.dtype.kind in "biu":
        return []
    return [row for row, value in enumerate(values) if not _is_finite_number(value)]


def _is_finite_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _columns(X: Any) -> Iterator[tuple[Any, Array]]:
    """The columns of a frame, a sparse matrix, or anything that is an array of two dimensions."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        for place, name in enumerate(X.columns):
            yield name, np.asarray(X.iloc[:, place] if hasattr(X, "iloc") else X[name])
        return
    try:
        array = np.asarray(X.toarray() if sparse.issparse(X) else X)
    except Exception:  # noqa: BLE001 - X may be anything a model reads, ragged lists too
        return
    if array.ndim == 2:
        for place in range(array.shape[1]):
            yield place, array[:, place]
