"""How much a packed file may unpack to: one limit for every reader.

A file may unpack to 2 GiB, or to 20 times its own size where that is more. The environment variable
``SETWISE_MAX_UNPACKED`` sets another number of bytes; it may end in K, M, G or T.
"""

from __future__ import annotations

import os
import re

from setwise.errors import DataError

VARIABLE = "SETWISE_MAX_UNPACKED"
"""The environment variable that sets the limit."""
_USUAL = 2 * 2**30
_TIMES = 20
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def unpack_limit(packed: int) -> int:
    """The most bytes that a file of so many bytes may unpack to."""
    said = os.environ.get(VARIABLE)
    if not said:
        return max(_USUAL, _TIMES * packed)
    written = re.fullmatch(r"(\d{1,18})([KMGT]?)", said.strip().upper())
    if written is None:
        raise ValueError(f"{VARIABLE}: {said!r} is not a number of bytes, such as 8000000000 or 8G.")
    return int(written[1]) * _UNITS[written[2]]


def check_unpacked(where: object, packed: int, unpacked: int) -> None:
    """Refuses a file that says, or shows, that it unpacks to more than it may."""
    limit = unpack_limit(packed)
    if unpacked > limit:
        raise too_large(where, limit)


def too_large(where: object, limit: int) -> DataError:
    """The error about a file that unpacks to more than the limit."""
    problem = f"{where}: unpacks to more than {limit:,} bytes, as damaged and malicious files do"
    return DataError(problem, f"set the environment variable {VARIABLE} to a larger number if you trust it")
