"""Files that appear whole or not at all: written beside their place and then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside the target: what is written there replaces the target at the end, and is removed on an error.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> with replacing(path) as beside:
    ...     _ = beside.write_text("whole")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('whole', 1)
    """
    place = Path(target)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
    beside.touch()
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
