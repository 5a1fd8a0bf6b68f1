"""scikit-learn and Arrow without pandas and rich, which they import where they find them and no prediction needs.

Only commands leave them out, whose process is their own. Whoever imports one of them later gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Any


@cache
def load_sklearn() -> None:
    """Imports what scikit-learn's classifiers have in common."""
    with _absent("pandas", "rich.progress"):  # bars of scikit-learn: no command shows them
        import_module("sklearn.model_selection")


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
