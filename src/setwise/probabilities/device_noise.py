"""The hash of `row_noise` for torch tensors, in wrapping 64-bit integers."""

from __future__ import annotations

import torch
from torch import Tensor


def as_words(p: Tensor) -> Tensor:
    """The bits of each entry as one word; −0.0 is 0.0."""
    plain = p.contiguous() + 0.0
    if p.element_size() == 4:
        return plain.view(torch.int32).long() & 0xFFFFFFFF
    words = plain.view(torch.int64)
    return words ^ shift_right(words, 32)


def mix(x: Tensor) -> Tensor:
    """The splitmix64 finaliser; products of 64-bit integers wrap here as there."""
    x = (x ^ shift_right(x, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    x = (x ^ shift_right(x, 27)) * (0x94D049BB133111EB - 2**64)
    return x ^ shift_right(x, 31)


def shift_right(x: Tensor, bits: int) -> Tensor:
    """A shift to the right that brings in zeros."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
