"""The idx format of the MNIST family: a magic number, the sizes, then the values."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from setwise._arrays import Array
from setwise.errors import DataError
from setwise.storage.limits import too_large, unpack_limit

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def decompress(place: Path) -> bytes:
    """The content of a file, decompressed where it is gzip by content: this is what has a known checksum."""
    content = place.read_bytes()
    if not content.startswith(b"\x1f\x8b"):
        return content
    limit, stream = unpack_limit(len(content)), zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(content, limit + 1)
    except zlib.error as error:
        raise DataError(f"{place}: the gzip data are damaged ({error}); fetch the file again.") from None
    if len(content) > limit:
        raise too_large(place, limit)
    if not stream.eof or stream.unused_data:
        raise DataError(f"{place}: the gzip data break off, or are followed by others; fetch the file again.")
    return content


def read_idx(content: bytes, place: Path) -> Array:
    """The array in the content of an idx file, in the machine's byte order.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9]), Path("labels"))
    array([7, 0, 9], dtype=uint8)
    """
    try:
        zero, kind, sides = struct.unpack(">HBB", content[:4])
        shape, dtype = struct.unpack(f">{sides}I", content[4 : 4 + 4 * sides]), np.dtype(_TYPES[zero << 8 | kind])
        array = np.frombuffer(content, dtype, offset=4 + 4 * sides).reshape(shape)
    except (struct.error, KeyError, ValueError) as error:
        raise DataError(f"{place}: not an idx file ({error}).") from None
    return array.astype(dtype.newbyteorder("="), copy=False)
