"""Arrays that belong to whoever gave them, kept without a copy: what is asked later sees whether they were changed.

The digest of an array is the exclusive or of its words in lanes, which are multiplied by an odd number before each
block of rows. There are more lanes than a block has rows, and a prime number of them, so that a column has its own
lane in each row: whatever changes an entry, or the place of one, changes the digest, but for chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints, blocks
from setwise.errors import InputError
from setwise.probabilities.proposed_labels import Proposals, most_probable

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different lanes stay different
_FEWEST = 1000  # lanes


class Digest:
    """Blocks of rows are added in their order; none has more rows than the first."""

    def __init__(self) -> None:
        self.lanes: Array = np.zeros(0, dtype=np.uint64)

    def add(self, rows: Floats) -> None:
        """Adds a block."""
        words = np.ascontiguousarray(rows).reshape(-1).view(f"u{rows.itemsize}")
        if not len(self.lanes):
            self.lanes = np.zeros(_prime(max(len(rows), _FEWEST), rows.shape[-1]), dtype=np.uint64)
        whole = len(words) // len(self.lanes) * len(self.lanes)
        self.lanes *= _FACTOR
        self.lanes ^= np.bitwise_xor.reduce(words[:whole].reshape(-1, len(self.lanes)), axis=0)
        self.lanes[: len(words) - whole] ^= words[whole:]

    @classmethod
    def of(cls, array: Floats, parts: Iterable[slice] | None = None) -> Digest:
        """That of a whole array, in these parts."""
        digest = cls()
        for rows in blocks(array) if parts is None else parts:
            digest.add(array[rows])
        return digest

    def check(self, array: Floats) -> None:
        """Refuses an array that is not the one whose digest this is."""
        if not np.array_equal(Digest.of(array).lanes, self.lanes):
            raise InputError(
                "probabilities: the array was changed after it was calibrated on", "calibrate on a copy of it"
            )


def _prime(least: int, width: int) -> int:
    """The first prime above a number that does not divide the number of columns.

    >>> _prime(1000, 100), _prime(1000, 1009)
    (1009, 1013)
    """
    number = least + 1
    while width % number == 0 or any(number % factor == 0 for factor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


class LaterProposals:
    """The most probable labels, as `Proposals`: found, and the array given back, when one of them is asked for."""

    def __init__(self, array: Floats, digest: Digest) -> None:
        self._kept: tuple[Floats, Digest] | None = array, digest
        self._found: Proposals | None = None

    @property
    def found(self) -> Proposals:
        """All of them."""
        kept = self._kept
        if self._found is None and kept is not None:
            array, digest = kept
            digest.check(array)
            self._found, self._kept = most_probable(array), None
        assert self._found is not None  # noqa: S101 - it is set before the array is given back
        return self._found

    @property
    def label(self) -> Ints:
        """The position of the most probable label of each row."""
        return self.found.label

    @property
    def confidence(self) -> Floats:
        """Its probability."""
        return self.found.confidence

    def __getitem__(self, rows: Ints) -> Proposals:
        return self.found[rows]

    def __reduce__(self) -> tuple[Any, ...]:
        return Proposals, (self.label, self.confidence)
