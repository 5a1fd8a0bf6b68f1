"""Anything tabular as an Arrow table, whole or in batches: CSV, TSV, JSON lines, Parquet, Arrow, data frames."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from setwise.data.delimited import encode_each
from setwise.errors import DataError, Remedy

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".mat": "mat",
}
TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")
"""The formats with named columns; the others hold arrays."""
CLASSES, ENCODED = b"setwise.classes", b"setwise.encoded"
"""Notes of a column: its vocabulary, and that its lists hold labels in the notation of delimited text."""
_BLOCK = 2**24  # bytes of text parsed at a time; the longest line of a JSON lines file must fit


def format_of(path: Path, given: str | None = None) -> str:
    """The format of a file by its name: csv, tsv, jsonl, parquet, arrow, npz or mat."""
    if given is not None:
        if given not in _SUFFIXES.values():
            raise ValueError(
                f"format: {given!r} is not known; use one of {', '.join(sorted(set(_SUFFIXES.values())))}."
            )
        return given
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] == ".gz" else "".join(suffixes[-1:])
    if suffix not in _SUFFIXES:
        raise DataError(
            f"{path}: {suffix or 'no suffix'} says nothing about the format",
            Remedy("format", "csv", "or another"),
            "rename the file to .csv, .parquet or another known format",
        )
    return _SUFFIXES[suffix]


def is_path(source: Any) -> bool:
    """Whether a source is a file's path rather than a table in memory."""
    return isinstance(source, (str, os.PathLike))


def arrow_table(
    source: Any, *, form: str | None = None, text: Collection[str] = (), delimiter: str | None = None
) -> Any:
    """The table in a file or a frame; `text` names columns of text files that are not to be read as numbers."""
    if not is_path(source):
        return checked(_from_frame(source), "the table")
    path = Path(source)
    form = format_of(path, form)
    with reading(path):
        if form in {"csv", "tsv"}:
            table = _read_csv(path, form, text, delimiter)
        elif form == "jsonl":
            table = json_table(_bytes_of(path), str(path))
        elif form == "parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, needed here alone

            table = validated(pq.ParquetFile(path).read())
        elif form == "arrow":
            table = _read_arrow(path)
        else:
            raise DataError(f"{path}: {form} files hold arrays, not a table with columns.")
        return checked(table, str(path))


def arrow_batches(
    source: Any,
    rows: int,
    *,
    form: str | None = None,
    text: Collection[str] = (),
    delimiter: str | None = None,
    only: str | None = None,
) -> Iterator[Any]:
    """The same in tables of at most so many rows; memory follows the batch. `only` names the one column needed."""
    if not is_path(source):
        table = arrow_table(source)
        return (table.slice(start, rows) for start in range(0, len(table), rows))
    path = Path(source)
    form = format_of(path, form)
    if form not in TABLES:
        problem = f"{path}: {form} files hold arrays, which are not read in batches"
        raise DataError(problem, "convert it to .parquet")
    if form == "jsonl":
        return _json_batches(path, rows)
    if form == "parquet":
        return _parquet_batches(path, rows, only)
    return _regrouped(
        _arrow_blocks(path) if form == "arrow" else _csv_blocks(path, form, text, delimiter, only), rows
    )


def is_table(path: Path) -> bool:
    """Whether a file has named columns; the others hold arrays."""
    return format_of(path) in TABLES


def column_names(path: Path, delimiter: str | None = None) -> list[str]:
    """The columns of a file with rows."""
    for batch in arrow_batches(path, 1, delimiter=delimiter):
        names = list(batch.column_names)
        other = next((mark for mark in ";\t|" if mark in names[0]), None)
        if len(names) == 1 and other is not None and format_of(path) in {"csv", "tsv"}:
            raise DataError(
                f"{path}: its first line is one column, {names[0]!r}",
                Remedy("delimiter", other, f"if {other!r} stands between columns"),
            )
        return names
    raise DataError(f"{path}: holds no rows.")


def row_count(path: Path) -> int | None:
    """How many rows a file has, where that is stored in it."""
    if format_of(path) != "parquet":
        return None
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, needed here alone

    return int(pq.read_metadata(path).num_rows)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns what Arrow says about a broken file into one sentence that names the file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, EOFError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        if isinstance(error, UnicodeDecodeError) or "UTF8" in reason:
            line = _first_undecodable_line(path)
            raise DataError(f"{path}: not UTF-8 text{line}; convert the file to UTF-8.") from None
        raise DataError(f"{path}: cannot be read: {reason}.") from None


def checked(table: Any, where: str) -> Any:
    """The table, if its columns have distinct names and its text is text; categorical columns as their values."""
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise DataError(f"{where}: the column {twice[0]!r} occurs twice; rename one of them.")
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            line = _first_undecodable_line(Path(where))
            raise DataError(f"{where}: the column {name!r} is not UTF-8 text{line}; convert it to UTF-8.")
        if pa.types.is_dictionary(kind):
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(place).cast(kind.value_type))
    return table


def validated(table: Any) -> Any:
    """The table, its offsets and text checked in full: Arrow believes a binary file and would follow wild ones."""
    table.validate(full=True)
    return table


def csv_options(form: str, text: Collection[str], delimiter: str | None) -> dict[str, Any]:
    """How text files are read: only numbers may be null, named columns stay text, line breaks may be quoted."""
    return {
        "parse_options": pa.csv.ParseOptions(
            delimiter=delimiter or ("\t" if form == "tsv" else ","), newlines_in_values=True
        ),
        "convert_options": pa.csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            strings_can_be_null=False,
            timestamp_parsers=["%Y-%m-%dT%H:%M:%S"],
        ),
    }


def json_table(content: bytes, where: str, first_line: int = 0) -> Any:
    """A table from JSON lines; Arrow's reader where it keeps every value, else Python's."""
    pa.array([content], pa.large_binary()).cast(pa.large_string())  # Arrow's reader takes any bytes for text
    try:
        table = pa.json.read_json(io.BytesIO(content), read_options=pa.json.ReadOptions(block_size=_BLOCK))
    except pa.ArrowException:
        return _json_by_line(content, where, first_line)
    times = any(pa.types.is_temporal(getattr(kind, "value_type", kind)) for kind in table.schema.types)
    return _json_by_line(content, where, first_line) if times else table  # text that looks like a date is text


def _json_by_line(content: bytes, where: str, first_line: int) -> Any:
    """The same by Python's reader: slower, and it names the line; lists of mixed types become JSON text."""
    rows = []
    for number, line in enumerate(content.split(b"\n"), start=first_line + 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: line {number} is not JSON ({error}).") from None
        if not isinstance(row, dict):
            raise DataError(f'{where}: line {number} is no JSON object; expected {{"column": value, …}}.')
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [_json_column([row.get(name) for row in rows], name, where) for name in names]
    fields = [
        pa.field(name, array.type, metadata=notes) for name, (array, notes) in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays([array for array, _ in columns], schema=pa.schema(fields))


def _json_column(values: list[Any], name: str, where: str) -> tuple[Any, dict[bytes, bytes] | None]:
    """The values as an array, and a note where lists of mixed types had to become encoded text."""
    try:
        return pa.array(values), None
    except (pa.ArrowException, OverflowError) as error:
        reason = str(error)
    if all(value is None or isinstance(value, list) for value in values):
        try:
            texts = [None if value is None else encode_each(value) for value in values]
        except TypeError as error:
            raise DataError(
                f"{where}: the column {name!r} holds lists of things that are no labels ({error})."
            ) from None
        return pa.array(texts, pa.list_(pa.string())), {ENCODED: b"yes"}
    kinds = sorted({type(value).__name__ for value in values if value is not None})
    if len(kinds) == 1:
        raise DataError(f"{where}: the column {name!r} cannot be read ({' '.join(reason.split())}).")
    raise DataError(f"{where}: the column {name!r} mixes {', '.join(kinds)}; give all its rows one type.")


def _read_csv(path: Path, form: str, text: Collection[str], delimiter: str | None) -> Any:
    options = csv_options(form, text, delimiter)
    try:
        return pa.csv.read_csv(path, **options)
    except pa.ArrowInvalid:
        return pa.csv.read_csv(path, read_options=pa.csv.ReadOptions(use_threads=False), **options)  # names the row


def _read_arrow(path: Path) -> Any:
    with pa.OSFile(str(path)) as file:
        try:
            table = pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            table = pa.ipc.open_stream(file).read_all()
    return validated(table)


def _csv_blocks(
    path: Path, form: str, text: Collection[str], delimiter: str | None, only: str | None
) -> Iterator[Any]:
    with reading(path):
        options = csv_options(form, text, delimiter)
        # types come from the first block alone; integers become floats, since later blocks may hold either
        with pa.csv.open_csv(path, **options) as head:
            schema = head.schema
        wide = {
            field.name: pa.float64()
            for field in schema
            if pa.types.is_integer(field.type) or pa.types.is_null(field.type)
        }
        options["convert_options"].column_types = {**wide, **dict.fromkeys(text, pa.string())}
        if only in schema.names:
            options["convert_options"].include_columns = [only]
        with pa.csv.open_csv(path, **options) as stream:
            for block in stream:
                yield checked(pa.Table.from_batches([block]), str(path))


def _json_batches(path: Path, rows: int) -> Iterator[Any]:
    with reading(path), pa.input_stream(str(path)) as stream:
        lines, first = io.BufferedReader(stream), 0
        names: list[str] = []
        while chunk := list(itertools.islice(lines, rows)):
            if content := b"".join(chunk).strip():
                table = checked(json_table(content, str(path), first), str(path))
                names = names or table.column_names
                for name in names:  # rows may leave out what they do not have, even all rows of a batch
                    if name not in table.column_names:
                        table = table.append_column(name, pa.nulls(len(table)))
                yield table
            first += len(chunk)


def _parquet_batches(path: Path, rows: int, only: str | None) -> Iterator[Any]:
    """Without Arrow's read-ahead, which would hold row groups whole, and with that the file if it has one."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, needed here alone

    with reading(path), pq.ParquetFile(path, pre_buffer=False, buffer_size=2**14) as file:
        columns = [only] if only in file.schema_arrow.names else None
        for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
            yield checked(pa.Table.from_batches([validated(batch)]), str(path))


def _arrow_blocks(path: Path) -> Iterator[Any]:
    with reading(path), pa.OSFile(str(path)) as file:
        try:
            opened = pa.ipc.open_file(file)
            parts = (opened.get_batch(i) for i in range(opened.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            parts = iter(pa.ipc.open_stream(file))
        for part in parts:
            yield checked(pa.Table.from_batches([validated(part)]), str(path))


def _regrouped(blocks: Iterator[Any], rows: int) -> Iterator[Any]:
    """Blocks of one schema cut and joined to tables of so many rows; the last may be smaller."""
    held: list[Any] = []
    for block in blocks:
        start = 0
        while start < len(block):
            part = block.slice(start, rows - sum(map(len, held)))
            start += len(part)
            held.append(part)
            if sum(map(len, held)) == rows:
                yield pa.concat_tables(held)
                held = []
    if held:
        yield pa.concat_tables(held)


def _bytes_of(path: Path) -> bytes:
    with pa.input_stream(str(path)) as stream:
        content: bytes = stream.read()
    return content


def _from_frame(source: Any) -> Any:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, dict):
        return pa.table(source)
    try:
        import narwhals as nw  # noqa: PLC0415 - optional, needed for frames alone

        return nw.from_native(source, eager_only=True).to_arrow()
    except (TypeError, pa.ArrowException) as error:
        raise DataError(f"the table: {type(source).__name__} cannot be read as a table ({error}).") from None


def _first_undecodable_line(path: Path) -> str:
    """Where a text file stops being UTF-8, as part of a sentence; nothing where that cannot be found."""
    if not path.is_file():
        return ""
    with pa.input_stream(str(path)) as stream:
        if stream.read(4) in {b"PAR1", b"ARRO"}:
            return ""
    with pa.input_stream(str(path)) as stream:
        for number, line in enumerate(io.BufferedReader(stream), start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f" on line {number}"
    return ""
