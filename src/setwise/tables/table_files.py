"""The files of a table, one or several, and the form of their text: encoding, delimiter, decimal mark.

A byte order mark shows the encoding, and the first lines show the delimiter; declared values take precedence.
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
    **dict.fromkeys((".csv", ".txt"), "csv"),
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "arrow"),
    **dict.fromkeys((".xlsx", ".xlsm"), "xlsx"),
    ".json": "json",
}
MODEL_HEAD = "setwise.json"
"""The file by which a folder is a model, not a folder of tables."""
_ARRAYS = {".mat", ".npy", ".npz"}
_CONVERT = (
    "load it in Python (scipy.io.loadmat, numpy.load), and write a row per example: "
    "pandas.DataFrame(P, columns=classes).to_parquet('scores.parquet') for probabilities, or, for candidates, "
    "from setwise.tables import write_sets; "
    "write_sets('rows.parquet', LabelSets.from_mask(candidates), carry={'x': list(X), 'truth': y})"
)
_CONTENT = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "xlsx", b"{": "jsonl", b"[": "json"}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_TEXT = {"csv", "tsv", "jsonl", "json"}
_MARKS = {  # longer marks first: the mark of UTF-32 starts with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNPACKED = {".gz", ".bz2", ".zst", ".lz4"}  # suffixes that make Arrow unpack a file
_DELIMITERS = ",;\t|"
_SAMPLE = 2**16  # bytes from which encoding and delimiter are told


@dataclass(frozen=True)
class TableFiles:
    """Files that are read as one table, in order, and what is declared about them (None: as the files show)."""

    paths: tuple[Path, ...]
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    title: str | None = None
    held: Any = field(default=None, repr=False, compare=False)
    # size and time of each path when it was first read
    seen: Any = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter)
        object.__setattr__(self, "delimiter", delimiter)
        for name, mark in (("delimiter", delimiter), ("decimal", self.decimal)):
            if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in '"\n\r'):
                raise ValueError(f"{name}: {mark!r} must be one mark, such as ',', ';' or tab.")
        if self.encoding is not None:
            try:
                io.TextIOWrapper(io.BytesIO(), self.encoding)  # some codecs are not for text
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
        """The name of one of the files in messages."""
        return self.title or str(path)

    def check_unchanged(self, path: Path) -> None:
        """Refuses a file that changed since it was first read: rows might be lost or read twice."""
        now = path.stat()
        stamp = (now.st_size, now.st_mtime_ns, now.st_ino)
        if self.seen.setdefault(path, stamp) != stamp:
            raise DataError(f"{self.where(path)}: changed while it was read; try again when it is complete.")

    def form(self, path: Path) -> str:
        """The format of one of the files, from its suffix or its first bytes."""
        if _suffix(path) in _ARRAYS:
            raise DataError(f"{self.where(path)}: holds arrays, not a table with columns", _CONVERT)
        if _suffix(path) in _SUFFIXES:
            return _SUFFIXES[_suffix(path)]
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
    """The name of a source in messages: its files, or "the table" for one in memory."""
    return str(table_files(source)) if names_files(source) else "the table"


def table_files(source: Any, **declared: str | None) -> TableFiles:
    """The files of a path, of a pattern such as ``parts/*.csv``, or of several of these."""
    if isinstance(source, TableFiles):
        missing: dict[str, Any] = {name: getattr(source, name) or value for name, value in declared.items()}
        return replace(source, **missing)
    several: Sequence[Any] = source if isinstance(source, (list, tuple)) else [source]
    paths = tuple(path for one in several for path in _find_files(one))
    _check_files(paths)
    return TableFiles(paths, **declared)


def spool_stream(stream: Any, **declared: str | None) -> TableFiles:
    """Copies a stream of bytes to a temporary file that exists as long as the result."""
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
    """A handle: when it is collected, its temporary file is removed."""


def format_of(path: Path) -> str:
    """The format of a file by its name: csv, tsv, jsonl, json, parquet, arrow or xlsx."""
    suffix = _suffix(path)
    if suffix not in _SUFFIXES:
        raise DataError(
            f"{path}: {f'the suffix {suffix}' if suffix else 'a name without suffix'} shows no known format",
            "rename the file to .csv, .parquet or another known format",
        )
    return _SUFFIXES[suffix]


@dataclass(frozen=True)
class TextStyle:
    """The encoding and delimiter of one file, and whether its first line is a single field."""

    encoding: str
    delimiter: str
    single: bool


def text_encoding(files: TableFiles, path: Path) -> str:
    """The encoding of a text file: as declared, as its mark shows, or UTF-8. Refuses files that are not text."""
    sample, where = first_bytes(path), files.where(path)
    binary = next((form for mark, form in _CONTENT.items() if sample.startswith(mark)), "csv")
    if binary not in _TEXT:
        unpack = ", or unpack it if it is another archive" if binary == "xlsx" else ""
        raise DataError(f"{where}: is {binary}, not text; rename it to .{binary}{unpack}.")
    if packed := next((suffix for mark, suffix in _PACKED.items() if sample.startswith(mark)), None):
        rename = [f"rename it to .csv{packed}"] if packed in {".gz", ".bz2"} and path.suffix != packed else []
        raise DataError(f"{where}: is a {packed} file, not text", *rename, "unpack it")
    encoding = files.encoding or _encoding_of_mark(sample)
    if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        return encoding
    if (nul := sample.find(b"\0")) >= 0:
        order = "utf-16-le" if nul % 2 else "utf-16-be"
        wide = 4 * sample.count(b"\0") > len(sample) and _decodes(sample[: len(sample) // 2 * 2], order)
        repair = Remedy("encoding", order) if wide else "save the table as .csv text, or remove that byte"
        raise DataError(f"{where}: byte {nul} is 0, which text cannot hold", repair)
    return encoding if files.encoding is None else _doubted_encoding(sample, encoding, where)


def text_style(files: TableFiles, path: Path) -> TextStyle:
    """The style of delimited text, as declared or as its first lines show."""
    sample, encoding = first_bytes(path), text_encoding(files, path)
    text = sample.decode(encoding, "replace").removeprefix("\ufeff")
    whole = text.rpartition("\n")[0] if len(sample) == _SAMPLE else text
    usual = files.delimiter or ("\t" if files.form(path) == "tsv" else ",")
    marks = [usual] if files.delimiter else dict.fromkeys([usual, *_DELIMITERS])
    delimiter = max(marks, key=lambda mark: _fields(whole, mark))  # the first of equals
    if files.decimal == delimiter:
        raise DataError(
            f"{files.where(path)}: {delimiter!r} separates the columns and cannot also be the decimal mark",
            Remedy("delimiter", None, "to say what stands between columns"),
        )
    return TextStyle(encoding, delimiter, _fields(whole.partition("\n")[0], delimiter) < 2)


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file, decompressed."""
    with pa.input_stream(str(path)) as stream:
        return read_from(stream, _SAMPLE)


def read_from(stream: Any, size: int) -> bytes:
    """Reads bytes from an Arrow stream, whose own `read` leaks memory when it fails."""
    content: bytes = stream.read_buffer(size).to_pybytes()
    return content


def unpacking(path: Path) -> Any:
    """A file as a stream of bytes, decompressed; an error if it unpacks to more than the limit."""
    stream = pa.input_stream(str(path))
    return stream if path.suffix not in _UNPACKED else pa.PythonFile(_Bounded(stream, path), mode="r")


def without_compression(path: Path) -> Path:
    """The path without a suffix such as .gz, which makes readers decompress the file."""
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
    """The error about a text file that is not in its encoding; it names the first wrong byte."""
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
    return next((name for mark, name in _MARKS.items() if sample.startswith(mark)), "utf-8")


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _doubted_encoding(sample: bytes, encoding: str, where: str) -> str:
    """Warns if text with a declared old encoding is valid UTF-8, which hardly happens by chance.

    Where an encoding is declared that errors propose, such text is read as the UTF-8 that it is: one declaration
    holds for all files of a command, and those that setwise wrote are UTF-8.
    """
    cut = sample[:-4] if len(sample) == _SAMPLE else sample  # a character may be cut
    name = codecs.lookup(encoding).name
    if name.startswith("utf") or cut.isascii() or not (_decodes(cut, "utf-8") and _decodes(cut, encoding)):
        return encoding
    if name in {"cp1252", "iso8859-1"}:
        warnings.warn(
            MisuseWarning(f"{where}: is read as the UTF-8 text that it is, not as {encoding}"), stacklevel=2
        )
        return "utf-8"
    problem = f"{where}: is UTF-8 text; read as {encoding}, some letters are wrong"
    warnings.warn(MisuseWarning(problem, Remedy("encoding", "utf-8")), stacklevel=2)
    return encoding


def _fields(text: str, delimiter: str) -> int:
    """The number of fields in the first line, if nearly all lines have as many; otherwise 1."""
    try:
        rows = islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), 100)
        counts = [len(row) for row in rows if row]
    except csv.Error:
        return 1
    return counts[0] if counts and counts.count(counts[0]) >= 0.9 * len(counts) else 1


def _suffix(path: Path) -> str:
    """The last suffix in lower case, before that of a compression."""
    return without_compression(path).suffix.lower()


def _find_files(source: str | os.PathLike[str]) -> list[Path]:
    path = Path(source)
    check_name(path)
    if (path / MODEL_HEAD).is_file():
        raise DataError(f"{path}: is a model, but a table is expected; name the model first, then files with rows.")
    if path.is_dir():
        return _inside(path)
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    found = [one for one in map(Path, sorted(glob.glob(str(path), recursive=True))) if not one.is_dir()]  # noqa: PTH207
    if not found:
        raise FileNotFoundError(f"{path}: no file has such a name.")
    return found


def _check_files(paths: Sequence[Path]) -> None:
    """Refuses pipes and devices, as tables are read more than once, and a file that would count twice."""
    first: dict[Path, Path] = {}
    for path in paths:
        if not path.is_file() and (path.exists() or path.is_symlink()):
            problem = f"{path}: is a pipe, a device or a broken link, not a file"
            raise DataError(problem, "pass it to standard input and name the file -", "save it to a file")
        other = first.setdefault(path.resolve(), path)
        if other is not path:
            raise DataError(f"{path}: is the same file as {other}, so its rows would count twice", "name it once")


def _inside(folder: Path) -> list[Path]:
    """The tables in a folder and its subfolders, without names that start with a point or an underscore."""
    inside = sorted(folder.rglob("*"))
    if linked := next((path for path in inside if path.is_symlink() and path.is_dir()), None):
        raise DataError(
            f"{linked}: is a link to a folder, and such links are not followed", "name the folders to be read"
        )
    names = (path.relative_to(folder) for path in inside)
    tables = [name for name in names if _suffix(name) in _SUFFIXES and not any(p[0] in "._" for p in name.parts)]
    found = [folder / name for name in tables if not (folder / name).is_dir()]
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
