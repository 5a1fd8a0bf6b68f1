"""The rows that a command is given, and what else the command line says of them: candidates, votes, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from setwise.cli.options import tables
from setwise.cli.table_columns import imported_votes, read_answers, votes_of, with_checks
from setwise.data import Table, read_table
from setwise.data.arrow_tables import arrow_table, column_names, has_column, is_table
from setwise.data.key_join import key_column
from setwise.data.table_files import TableFiles
from setwise.errors import DataError
from setwise.scale import saved_models as saved


@dataclass(frozen=True)
class GivenRows:
    """Rows by their columns, their candidates or votes, and the true labels of those that somebody checked."""

    columns: Mapping[str, Any]
    y: Any
    verified: Any

    @property
    def n(self) -> int:
        """How many rows there are."""
        return max(map(len, self.columns.values()), default=0)

    def take(self, rows: Any) -> dict[str, Any]:
        """The columns of some rows."""
        return {name: values.take(pa.array(rows, pa.int64())) for name, values in self.columns.items()}


@dataclass(frozen=True)
class Named:
    """What a command line names beside the rows: files and columns."""

    candidates: str | None
    labels: Path | None
    votes: Path | None
    key: str | None
    vote_columns: tuple[str | None, ...]
    verified: str | None
    checks: Path | None
    from_name: str | None
    separator: str
    text: tuple[str | None, ...]  # delimiter, encoding and decimal mark

    def files(self, path: Any) -> TableFiles:
        """Files, with what is said about their text."""
        return tables(path, *self.text)

    def rows(self, source: TableFiles, classes: Sequence[Any] | None, missing: str = "empty") -> GivenRows:
        """The rows of a table with what is known of them; of a file of arrays their numbers stand for columns."""
        if not is_table(source):
            if self.votes or self.checks or self.verified:
                problem = f"{source}: holds arrays, without columns to match votes or checks by"
                raise DataError(problem, "make it a table with setwise convert")
            table = read_table(source, classes=classes)
            sets = table.candidates if self.candidates else None
            return GivenRows({"row": pa.array(np.arange(len(table)))}, sets, None)
        own = self.verified
        if own and self.checks and not has_column(source, own):
            own = None
        options: dict[str, Any] = {"features": [], "carry": [self.key] if self.key else [], "classes": classes}
        table = read_table(source, truth=own, separator=self.separator, **options)
        y = None
        if self.votes is not None and self.key is not None:
            y = votes_of(self.files(self.votes), self.key, table, self.vote_columns, classes)
        elif self.candidates or self.labels:
            asked: dict[str, Any] = {
                "candidates": self.candidates or "candidates",
                "labels": self.labels and self.files(self.labels),
            }
            asked |= {"key": self.key, "separator": self.separator, "missing": missing}
            y = read_answers(source, classes or (), **asked)["candidates"]
        whole = arrow_table(source, text=column_names(source))
        return GivenRows(
            {name: whole[name].combine_chunks() for name in whole.column_names},
            y,
            self._checked(table, classes if y is None else y.classes.tolist()),
        )

    def items(self) -> GivenRows:
        """The rows that votes are about, where there is no other table of them."""
        found = imported_votes(self.files(self.votes), self.key, self.vote_columns)
        name = self.vote_columns[0] or self.key or "task"
        column = key_column(found.ids.tolist())
        carried = dict.fromkeys([name, self.key or name], column)
        table = read_table(carried, features=[], carry=list(carried))
        assert found.votes is not None  # noqa: S101 - they were imported
        return GivenRows({name: column}, found.votes, self._checked(table, found.votes.classes.tolist()))

    def _checked(self, table: Table, classes: Sequence[Any] | None) -> Any:
        told = {"checks": self.checks and self.files(self.checks), "separator": self.separator}
        return with_checks(table, self.key, self.verified, classes or (), from_name=self.from_name, **told)


def features_of(source: TableFiles, model: Any, columns: list[str] | None) -> Any:
    """The features of all rows by the names that a model knows."""
    return np.concatenate([values for values, _ in saved.feature_batches(source, model, columns)])


def probabilities_in(source: TableFiles, classes: Sequence[Any]) -> Any:
    """The probabilities of all rows in the order of the classes."""
    return np.concatenate([values for values, _ in saved.probability_batches(source, list(classes))])
