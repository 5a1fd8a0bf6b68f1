"""Arrays in a zip archive as `numpy.savez` writes it, of which nothing is believed.

Every size is compared with the bytes that are there before anything of that size is made, and nothing unpacks to
more than `setwise.storage.limits` allows. Arrays of objects, which are pickles, are refused.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from threading import RLock
from tokenize import TokenError
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as np

from setwise._arrays import Array, frozen
from setwise.errors import DataError
from setwise.storage.limits import check_unpacked

BROKEN = (
    *(OSError, ValueError, LookupError, AttributeError, TypeError, EOFError, MemoryError, RuntimeError),
    *(ArithmeticError, AssertionError, SyntaxError, TokenError, BadZipFile, zlib.error, struct.error),
)
"""What readers raise over damaged files."""
PARSING = RLock()
"""Held while heads of arrays are parsed: before Python 3.11.8, two threads that do so may get a SystemError."""
_PLAIN = "biufcUSmM"  # the kinds of array that hold no objects
_SIDE = 2**20  # the longest side of an array without entries
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(file: BinaryIO, where: object, *, compressed: bool = True) -> dict[str, Array]:
    """The arrays by name, not writeable; `compressed` says whether they may be."""
    try:
        size = file.seek(0, io.SEEK_END)
        with ZipFile(file) as archive:
            members = archive.infolist()
            names = [member.filename.removesuffix(".npy") for member in members]
            if len(set(names)) < len(names):
                raise ValueError("an array occurs twice")
            if not {member.compress_type for member in members} <= {ZIP_STORED, ZIP_DEFLATED}:
                raise ValueError("it is packed in a way that numpy does not know")
            unpacked = sum(member.file_size for member in members)
            if not compressed and unpacked > size:
                raise ValueError("its arrays are larger than the file")
            check_unpacked(where, size, unpacked)
            arrays = {}
            for name, member in zip(names, members, strict=True):
                with archive.open(member) as stream:
                    arrays[name] = array_of(stream.read(member.file_size), name)
            return arrays
    except DataError:
        raise
    except BROKEN as error:
        reason = " ".join(str(error).split())[:150].rstrip(".") or type(error).__name__
        raise DataError(f"{where}: not a readable npz archive of plain arrays ({reason}).") from None


def array_of(content: bytes, name: str) -> Array:
    """The array in the bytes of an .npy file, not writeable; a ValueError says what is wrong with them."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"{name} is no array of numbers or text")
    try:
        with PARSING:
            shape, by_columns, dtype = _HEADERS[version](stream)
    except ValueError as error:  # numpy's advice is to load it unsafely
        raise ValueError(f"{name} has a header that cannot be read") from error
    if dtype.kind not in _PLAIN or dtype.itemsize == 0:
        raise ValueError(f"{name} holds {dtype}, not numbers or text")
    held, count = len(content) - stream.tell(), math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize != held or max(shape, default=0) > max(count, _SIDE):
        raise ValueError(f"{name} states the shape {shape} and holds {held:,} bytes")
    flat = np.frombuffer(content, dtype, count, stream.tell())
    if dtype.kind == "U" and not _is_unicode(flat.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))):
        raise ValueError(f"{name} holds text that is not Unicode")
    array = flat.reshape(shape, order="F" if by_columns else "C")
    return frozen(array if dtype.isnative else array.astype(dtype.newbyteorder("=")))


def check_array(
    array: Any,
    name: str,
    kinds: str,
    shape: tuple[int, ...],
    low: float = -math.inf,
    high: float = math.inf,
    *,
    gaps: bool = False,
) -> Any:
    """The array, if it has this kind and shape and its values are finite and within bounds; `gaps` may be NaN."""
    fits = isinstance(array, np.ndarray) and array.dtype.kind in kinds and array.shape == shape
    if fits and array.dtype.kind != "b":
        within = (array >= low) & (array <= high)
        if array.dtype.kind == "f":
            within = (within & np.isfinite(array)) | (np.isnan(array) & gaps)
        fits = bool(within.all())
    if not fits:
        raise ValueError(f"{name} is not what it should be, of the shape {shape} and from {low:g} to {high:g}")
    return array


def _is_unicode(codes: Array) -> bool:
    """Whether these are characters, of which Python makes text without looking."""
    return bool(((codes < 0xD800) | ((codes > 0xDFFF) & (codes <= 0x10FFFF))).all())
