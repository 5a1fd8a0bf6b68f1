"""One seed per model, and the order of its examples: a function of seed and epoch alone, the same on any device.

So a model follows the same path alone and among others, and nothing need be kept to resume a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sklearn.utils import check_random_state
from torch import Tensor


def draw_seeds(random_state: Any, n: int) -> list[int]:
    """As many seeds as there are models."""
    return [int(seed) for seed in check_random_state(random_state).randint(0, 2**31 - 1, size=n)]


def permutations(seeds: Sequence[int], epoch: int, n: int, device: torch.device) -> Tensor:
    """An order of n examples for each seed, (M, n): the ranks of hashed counters, the same on any device.

    >>> permutations([0, 1], 0, 5, torch.device("cpu")).sort().values.tolist()
    [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    streams = _mixed(torch.tensor(seeds, dtype=torch.int64, device=device) + 1) + epoch
    keys = _mixed(_mixed(streams)[:, None] + torch.arange(n, device=device))
    return keys.argsort(dim=1, stable=True)


def _mixed(x: Tensor) -> Tensor:
    """Bits well mixed (the finaliser of SplitMix64), in wrapping 64-bit integers."""
    x = x * -7046029254386353131
    x = (x ^ _shifted(x, 30)) * -4658895280553007687
    x = (x ^ _shifted(x, 27)) * -7723592293110705685
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """A shift to the right that brings in zeros."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
