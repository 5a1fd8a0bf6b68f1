"""JSON in tables: read with errors that name the place, and written without NaN.

JSON lines that crash Arrow's reader are refused: brackets deeper than its stack, and null as the first line.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from setwise.errors import DataError
from setwise.storage.container import RepeatedNameError, read_json

DEEPEST = 256
"""How many levels deep lists and objects may be nested."""
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NULL = re.compile(rb"(?:\A|\n)\s*null")


def read_objects(content: str | bytes, place: str) -> Any:
    """Parses JSON; errors start with `place`, such as ``rows.json:`` or ``rows.jsonl: line 1``.

    >>> read_objects('{"id": 1, "id": 2}', "rows.jsonl: line 1")
    Traceback (most recent call last):
    setwise.errors.DataError: rows.jsonl: line 1: 'id' occurs twice in one object, as 1 and as 2; keep one of them.
    """
    try:
        return read_json(content)
    except RepeatedNameError as error:
        raise DataError(f"{place.removesuffix(':')}: {error}", "keep one of them") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place} is not JSON ({error}).") from None


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON, with NaN and infinity as null, as pandas writes them.

    >>> json_text({"x": float("nan")})
    '{"x": null}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)
        return json.dumps(finite, ensure_ascii=False, indent=indent)


def check_depth(content: bytes, where: str, first_line: int = 0) -> None:
    """Refuses JSON lines that are nested too deeply, and lines that are null.

    If every line is one object (it starts with an opening brace and ends with a closing one), a line is at most as
    deep as it has opening brackets. Other lines are counted exactly, without what stands in quotes.
    """
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
