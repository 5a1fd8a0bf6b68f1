"""CSV, JSON, Parquet, Arrow, Excel and data frames as Arrow tables, whole or in batches."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from setwise.errors import DataError, MisuseWarning, Remedy
from setwise.findings import join_names
from setwise.storage.limits import check_unpacked, too_large, unpack_limit
from setwise.tables.arrow_types import is_bytes, is_unsupported, plain_column, text_of_bytes
from setwise.tables.json_objects import check_depth, read_objects
from setwise.tables.label_columns import is_list, is_text
from setwise.tables.label_notation import encode_each
from setwise.tables.table_files import (
    TableFiles,
    decoding_error,
    first_bytes,
    names_files,
    read_from,
    source_name,
    table_files,
    text_encoding,
    text_style,
    unpacking,
)

TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")
"""The formats in which tables are written."""
CLASSES, ENCODED = b"setwise.classes", b"setwise.encoded"
"""Notes of a column: its vocabulary, and that its lists hold labels in the notation of delimited text."""
DELIMITED = b"setwise.delimited"
"""A note of a table that comes from delimited text."""
_BLOCK = 2**24  # bytes of text parsed at a time; the longest line of a JSON lines file must fit
_HEAD = 2**20  # bytes of JSON lines whose fields are the columns
_ROWS = 2**14
_EXACT = 2**53  # below it a float holds every integer
_PLAIN = r"^(0|-?[1-9][0-9]*)?$"
_NO_NUMBER = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to \w+: (.*)")
_UNEVEN = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


def arrow_table(source: Any, *, text: Collection[str] = ()) -> Any:
    """Reads files or a frame as one table; `text` names columns of text files whose cells stay text."""
    if not names_files(source):
        return check_table(_from_frame(source), "the table")
    files = table_files(source)
    parts = []
    for path in files.paths:
        with reading(path, files):
            parts.append(check_table(_whole(files, path, text), files.where(path)))
    return parts[0] if len(parts) == 1 else _concatenate(parts, files)


def as_written(source: Any, *, ids: Collection[str] = (), text: Collection[str] = ()) -> Any:
    """Reads a table without merging identifiers that are written differently: "007" is not 7.

    A column `ids` of a text file becomes numbers only if every cell is empty or a plain whole number: not 007, 1e3
    or 8.0. `text` is as in `arrow_table`.
    """
    table = arrow_table(source, text=[*text, *ids])
    for name in {*ids} & {*table.column_names} if is_delimited(table) else ():
        cells = pc.utf8_trim(table[name], " \t")
        if pc.all(pc.match_substring_regex(cells, _PLAIN)).as_py():
            with contextlib.suppress(pa.ArrowInvalid):  # which holds no number of 20 digits
                numbers = pc.if_else(pc.equal(cells, ""), None, cells).cast(pa.int64())
                table = table.set_column(table.column_names.index(name), name, numbers)
    return table


def is_delimited(table: Any) -> bool:
    """Whether a table comes from delimited text, where all labels are in the notation of `label_notation`."""
    return DELIMITED in (table.schema.metadata or {})


def arrow_batches(
    source: Any, rows: int, *, text: Collection[str] = (), only: Collection[str] = ()
) -> Iterator[Any]:
    """Reads a table in batches of at most `rows` rows. `only` names the columns that are needed."""
    return (batch for _, _, batch in batches_with_origin(source, rows, text=text, only=only))


def batches_with_origin(
    source: Any, rows: int, *, text: Collection[str] = (), only: Collection[str] = ()
) -> Iterator[tuple[str, int, Any]]:
    """Like `arrow_batches`, each batch with its file and the number of its first row in that file."""
    if not names_files(source):
        yield from (("the table", i * rows, part) for i, part in enumerate(_slices(arrow_table(source), rows)))
        return
    files = table_files(source)
    first: Any = None
    for path in files.paths:
        start = 0
        for batch in _batches_of(files, path, rows, text, only):
            if first is None:
                first = batch.schema
            yield files.where(path), start, batch if path is files.paths[0] else _like(batch, first, files, path)
            start += len(batch)


def absent_column(name: str, names: Sequence[str], where: str, why: str = "", *ways: Remedy | str) -> DataError:
    """The error about a column that a table lacks; `why` says what needs it, and `ways` are remedies."""
    names = [one if one.isprintable() and one == one.strip() != "" else repr(one) for one in names if any(names)]
    one = len(names) == 1 and where != "the table"
    remedies = [Remedy("delimiter", None, "to say what stands between columns")] if one else []
    return DataError(
        f"{where}: there is no column {name!r}{why}; it has {join_names(names, 8) or 'none'}", *remedies, *ways
    )


def column_names(source: Any) -> list[str]:
    """The columns of a table with rows. For JSON lines, these are the fields in the first MB."""
    first = _first_row(source)
    if first is None:
        raise DataError(f"{source_name(source)}: holds no rows.")
    return list(first.column_names)


def has_column(source: Any, name: str) -> bool:
    """Whether a table has a column; JSON lines are read to the end, as any line may add a field."""
    if name in column_names(source):
        return True
    files = table_files(source) if names_files(source) else None
    if files is None or "jsonl" not in map(files.form, files.paths):
        return False
    return any(name in batch.column_names for batch in arrow_batches(files, _ROWS))


def has_rows(source: Any) -> bool:
    """Whether a table has at least one row."""
    return _first_row(source) is not None


def _first_row(source: Any) -> Any:
    """The first row of a table, or None; for Parquet files, a table without rows, as only the columns matter."""
    if names_files(source) and (files := table_files(source)).form(files.paths[0]) == "parquet":
        import pyarrow.parquet as pq  # slow to import, needed here alone

        path = files.paths[0]
        with reading(path, files), pq.ParquetFile(path) as file:
            if file.metadata.num_rows:
                return check_table(pa.Table.from_batches([], file.schema_arrow), files.where(path))
    return next(arrow_batches(source, 1), None)


def row_count(source: Any) -> int | None:
    """The number of rows of Parquet files, which store it; None for other files."""
    files = table_files(source)
    if any(files.form(path) != "parquet" for path in files.paths):
        return None
    import pyarrow.parquet as pq  # slow to import, needed here alone

    rows = 0
    for path in files.paths:
        with reading(path, files):
            rows += int(pq.read_metadata(path).num_rows)
    return rows


@contextlib.contextmanager
def reading(path: Path, files: TableFiles | None = None) -> Iterator[None]:
    """Turns Arrow's error about a broken file into one sentence that names the file."""
    files = files or TableFiles((path,))
    where = files.where(path)
    if not path.is_file():
        raise FileNotFoundError(f"{where}: there is no such file.")
    files.check_unchanged(path)
    try:
        yield
        files.check_unchanged(path)
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, EOFError, MemoryError) as error:
        files.check_unchanged(path)
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        if isinstance(error, UnicodeError) or "UTF8" in reason:
            raise decoding_error(files, path) from None
        if isinstance(error, pa.ArrowInvalid) and files.form(path) in {"csv", "tsv"}:
            start = first_bytes(path)[:1]
            if start in {b"{", b"["}:
                raise DataError(f"{where}: starts as JSON does; rename it to .json or .jsonl.") from None
            if start == b"<":
                raise DataError(f"{where}: starts as a web page does; save the table as .csv.") from None
            if "Empty CSV" in reason:
                raise DataError(f"{where}: holds no rows.") from None
        raise (_of_a_row(reason, where) or DataError(f"{where}: cannot be read: {reason}.")) from None


def file_text(files: TableFiles, path: Path) -> bytes:
    """A text file as UTF-8 without a mark in front, unpacked as far as it may be."""
    with _utf8(files, path, unpacking(path)) as stream:
        content = b"".join(iter(lambda: read_from(stream, _BLOCK), b""))
    return content.removeprefix(codecs.BOM_UTF8)


def _of_a_row(reason: str, where: str) -> DataError | None:
    """Arrow's error about a row of delimited text, with rows counted from 0; Arrow counts the header as row 1."""
    if found := _NO_NUMBER.match(reason):
        problem = f"{where}: row {int(found[2]) - 2}, column {int(found[1]) + 1}: {found[3]}, but numbers before"
        return DataError(problem, "correct it")
    if found := _UNEVEN.match(reason):
        row = "a row" if found[1] is None else f"row {int(found[1]) - 2}"
        problem = f"{where}: {row} has {found[3]} field{'s' * (found[3] != '1')}, but the first line has {found[2]}"
        return DataError(problem, "put a field that holds the delimiter in quotes")
    return None


def check_table(table: Any, where: str) -> Any:
    """Refuses repeated column names and text that is not UTF-8; makes rarer column types plain."""
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise DataError(f"{where}: the column {twice[0]!r} occurs twice; rename one of them.")
    for place, field in enumerate(table.schema):
        if is_unsupported(field.type):
            raise DataError(f"{where}: the column {field.name!r} holds {field.type}; write it as text or numbers.")
        column = table.column(place)
        plain = plain_column(column)
        if is_bytes(plain.type):  # as many programs write text into Parquet
            plain = text_of_bytes(plain)
            if is_bytes(plain.type) and DELIMITED in (table.schema.metadata or {}):
                raise DataError(f"{where}: the column {field.name!r} is not UTF-8 text; convert it to UTF-8.")
        if plain is not column:
            table = table.set_column(place, pa.field(field.name, plain.type, metadata=field.metadata), plain)
    return table


def validate(table: Any) -> Any:
    """Validates offsets and text in full: Arrow trusts a binary file and would follow damaged offsets."""
    table.validate(full=True)
    return table


def _whole(files: TableFiles, path: Path, text: Collection[str]) -> Any:
    form = files.form(path)
    if form in {"csv", "tsv"}:
        options = _csv_options(files, path, text)
        try:
            table = pa.csv.read_csv(unpacking(path), **options)
        except pa.ArrowInvalid:
            options["read_options"].use_threads = False  # then the error names the row
            table = pa.csv.read_csv(unpacking(path), **options)
        table = _text_table(table, path, files)
        _refuse_open_quote(table, path, files)
        return table
    if form == "jsonl":
        return json_table(file_text(files, path), files.where(path))
    if form == "json":
        content, where = file_text(files, path), files.where(path)
        if not content.lstrip().startswith(b"["):  # JSON lines under the name of an array
            return json_table(content, where)
        rows = read_objects(content, f"{where}:")
        return _from_objects(((f"entry {number}", row) for number, row in enumerate(rows)), where)
    if form == "parquet":
        import pyarrow.parquet as pq  # slow to import, needed here alone

        with pq.ParquetFile(path) as file:
            known = file.metadata  # by its pages, or at eight bytes per cell, it may unpack to more than the limit
            pages = sum(known.row_group(i).total_byte_size for i in range(known.num_row_groups))
            check_unpacked(path, path.stat().st_size, max(pages, 8 * known.num_rows * known.num_columns))
            table = validate(file.read())
            _check_rows(len(table), file.metadata.num_rows, path)
            return table
    if form == "arrow":
        return _read_arrow(path)
    return _read_excel(path, files.where(path))


def _batches_of(
    files: TableFiles, path: Path, rows: int, text: Collection[str], only: Collection[str]
) -> Iterator[Any]:
    with reading(path, files):
        form = files.form(path)
        if form in {"json", "xlsx"}:
            return _slices(check_table(_whole(files, path, text), files.where(path)), rows)
    if form == "jsonl":
        return _json_batches(files, path, rows)
    if form == "parquet":
        return _parquet_batches(files, path, rows, only)
    return _regroup(_arrow_blocks(path, files) if form == "arrow" else _csv_blocks(files, path, text, only), rows)


def _slices(table: Any, rows: int) -> Iterator[Any]:
    return (table.slice(start, rows) for start in range(0, len(table), rows))


def _concatenate(parts: list[Any], files: TableFiles) -> Any:
    held = [(part, path) for part, path in zip(parts, files.paths, strict=True) if part.num_columns]
    first = held[0][0].schema if held else parts[0].schema  # an empty JSON lines file has no columns
    alike = [_like(part, first, files, path) for part, path in held] or parts
    try:
        return pa.concat_tables(alike, promote_options="permissive")
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise DataError(f"{files}: a column has different types in different files ({reason}).") from None


def _like(part: Any, first: Any, files: TableFiles, path: Path) -> Any:
    """Puts the columns of a file in the order of the first file; both need the same columns and vocabulary."""
    check_columns(part.column_names, first.names, files.where(path), files.where(files.paths[0]))
    for name in first.names:
        notes = (first.field(name).metadata or {}, part.schema.field(name).metadata or {})
        if notes[0].get(CLASSES) != notes[1].get(CLASSES):
            raise DataError(
                f"{files.where(path)}: {name!r} has other classes than in {files.paths[0]}; read the files apart."
            )
    return part.select(first.names)


def check_columns(names: Collection[str], known: Collection[str], where: object, first: str) -> None:
    """Refuses a file with other columns than those that are known of the first one."""
    if others := sorted({*names} ^ {*known}):
        found, before = ("no", "has") if others[0] in known else ("a", "lacks")
        raise DataError(f"{where}: there is {found} column {others[0]!r}, which {first} {before}.")


def _csv_options(files: TableFiles, path: Path, text: Collection[str]) -> dict[str, Any]:
    """Options for text files: only numbers may be null, columns in `text` stay text, quotes may span lines."""
    style = text_style(files, path)
    return {
        "read_options": pa.csv.ReadOptions(encoding=style.encoding),
        "parse_options": pa.csv.ParseOptions(
            delimiter=style.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=not style.single,  # an empty line may be a row without labels
        ),
        "convert_options": pa.csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            strings_can_be_null=False,
            timestamp_parsers=["%Y-%m-%dT%H:%M:%S"],
            decimal_point=files.decimal or ".",
        ),
    }


def _text_table(table: Any, path: Path, files: TableFiles) -> Any:
    """Refuses a table with a column that Arrow could not decode and left as bytes."""
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise decoding_error(files, path)
    return table.replace_schema_metadata({DELIMITED: b"yes"})


def _refuse_open_quote(table: Any, path: Path, files: TableFiles, first_row: int = 0) -> None:
    """Refuses a text file whose last rows are one field, because a quote is never closed."""
    last = table.column(table.num_columns - 1) if table.num_columns and len(table) else pa.array([])
    if is_text(last.type) and re.search(r"[\r\n]", last[-1].as_py() or "") and _ends_in_quotes(files, path):
        row = first_row + len(table) - 1
        raise DataError(f"{files.where(path)}: row {row} opens a quote that is never closed; close or remove it.")


def _ends_in_quotes(files: TableFiles, path: Path) -> bool:
    """Whether a text file ends inside quotes; Arrow then reads all lines from there on as one field."""
    style = text_style(files, path)
    with io.TextIOWrapper(_utf8(files, path, unpacking(path)), encoding="utf-8", newline="") as text:
        try:
            for _ in csv.reader(text, delimiter=style.delimiter, strict=True):
                pass
        except csv.Error as error:
            return "end of data" in str(error)
    return False


def _utf8(files: TableFiles, path: Path, stream: Any) -> Any:
    """Transcodes the bytes of a text file to UTF-8."""
    encoding = text_encoding(files, path)
    return (
        stream
        if codecs.lookup(encoding).name == "utf-8"
        else pa.transcoding_input_stream(stream, encoding, "utf-8")
    )


def _read_excel(path: Path, where: str) -> Any:
    """The first sheet of a workbook, whose first row names the columns."""
    try:
        from openpyxl import load_workbook  # optional, needed for Excel alone
    except ModuleNotFoundError:
        raise DataError(
            f"{where}: Excel files are read by openpyxl: pip install 'setwise[excel]', or save the sheet as .csv."
        ) from None
    try:
        members = []
        if is_zipfile(path):
            with ZipFile(path) as archive:
                members = archive.infolist()
        check_unpacked(where, path.stat().st_size, sum(member.file_size for member in members))
        with path.open("rb") as file:  # openpyxl would leave it open after an error
            book = load_workbook(file, read_only=True, data_only=True)
            sheets = book.sheetnames
            rows = [row for row in book[sheets[0]].values if any(value is not None for value in row)]
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001 - zip, XML and its own errors
        if members and not any(member.filename.startswith("xl/") for member in members):
            raise DataError(f"{where}: is a zip archive, not an Excel workbook; unpack it.") from None
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{where}: is not a readable Excel workbook ({reason}); save it as .csv.") from None
    if len(sheets) > 1:
        problem = f"{where}: only the first of {len(sheets)} sheets, {sheets[0]!r}, is read"
        warnings.warn(MisuseWarning(problem, "save another one as .csv to read it"), stacklevel=2)
    if not rows:
        raise DataError(f"{where}: the sheet {sheets[0]!r} is empty.")
    names = ["" if name is None else str(name) for name in rows[0]]
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else ([] for _ in names)
    arrays = [_json_column(list(values), name, where)[0] for name, values in zip(names, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


def json_table(content: bytes, where: str, first_line: int = 0) -> Any:
    """A table from JSON lines; Arrow's reader where it keeps every value, else Python's."""
    pa.array([content], pa.large_binary()).cast(pa.large_string())  # Arrow's reader accepts any bytes
    check_depth(content, where, first_line)  # and recurses without limit
    try:
        options = pa.json.ReadOptions(block_size=_BLOCK)
        table = pa.json.read_json(io.BytesIO(content), read_options=options)
        table.validate()  # a list that begins with null may break its array
    except pa.ArrowException:
        return _json_by_line(content, where, first_line)
    kinds = table.schema.types
    if len(table) == 1 < len(kinds) and all(
        pa.types.is_struct(kind) and kind.names == kinds[0].names for kind in kinds
    ):
        problem = f"{where}: is one object with a column in each field, as pandas writes it"
        raise DataError(problem, "write one object per row, with to_json(…, orient='records')")
    kept = not any(map(_may_differ, table.columns))
    return table if kept else _json_by_line(content, where, first_line)


def _may_differ(column: Any) -> bool:
    """Whether Arrow's JSON reader may have changed values: texts into dates, long integers into floats."""
    if is_list(column.type):
        return _may_differ(pc.list_flatten(column))
    if pa.types.is_struct(column.type):
        return any(map(_may_differ, column.flatten()))
    if not pa.types.is_floating(column.type):
        return bool(pa.types.is_temporal(column.type))
    return not (pc.max(pc.abs(column)).as_py() or 0) < _EXACT


def _json_by_line(content: bytes, where: str, first_line: int) -> Any:
    """Reads JSON lines with Python's reader: slower, but errors name the line, and lists may mix types."""
    lines = enumerate(content.split(b"\n"), start=first_line + 1)
    placed = ((f"line {number}", line) for number, line in lines if line.strip())
    return _from_objects(((place, read_objects(line, f"{where}: {place}")) for place, line in placed), where)


def _from_objects(placed: Iterable[tuple[str, Any]], where: str) -> Any:
    """A table from objects, each with its place in the file."""
    rows: list[dict[str, Any]] = []
    for place, row in placed:
        if not isinstance(row, dict):
            raise DataError(f'{where}: {place} is not a JSON object; expected {{"column": value, …}}.')
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [_json_column([row.get(name) for row in rows], name, where) for name in names]
    fields = [
        pa.field(name, array.type, metadata=notes) for name, (array, notes) in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays([array for array, _ in columns], schema=pa.schema(fields))


def _json_column(values: list[Any], name: str, where: str) -> tuple[Any, dict[bytes, bytes] | None]:
    """The values as an array, with a note if lists of mixed types were encoded as text."""
    try:
        return pa.array(values), None
    except (pa.ArrowException, OverflowError) as error:
        reason = str(error)
    kinds = {type(value) for value in values if value is not None}
    numbers = kinds <= {int, float}
    whole = (value for value in _inside(values) if type(value) is int)
    large = 2**1000 if numbers else 2**63
    rounded = next((value for value in whole if abs(value) >= large or float(value) != value), None)
    if numbers and rounded is None:
        return pa.array([value if value is None else float(value) for value in values]), None
    if kinds == {list}:
        try:
            texts = [None if value is None else encode_each(value) for value in values]
            return pa.array(texts, pa.list_(pa.string())), {ENCODED: b"yes"}
        except TypeError as error:
            reason = f"its lists hold something other than labels: {error}"
    if rounded is not None and (numbers or len(kinds) == 1):
        problem = f"{where}: the column {name!r} holds the integer {rounded}, which would be rounded"
        raise DataError(problem, "write it as text, in quotes", "write it with a point to have it rounded")
    if len(kinds) == 1:
        raise DataError(f"{where}: the column {name!r} cannot be read ({' '.join(reason.split())}).")
    named = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise DataError(f"{where}: the column {name!r} mixes {named}; give all its rows one type.")


def _inside(values: Iterable[Any]) -> Iterator[Any]:
    """The values, with lists and objects replaced by their contents."""
    for value in values:
        if isinstance(value, (list, dict)):
            yield from _inside(value.values() if isinstance(value, dict) else value)
        else:
            yield value


def _read_arrow(path: Path) -> Any:
    blocks, held = [], 0
    for block in _arrow_blocks(path):
        held += block.nbytes
        check_unpacked(path, path.stat().st_size, held)
        blocks.append(block)
    with pa.OSFile(str(path)) as file:
        none = pa.Table.from_batches([], _open_arrow(file).schema)
    return pa.concat_tables(blocks) if blocks else check_table(none, str(path))


def _csv_blocks(files: TableFiles, path: Path, text: Collection[str], only: Collection[str]) -> Iterator[Any]:
    with reading(path, files):
        options = _csv_options(files, path, text)
        # the first block alone sets the types; integers become floats because later blocks may hold floats
        with pa.csv.open_csv(path, **options) as head:
            schema = head.schema
        wide = (field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_null(field.type))
        options["convert_options"].column_types |= dict.fromkeys(set(wide) - {*text}, pa.float64())
        options["convert_options"].include_columns = [name for name in schema.names if name in only]
        first, table = 0, pa.table({})
        with pa.csv.open_csv(path, **options) as stream:
            for block in stream:
                first += len(table)
                table = _text_table(pa.Table.from_batches([block]), path, files)
                yield check_table(table, files.where(path))
        _refuse_open_quote(table, path, files, first)


def _json_batches(files: TableFiles, path: Path, rows: int) -> Iterator[Any]:
    """Batches with the columns of the first lines; a line may leave out fields without a value."""
    where, names = files.where(path), _json_fields(files, path)
    first = 0
    with _json_lines(files, path) as lines:
        while chunk := list(itertools.islice(lines, rows)):
            if content := b"".join(chunk).strip():
                table = check_table(json_table(content, where, first), where)
                names = names or table.column_names
                if late := sorted({*table.column_names} - {*names}):
                    problem = f"a line after line {first:,} has the field {late[0]!r}, which the first lines lack"
                    raise DataError(f"{where}: {problem}", "give it to the first line, null where it has no value")
                for name in {*names} - {*table.column_names}:
                    table = table.append_column(name, pa.nulls(len(table)))
                yield table.select(names)
            first += len(chunk)


def _json_fields(files: TableFiles, path: Path) -> list[str]:
    """The fields of the first lines, in the order in which they occur."""
    head, size = [], 0
    with _json_lines(files, path) as lines:
        for line in lines:
            head.append(line)
            size += len(line)
            if size >= _HEAD:
                break
        content, where = b"".join(head).strip(), files.where(path)
        return list(check_table(json_table(content, where), where).column_names) if content else []


@contextlib.contextmanager
def _json_lines(files: TableFiles, path: Path) -> Iterator[Iterator[bytes]]:
    """Opens a text file as lines of UTF-8."""

    def lines(stream: io.BufferedReader, longest: int) -> Iterator[bytes]:
        while line := stream.readline(longest):
            if len(line) == longest:
                raise too_large(files.where(path), longest)
            yield line

    with reading(path, files), _utf8(files, path, pa.input_stream(str(path))) as stream:
        yield lines(io.BufferedReader(stream), unpack_limit(path.stat().st_size))


def _parquet_batches(files: TableFiles, path: Path, rows: int, only: Collection[str]) -> Iterator[Any]:
    """Reads without Arrow's read-ahead, which would keep whole row groups in memory."""
    import pyarrow.parquet as pq  # slow to import, needed here alone

    with reading(path, files), pq.ParquetFile(path, pre_buffer=False, buffer_size=2**14) as file:
        columns = [name for name in file.schema_arrow.names if name in only] or None
        given = 0
        for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
            given += len(batch)
            yield check_table(pa.Table.from_batches([validate(batch)]), str(path))
        _check_rows(given, file.metadata.num_rows, path)


def _check_rows(given: int, noted: int, path: Path) -> None:
    if given != noted:
        raise DataError(f"{path}: gave {given:,} of its {noted:,} rows; it was damaged or changed.")


def _open_arrow(file: Any) -> Any:
    """An Arrow file, or a stream of Arrow's."""
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _arrow_blocks(path: Path, files: TableFiles | None = None) -> Iterator[Any]:
    with reading(path, files), pa.OSFile(str(path)) as file:
        opened = _open_arrow(file)
        indexed = hasattr(opened, "num_record_batches")
        parts = (opened.get_batch(i) for i in range(opened.num_record_batches)) if indexed else iter(opened)
        for part in parts:
            yield check_table(pa.Table.from_batches([validate(part)]), str(path))


def _regroup(blocks: Iterator[Any], rows: int) -> Iterator[Any]:
    """Cuts and joins blocks of one schema into tables of `rows` rows; the last may be smaller."""
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


def _from_frame(source: Any) -> Any:
    if isinstance(source, pa.Table):
        return source
    try:
        if isinstance(source, dict):
            return pa.table(source)
        import narwhals as nw  # optional, needed for frames alone

        return nw.from_native(source, eager_only=True).to_arrow()
    except (TypeError, pa.ArrowException) as error:
        raise DataError(f"the table: {type(source).__name__} cannot be read as a table ({error}).") from None
