"""Which packages setwise asks for, by extra ("core" is none), and what they bring with them here."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

USED = ("core", "data", "report", "cli", "learn", "excel", "scale", "mlflow")
"""What users install; the other extras are for developers."""


def declared(extra: str) -> set[str]:
    """The packages that an extra asks for."""
    core = {name for name, _ in _asked("setwise")}
    return core if extra == "core" else {name for name, _ in _asked("setwise", [extra])} - core


def brought(extra: str) -> set[str]:
    """The packages that come with an extra, those that the core needs too aside."""
    core = _closure("setwise")
    return core - {"setwise"} if extra == "core" else _closure("setwise", [extra]) - core


def installed(package: str) -> str | None:
    """Its version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _closure(package: str, having: Iterable[str] = ()) -> set[str]:
    waiting, seen = [(package, frozenset(having))], set[tuple[str, frozenset[str]]]()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += _asked(*one)
    return {name for name, _ in seen}


def _asked(package: str, having: Iterable[str] = ()) -> Iterator[tuple[str, frozenset[str]]]:
    """The requirements of a package that hold on this machine, with some of its extras."""
    lines = () if installed(package) is None else importlib.metadata.requires(package) or ()
    settings = [{"extra": extra} for extra in ("", *having)]
    for needs in map(Requirement, lines):
        if needs.marker is None or any(needs.marker.evaluate(setting) for setting in settings):
            yield canonicalize_name(needs.name), frozenset(needs.extras)
