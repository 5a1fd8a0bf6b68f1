"""Who works through the parts of a table: this process (`local`), or the nodes of a cluster (`ray`).

An engine is a function ``run(parts, worker)`` that gives each part to the worker, or to a copy of it elsewhere, and
yields what comes back, in the order of the parts. A worker is a function of a part that is safe to repeat: it
writes the part's output whole or not at all. Workers, parts and what workers return can be pickled; the text of a
part names it in errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from setwise.errors import InputError
from setwise.streams.ray_engine import RayEngine

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


class Engine(Protocol):
    """Works through parts."""

    def __call__(self, parts: Iterable[_Part], worker: Callable[[_Part], _Result]) -> Iterator[_Result]:
        """What the worker returns for each part, in the order of the parts."""


def run_local(parts: Iterable[_Part], worker: Callable[[_Part], _Result]) -> Iterator[_Result]:
    """In this process, part by part.

    >>> list(run_local([1, 2], lambda part: 10 * part))
    [10, 20]
    """
    yield from map(worker, parts)


def engine_of(name: str = "local", address: str | None = None, device: str = "cpu") -> Engine:
    """The engine of a name; `address` is where a cluster is, `device` what a part needs there."""
    if name == "ray":
        return RayEngine(address, device)
    if name != "local":
        raise InputError(f"engine: {name!r} is not known; use one of {', '.join(ENGINES)}")
    if address is not None:
        raise InputError("address: the local engine works in this process, and has none", "leave it out")
    return run_local


ENGINES = ("local", "ray")
"""The names of engines."""
