"""Calibration rows from tables: probabilities are read batch by batch, into `CalibrationRows`.

Where candidates stand in the same files nothing else is kept. Where they stand in another table, or are votes,
these are in memory as a whole, with the few columns by which rows are matched; the probabilities are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import tee
from typing import Any

import numpy as np

from setwise._arrays import Ints
from setwise.errors import DataError, Remedy, reading_from
from setwise.labels.vocabulary import UNKNOWN, Vocabulary
from setwise.probabilities.dense import as_probabilities
from setwise.streams.calibration_rows import CalibrationRows
from setwise.streams.engines import Engine, run_local
from setwise.streams.prefetch import ahead
from setwise.streams.table_parts import check_alike
from setwise.tables.arrow_reading import absent_column, batches_with_origin, column_names, has_rows, row_count
from setwise.tables.label_columns import categories_of
from setwise.tables.set_files import probability_labels
from setwise.tables.table_files import TableFiles
from setwise.tables.table_warnings import doubt_features
from setwise.tables.tabular import Layout, Table, columns_of_text, interpret

_ROWS = 2**14
_PART = 2**40  # rows that a file has at most, for the numbers by which rows are known


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """Files with a column of probabilities for each class."""

    files: TableFiles
    columns: tuple[str, ...]
    first_file: int = 0
    """The number of the first file, by which rows are known wherever they are read."""
    known: Mapping[str, Any] | None = None
    """Candidates or votes of all rows, and by and verified if there are any; None where these are in the files."""

    @classmethod
    def of(cls, files: TableFiles, others: set[str]) -> ProbabilityTable:
        """The columns called p:class where there are any, else all but the `others`."""
        names = column_names(files)
        absent = [name for name in sorted(others) if name not in names]
        if absent:
            raise absent_column(absent[0], names, str(files))
        named = [name for name in names if name.startswith("p:")]
        columns = named or [name for name in names if name not in others]
        if "" in columns:
            problem = f"{files}: a column has no name, as the index that pandas writes"
            raise DataError(problem, Remedy("carry", "", "to leave it out"))
        if len(columns) < 2:
            problem = f"{files}: {len(columns)} column of probabilities; at least two classes are needed"
            columns_of_answers = "convert the answers to probabilities, which makes one for each label"
            raise DataError(problem, *([columns_of_answers] if files.form(files.paths[0]) == "jsonl" else []))
        return cls(files, tuple(columns))

    @property
    def classes(self) -> list[Any]:
        """The labels after which the columns are named."""
        return probability_labels(self.columns)

    def __str__(self) -> str:
        return str(self.files)

    def parts(self) -> Iterator[ProbabilityTable]:
        """A table for each file, whose rows are known by the same numbers, with what is `known` of them."""
        first = 0
        for number, path in enumerate(self.files.paths, self.first_file):
            one = replace(self, files=replace(self.files, paths=(path,)), first_file=number)
            if self.known is not None:
                rows = slice(first, first + one.count())
                known = {name: value[rows] for name, value in self.known.items()}
                one, first = replace(one, known=known), rows.stop
            yield one

    def count(self) -> int:
        """How many rows there are: as files say, or as they are read."""
        stored = row_count(self.files)
        if stored is not None:
            return stored
        return sum(len(batch) for *_, batch in batches_with_origin(self.files, _ROWS, only=self.columns[:1]))

    def add_to(self, rows: CalibrationRows, layout: Layout, by: str | None) -> None:
        """Adds all rows; `layout` and `by` say what stands in the files where it is not `known`."""
        told = Layout(features=list(self.columns))
        if self.known is None:
            told = replace(layout, features=told.features, carry=[by] if by else [], classes=self.classes)
        first = 0
        for table, ids in self._batches(told):
            part = slice(first, first + len(table))
            first = part.stop
            if self.known is not None:
                given = {name: value[part] for name, value in self.known.items()}
            else:
                category = categories_of(table.carried[by], by, table.source, table.first_row) if by else None
                given = {"candidates": table.candidates, "verified": table.truth, "by": category}
            as_probabilities(table.X, rows.domain, name=table.source, first_row=table.first_row)
            self._check_verified(given.get("verified"), table)
            with reading_from(table.source):
                rows.add(table.X, given.pop("candidates"), **given, sampling_ids=ids)

    def _batches(self, layout: Layout) -> Iterator[tuple[Table, Ints]]:
        """Batches of rows, and the numbers by which rows are known wherever they are read."""
        numbers = {self.files.where(path): number for number, path in enumerate(self.files.paths, self.first_file)}
        with ahead(batches_with_origin(self.files, _ROWS, text=columns_of_text(self.files, layout))) as batches:
            for where, first, batch in batches:
                table = interpret(batch, layout, where, first)
                if numbers[where] == 0 and first == 0:
                    doubt_features(replace(table, candidates=None))
                yield table, np.arange(first, first + len(table)) + numbers[where] * _PART

    def _check_verified(self, verified: Any, table: Table) -> None:
        strange = verified is not None and Vocabulary.declare(self.classes).encode(verified) == UNKNOWN
        if np.any(strange):
            row = int(np.argmax(strange))
            held = f"the verified label of row {table.first_row + row} is {verified.tolist()[row]!r}"
            ways = "correct the label", Remedy("truth", "all", "if a cell may hold several right labels")
            raise DataError(f"{table.source}: {held}, which is not among the classes", *ways)


@dataclass(frozen=True, eq=False)
class CalibrationRowReader:
    """A worker of an engine: the calibration rows of one file, or a sample of them.

    `rows` are none, and say how many are kept; `names` are the columns of the first file, which all must have.
    """

    rows: CalibrationRows
    names: tuple[str, ...]
    layout: Layout
    by: str | None

    def __call__(self, part: ProbabilityTable) -> CalibrationRows:
        """The rows of a part."""
        made = self.rows.empty_copy()
        if has_rows(part.files):
            check_alike(part.files, self.names)
            part.add_to(made, self.layout, self.by)
        return made


def read_calibration_rows(
    table: ProbabilityTable,
    rows: CalibrationRows,
    known: Mapping[str, Any] | None = None,
    layout: Layout | None = None,
    by: str | None = None,
    engine: Engine = run_local,
) -> CalibrationRows:
    """The rows of a table beside those there are: the same ones, and the same sample, whatever the engine."""
    known = None if known is None else {name: value for name, value in known.items() if value is not None}
    layout, table = layout or Layout(), replace(table, known=known)
    if engine is run_local:  # one batch after the other into the same rows, which takes the least memory
        table.add_to(rows, layout, by)
        return rows
    reader = CalibrationRowReader(rows.empty_copy(), tuple(column_names(table.files)), layout, by)
    parts, others = tee(table.parts())
    for part, found in zip(others, engine(parts, reader), strict=True):
        with reading_from(str(part)):
            rows = rows.merge(found)
    return rows
