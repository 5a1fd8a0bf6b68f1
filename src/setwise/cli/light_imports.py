"""scikit-learn and Arrow without what they import along the way and no prediction needs.

That is pandas and rich, where these are installed, and the distributions of scipy: together they take as long to
import as all else that `setwise predict` needs. Only commands leave them out, whose process is their own. Whoever
imports one of them later gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from setwise._garbage import no_collection

_STATS = "scipy.stats"
_USED_LATER = {"chi2", "gmean", "rankdata", "spearmanr"}  # scikit-learn's modules import these of it by name
_IMPORTERS = ("sklearn.model_selection", "sklearn._loss", "sklearn.covariance", "sklearn.isotonic")


@cache
@no_collection()
def load_sklearn() -> None:
    """Imports what scikit-learn's classifiers, and skops, have in common."""
    with _absent("pandas", "rich.progress"), _stats_later():
        for name in _IMPORTERS:
            with suppress(ModuleNotFoundError):  # another version of scikit-learn may do without one
                import_module(name)


@cache
def settle_arrow() -> None:
    """Has Arrow look for pandas, which it does once, at the first conversion of values."""
    import pyarrow as pa  # noqa: PLC0415 - loaded when files are read

    with _absent("pandas"):
        pa.array([0.0]).to_numpy()


@contextmanager
def _absent(*names: str) -> Iterator[None]:
    """Inside, these modules are not there for whoever imports them, unless they were imported before."""
    finder = _Refusal(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Refusal(MetaPathFinder):
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname in self.names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@contextmanager
def _stats_later() -> Iterator[None]:
    """Inside, whoever imports `scipy.stats` gets a stand-in, unless it was imported before."""
    sys.modules.setdefault(_STATS, _Stats(_STATS))
    try:
        yield
    finally:
        _drop_stand_in()


class _Stats(ModuleType):
    """Imports `scipy.stats` when something of it is used, or asked for that is not in `_USED_LATER`."""

    __path__: list[str] = []  # noqa: RUF012 - that it is a package is asked by `from scipy.stats import`

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Late(name) if name in _USED_LATER else getattr(_stats(), name)


class _Late:
    """A function or distribution of `scipy.stats` that is imported when it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *given: Any, **named: Any) -> Any:
        return getattr(_stats(), self._name)(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_stats(), self._name), name)


def _stats() -> ModuleType:
    _drop_stand_in()
    return import_module(_STATS)


def _drop_stand_in() -> None:
    if isinstance(sys.modules.get(_STATS), _Stats):
        del sys.modules[_STATS]
