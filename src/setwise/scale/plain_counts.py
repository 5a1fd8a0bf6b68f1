"""What was counted of the rows of a part as plain data for JSON, which is not believed when it is read."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from setwise._arrays import Array


def as_plain(counted: Any) -> Any:
    """Nested counts as plain data: arrays as packed text, mappings as pairs.

    >>> counts = {"labels": {3: 2}, "bars": np.arange(3)}
    >>> from_plain(as_plain(counts), {"labels": {}, "bars": np.zeros(3, dtype=np.int64)})
    {'labels': {3: 2}, 'bars': array([0, 1, 2])}
    """
    if isinstance(counted, np.ndarray):
        return base64.b64encode(zlib.compress(np.ascontiguousarray(counted).tobytes(), 1)).decode()
    if isinstance(counted, Mapping):
        return [[key, as_plain(value)] for key, value in counted.items()]
    if isinstance(counted, (list, tuple)):
        return [as_plain(value) for value in counted]
    return counted


def from_plain(plain: Any, like: Any) -> Any:
    """The counts again, if they are built `like` those of no rows; else an error.

    An empty mapping stands for one from any key to a count, an empty list for one of texts; others may be empty.
    """
    if isinstance(like, np.ndarray):
        return _array(plain, like)
    if isinstance(like, Mapping):
        pairs = dict(plain)
        if not like:
            return {_as_key(key): as_count(value) for key, value in pairs.items()}
        if pairs.keys() != like.keys():
            raise ValueError("other keys")
        return {key: from_plain(pairs[key], value) for key, value in like.items()}
    if isinstance(like, (list, tuple)):
        if not isinstance(plain, list):
            raise TypeError("no list")
        if not like or not plain:
            return [_as_text(value) for value in plain]
        return type(like)(from_plain(value, own) for value, own in zip(plain, like, strict=True))
    if type(plain) is not type(like) or (isinstance(plain, (int, float)) and not 0 <= plain < math.inf):
        raise ValueError(f"{plain!r} is not like {like!r}")
    return plain


def as_count(value: Any) -> int:
    """The value, if it is a number of rows."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is no count")
    return value


def _array(plain: Any, like: Array) -> Array:
    packed = zlib.decompressobj()
    try:
        content = packed.decompress(base64.b64decode(_as_text(plain), validate=True), like.nbytes + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(content) != like.nbytes or not packed.eof:
        raise ValueError("another number of values")
    made: Array = np.frombuffer(content, dtype=like.dtype).reshape(like.shape).copy()
    if (made < 0).any():
        raise ValueError("counts below zero")
    return made


def _as_key(value: Any) -> Any:
    if type(value) not in {int, str}:
        raise TypeError(f"{value!r} is no key")
    return value


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
