"""The parts of a table, each with an output of its own that is whole or absent; which of them are finished.

Beside the output of a part stands a small hidden file ``.NAME.done.json``. It says of which input it was made (its
size and when it was written and put there), what was asked (a digest of model, level and options), what the output
is (its size and when it was written), and what was found. A part is finished if all of this is still so; the output
of one that is not is removed before the work begins, so that no folder holds answers to two questions.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setwise._version import __version__
from setwise.errors import DataError, InputError, Remedy
from setwise.storage.atomic_files import check_replaceable, lock_folder, open_regular, replacing
from setwise.tables.arrow_reading import TABLES, check_columns, column_names, row_count
from setwise.tables.table_files import MODEL_HEAD, TableFiles, without_compression

_RECORD = ".{}.done.json"
_LONGEST = 2**24  # bytes of a record


@dataclass(frozen=True)
class TablePart:
    """One file of a table, and where what is made of it goes."""

    number: int
    source: TableFiles
    out: Path

    def __str__(self) -> str:
        return str(self.source)

    @property
    def record(self) -> Path:
        """The file that says that it is finished."""
        return self.out.with_name(_RECORD.format(self.out.name))

    def read_result(self, question: str) -> dict[str, Any] | None:
        """What was found, where the output is that of this input and of this question; else None."""
        try:
            with open_regular(self.record, follow=False) as file:
                held = json.loads(file.read(_LONGEST))
            same = held["input"] == self.input and held["asked"] == question
            found = held["found"] if same and held["output"] == self._output else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def finish(self, question: str, found: Mapping[str, Any]) -> None:
        """Notes that the output is whole, and what was found."""
        held = {"input": self.input, "asked": question, "output": self._output, "found": found}
        with replacing(self.record) as beside:
            text = json.dumps(held, ensure_ascii=False, default=lambda array: array.tolist())
            beside.write_text(text + "\n", encoding="utf-8")

    @property
    def input(self) -> dict[str, Any]:
        """By what a file is known again."""
        (path,) = self.source.paths
        state = path.stat()
        # a copy may keep the time it was written, and not that of its own inode
        return {
            "file": path.name,
            "bytes": state.st_size,
            "modified": state.st_mtime_ns,
            "placed": state.st_ctime_ns,
        }

    @property
    def _output(self) -> dict[str, Any]:
        state = self.out.stat()
        return {"bytes": state.st_size, "modified": state.st_mtime_ns}


def check_alike(source: TableFiles, columns: Collection[str]) -> None:
    """Refuses a file with other columns than the first one has."""
    check_columns(column_names(source), columns, source, "the first file")


def parts_of(source: TableFiles, folder: Path) -> list[TablePart]:
    """One part for each file, whose output has its name and, where it can be written, its format."""
    if source.title is not None:
        raise InputError(
            f"{source}: is not a file, and a folder gets one for each", Remedy("out", None, "for a file")
        )
    paths = [Path(os.path.abspath(path)) for path in source.paths]  # noqa: PTH100 - without "..", which would lead out
    base = Path(os.path.commonpath([path.parent for path in paths]))
    parts = []
    for number, (path, place) in enumerate(zip(source.paths, paths, strict=True)):
        form = source.form(path)
        name = place.relative_to(base)
        stem = without_compression(name).name.rpartition(".")[0] or name.name
        out = folder / name.parent / f"{stem}.{form if form in TABLES else 'parquet'}"
        parts.append(TablePart(number, replace(source, paths=(path,)), out))
    if len({part.out for part in parts}) < len(parts):
        twice = next(part for part in parts if any(o.out == part.out and o is not part for o in parts))
        raise DataError(f"{twice.source}: another file has the same name, and so would its output", "rename one")
    return parts


@contextmanager
def open_folders(
    planned: Mapping[Path, Sequence[TablePart]], question: str, *, force: bool, resume: bool
) -> Iterator[None]:
    """Makes the folders of outputs, into which nobody else writes meanwhile; of parts only finished ones are there.

    Refuses a folder that holds something, unless it is to be replaced or completed. What earlier runs made of files
    that are no longer among the parts is removed with `force`, and refused else.
    """
    every = [part for parts in planned.values() for part in parts]
    for part in every:
        check_replaceable(part.out)
    gone = {record for folder in planned for record in _others(folder, every, force, resume)}
    with ExitStack() as held:
        for folder in planned:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock_folder(folder, wait=False))
        for record in gone:
            _output_of(record).unlink(missing_ok=True)
            record.unlink(missing_ok=True)
        for part in every:
            part.out.parent.mkdir(parents=True, exist_ok=True)
            if not resume or part.read_result(question) is None:
                part.record.unlink(missing_ok=True)
                part.out.unlink(missing_ok=True)
        yield


def _others(folder: Path, parts: Sequence[TablePart], force: bool, resume: bool) -> list[Path]:
    """The records in a folder of parts that are not given now; refuses a folder that may not be written to."""
    if (folder / MODEL_HEAD).exists():
        raise InputError(f"{folder}: holds a model", "name another folder")
    given = {path.resolve() for part in parts for path in part.source.paths}
    if own := next((part.out for part in parts if part.out.resolve() in given), None):
        raise InputError(f"{own}: is read, and would be replaced", "name another folder")
    inside = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    if folder.is_file() or (inside and not force and not resume):
        ways = [
            Remedy("resume", True, "to go on with what is not finished"),
            Remedy("force", True, "to replace it"),
        ]
        raise InputError(f"{folder}: exists already", *ways)
    records = {part.record for part in parts}
    gone = [path for path in inside if path.match(_RECORD.format("*")) and path not in records]
    if gone and not force:
        problem = f"{_output_of(gone[0])}: was made of a file that is not given now"
        raise InputError(problem, "remove it", Remedy("force", True))
    return gone


def _output_of(record: Path) -> Path:
    return record.with_name(record.name.removeprefix(".").removesuffix(_RECORD.format("")[1:]))


def check_complete(parts: Sequence[TablePart], *outputs: Sequence[Path]) -> None:
    """Refuses a part whose rows are not all in its outputs, as far as files say how many they have.

    `outputs` have the places of each part.
    """
    for part, *places in zip(parts, *outputs, strict=True):
        rows, written = row_count(part.source), [place for place in places if place.is_file()]
        held = row_count(written) if written else 0
        if None not in (rows, held) and held != rows:
            part.record.unlink(missing_ok=True)
            problem = f"{part.source}: has {rows:,} rows, and {' and '.join(map(str, places))} {held:,}"
            raise DataError(problem, Remedy("resume", True, "to make it again"))


def digest_of(described: Mapping[str, Any], source: TableFiles) -> str:
    """A digest of plain data and of how files are read, by which questions are compared."""
    read = [source.delimiter, source.encoding, source.decimal]
    asked = {**described, "reading": read, "setwise": __version__}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
