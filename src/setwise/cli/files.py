"""Tables in batches, in and out: memory follows the batch, and a file appears whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from setwise.data.delimited import check_separator, encode_each, encode_labels
from setwise.data.errors import DataError
from setwise.data.sources import ENCODED, format_of
from setwise.data.streaming import arrow_batches
from setwise.data.tables import Layout
from setwise.labels.label_sets import LabelSets

TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")


def refuse_existing(path: Path, *, force: bool) -> None:
    """Nothing is overwritten unasked."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists already; use --force to replace it.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: the folder {path.absolute().parent} does not exist.")


def is_table(path: Path) -> bool:
    """Whether a file has named columns; the others hold arrays."""
    return format_of(path) in TABLES


def column_names(path: Path, delimiter: str | None = None) -> list[str]:
    """The columns of a table."""
    for batch in read_arrow(path, Layout(delimiter=delimiter), 1):
        names = list(batch.column_names)
        other = next((mark for mark in ";\t|" if mark in names[0]), None)
        if len(names) == 1 and other is not None and format_of(path) in {"csv", "tsv"}:
            raise DataError(
                f"{path}: its first line is one column, {names[0]!r}; if {other!r} stands between columns, say so "
                f"with --delimiter {other!r}."
            )
        return names
    raise DataError(f"{path}: holds no rows.")


def row_count(path: Path) -> int | None:
    """How many rows a file has, where it says so without being read."""
    if format_of(path) != "parquet":
        return None
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, needed here alone

    return int(pq.read_metadata(path).num_rows)


def read_arrow(path: Path, layout: Layout, rows: int) -> Iterator[Any]:
    """The table in batches of so many rows; columns that the layout carries stay text."""
    return _joined(arrow_batches(path, layout, rows), rows)


def _joined(tables: Iterator[Any], rows: int) -> Iterator[Any]:
    """Small tables, such as blocks of text, put together to about so many rows."""
    held: list[Any] = []
    for table in tables:
        if not held and len(table) >= rows:  # large enough as it is
            yield table
            continue
        held.append(table)
        if sum(map(len, held)) >= rows:
            yield pa.concat_tables(held).combine_chunks()
            held = []
    if held:
        yield pa.concat_tables(held).combine_chunks()


def sets_table(
    sets: LabelSets,
    carried: Mapping[str, Any],
    form: str,
    *,
    column: str = "labels",
    separator: str = "|",
    p_values: Any = None,
    sizes: bool = True,
) -> Any:
    """Carried columns, then the sets, their sizes, and p-values where given, as an Arrow table."""
    for name in (column, *(["size"] if sizes else [])):
        if name in carried:
            raise ValueError(f"the column {name!r} is there already; rename it, or name ours with --column.")
    arrays: dict[str, Any] = dict(carried)
    notes: dict[str, str] = {}
    if form in {"csv", "tsv"}:
        check_separator(separator)
        texts = pa.array(encode_labels(sets.classes, separator), pa.string())
        indptr, indices = sets.rows
        lists = pa.ListArray.from_arrays(pa.array(indptr, pa.int32()), texts.take(pa.array(indices)))
        arrays[column] = pc.binary_join(lists, separator)
    else:
        arrays[column], notes = _lists(sets)
    if sizes:
        arrays["size"] = pa.array(sets.sizes)
    if p_values is not None:
        for name, values in zip(encode_labels(sets.classes.tolist(), "|"), p_values.T, strict=True):
            arrays[f"p:{name}"] = pa.array(np.ascontiguousarray(values))
    fields = [
        pa.field(name, values.type, metadata=notes if name == column else None) for name, values in arrays.items()
    ]
    return pa.table(list(arrays.values()), schema=pa.schema(fields))


def _lists(sets: LabelSets) -> tuple[Any, dict[str, str]]:
    """The sets as lists, and the note that keeps the vocabulary in the file."""
    labels = sets.classes.tolist()
    stored = {"classes": labels, "declared": sets.vocabulary.declared}
    notes = {"setwise.classes": json.dumps(stored, ensure_ascii=False)}
    if sets.classes.dtype.kind == "O":
        labels, notes[ENCODED] = encode_each(labels), "yes"
    indptr, indices = sets.rows
    held = pa.array(labels).take(pa.array(indices))
    return pa.LargeListArray.from_arrays(pa.array(indptr, pa.int64()), held), notes


@contextmanager
def writing(path: Path, form: str) -> Iterator[Any]:
    """Gives a function that appends tables; the file takes its name when all are written."""
    if form not in TABLES:
        raise DataError(f"{path}: sets are not written as {form}; use .parquet, .csv, .tsv, .jsonl or .arrow.")
    descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(descriptor)
    beside = Path(name)
    sink = _Sink(beside, form)
    try:
        yield sink.append
        sink.close()
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    except BaseException:
        sink.close()
        beside.unlink(missing_ok=True)
        raise


class _Sink:
    """One open file of any format; it is opened with the first table, whose columns all others share."""

    def __init__(self, path: Path, form: str) -> None:
        self.path, self.form = path, form
        self.writer: Any = None

    def append(self, table: Any) -> None:
        if self.writer is None:
            self.writer = self._open(table.schema)
        if self.form == "jsonl":
            for row in table.to_pylist():
                self.writer.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
        else:
            self.writer.write_table(table.cast(self.writer_schema) if table.schema != self.writer_schema else table)

    def _open(self, schema: Any) -> Any:
        self.writer_schema = schema
        if self.form == "jsonl":
            return self.path.open("w", encoding="utf-8")
        if self.form == "parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, needed here alone

            return pq.ParquetWriter(self.path, schema)
        if self.form == "arrow":
            return pa.ipc.new_file(str(self.path), schema)
        delimiter = "\t" if self.form == "tsv" else ","
        return pa.csv.CSVWriter(str(self.path), schema, write_options=pa.csv.WriteOptions(delimiter=delimiter))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def label_columns(names: Sequence[str], labels: Sequence[Any]) -> list[str] | None:
    """The columns named as the labels, ``cat`` or ``p:cat``, in the labels' order; None if one is absent."""
    texts = encode_labels(labels, "|")
    for candidates in ([f"p:{text}" for text in texts], texts, [str(label) for label in labels]):
        if set(candidates) <= set(names):
            return candidates
    return None
