"""Lines and bars on stderr about work that takes long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECONDS = 5.0
"""Before the first line, and between two."""


@contextmanager
def lines_on_stderr(state: Callable[[], str]) -> Iterator[None]:
    """Writes what `state` says, with the time so far, every few seconds; of work that ends sooner, nothing."""
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


@contextmanager
def bar_on_stderr(title: str, total: float | None, *, transient: bool = True) -> Iterator[tuple[Any, Any]]:
    """A bar of rich and its task, whose field `state` is shown beside it; a transient one goes at the end."""
    from rich import progress  # optional, and slow to import
    from rich.console import Console

    texts = (progress.TextColumn("{task.description}"), progress.TextColumn("{task.fields[state]}"))
    columns = (texts[0], progress.BarColumn(), texts[1], progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=transient) as bar:
        yield bar, bar.add_task(title, total=total, state="")
