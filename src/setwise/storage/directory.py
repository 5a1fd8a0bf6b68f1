"""The parts of a directory: the files that its list names, and nothing else.

A part is a regular file inside the directory. It is read once, and what was compared with its digest is what is
parsed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setwise.storage.atomic_files import folder_of, lock_folder, open_regular, put_in_place, temporary

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


@dataclass(frozen=True)
class Part:
    """A file and the content that was read from it."""

    path: Path
    content: bytes = field(repr=False)

    def __str__(self) -> str:
        return str(self.path)


Source = str | os.PathLike[str] | Part
"""A file to read, or one that was read already."""


class Parts:
    """Parts by name; `listed` says of each its size and SHA-256."""

    def __init__(self, folder: Path, listed: Any) -> None:
        self.folder = folder
        if not isinstance(listed, Mapping):
            raise ValueError(f"{folder}: has no list of its parts.")  # noqa: TRY004 - of a file, not of an argument
        for name, noted in listed.items():
            kinds = {key: type(value) for key, value in noted.items()} if isinstance(noted, Mapping) else {}
            if not is_part_name(name) or kinds != {"sha256": str, "bytes": int}:
                raise ValueError(f"{folder}: lists {name!r}, which is no part inside it with its size and SHA-256.")
        self._listed: dict[str, Any] = dict(listed)

    def __getitem__(self, name: Any) -> Part:
        if not isinstance(name, str) or name not in self._listed:
            raise ValueError(f"{self.folder}: uses {name!r}, which is not in the list of its parts.")
        path, noted = self.folder / name, self._listed[name]
        try:
            with open_regular(path, follow=False) as file:
                size = os.fstat(file.fileno()).st_size
                if size != noted["bytes"]:
                    raise ValueError(f"{path}: {size:,} bytes, {noted['bytes']:,} expected; it is truncated.")
                content = file.read(size)
        except FileNotFoundError:
            raise ValueError(
                f"{self.folder}: the part {name} is missing; copy the whole directory, or save it again."
            ) from None
        if hashlib.sha256(content).hexdigest() != noted["sha256"]:
            raise ValueError(f"{path}: its content is not what was saved; it was changed or damaged.")
        return Part(path, content)


@contextmanager
def replacing_directory(target: Path, head: str, is_part: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder beside the target: what is written there becomes the target at the end, or nothing does.

    A new directory appears by one rename. In one that exists parts move in under their own names, the file `head`
    changes last, and then other parts go, which `is_part` knows.
    """
    with temporary(folder_of(target), target.name, folder=True) as stage:
        yield stage
        if not target.exists():
            try:
                stage.rename(target)
            except OSError:
                if not target.exists():  # it does where another process was first
                    raise
            else:
                return
        with lock_folder(target):  # or parts that another process is writing would look like leftovers
            staged = sorted(stage.iterdir(), key=lambda path: path.name == head)
            targets = [target / path.name for path in staged]
            put_in_place(staged, targets)
            for other in {*target.iterdir()} - {*targets}:
                if is_part(other):
                    other.unlink(missing_ok=True)


def listing(content: bytes) -> dict[str, Any]:
    """What a list of parts says of one with this content."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def is_part_name(name: Any) -> bool:
    """Whether this names a file inside a directory: no path, and nothing hidden."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
