"""Refuses JSON lines that crash Arrow's reader: brackets deeper than its stack, and null as the first line.

If every line is one object (it starts with an opening brace and ends with a closing one), a line is at most as deep
as it has opening brackets. Other lines are counted exactly, without what stands in quotes.
"""

from __future__ import annotations

import re

import numpy as np

from setwise.errors import DataError

DEEPEST = 256
"""How many levels deep lists and objects may be nested."""
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NULL = re.compile(rb"(?:\A|\n)\s*null")


def check_depth(content: bytes, where: str, first_line: int = 0) -> None:
    """Refuses JSON lines that are nested too deeply, and lines that are null."""
    if all(map(_is_shallow_object, content.strip().splitlines())):
        return
    if found := _NULL.search(content):
        line = first_line + content.count(b"\n", 0, found.end()) + 1
        raise DataError(f'{where}: line {line} is null; expected {{"column": value, …}}.')
    brackets = np.frombuffer(_QUOTED.sub(b"", content), dtype=np.uint8) | 0x20  # "[" and "{" differ in one bit
    depth = np.cumsum((brackets == ord("{")).astype(np.int64) - (brackets == ord("}")))
    if depth.max(initial=0) > DEEPEST:
        raise DataError(f"{where}: lists and objects are nested more than {DEEPEST} levels deep; flatten them.")


def _is_shallow_object(line: bytes) -> bool:
    few = len(line) <= DEEPEST or line.count(b"{") + line.count(b"[") <= DEEPEST
    return few and line.startswith(b"{") and line.endswith(b"}")
