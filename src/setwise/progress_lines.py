"""Lines on stderr about work that takes long; work that ends sooner writes nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 5.0
"""Before the first line, and between two."""


@contextmanager
def lines_on_stderr(state: Callable[[], str]) -> Iterator[None]:
    """Writes what `state` says, with the time so far, every few seconds while the work inside runs."""
    start, done = time.perf_counter(), threading.Event()

    def tell() -> None:
        while not done.wait(SECONDS):
            sys.stderr.write(f"{state()}: {time.perf_counter() - start:.0f} s so far\n")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
