"""Tables larger than memory, read in batches over one vocabulary."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from setwise.data.columns import is_list, is_text, read_labels, split_text
from setwise.data.delimited import decode_labels
from setwise.data.errors import DataError
from setwise.data.sources import (
    ENCODED,
    arrow_table,
    checked,
    csv_options,
    format_of,
    is_path,
    json_table,
    reading,
    validated,
)
from setwise.data.tables import Layout, Table, interpret, stored_vocabulary
from setwise.labels.vocabulary import Vocabulary


def read_batches(source: Any, *, batch_rows: int = 65_536, **options: Any) -> Iterator[Table]:
    """Reads a table batch by batch, as `read_table` would read it whole; memory follows the batch.

    The vocabulary is the same in every batch: the declared one (`classes`), else the one stored in the file, else
    that of the whole column of candidates, for which the file is read twice.

    Parameters
    ----------
    source
        A .csv, .tsv, .jsonl, .parquet, .feather or .arrow file, or a frame.
    batch_rows
        How many rows a batch has at most.
    **options
        Those of `read_table`, without `candidates_file`. Statistics over all rows (`impute="mean"`,
        `categories="onehot"`) need the whole table: take them from a sample read with `read_table`, and pass them.

    Examples
    --------
    >>> frame = {"x": [1.0, 2.0, 3.0], "s": ["a|b", "b", "c"]}
    >>> [(batch.first_row, batch.candidates) for batch in read_batches(frame, candidates="s", batch_rows=2)]
    [(0, LabelSets(2 rows, 3 classes): {a, b}, {b}), (2, LabelSets(1 rows, 3 classes): {c})]
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows: {batch_rows}; a batch needs at least one row.")
    layout = Layout(**options)
    if layout.impute in ("mean", "median") or layout.categories == "onehot":
        raise ValueError(
            "impute and categories: a batch does not know the statistics of the whole table; read a sample with "
            "read_table and pass its `imputed` and `categories`."
        )
    where = str(source) if is_path(source) else "the table"
    layout = _with_vocabulary(source, layout, where, batch_rows)
    first_row = 0
    for batch in arrow_batches(source, layout, batch_rows):
        yield interpret(batch, layout, where, first_row)
        first_row += len(batch)


def arrow_batches(source: Any, layout: Layout, batch_rows: int, only: str | None = None) -> Iterator[Any]:
    """Arrow tables of at most so many rows, with one column only where that is enough."""
    if not is_path(source):
        table = arrow_table(source)
        return (table.slice(start, batch_rows) for start in range(0, len(table), batch_rows))
    path = Path(source)
    form = format_of(path, layout.format)
    readers = {"csv": _csv, "tsv": _csv, "jsonl": _json_lines, "parquet": _parquet, "arrow": _arrow}
    if form not in readers:
        raise DataError(f"{path}: {form} files are not read in batches; convert it to .parquet first.")
    return readers[form](path, form, layout, batch_rows, only)


def _with_vocabulary(source: Any, layout: Layout, where: str, batch_rows: int) -> Layout:
    """The layout with the vocabulary every batch will share."""
    name = layout.candidates
    if layout.classes is not None or not isinstance(name, str):
        return layout
    pieces: dict[str, None] = {}  # of delimited text: what they mean is known when all are
    labels: dict[Any, None] = {}
    rows = 0
    for batch in arrow_batches(source, layout, batch_rows, only=name):
        if name not in batch.column_names:
            return layout  # multi-hot columns, or an error that `interpret` words
        column, notes = batch[name], batch.schema.field(name).metadata or {}
        if (stored := stored_vocabulary(notes, where)) is not None:
            return _replaced(layout, stored)
        if is_text(column.type):
            found, codes, sizes, _ = split_text(column, layout.separator)
            read_labels(
                found, codes, sizes, layout.separator, None, escapes=layout.escapes, where=where, first_row=rows
            )
            pieces.update(dict.fromkeys(found))
        else:
            flat = pc.list_flatten(column) if is_list(column.type) else column
            held = [label for label in pc.unique(flat).to_pylist() if label is not None]
            labels.update(dict.fromkeys(decode_labels(held, "|") if ENCODED.encode() in notes else held))
        rows += len(batch)
    decoded = decode_labels(list(pieces), layout.separator, escapes=layout.escapes)
    return _replaced(layout, Vocabulary.infer([*labels, *decoded]))


def _replaced(layout: Layout, vocabulary: Vocabulary) -> Layout:
    fields = {name: getattr(layout, name) for name in layout.__dataclass_fields__}
    return Layout(**{**fields, "classes": vocabulary})


def _csv(path: Path, form: str, layout: Layout, batch_rows: int, only: str | None) -> Iterator[Any]:
    with reading(path):
        options = csv_options(form, layout.text_columns, layout.delimiter)
        # types come from the first block alone, so numbers are given room for what later blocks may hold
        with pa.csv.open_csv(path, **options) as head:
            schema = head.schema
        wide = {
            field.name: pa.float64()
            for field in schema
            if pa.types.is_integer(field.type) or pa.types.is_null(field.type)
        }
        options["convert_options"].column_types = {**wide, **dict.fromkeys(layout.text_columns, pa.string())}
        if only in schema.names:
            options["convert_options"].include_columns = [only]
        with pa.csv.open_csv(path, **options) as stream:
            yield from _regrouped(
                (checked(pa.Table.from_batches([part]), str(path)) for part in stream), batch_rows
            )


def _json_lines(path: Path, _form: str, _layout: Layout, batch_rows: int, _only: str | None) -> Iterator[Any]:
    with reading(path), pa.input_stream(str(path)) as stream:
        lines, first = io.BufferedReader(stream), 0
        names: list[str] = []
        while chunk := list(itertools.islice(lines, batch_rows)):
            if content := b"".join(chunk).strip():
                table = checked(json_table(content, str(path), first), str(path))
                names = names or table.column_names
                for name in names:  # rows may leave out what they do not have, even all rows of a batch
                    if name not in table.column_names:
                        table = table.append_column(name, pa.nulls(len(table)))
                yield table
            first += len(chunk)


def _parquet(path: Path, _form: str, _layout: Layout, batch_rows: int, only: str | None) -> Iterator[Any]:
    """Without Arrow's read-ahead, which would hold row groups whole, and with that the file if it has one."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, needed here alone

    with reading(path), pq.ParquetFile(path, pre_buffer=False, buffer_size=2**14) as file:
        columns = [only] if only in file.schema_arrow.names else None
        for batch in file.iter_batches(batch_size=batch_rows, columns=columns, use_threads=False):
            yield checked(pa.Table.from_batches([validated(batch)]), str(path))


def _arrow(path: Path, _form: str, _layout: Layout, batch_rows: int, _only: str | None) -> Iterator[Any]:
    with reading(path), pa.OSFile(str(path)) as file:
        try:
            opened = pa.ipc.open_file(file)
            parts = (opened.get_batch(i) for i in range(opened.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            parts = iter(pa.ipc.open_stream(file))
        yield from _regrouped(
            (checked(pa.Table.from_batches([validated(part)]), str(path)) for part in parts), batch_rows
        )


def _regrouped(tables: Iterator[Any], batch_rows: int) -> Iterator[Any]:
    """Tables of at most so many rows; small ones are not joined."""
    for table in tables:
        for start in range(0, len(table), batch_rows):
            yield table.slice(start, batch_rows)
