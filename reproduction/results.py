"""Finished cells on disk: one JSON file each, written beside its place and then renamed.

So a file under its final name is whole even if a process was killed, and a cell without a file is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduction.cells import Cell, from_settings
from setwise._lazy import lazy
from setwise.storage.atomic_files import replacing

FORMAT = "setwise-paper-cell-1"
_DIGITS = 10  # significant digits kept: beyond them the last bits of a product differ between machines


@dataclass(frozen=True, eq=False)
class Result:
    """A finished cell: what was asked, what was measured, where and how long.

    Attributes
    ----------
    cell
        What was asked.
    measured
        All measurements; see `reproduction.measure`.
    environment
        Versions and device.
    seconds
        Durations of the stages; those of a stack are shared by its cells.
    """

    cell: Cell
    measured: dict[str, Any]
    environment: dict[str, Any]
    seconds: dict[str, float]

    @lazy
    def key(self) -> str:
        """The cell's key."""
        return self.cell.key()

    def to_dict(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "format": FORMAT,
            "key": self.key,
            "settings": self.cell.settings(),
            "environment": self.environment,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "measured": shortened(self.measured),
        }


def save(result: Result, out: Path) -> Path:
    """Writes a finished cell under ``OUT/cells/``, in one step."""
    target = out / "cells" / f"{result.key}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, _lines(result.to_dict()))
    return target


def load(out: Path) -> list[Result]:
    """Every finished cell under ``OUT/cells/``, in the order of their keys."""
    return [_read(path) for path in sorted((out / "cells").glob("*.json"))]


def missing(cells: Iterable[Cell], out: Path) -> list[Cell]:
    """Those cells that have no file yet, each once."""
    return [cell for cell in dict.fromkeys(cells) if not (out / "cells" / f"{cell.key()}.json").exists()]


def write_text(path: Path, text: str) -> None:
    """Writes a file in one step."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def shortened(value: Any, digits: int = _DIGITS) -> Any:
    """The same with every float cut to so many significant digits.

    >>> shortened({"q": [0.1 + 0.2, 7]})
    {'q': [0.3, 7]}
    """
    if isinstance(value, dict):
        return {str(name): shortened(part, digits) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _lines(content: dict[str, Any]) -> str:
    """JSON with one line for each part, so that a change is seen where it is."""
    measured = content.pop("measured")
    head = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()]
    body = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in measured.items()]
    return "{" + ",\n".join([*head, '"measured": {\n' + ",\n".join(body)]) + "\n}}\n"


def _read(path: Path) -> Result:
    try:
        content = {"format": None, **json.loads(path.read_text(encoding="utf-8"))}
        cell = from_settings(content["settings"])
        result = Result(cell, content["measured"], content["environment"], content["seconds"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: not a finished cell of setwise ({error}); remove it to compute it anew."
        ) from error
    if content["format"] != FORMAT:
        raise ValueError(f"{path}: format {content['format']!r}, not {FORMAT!r}; remove it to compute it anew.")
    return result
