"""A value computed on first use and kept, without a lock.

`functools.cached_property` is that from Python 3.12 on. Before, each property holds one lock for all objects, so
that two threads whose properties need each other's wait forever. Here two threads may compute the same value twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_T = TypeVar("_T")


class lazy(Generic[_T]):  # noqa: N801 - it is used like `property`
    """Decorates a method that is to be an attribute.

    >>> class Rows:
    ...     @lazy
    ...     def n(self):
    ...         print("counting")
    ...         return 3
    >>> rows = Rows()
    >>> rows.n, rows.n
    counting
    (3, 3)
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> _T: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        value = self.compute(owner)
        owner.__dict__[self.name] = value  # found there from now on, before this descriptor
        return value
