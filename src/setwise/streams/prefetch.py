"""An iterator that a thread works ahead of: one item is made while the one before is used.

Arrow and numpy let go of the interpreter while they read, compute and write, so that stages run side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")
_END: Any = object()


@contextmanager
def ahead(items: Iterator[_T]) -> Iterator[Iterator[_T]]:
    """The items, of which one is made before it is asked for; an error arises where it would have.

    >>> with ahead(iter(range(3))) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """
    try:
        with ThreadPoolExecutor(max_workers=1) as worker:
            yield _ahead(items, worker)
    finally:
        if hasattr(items, "close"):
            items.close()


def _ahead(items: Iterator[_T], worker: ThreadPoolExecutor) -> Iterator[_T]:
    coming = worker.submit(next, items, _END)
    while (item := coming.result()) is not _END:
        coming = worker.submit(next, items, _END)
        yield item
