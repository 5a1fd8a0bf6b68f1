"""The files of a table, one or several, and how their text is written: encoding, delimiter, decimal mark.

A byte order mark shows the encoding and the first lines show the delimiter; what is declared comes first.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from setwise.errors import DataError, MisuseWarning, Remedy
from setwise.storage.atomic_files import check_name, temporary
from setwise.storage.limits import too_large, unpack_limit

_SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".npz": "npz",
}
MODEL_HEAD = "setwise.json"
"""What makes a folder a model, and no folder of tables."""
_MATLAB = (
    "convert it in Python: variables = scipy.io.loadmat(FILE); numpy.savez('rows.npz', X=variables[…], "
    "candidates=variables[…], y=variables[…]), with a row per example"
)
_CONTENT = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "xlsx", b"{": "jsonl", b"[": "json"}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_TEXT = {"csv", "tsv", "jsonl", "json"}
_MARKS = {  # the longer ones first: that of UTF-32 starts with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNPACKED = {".gz", ".bz2", ".zst", ".lz4"}  # what Arrow unpacks by the name of a file
_DELIMITERS = ",;\t|"
_SAMPLE = 2**16  # bytes in which a file shows how it is written


@dataclass(frozen=True)
class TableFiles:
    """Files that are read as one table, in their order, and what is declared about them (None: what shows)."""

    paths: tuple[Path, ...]
    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    title: str | None = None
    held: Any = field(default=None, repr=False, compare=False)
    seen: Any = field(default_factory=dict, repr=False, compare=False)  # of each path what it was when first read

    def __post_init__(self) -> None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter)
        object.__setattr__(self, "delimiter", delimiter)
        for name, mark in (("delimiter", delimiter), ("decimal", self.decimal)):
            if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in '"\n\r'):
                raise ValueError(f"{name}: {mark!r} is not one mark, such as ',', ';' or tab.")
        if self.encoding is not None:
            try:
                io.TextIOWrapper(io.BytesIO(), self.encoding)  # there are codecs of other things than text
            except LookupError:
                known = "utf-8, utf-16, cp1252 (Windows) or latin-1"
                raise ValueError(f"encoding: {self.encoding!r} is not known; use {known}.") from None

    def __str__(self) -> str:
        more = len(self.paths) - 1
        return self.title or f"{self.paths[0]}" + (f" and {more} more file{'s' * (more > 1)}" if more else "")

    @property
    def name(self) -> str:
        """The name of the first file without its folder."""
        return self.title or self.paths[0].name

    @property
    def suffix(self) -> str:
        """The suffix of the first file."""
        return self.paths[0].suffix

    def where(self, path: Path) -> str:
        """One of the files in messages."""
        return self.title or str(path)

    def check_unchanged(self, path: Path) -> None:
        """Refuses a file that changed since it was first looked at: rows would be lost or read twice."""
        now = path.stat()
        stamp = (now.st_size, now.st_mtime_ns, now.st_ino)
        if self.seen.setdefault(path, stamp) != stamp:
            raise DataError(f"{self.where(path)}: changed while it was read; read it again when it is complete.")

    def otherwise(self, **declared: str | None) -> TableFiles:
        """The same, with this declared where nothing is yet."""
        missing: dict[str, Any] = {name: getattr(self, name) or value for name, value in declared.items()}
        return replace(self, **missing)

    def form(self, path: Path) -> str:
        """The format of one of the files: by its suffix, else by how it starts."""
        if self.format is None and _suffix(path) == ".mat":
            read = ", ".join(sorted(set(_SUFFIXES.values())))
            raise DataError(f"{self.where(path)}: MATLAB files are no tables; the formats are {read}", _MATLAB)
        if self.format is not None or _suffix(path) in _SUFFIXES:
            return format_of(path, self.format)
        start = first_bytes(path).removeprefix(codecs.BOM_UTF8).lstrip()
        return next((form for mark, form in _CONTENT.items() if start.startswith(mark)), "csv")


def is_path(source: Any) -> bool:
    """Whether a source is the path of a file."""
    return isinstance(source, (str, os.PathLike))


def names_files(source: Any) -> bool:
    """Whether a source names one file or several, rather than being a table in memory."""
    several = isinstance(source, (list, tuple)) and len(source) > 0 and all(map(is_path, source))
    return is_path(source) or several or isinstance(source, TableFiles)


def source_name(source: Any) -> str:
    """How messages call a source: its files, or "the table" where it is one in memory."""
    return str(table_files(source)) if names_files(source) else "the table"


def table_files(source: Any, **declared: str | None) -> TableFiles:
    """The files that a path, a pattern such as ``parts/*.csv``, or several of these name."""
    if isinstance(source, TableFiles):
        return source.otherwise(**declared)
    several: Sequence[Any] = source if isinstance(source, (list, tuple)) else [source]
    paths = tuple(path for one in several for path in _find_files(one))
    _refuse_twice(paths)
    return TableFiles(paths, **declared)


def spool_stream(stream: Any, **declared: str | None) -> TableFiles:
    """What a stream of bytes holds, kept in a temporary file for as long as the result lives."""
    keeping = ExitStack()
    path = keeping.enter_context(temporary(Path(tempfile.gettempdir()), "stdin", private=True))
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
        empty = not file.tell()
    held = _Held()
    weakref.finalize(held, keeping.close)
    if empty:
        raise DataError("standard input: is empty.")
    return TableFiles((path,), title="standard input", held=held, **declared)


class _Held:
    """Something to hold on to: what belongs to it goes with it."""


def format_of(path: Path, given: str | None = None) -> str:
    """The format of a file by its name: csv, tsv, jsonl, json, parquet, arrow, xlsx or npz."""
    if given is not None:
        if given not in _SUFFIXES.values():
            raise ValueError(
                f"format: {given!r} is not known; use one of {', '.join(sorted(set(_SUFFIXES.values())))}."
            )
        return given
    suffix = _suffix(path)
    if suffix not in _SUFFIXES:
        raise DataError(
            f"{path}: {suffix or 'no suffix'} says nothing about the format",
            Remedy("format", "csv", "or another"),
            "rename the file to .csv, .parquet or another known format",
        )
    return _SUFFIXES[suffix]


def output_format(target: Path, given: str | None = None) -> str:
    """The format in which a file is written; refuses a name by which readers would unpack it."""
    form = format_of(target, given)
    if without_compression(target) != target:
        raise DataError(f"{target}: tables are written unpacked; leave out {target.suffix}.")
    return form


@dataclass(frozen=True)
class TextStyle:
    """How the text of one file is written, and whether its first line is one field."""

    encoding: str
    delimiter: str
    single: bool


def text_encoding(files: TableFiles, path: Path) -> str:
    """The encoding of a text file: the one declared, else that of its mark, else UTF-8; other files are refused."""
    sample, where = first_bytes(path), files.where(path)
    binary = next((form for mark, form in _CONTENT.items() if sample.startswith(mark)), "csv")
    if binary not in _TEXT:
        unpack = ", or unpack it if it is another archive" if binary == "xlsx" else ""
        raise DataError(f"{where}: is {binary}, not text; rename it to .{binary}{unpack}.")
    if packed := next((suffix for mark, suffix in _PACKED.items() if sample.startswith(mark)), None):
        rename = [f"rename it to .csv{packed}"] if packed in {".gz", ".bz2"} else []
        raise DataError(f"{where}: is a {packed} file, not text", *rename, "unpack it")
    encoding = files.encoding or _encoding_of_mark(sample)
    if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        return encoding
    if (nul := sample.find(b"\0")) >= 0:
        order = "utf-16-le" if nul % 2 else "utf-16-be"
        wide = 4 * sample.count(b"\0") > len(sample) and _decodes(sample[: len(sample) // 2 * 2], order)
        repair = Remedy("encoding", order) if wide else "save the table as .csv text, or remove that byte"
        raise DataError(f"{where}: byte {nul} is 0, which text does not hold", repair)
    if files.encoding is not None:
        _doubt_encoding(sample, encoding, where)
    return encoding


def text_style(files: TableFiles, path: Path) -> TextStyle:
    """What is declared about delimited text, and what else its first lines show."""
    sample, encoding = first_bytes(path), text_encoding(files, path)
    text = sample.decode(encoding, "replace").removeprefix("\ufeff")
    whole = text.rpartition("\n")[0] if len(sample) == _SAMPLE else text
    usual = files.delimiter or ("\t" if files.form(path) == "tsv" else ",")
    marks = [usual] if files.delimiter else dict.fromkeys([usual, *_DELIMITERS])
    delimiter = max(marks, key=lambda mark: _fields(whole, mark))  # the first of equals
    if files.decimal == delimiter:
        raise DataError(
            f"{files.where(path)}: {delimiter!r} stands between columns and cannot be the decimal mark",
            Remedy("delimiter", None, "to say what stands between columns"),
        )
    return TextStyle(encoding, delimiter, _fields(whole.partition("\n")[0], delimiter) < 2)


def first_bytes(path: Path) -> bytes:
    """How a file starts, decompressed."""
    with pa.input_stream(str(path)) as stream:
        return read_from(stream, _SAMPLE)


def read_from(stream: Any, size: int) -> bytes:
    """Some bytes of an Arrow stream, whose own `read` loses as much memory as was asked for when it fails."""
    content: bytes = stream.read_buffer(size).to_pybytes()
    return content


def unpacking(path: Path) -> Any:
    """A file as a stream of bytes, decompressed, which ends with an error where that gives more than it may."""
    stream = pa.input_stream(str(path))
    return stream if path.suffix not in _UNPACKED else pa.PythonFile(_Bounded(stream, path), mode="r")


def without_compression(path: Path) -> Path:
    """The path without the suffix of a compression that is undone when it is read, such as .gz."""
    return path.with_suffix("") if path.suffix.lower() in _UNPACKED and Path(path.stem).suffix else path


class _Bounded:
    """A stream that refuses to give more bytes than a file may unpack to."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path, self.closed = stream, path, False
        self._limit = unpack_limit(path.stat().st_size)
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        asked = self._limit + 1 - self._given
        content = read_from(self._stream, asked if size < 0 else min(size, asked))
        self._given += len(content)
        if self._given > self._limit:
            raise too_large(self._path, self._limit)
        return content

    def tell(self) -> int:
        return self._given

    def close(self) -> None:
        self.closed = True
        self._stream.close()


def decoding_error(files: TableFiles, path: Path) -> DataError:
    """The error about a text file that is not in its encoding: which byte is the first that is not."""
    with unpacking(path) as stream:
        content = b"".join(iter(lambda: read_from(stream, _SAMPLE), b""))
    encoding, where = files.encoding or _encoding_of_mark(content), files.where(path)
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = f"{where}: not {encoding} text: byte {error.start} (line {line}) is 0x{content[error.start]:02X}"
        if encoding.startswith(("utf-16", "utf-32")):
            return DataError(problem, "fetch the file again if it was cut off")
        likely = "cp1252" if _decodes(content, "cp1252") else "latin-1"
        return DataError(problem, Remedy("encoding", likely, "if a program on Windows wrote the file"))
    return DataError(f"{where}: not {encoding} text; convert it to UTF-8.")


def _encoding_of_mark(sample: bytes) -> str:
    """The encoding that a byte order mark shows."""
    return next((name for mark, name in _MARKS.items() if sample.startswith(mark)), "utf-8")


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _doubt_encoding(sample: bytes, encoding: str, where: str) -> None:
    """Warns where text is declared to be in an old encoding, but reads as UTF-8, which hardly happens by chance."""
    cut = sample[:-4] if len(sample) == _SAMPLE else sample  # a character may be cut
    old = not codecs.lookup(encoding).name.startswith("utf")
    if old and not cut.isascii() and _decodes(cut, "utf-8") and _decodes(cut, encoding):
        problem = f"{where}: is UTF-8 text, and read as {encoding} its letters change"
        warnings.warn(MisuseWarning(problem, Remedy("encoding", "utf-8")), stacklevel=2)


def _fields(text: str, delimiter: str) -> int:
    """How many fields the first line has, if nearly all lines have as many; else 1."""
    try:
        rows = islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), 100)
        counts = [len(row) for row in rows if row]
    except csv.Error:
        return 1
    return counts[0] if counts and counts.count(counts[0]) >= 0.9 * len(counts) else 1


def _suffix(path: Path) -> str:
    """The last suffix in small letters, before that of what is unpacked."""
    return without_compression(path).suffix.lower()


def _find_files(source: str | os.PathLike[str]) -> list[Path]:
    """The files that a path or a pattern names."""
    path = Path(source)
    check_name(path)
    if (path / MODEL_HEAD).is_file():
        raise DataError(f"{path}: is a model, and a table is expected; name the model first, then files with rows.")
    if path.is_dir():
        return _inside(path)
    if path.exists() or not glob.has_magic(str(path)):
        return _without_pipes([path])
    pattern = path.relative_to(path.anchor)
    found = [one for one in sorted(Path(path.anchor).glob(str(pattern))) if not one.is_dir()]
    if not any(part[0] == "." and glob.has_magic(part) for part in pattern.parts):  # hidden files as in a shell
        found = [one for one in found if not any(p[0] == "." and p not in pattern.parts for p in one.parts)]
    if not found:
        raise FileNotFoundError(f"{path}: no file is called so.")
    return _without_pipes(found)


def _without_pipes(paths: list[Path]) -> list[Path]:
    """The paths themselves; what can be read only once is refused, as tables are looked at before."""
    for path in paths:
        if path.exists() and not path.is_file() and not path.is_dir():
            problem = f"{path}: is a pipe or a device, not a file"
            raise DataError(problem, "pass it to standard input, and name that: -", "save it to a file")
    return paths


def _refuse_twice(paths: Sequence[Path]) -> None:
    """Refuses a file that is named twice, by itself or by links, whose rows would count twice."""
    first: dict[Path, Path] = {}
    for path in paths if len(paths) > 1 else ():
        other = first.setdefault(path.resolve(), path)
        if other is not path:
            raise DataError(f"{path}: is the same file as {other}, and its rows would count twice", "name it once")


def _inside(folder: Path) -> list[Path]:
    """The tables in a folder and the folders in it; what starts with a point or a low line is none."""
    inside = sorted(folder.rglob("*"))
    if linked := next((path for path in inside if path.is_symlink() and path.is_dir()), None):
        raise DataError(f"{linked}: is a link to a folder, which is not followed", "name the folders to be read")
    names = (path.relative_to(folder) for path in inside)
    tables = [name for name in names if _suffix(name) in _SUFFIXES and not any(p[0] in "._" for p in name.parts)]
    found = [folder / name for name in tables if not (folder / name).is_dir()]
    for path in found:
        if not path.is_file():
            raise DataError(
                f"{path}: is no file, but a pipe, a device, or a link to nowhere", "remove or rename it"
            )
    if not found:
        raise DataError(f"{folder}: there is no table in this folder.")
    kinds = {_SUFFIXES[_suffix(path)]: path for path in reversed(found)}
    if len(kinds) > 1:
        one, other, *_ = (path.relative_to(folder) for path in kinds.values())
        pattern = folder / f"*{found[0].suffix}"
        raise DataError(
            f"{folder}: holds tables of several formats ({one}, {other})", f"name those of one: '{pattern}'"
        )
    return found
