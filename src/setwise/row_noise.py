"""One uniform number per row that depends on the row alone: u = hash(seed, key).

The key is the row's id, or else the bytes of its probabilities. A randomised score is then a fixed
function of the row: exchangeability is exact, and no set depends on batch or order.

The hash is multilinear, Σ word_j · c_j mod 2⁶⁴ over the row's words with odd multipliers c_j drawn from the
seed, finished by the splitmix64 mixer. Trailing zeros change nothing, so that padded strings hash alike.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._arrays import Array, Floats, for_blocks, frozen
from setwise._types import Seed

Words = NDArray[np.uint64]
_STREAM = np.uint64(0x9E3779B97F4A7C15)
_SAMPLING = 0x2545F4914F6CDD1D  # what tells the seed of samples from that of noise


def draw_seed(random_state: Seed) -> int:
    """A 63-bit seed: an integer as it is, a generator's next draw, or fresh entropy for None."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state: {random_state} is negative; use an integer from 0 on.")
        return int(random_state) % 2**63
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    raise TypeError(f"random_state: expected an integer, a numpy generator or None, got {random_state!r}.")


def uniforms(probabilities: Floats, seed: int, row_ids: Any = None, *, distinct: bool = False) -> Floats:
    """One number in [0, 1) for each row; `distinct` refuses ids that occur twice."""
    if row_ids is not None:
        return uniforms_of_ids(row_ids, len(probabilities), seed, distinct=distinct)
    hashes = np.empty(len(probabilities), dtype=np.uint64)
    factors = multipliers(probabilities.shape[1], seed)

    def work(block: slice) -> None:
        rows = np.ascontiguousarray(probabilities[block]) + probabilities.dtype.type(0)  # −0.0 is 0.0
        hashes[block] = _hash(as_words(rows), factors)

    for_blocks(probabilities, work)
    return _as_uniforms(hashes)


def uniforms_of_ids(row_ids: Any, n: int, seed: int, *, distinct: bool = False) -> Floats:
    """One number in [0, 1) for each of n ids."""
    ids = _as_ids(row_ids, n)
    if distinct:
        _check_distinct(ids)
    words = as_words(ids)
    return _as_uniforms(_hash(words, multipliers(words.shape[1], seed)))


def _as_uniforms(hashes: Words) -> Floats:
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53


def sampling_keys(row_ids: Any, seed: int) -> Words:
    """One 64-bit number for each id, equally likely to be any, which has nothing to do with the noise of the seed.

    >>> sampling_keys([7, 8], 0).tolist() == [*sampling_keys([7], 0), *sampling_keys([8], 0)]
    True
    """
    words = as_words(_as_ids(row_ids, len(row_ids), "sampling_ids"))
    return _hash(words, multipliers(words.shape[1], seed ^ _SAMPLING))


def _as_ids(row_ids: Any, n: int, name: str = "row_ids") -> Array:
    """The ids as (n, 1) integers, or as text of any length."""
    ids = np.asarray(row_ids.to_numpy() if hasattr(row_ids, "to_numpy") else row_ids)
    if ids.shape != (n,):
        raise ValueError(f"{name}: expected one id per row, {n} in all, got shape {ids.shape}.")
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)[:, None]
    if ids.dtype.kind in "UO" and all(isinstance(label, str) for label in ids.tolist()):
        texts = ids.astype(np.str_)
        return texts.view(np.uint32).reshape(n, texts.dtype.itemsize // 4)
    raise TypeError(f"{name}: expected integers or strings, got {ids.dtype}.")


def _check_distinct(ids: Array) -> None:
    _, first, which = np.unique(ids, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which.ravel()] != np.arange(len(ids)))
    if len(again):
        row = int(again[0])
        raise ValueError(
            f"row_ids: rows {first[which.ravel()[row]]} and {row} have the same id, and so would share their "
            "noise; give every row its own, or leave row_ids out."
        )


def as_words(rows: Array) -> Words:
    """The bits of a contiguous (n, w) array, one word per entry.

    The upper half of 64-bit entries is folded onto the lower, because multiplication carries upwards only.
    """
    if rows.itemsize == 4:
        return rows.view(np.uint32).astype(np.uint64)
    words = rows.view(np.uint64)
    return words ^ (words >> np.uint64(32))


@lru_cache(8)  # a server asks for those of one row over and over
def multipliers(n: int, seed: int) -> Words:
    """One odd number per word, then the start of the sum, all from the seed."""
    start = mix(np.array([seed], dtype=np.uint64))
    return frozen(np.append(mix(start + _STREAM * np.arange(1, n + 1, dtype=np.uint64)) | np.uint64(1), start))


def _hash(words: Words, factors: Words) -> Words:
    sums: Words = np.einsum("ij,j->i", words, factors[:-1])
    return mix(np.add(sums, factors[-1], out=sums))


def mix(x: Words) -> Words:
    """The splitmix64 finaliser (Steele, Lea and Flood, 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
