"""Refuses JSON lines that crash Arrow's reader: brackets deeper than its stack, and null as the first line.

If every line is one object (it ends in a closing brace, and the next line starts with an opening one), a line is at
most as deep as it is long, and as it has opening brackets. Other lines are counted exactly, without what stands in
quotes, and none of them may be null.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from setwise._arrays import Array, Bools, Ints
from setwise.errors import DataError

DEEPEST = 256
"""How many levels deep lists and objects may be nested."""
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NULL = re.compile(rb"(?:\A|\n)\s*null")
_BLOCK = 2**17
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"


def check_depth(content: bytes, where: str, first_line: int = 0) -> None:
    """Refuses JSON lines that are nested too deeply, and lines that are null."""
    lines = content.strip()
    read = np.frombuffer(lines, dtype=np.uint8)
    ends = _positions(read, lambda part: part == _NEWLINE)
    if _are_objects(read, ends) and _most_openings(read, ends) <= DEEPEST:
        return
    if found := _NULL.search(content):
        line = first_line + content.count(b"\n", 0, found.end()) + 1
        raise DataError(f'{where}: line {line} is null; expected {{"column": value, …}}.')
    if _depth(_QUOTED.sub(b"", lines)) > DEEPEST:
        raise DataError(f"{where}: lists and objects are nested more than {DEEPEST} levels deep; flatten them.")


def _are_objects(read: Array, ends: Ints) -> bool:
    """Whether each line starts with an opening brace and, unless it is the last, ends with a closing one."""
    last = ends - 1 - (read[ends - 1] == _RETURN)
    return bool((read[:1] == _OPEN).all() and (read[last] == _CLOSE).all() and (read[ends + 1] == _OPEN).all())


def _most_openings(read: Array, ends: Ints) -> int:
    """The largest number of opening brackets in a line; for short lines, of bytes."""
    longest = int(np.diff(ends, prepend=-1, append=len(read)).max())
    if longest <= DEEPEST:
        return longest
    opening = _positions(read, lambda part: (part | 0x20) == _OPEN)  # "[" and "{" differ in one bit
    return int(np.bincount(np.searchsorted(ends, opening)).max(initial=0))


def _positions(read: Array, test: Callable[[Array], Bools]) -> Ints:
    """The positions of bytes that pass a test, searched in blocks that stay in cache."""
    starts = range(0, len(read) + 1, _BLOCK)
    return np.concatenate([start + np.flatnonzero(test(read[start : start + _BLOCK])) for start in starts])


def _depth(bare: bytes) -> int:
    """How deeply brackets are nested."""
    read = np.frombuffer(bare, dtype=np.uint8) | 0x20
    return int(np.cumsum((read == _OPEN).astype(np.int64) - (read == _CLOSE)).max(initial=0))
