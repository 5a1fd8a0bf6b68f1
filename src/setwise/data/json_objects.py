"""JSON whose objects say everything once: of two values under one name readers keep one, and not all the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from setwise.errors import DataError


def read_objects(content: str | bytes, place: str) -> Any:
    """What JSON says; errors start with `place`, such as ``rows.json:`` or ``rows.jsonl: line 1``.

    >>> read_objects('{"id": 1, "id": 2}', "rows.jsonl: line 1")
    Traceback (most recent call last):
    setwise.errors.DataError: rows.jsonl: line 1: 'id' occurs twice in one object, as 1 and as 2; keep one of them.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            first, second = [repr(value)[:40] for name, value in pairs if name == twice][:2]
            problem = f"{place.removesuffix(':')}: {twice!r} occurs twice in one object, as {first} and as {second}"
            raise DataError(problem, "keep one of them")
        return found

    try:
        return json.loads(content, object_pairs_hook=once)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place} is not JSON ({error}).") from None
