"""How many threads torch gets: small products are slower on many, and far slower on a machine that is busy."""

from __future__ import annotations

import os
from importlib.util import find_spec

from setwise._garbage import no_collection


def use_one_thread() -> None:
    """One thread for torch, unless the user said how many."""
    if find_spec("torch") is not None and "OMP_NUM_THREADS" not in os.environ:
        with no_collection():
            import torch  # noqa: PLC0415 - slow to import, needed for networks alone

        torch.set_num_threads(1)
