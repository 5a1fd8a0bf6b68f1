"""What public functions take, in words that a type checker knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike


class Indexable(Protocol):
    """What gives a row for its number, as a torch data set does, or a column for its name, as any table."""

    def __getitem__(self, key: Any, /) -> Any: ...


Rows: TypeAlias = ArrayLike | Iterable[object]
"""Something for each row: an array, a tensor, a frame, a sparse matrix, an Arrow table or column, a list."""

Features: TypeAlias = Rows | Indexable
"""One row an example, as the model takes it."""

ProbabilityRows: TypeAlias = Rows | Indexable
"""The K probabilities of each row, or the largest of them as `TopK`."""

Candidates: TypeAlias = Rows | None
"""One set of labels a row: `LabelSets`, a mask, a label vector, collections; `Votes`; None where there are none."""

Column: TypeAlias = Rows | None
"""One value a row, of which some may be None: labels, categories, weights, names; or None for no such column."""

Truth: TypeAlias = Literal["all", "one"] | float | None
"""How many of a row's right labels a set must contain, the share of them, or None where one label is true."""

RandomState: TypeAlias = int | np.integer[Any] | np.random.RandomState | None
"""What scikit-learn takes as `random_state`."""

Seed: TypeAlias = RandomState | np.random.Generator
"""What seeds noise and draws; None takes fresh entropy."""


class OwnRowOptions(TypedDict, total=False):
    """What `predict_set` takes beside the probabilities of new rows, whatever calibrated."""

    candidates: Candidates
    row_ids: Column
    allow_empty: bool


class NewRowOptions(OwnRowOptions, total=False):
    """What `predict_set` of one calibration takes beside the probabilities of new rows."""

    by: Column
    sample_weight: Column
