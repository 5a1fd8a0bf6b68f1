"""Lines and bars on stderr about work that takes long, and text that steers no terminal."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECONDS = 5.0
"""Before the first line, and between two."""
STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves the cursor, changes colours or the direction of writing, or ends a line."""


def visible(text: str) -> str:
    r"""One line of text with control characters written out: a name in a file must not steer the terminal.

    >>> print(visible("cat\x1b[2J\nwarning: …"))
    cat\x1b[2J\nwarning: …
    """
    return STEERING.sub(lambda mark: ascii(mark[0])[1:-1], text)


@contextmanager
def lines_on_stderr(state: Callable[[], str]) -> Iterator[None]:
    """Writes what `state` says, with the time so far, every few seconds; of work that ends sooner, nothing."""
    start, done = time.perf_counter(), threading.Event()

    def tell() -> None:
        while not done.wait(SECONDS):
            sys.stderr.write(f"{visible(state())}: {time.perf_counter() - start:.0f} s so far\n")
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

    title = visible(title)
    texts = [progress.TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[state]}")]
    columns = (texts[0], progress.BarColumn(), texts[1], progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=transient) as bar:
        yield bar, bar.add_task(title, total=total, state="")
