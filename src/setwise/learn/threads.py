"""How many threads torch gets: small products are slower on many, and far slower on a machine that is busy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_LARGE_STEP = 100_000_000  # products of a parameter and an example


def use_one_thread() -> None:
    """One thread for torch, unless the user said how many."""
    if find_spec("torch") is not None and "OMP_NUM_THREADS" not in os.environ:
        import torch  # slow to import, needed for networks alone

        torch.set_num_threads(1)


@contextmanager
def threads_for(products: int, device: torch.device) -> Iterator[None]:
    """One thread while inside for small steps on a CPU, unless the user said how many (`OMP_NUM_THREADS`).

    Several threads wait for each other at every operation, on a busy machine ten times as long as they work.
    """
    import torch  # slow to import, needed for networks alone

    before = torch.get_num_threads()
    if device.type != "cpu" or products > _LARGE_STEP or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
