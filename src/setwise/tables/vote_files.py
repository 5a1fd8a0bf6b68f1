"""Files of votes: a long table with one vote per line; a line without a label is an item without votes."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from setwise._arrays import Array
from setwise.errors import DataError, reading_from
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.labels.votes import Votes
from setwise.tables.arrow_reading import as_written, is_delimited
from setwise.tables.label_columns import LabelReader
from setwise.tables.set_files import set_writer


def write_votes(path: str | os.PathLike[str], votes: Votes) -> None:
    """Writes the columns of `Votes.to_columns` as .csv, .tsv, .jsonl, .parquet, .feather or .arrow.

    In text files labels are in the notation of `setwise.tables.label_notation`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "votes.csv")
    >>> write_votes(path, Votes.from_matrix([["cat", "dog"], [None, None]], annotators=["ann", "bob"]))
    >>> print(path.read_text())
    "item","annotator","label"
    0,"ann","cat"
    0,"bob","dog"
    1,,
    """
    columns = {name: _column(name, values) for name, values in votes.to_columns().items()}
    with set_writer(path) as writer:
        writer.append_columns(columns | {"label": writer.label_column(columns["label"].to_pylist())})


def _column(name: str, values: Array) -> Any:
    try:
        return pa.array(values.tolist())
    except (pa.ArrowException, OverflowError):
        kinds = sorted({type(value).__name__ for value in values.tolist() if value is not None})
        raise DataError(f"{name}: holds {', '.join(kinds)}; a column of a file has one type.") from None


def read_votes(path: Any, *, classes: Classes = None) -> Votes:
    """Reads a file that `write_votes` wrote; `from_annotators_long` reads other tables of votes.

    A file holds only the labels that occur; `classes` restores the others and their order.
    """
    classes = Vocabulary.or_none(classes)
    table = as_written(path, ids=["item", "annotator"], text=["label"])
    annotator, weight = (name if name in table.column_names else None for name in ("annotator", "weight"))
    if "against" in table.column_names:  # as versions before 0.3 wrote it
        problem = f"{path}: has a column 'against', and answers that deny a label are no votes"
        raise DataError(problem, "make candidate sets of them with LabelSets.from_complementary")
    with reading_from(str(path)):
        columns = {name: table[name].to_pylist() for name in table.column_names}
        if "label" in columns:
            reader = LabelReader(f"{path}, column 'label'", classes=classes)
            columns["label"] = reader.truth(table["label"], verbatim=not is_delimited(table))
        return Votes.from_table(columns, annotator=annotator, weight=weight, classes=classes)
