"""Notes beside tables of sets, which say that their rows differ from the calibration rows."""

from __future__ import annotations

import json
from pathlib import Path

from setwise.drift.comparison import Comparison
from setwise.storage.atomic_files import replacing
from setwise.storage.container import read_json
from setwise.tables.table_files import TableFiles


def write_note(sets: Path, comparison: Comparison) -> None:
    """Notes that the rows of a table of sets differ from the calibration rows; takes away what is not so."""
    note = _beside(sets)
    if not comparison.refuted:
        note.unlink(missing_ok=True)
        return
    with replacing(note) as beside:
        beside.write_text(json.dumps(comparison.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_note(sets: TableFiles) -> Comparison | None:
    """What was noted of the rows of tables of sets, where they differ from the calibration rows."""
    # beside a file, or beside the folder of its parts, which may stand in folders inside
    places = dict.fromkeys(place for path in sets.paths for place in (path, *path.absolute().parents[:-1]))
    return next((found for found in map(_read, places) if found is not None), None)


def _read(sets: Path) -> Comparison | None:
    """The same of one file, or of the folder of all."""
    note = _beside(sets)
    if not note.is_file():
        return None
    try:
        return Comparison.from_dict(read_json(note.read_bytes()))
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{note}: is not what `setwise predict` wrote ({error!r}); remove it.") from error


def _beside(sets: Path) -> Path:
    return sets.with_name(f"{sets.name}.differs.json")
