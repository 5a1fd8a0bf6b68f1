"""The result of every importer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setwise._arrays import Array
from setwise.errors import DataError
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes
from setwise.tables.table_warnings import count_unanswered


@dataclass(frozen=True, eq=False)
class Imported:
    """Candidate sets, the identifiers of rows and their name, the votes, true labels, and the data of tasks."""

    candidates: LabelSets
    ids: Array = field(repr=False)
    votes: Votes = field(repr=False)
    truth: Array | None = field(default=None, repr=False)
    name: str = field(default="task", repr=False)
    data: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.candidates)

    def drop_unanswered(self, where: str) -> Imported:
        """The rows that somebody answered; says how many others there are."""
        count_unanswered(self.votes, where)
        rows = np.flatnonzero(self.votes.sizes)
        truth = None if self.truth is None else self.truth[rows]
        return replace(
            self, candidates=self.candidates[rows], ids=self.ids[rows], truth=truth, votes=self.votes[rows]
        )


def check_identifier(value: Any, name: str) -> Any:
    """Refuses an identifier in JSON that is neither a number nor text; `name` is what to call it."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise DataError(f"{name} is {value!r}; expected a number or text.")
    return value


def id_array(values: list[Any]) -> Array:
    """Identifiers as an array that keeps their types."""
    if len({type(value) for value in values}) == 1:
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
