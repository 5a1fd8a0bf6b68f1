"""Prediction sets of whole tables: batch by batch into one file, or part by part into a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from setwise.errors import reading_from
from setwise.findings import Finding
from setwise.streams import model_inputs as saved
from setwise.streams.batch_predictor import BatchPredictor, Predicted
from setwise.streams.prefetch import ahead
from setwise.streams.table_parts import TablePart, check_alike
from setwise.tables.arrow_reading import batches_with_origin, column_names, has_rows
from setwise.tables.set_files import SetWriter, set_writer
from setwise.tables.table_files import TableFiles

_LOOKED_AT = 16  # batches of which rows are compared with those that the model knows


@dataclass
class PredictedRows:
    """What is known of all sets without keeping them: how many have each size, and how rows compare."""

    sizes: Counter[int] = field(default_factory=Counter)
    compared: Mapping[str, Any] = field(default_factory=dict)
    """What `RowTally.counted` gave."""
    used: Finding | None = None
    """What shows that the first rows were learned from or calibrated on."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self.sizes.values())

    def shares(self) -> dict[str, Any]:
        """How large sets are."""
        rows = self.rows
        if rows == 0:
            raise ValueError("there are no rows to predict.")
        return {
            "rows": rows,
            "mean_size": sum(size * count for size, count in self.sizes.items()) / rows,
            "singleton_rate": self.sizes[1] / rows,
            "empty_rate": self.sizes[0] / rows,
        }


def predict_table(
    predictor: BatchPredictor, source: TableFiles, writer: SetWriter, advance: Callable[[int], Any] | None = None
) -> PredictedRows:
    """Appends the sets of the rows of some files to an open file, in the order of the rows."""
    found, beside = PredictedRows(), predictor.row_tally()
    digests: list[Any] = []

    def predict() -> Iterator[tuple[str, Predicted]]:
        for where, first, made in _batches(predictor, source):
            beside.add(made.probabilities, X=made.X, first_row=first, **made.by)
            if len(digests) < _LOOKED_AT:
                digests.append(predictor.digest_rows(made))
            yield where, made

    with ahead(predict()) as batches:
        for where, made in batches:
            with reading_from(where):
                writer.append(made.sets, made.carried, made.p_values)
            counts = np.bincount(made.sets.sizes)
            found.sizes.update({size: int(counts[size]) for size in np.flatnonzero(counts).tolist()})
            if advance is not None:
                advance(len(made.sets))
    found.compared, found.used = beside.export(), predictor.find_used(digests)
    return found


def _batches(predictor: BatchPredictor, source: TableFiles) -> Iterator[tuple[str, int, Predicted]]:
    """The files that batches are from, the number of their first row there, and their sets."""
    names = column_names(source)
    told = saved.text_columns(names, predictor.layout(names, source))
    with ahead(batches_with_origin(source, predictor.rows_at_a_time(names), text=told)) as tables:
        for where, first, batch in tables:
            made = predictor.predict(batch, where, first)
            made.sets.rows  # noqa: B018 - found here, and not by who writes them
            yield where, first, made


@dataclass(frozen=True)
class PartWriter:
    """A worker of an engine: predicts one part, writes its output, and notes that it is finished.

    `columns` are those of the first part, which all must have; `question` is what a finished part is known by.
    """

    predictor: BatchPredictor
    question: str
    columns: tuple[str, ...]
    separator: str = "|"

    def __call__(self, part: TablePart) -> tuple[TablePart, PredictedRows]:
        """What was found; the output of the part is whole, or absent, as that of a part without rows is."""
        part.record.unlink(missing_ok=True)
        if not has_rows(part.source):
            part.out.unlink(missing_ok=True)
            return part, PredictedRows(compared=self.predictor.row_tally().export())
        check_alike(part.source, self.columns)
        with set_writer(part.out, column=self.predictor.column, separator=self.separator) as writer:
            found = predict_table(self.predictor, part.source, writer)
        sizes = {str(k): n for k, n in found.sizes.items()}
        used = None if found.used is None else asdict(found.used)
        held = {"rows": found.rows, "sizes": sizes, "used": used, "compared": found.compared}
        part.finish(self.question, held)
        return part, found


def read_finished(part: TablePart, question: str, predictor: BatchPredictor) -> PredictedRows | None:
    """What an earlier run found of a part, if its output is there and all of this can be read; else None."""
    found = part.read_result(question) or {}
    try:
        sizes = Counter({int(size): n for size, n in found["sizes"].items()})
        used = None if found["used"] is None else Finding.from_dict(found["used"])
        predictor.row_tally().include(found["compared"])  # which fails where it was counted beside something else
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    rows = PredictedRows(sizes, found["compared"], used)
    return rows if rows.rows == found.get("rows") else None
