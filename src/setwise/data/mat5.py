"""Numeric matrices out of MATLAB files of level 5 to 7 ("MAT-File Format", MathWorks).

Written here because the usual reader follows a damaged file's indices out of its memory. Nothing is believed:
every size is compared with the bytes that are there, and compressed variables unfold up to a limit only.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from setwise._arrays import Array, Ints, sizes_between
from setwise.errors import DataError

_MATRIX, _COMPRESSED = 14, 15
_SPARSE = 5
_NUMERIC = range(6, 16)  # the classes of doubles, singles and integers
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_COMPLEX = 0x08
_MAX_CELLS = 2**26  # of a sparse matrix that is unfolded: twenty times the largest known set


def read_variables(content: bytes, file: Path, wanted: Collection[str], max_bytes: int) -> dict[str, Array]:
    """The wanted matrices by name, as they are stored, sparse ones unfolded; other variables are passed over."""
    if len(content) < 128 or content[126:128] not in {b"IM", b"MI"} or 0 in content[:4]:
        raise DataError(f"{file}: not a MATLAB file of level 5 to 7; save it with `save(..., '-v7')`.")
    order: Literal["little", "big"] = "little" if content[126:128] == b"IM" else "big"
    found: dict[str, Array] = {}
    left = max_bytes
    for element in _Bytes(memoryview(content)[128:], order, file).elements():
        kind, body = element
        if kind == _COMPRESSED:
            unfolded = _decompress(body.view, file, left)
            left -= len(unfolded)
            kind, body = next(_Bytes(memoryview(unfolded), order, file).elements(), (0, body))
        if kind == _MATRIX:
            name, matrix = _variable(body, wanted)
            if matrix is not None:
                found[name] = matrix
    return found


@dataclass(frozen=True)
class _Bytes:
    """A stretch of a file, read as a sequence of tagged elements."""

    view: memoryview
    order: Literal["little", "big"]
    file: Path

    def elements(self) -> Iterator[tuple[int, _Bytes]]:
        """Type and body of each element; one that reaches beyond the stretch is an error."""
        position = 0
        while position + 8 <= len(self.view):
            kind, size, start = self._number(position), self._number(position + 4), position + 8
            if kind >> 16:  # a small element: the size shares a word with the type, the body is the next word
                kind, size, start = kind & 0xFFFF, kind >> 16, position + 4
            end = start + size
            if end > len(self.view) or (start == position + 4 and size > 4):
                raise DataError(f"{self.file}: breaks off inside a variable; fetch the file again.")
            yield kind, _Bytes(self.view[start:end], self.order, self.file)
            position = end if kind == _COMPRESSED else position + 8 if start == position + 4 else end + -end % 8

    def numbers(self, kind: int) -> Array:
        """The body as an array of the stored type."""
        dtype = np.dtype(_STORED.get(kind, "V1")).newbyteorder("<" if self.order == "little" else ">")
        if kind not in _STORED or len(self.view) % dtype.itemsize:
            raise DataError(
                f"{self.file}: a variable has data of the impossible type {kind}; fetch the file again."
            )
        return np.frombuffer(self.view, dtype=dtype)

    def _number(self, position: int) -> int:
        return int.from_bytes(self.view[position : position + 4], self.order)


def _decompress(packed: memoryview, file: Path, limit: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, limit + 1)
    except zlib.error as error:
        raise DataError(f"{file}: a compressed variable is damaged ({error}); fetch the file again.") from None
    if len(content) > limit:
        raise DataError(f"{file}: its variables decompress to more than the limit of {limit:,} bytes left.")
    if not stream.eof:
        raise DataError(f"{file}: a compressed variable breaks off; fetch the file again.")
    return content


def _variable(body: _Bytes, wanted: Collection[str]) -> tuple[str, Array | None]:
    """Name and content of a variable; None for the content where it is not wanted."""
    parts = list(body.elements())
    if len(parts) < 3:
        raise DataError(f"{body.file}: a variable lacks its header; fetch the file again.")
    flags, dims = (part.numbers(kind) for kind, part in parts[:2])
    name = bytes(parts[2][1].view).decode("latin-1")
    if name not in wanted:
        return name, None
    kind, marks = (int(flags[0]) & 0xFF, int(flags[0]) >> 8 & 0xFF) if len(flags) else (0, 0)
    if (kind not in _NUMERIC and kind != _SPARSE) or marks & _COMPLEX:
        raise DataError(f"{body.file}: {name} is not a matrix of real numbers; cells and structures are not read.")
    shape = tuple(int(size) for size in dims)
    if len(shape) != 2 or min(shape) < 0:
        raise DataError(f"{body.file}: {name} has the shape {shape}; expected rows and columns.")
    data = [part.numbers(stored) for stored, part in parts[3:]]
    if kind == _SPARSE:
        return name, _unfolded(data, (shape[0], shape[1]), name, body.file)
    if len(data) != 1 or data[0].size != shape[0] * shape[1]:
        held = data[0].size if data else 0
        raise DataError(f"{body.file}: {name} claims {shape[0]} × {shape[1]} numbers and holds {held}.")
    return name, data[0].astype(data[0].dtype.newbyteorder("=")).reshape(shape, order="F")


def _unfolded(data: list[Array], shape: tuple[int, int], name: str, file: Path) -> Array:
    """A sparse matrix by columns (row indices, column bounds, values), checked before any index is followed."""
    wrong = f"{file}: the sparse matrix {name}"
    if len(data) != 3 or any(part.dtype.kind not in "iu" for part in data[:2]):
        raise DataError(f"{wrong} lacks its indices or values; fetch the file again.")
    rows, bounds = data[0].astype(np.int64), data[1]
    held = int(bounds[-1]) if len(bounds) == shape[1] + 1 else -1
    try:
        sizes = sizes_between(bounds, held)
    except ValueError:
        raise DataError(f"{wrong} has impossible column bounds for {shape[1]} columns.") from None
    if held > min(len(rows), len(data[2])):
        raise DataError(f"{wrong} claims {held} entries and holds {min(len(rows), len(data[2]))}.")
    rows, values = rows[:held], data[2][:held]
    outside = np.flatnonzero((rows < 0) | (rows >= shape[0]))
    if len(outside):
        raise DataError(f"{wrong} has impossible indices: {rows[outside[0]]} among {shape[0]} rows.")
    if shape[0] * shape[1] > _MAX_CELLS:
        raise DataError(f"{wrong} claims {shape[0]:,} × {shape[1]:,} cells, too many to unfold.")
    columns: Ints = np.repeat(np.arange(shape[1]), sizes)
    flags = bool(((values == 0) | (values == 1)).all())
    dense = np.zeros(shape, dtype=np.uint8 if flags else np.float64)
    dense[rows, columns] = values
    return dense
