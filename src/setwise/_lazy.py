"""What is made on first use: values of an object, and public names of a package.

`functools.cached_property` is `lazy` from Python 3.12 on. Before, each property holds one lock for all objects, so
that two threads whose properties need each other's wait forever. Here two threads may compute the same value twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
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


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]], extra: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package whose names load on first use.

    `homes` has the names of each module, and under "" those that are modules themselves. Where one needs a library
    that is not installed, the error says that `extra` brings it.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if not (home := home_of[name]):
                return import_module(f".{name}", package)
            return getattr(import_module(f".{home}", package), name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if not extra or missing == "setwise":
                raise
            raise ModuleNotFoundError(
                f"{package}.{name} needs {missing}, which is not installed: pip install '{extra}'.", name=missing
            ) from error

    names = sorted(home_of)
    return get, lambda: names, names
