"""Array types, and a few small operations that several modules share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.signedinteger[Any]]
Bools = NDArray[np.bool_]

_BLOCK_BYTES = 2**21  # a block and its temporaries should stay in cache

_THREADS = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

_A = TypeVar("_A", bound=Array)


def is_tensor(values: Any) -> bool:
    """Whether this is a torch tensor; works without torch."""
    return type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "device")


def on_device(values: Any) -> bool:
    """Whether this is a torch tensor outside the memory of the host."""
    return is_tensor(values) and values.device.type != "cpu"


def frame_columns(values: Any) -> list[str] | None:
    """The column names of a frame, if all are text; otherwise None."""
    columns = list(getattr(values, "columns", []))
    return columns if columns and all(isinstance(column, str) for column in columns) else None


def column_numbers(values: Any) -> list[int] | None:
    """The column names of a frame as whole numbers, if all are such and they do more than count columns from 0."""
    texts = [str(column).removesuffix(".0") for column in getattr(values, "columns", [])]
    numbers = [int(text) for text in texts if text.removeprefix("-").isdecimal()]
    return numbers if len(numbers) == len(texts) and numbers != [*range(len(texts))] else None


def frozen(array: _A) -> _A:
    """The same array, made read-only."""
    array.flags.writeable = False
    return array


def concatenate(arrays: Sequence[Array]) -> Array:
    """Concatenates arrays; if their kinds differ, even in sign alone, the values stay as they are, as objects."""
    alike = len({array.dtype.kind for array in arrays}) == 1
    return np.concatenate(arrays if alike else [array.astype(object) for array in arrays])


def count_true(mask: Bools) -> Ints:
    """How many entries of each row are true. Counting packed bits is many times faster than a sum."""
    counts: Ints = np.bitwise_count(np.packbits(mask, axis=1)).sum(axis=1, dtype=np.int64)
    return counts


def compress(mask: Bools) -> tuple[Ints, Ints]:
    """A mask as `(indptr, indices)`: row i holds positions ``indices[indptr[i]:indptr[i + 1]]``."""
    n, k = mask.shape
    indptr, indices = np.zeros(n + 1, dtype=np.int64), [np.empty(0, dtype=np.int32)]
    for block in blocks(mask):
        flat = mask[block].ravel().nonzero()[0]
        rows = flat // max(k, 1)
        indptr[1:][block] = np.bincount(rows, minlength=block.stop - block.start)
        indices.append((flat - rows * k).astype(np.int32))
    return indptr.cumsum(), np.concatenate(indices)


def check_sizes(sizes: Ints, entries: int) -> None:
    """Refuses row sizes that do not add up to the number of entries."""
    counts = sizes.ndim == 1 and sizes.dtype.kind in "iu" and bool(((sizes >= 0) & (sizes <= entries)).all())
    if not counts or sum(sizes.tolist()) != entries:
        raise ValueError(f"its rows do not have {entries} entries together")


def row_positions(key: Any, n: int, instead: str) -> Ints:
    """The positions that an index selects among n rows; an index of columns is an error that says `instead`."""
    if isinstance(key, tuple):
        key, *rest = key
        if any(part is not Ellipsis and part != slice(None) for part in rest):
            raise IndexError(instead)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        key = [key]
    return np.arange(n)[key if isinstance(key, (slice, list)) else np.asarray(key)]


def take_rows(sizes: Ints, chosen: Ints) -> Ints:
    """The positions of the entries of the chosen rows in an array that holds `sizes[i]` entries for row i."""
    starts, taken = np.cumsum(sizes) - sizes, sizes[chosen]
    places: Ints = np.arange(taken.sum()) + np.repeat(starts[chosen] - (np.cumsum(taken) - taken), taken)
    return places


def entries(values: _A, rows: Ints, columns: Ints) -> _A:
    """The entries ``values[rows, columns]``, in half the time if the table is contiguous."""
    if not values.flags.c_contiguous:
        return values[rows, columns]  # type: ignore[return-value]
    taken: _A = values.ravel().take(rows * values.shape[1] + columns)
    return taken


def along_rows(values: _A, columns: Ints) -> _A:
    """The entries of each row at some columns: a faster `np.take_along_axis`."""
    starts = np.arange(len(values)) * values.shape[1]
    taken: _A = values.ravel().take(columns + starts[:, None])
    return taken


def for_blocks(array: Array, work: Callable[[slice], Any]) -> list[Any]:
    """Applies `work` to each block of rows, in order; several threads share the blocks of a large array.

    Threads pay because numpy releases the interpreter while it sorts and sums. Blocks are independent, so the
    result does not depend on the number of threads.
    """
    parts = list(blocks(array))
    if len(parts) < 2 * _THREADS or _THREADS == 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, parts))


def blocks(array: Any, temporaries: int = 1) -> Iterator[slice]:
    """Slices of rows so small that a block and so many temporaries of its size stay in cache."""
    width = array.itemsize * math.prod(array.shape[1:]) * temporaries
    step = max(1, _BLOCK_BYTES // max(width, 1))
    return (slice(start, min(start + step, len(array))) for start in range(0, len(array), step))
