r"""How deep JSON lines are nested: looked at before Arrow's reader, which follows brackets until its stack ends.

Where every line is one object (it ends in ``}`` and the next one starts with ``{``, which JSON allows between
objects alone), a line is at most as deep as it has opening brackets, and few lines have many. Others are counted
exactly, with what stands in quotes left out.
"""

from __future__ import annotations

import re

import numpy as np

from setwise.errors import DataError

DEEPEST = 100
"""Lists and objects in each other that a table may hold."""
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)


def check_depth(content: bytes, where: str) -> None:
    """Refuses JSON lines that are nested deeper than any table."""
    if content.count(b"[") + content.count(b"{") <= DEEPEST:
        return
    lines = content.strip()
    ends = lines.count(b"\n")
    if lines.count(b"}\n{") + lines.count(b"}\r\n{") == ends and _most_openings(lines) <= DEEPEST:
        return
    if _depth(_QUOTED.sub(b"", lines)) > DEEPEST:
        raise DataError(f"{where}: is nested more than {DEEPEST} lists and objects deep, which no table is.")


def _most_openings(lines: bytes) -> int:
    """How many opening brackets the line with most of them has."""
    read = np.frombuffer(lines, dtype=np.uint8)
    opening = np.flatnonzero((read | 0x20) == ord("{"))  # "[" and "{" differ in one bit
    line = np.searchsorted(np.flatnonzero(read == ord("\n")), opening)
    return int(np.bincount(line).max())


def _depth(bare: bytes) -> int:
    """How deep brackets are nested."""
    read = np.frombuffer(bare, dtype=np.uint8) | 0x20
    return int(np.cumsum((read == ord("{")).astype(np.int64) - (read == ord("}"))).max(initial=0))
