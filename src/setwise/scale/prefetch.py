"""An iterator that a thread works ahead of: one item is made while the one before is used.

Arrow and numpy let go of the interpreter while they read, compute and write, so that stages run side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")
_END = object()


@contextmanager
def ahead(items: Iterator[_T]) -> Iterator[Iterator[_T]]:
    """The items, of which at most two are made before they are asked for; an error arises where it would have.

    >>> with ahead(iter(range(3))) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """
    made = _Ahead(items)
    try:
        yield made
    finally:
        made.stop()


class _Ahead(Generic[_T]):
    """The items and the thread that makes them."""

    def __init__(self, items: Iterator[_T]) -> None:
        self._items, self._held, self._stopped = items, Queue[Any](maxsize=1), threading.Event()
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    def __iter__(self) -> Iterator[_T]:
        return self

    def __next__(self) -> _T:
        item, error = self._held.get()
        if error is not None:
            raise error
        if item is _END:
            self._held.put((_END, None))  # however often it is asked
            raise StopIteration
        found: _T = item
        return found

    def stop(self) -> None:
        """Ends the thread, and whatever a generator of items holds open."""
        self._stopped.set()
        while self._worker.is_alive():
            try:
                self._held.get(timeout=0.05)
            except Empty:
                continue
        if hasattr(self._items, "close"):
            self._items.close()

    def _work(self) -> None:
        try:
            for item in self._items:
                self._held.put((item, None))
                if self._stopped.is_set():
                    return
            self._held.put((_END, None))
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are used
            self._held.put((_END, error))
