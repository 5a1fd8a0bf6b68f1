"""An iterator that a thread works ahead of: one item is made while the one before is used.

Arrow and numpy let go of the interpreter while they read, compute and write, so that stages run side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Any, TypeVar

_T = TypeVar("_T")
_END = object()


@contextmanager
def ahead(items: Generator[_T, None, None] | Iterator[_T]) -> Iterator[Iterator[_T]]:
    """The items, of which at most two are made before they are asked for; an error arises where it would have.

    >>> with ahead(iter(range(3))) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """
    held: Queue[Any] = Queue(maxsize=1)
    stopped = threading.Event()

    def work() -> None:
        try:
            for item in items:
                held.put((item, None))
                if stopped.is_set():
                    return
            held.put((_END, None))
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are used
            held.put((_END, error))

    def made() -> Iterator[_T]:
        while True:
            item, error = held.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        yield made()
    finally:
        stopped.set()
        while worker.is_alive():
            try:
                held.get(timeout=0.05)
            except Empty:
                continue
        close = getattr(items, "close", None)
        if close is not None:
            close()  # what a generator holds open, such as another of these, ends with it
