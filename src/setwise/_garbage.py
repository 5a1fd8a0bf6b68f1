"""Stretches of work without garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Inside, garbage is not collected.

    For imports, all of which stay: looking through them again and again is a tenth of a start. And where freeing
    something would disturb.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
