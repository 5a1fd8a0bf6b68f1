"""`FeatureFrame`: rows of named columns, as much of a data frame as models need; and codes for categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from setwise._arrays import Array, Ints
from setwise.errors import DataError
from setwise.labels.vocabulary import missing_labels

Impute = Literal["nan", "mean", "median"] | float | Mapping[str, float] | None
"""What fills the gaps of features."""


class FeatureFrame:
    """Columns by name: numbers, NaN where one is missing, or text, None where it is missing.

    >>> frame = FeatureFrame({"size": np.array([1.0, 2.0]), "colour": np.array(["red", None], dtype=object)})
    >>> frame.shape, frame["colour"].tolist(), frame[[1]]["size"].tolist()
    ((2, 2), ['red', None], [2.0])
    """

    ndim = 2

    def __init__(self, values: Mapping[str, Array]) -> None:
        self._values = dict(values)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._values)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return len(self), len(self._values)

    def __len__(self) -> int:
        return max(map(len, self._values.values()), default=0)

    def __getitem__(self, key: Any) -> Any:
        """A column by its name, or as ``[:, j]``; or rows, also as ``[rows, ...]``."""
        if isinstance(key, str):
            return self._values[key]
        rows, column = key if isinstance(key, tuple) else (key, ...)
        if column is not ...:
            return self._values[self.columns[column]][rows]
        return type(self)({name: values[rows] for name, values in self._values.items()})

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """One matrix, of objects where a column is text."""
        made: Array = np.stack([*self._values.values()], axis=1) if self._values else np.empty((0, 0))
        return made if dtype is None else made.astype(dtype)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """The rows of several frames with the same columns."""
        return cls({name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns})


def category_codes(values: Array, known: Sequence[str], where: str, first_row: int = 0) -> Ints:
    """Which of the known categories each value is; -1 where it is missing or empty.

    >>> category_codes(np.array(["red", None, "blue"], dtype=object), ["blue", "red"], "t.csv").tolist()
    [1, -1, 0]
    """
    code_of: dict[Any, int] = {value: code for code, value in enumerate(known)} | {"": -1, None: -1}
    codes = np.array([code_of.get(value, -2) for value in values.tolist()], dtype=np.intp)
    others = np.flatnonzero(codes == -2)
    if len(others):  # numbers that read like a category, and what else stands for a missing value
        read = [code_of.get(str(value), -2) for value in values[others].tolist()]
        codes[others] = np.where(missing_labels(values[others]), -1, read)
    if (codes == -2).any():
        row = int(np.argmax(codes == -2))
        shown = ", ".join(known[:6]) + (", …" if len(known) > 6 else "")
        problem = f"{where}: row {first_row + row} is {values[row]!r}, which is not a known category ({shown})"
        raise DataError(problem, "write one of these, or leave the cell empty")
    return codes
