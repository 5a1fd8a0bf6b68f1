"""JSON in tables, with errors that name the place."""

from __future__ import annotations

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
