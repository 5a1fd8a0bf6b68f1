"""One seed per model, and the order of its examples: a function of seed and epoch alone, the same on any device.

A model thus follows the same path alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sklearn.utils import check_random_state
from torch import Tensor

from setwise.probabilities.device_noise import mix


def draw_seeds(random_state: Any, n: int) -> list[int]:
    """As many seeds as there are models."""
    return [int(seed) for seed in check_random_state(random_state).randint(0, 2**31 - 1, size=n)]


def permutations(seeds: Sequence[int], epoch: int, n: int, device: torch.device) -> Tensor:
    """An order of n examples for each seed, (M, n): the ranks of hashed counters, the same on any device.

    >>> permutations([0, 1], 0, 5, torch.device("cpu")).sort().values.tolist()
    [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    streams = _hash(torch.tensor(seeds, dtype=torch.int64, device=device) + 1) + epoch
    keys = _hash(_hash(streams)[:, None] + torch.arange(n, device=device))
    return keys.argsort(dim=1, stable=True)


def _hash(x: Tensor) -> Tensor:
    """SplitMix64 of each position; products wrap."""
    return mix(x * (0x9E3779B97F4A7C15 - 2**64))
