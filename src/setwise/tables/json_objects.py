"""JSON in tables: read with errors that name the place, and written without NaN."""

from __future__ import annotations

import json
from typing import Any

from setwise.errors import DataError
from setwise.storage.container import RepeatedNameError, read_json


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
