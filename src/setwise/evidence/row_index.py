"""Row names of pandas objects that are passed together: rows are taken by position, so names must not contradict it."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from setwise.errors import InputError, MisuseWarning


def check_row_names(**given: Any) -> None:
    """Refuses pandas objects whose indexes hold the same names in another order; the first one named is the measure.

    Indexes that share only some of their names are a warning, unless one of them counts the rows from 0: then it says
    nothing about them. Indexes without a common name are of different kinds, and rows go by position. Anything that
    is not from pandas has no row names.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"length": [1.0, 2.0]}, index=["a", "b"])
    >>> check_row_names(X=X, y=pd.Series(["owl", "wren"], index=["b", "a"]))
    Traceback (most recent call last):
    setwise.errors.InputError: y: its index holds the rows of X in another order: row 0 is 'b' in y and 'a' in X;
    use y.loc[X.index] to go by name, or use y.to_numpy() to go by position.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return
    named = {
        name: value.index for name, value in given.items() if isinstance(value, (pandas.Series, pandas.DataFrame))
    }
    if len(named) < 2:
        return
    (first, index), *others = named.items()
    for name, other in others:
        if len(other) != len(index) or other.equals(index):
            continue
        shared = np.asarray(other.isin(index))
        if shared.all() and index.isin(other).all():
            row = int(np.flatnonzero(_differs(other, index))[0])
            raise InputError(
                f"{name}: its index holds the rows of {first} in another order: row {row} is {_plain(other[row])!r} in "
                f"{name} and {_plain(index[row])!r} in {first}",
                f"use {name}.loc[{first}.index] to go by name",
                f"use {name}.to_numpy() to go by position",
            )
        if shared.any() and not _counts(index) and not _counts(other):
            warnings.warn(
                MisuseWarning(
                    f"{name}: {int(shared.sum()):,} of the {len(other):,} names in its index are in that of {first}, and rows "
                    "go by position",
                    f"use {name}.loc[{first}.index] to go by name",
                    f"use {name}.to_numpy() to go by position",
                ),
                stacklevel=3,
            )


def _differs(other: Any, index: Any) -> Any:
    return np.fromiter((a != b for a, b in zip(other, index, strict=True)), dtype=bool, count=len(index))


def _counts(index: Any) -> bool:
    """Whether an index is 0, 1, 2, …, as one that nobody set."""
    return bool(index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index))))


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
