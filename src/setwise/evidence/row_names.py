"""Row names of pandas objects and votes passed together: rows go by position, which names must not contradict."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Container
from typing import Any

import numpy as np

from setwise.errors import InputError, MisuseWarning
from setwise.labels.votes import Votes


def check_row_names(**given: Any) -> None:
    """Refuses pandas objects, and votes with `items`, whose names are those of the first one in another order.

    An index that shares only some names with it is a warning, unless one of the two is 0, 1, 2, …, which is what
    pandas gives to rows without names. Indexes without a common name are of different kinds: rows go by position.

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
    kinds = (pandas.Series, pandas.DataFrame)
    named = {name: value.index for name, value in given.items() if isinstance(value, kinds)}
    voted = {name: value for name, value in given.items() if isinstance(value, Votes) and value.items is not None}
    named |= {name: pandas.Index(value.items) for name, value in voted.items()}
    if len(named) < 2:
        return
    (first, index), *others = named.items()
    for name, other in others:
        if len(other) != len(index) or other.equals(index):
            continue
        shared = np.asarray(other.isin(index))
        if shared.all() and index.isin(other).all():
            pairs = enumerate(zip(other, index, strict=True))
            row, there, here = next((row, there, here) for row, (there, here) in pairs if there != here)
            held = "items hold" if name in voted else "index holds"
            raise InputError(
                f"{name}: its {held} the rows of {first} in another order: row {row} is {there!r} in {name} "
                f"and {here!r} in {first}",
                *_remedies(name, first, voted),
            )
        if shared.any() and not _counts(index) and not _counts(other):
            warnings.warn(
                MisuseWarning(
                    f"{name}: {int(shared.sum()):,} of {len(other):,} names in its index are in that of {first}, "
                    "and rows go by position",
                    *_remedies(name, first, voted),
                ),
                stacklevel=3,
            )


def _remedies(name: str, first: str, voted: Container[str]) -> tuple[str, str]:
    """How to go by name, and by position."""
    moved, other = (first, name) if name in voted else (name, first)
    names = f"{other}.{'items' if other in voted else 'index'}"
    return f"use {moved}.loc[{names}] to go by name", f"use {moved}.to_numpy() to go by position"


def _counts(index: Any) -> bool:
    """Whether an index is 0, 1, 2, …, as one that nobody set."""
    return bool(index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index))))
