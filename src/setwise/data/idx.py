"""The idx format of the MNIST family: a magic number, the sizes, then the bytes; often gzipped.

The header is not believed: what it claims is compared with what the file can hold before anything of that
size is allocated, and never more is decompressed than was claimed.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from setwise._arrays import Array
from setwise.errors import DataError
from setwise.limits import unpack_limit

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_EMPTY = 2**31  # bytes that the other sides of an array without entries may claim: numpy multiplies them
_DEFLATE_LIMIT = 1032  # deflate cannot shrink data more than that


def read_idx(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Array:
    """The array in an idx file, gzipped or not, in the machine's byte order.

    Parameters
    ----------
    path
        The file; compression is recognised by content, not by name.
    max_bytes
        Refuse files that claim to hold more than this; by default `setwise.limits` says.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "labels-idx1-ubyte")
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9]))
    >>> read_idx(path)
    array([7, 0, 9], dtype=uint8)
    """
    header, payload = read_idx_bytes(path, max_bytes=max_bytes)
    return decode_idx(header, payload)


def read_idx_bytes(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> tuple[bytes, bytearray]:
    """Header and payload of an idx file, decompressed; together they are the content that has a checksum."""
    file = Path(path)
    limit = file.stat().st_size
    max_bytes = unpack_limit(limit) if max_bytes is None else max_bytes
    with file.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        try:
            if packed:
                with gzip.open(raw, "rb") as stream:
                    return _read(stream, file, min(limit * _DEFLATE_LIMIT, max_bytes))  # type: ignore[arg-type]
            return _read(raw, file, min(limit, max_bytes))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{file}: the gzip data break off or are damaged ({error}); fetch the file again."
            ) from None


def decode_idx(header: bytes, payload: bytearray) -> Array:
    """The array that header and payload describe."""
    shape = struct.unpack(f">{header[3]}I", header[4:])
    array = np.frombuffer(payload, dtype=_TYPES[header[2]]).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _read(stream: BinaryIO, file: Path, limit: int) -> tuple[bytes, bytearray]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES or not 1 <= magic[3] <= 8:
        raise DataError(f"{file}: not an idx file (it starts with {magic.hex(' ') or 'nothing'}); fetch it again.")
    sizes = stream.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise DataError(f"{file}: the idx header breaks off after {4 + len(sizes)} bytes; fetch the file again.")
    shape = struct.unpack(f">{magic[3]}I", sizes)
    wide = np.dtype(_TYPES[magic[2]]).itemsize
    claimed = wide * math.prod(shape)  # Python integers: no overflow
    if claimed > limit or wide * math.prod(filter(None, shape)) > max(limit, _EMPTY):
        described = " × ".join(map(str, shape))
        raise DataError(
            f"{file}: the idx header claims {described} = {claimed:,} bytes, more than such a file can hold or "
            f"may claim ({limit:,}); fetch the file again."
        )
    payload = bytearray()
    while len(payload) < claimed and (chunk := stream.read(min(claimed - len(payload), 2**24))):
        payload += chunk
    if len(payload) < claimed:
        raise DataError(
            f"{file}: {len(payload):,} bytes of data where the header claims {claimed:,}; fetch the file again."
        )
    if stream.read(1):
        raise DataError(f"{file}: more data than the {claimed:,} bytes the header claims; fetch the file again.")
    return magic + sizes, payload
