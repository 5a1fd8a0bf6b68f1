"""Array types, and a few small operations that several modules share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.signedinteger[Any]]
Bools = NDArray[np.bool_]

_BLOCK_BYTES = 2**21  # a block and its temporaries should stay near the cores

_THREADS = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

_A = TypeVar("_A", bound=Array)


def frozen(array: _A) -> _A:
    """The array itself, no longer writeable."""
    array.flags.writeable = False
    return array


def count_true(mask: Bools) -> Ints:
    """How many entries of each row are true (bits packed and counted: many times faster than a sum)."""
    counts: Ints = np.bitwise_count(np.packbits(mask, axis=1)).sum(axis=1, dtype=np.int64)
    return counts


def compress(mask: Bools, sizes: Ints) -> tuple[Ints, Ints]:
    """A mask as `(indptr, indices)`: row i holds positions ``indices[indptr[i]:indptr[i + 1]]``."""
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    for block in blocks(mask):
        starts = np.arange(block.stop - block.start) * mask.shape[1]
        flat = np.flatnonzero(mask[block])
        indices[indptr[block.start] : indptr[block.stop]] = flat - np.repeat(starts, sizes[block])
    return indptr, indices


def row_positions(key: Any, n: int, instead: str) -> Ints:
    """The positions that an index selects among n rows; an index of columns is refused with what to use instead."""
    if isinstance(key, tuple):
        key, *rest = key
        if any(part is not Ellipsis and part != slice(None) for part in rest):
            raise IndexError(instead)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        key = [key]
    positions: Ints = np.arange(n)[key if isinstance(key, (slice, list)) else np.asarray(key)]
    return positions


def take_rows(sizes: Ints, chosen: Ints) -> Ints:
    """Where the entries of the chosen rows stand in an array that holds `sizes[i]` entries for row i."""
    starts, taken = np.cumsum(sizes) - sizes, sizes[chosen]
    places: Ints = np.arange(taken.sum()) + np.repeat(starts[chosen] - (np.cumsum(taken) - taken), taken)
    return places


def along_rows(values: _A, columns: Ints) -> _A:
    """The entries of each row at some columns: as `np.take_along_axis` does it along the rows, and faster."""
    starts = np.arange(len(values)) * values.shape[1]
    taken: _A = values.ravel().take(columns + starts[:, None])
    return taken


def for_blocks(array: Array, work: Callable[[slice], Any]) -> list[Any]:
    """What `work` returns for each block of rows, in order; several threads share the blocks of a large array.

    numpy lets go of the interpreter while it sorts and sums, so threads pay; blocks are independent, so the
    result does not depend on them.
    """
    parts = list(blocks(array))
    if len(parts) < 2 * _THREADS or _THREADS == 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, parts))


def blocks(array: Any, temporaries: int = 1) -> Iterator[slice]:
    """Slices of rows whose block of this array stays in cache, with so many temporaries of its size."""
    width = array.itemsize * math.prod(array.shape[1:]) * temporaries
    step = max(1, _BLOCK_BYTES // max(width, 1))
    return (slice(start, min(start + step, len(array))) for start in range(0, len(array), step))
