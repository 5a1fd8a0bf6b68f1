"""Whole tables into which candidate sets are written, for the commands that make candidates out of other tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setwise.cli.screen import Screen
from setwise.data.arrow_tables import arrow_table, column_names, format_of
from setwise.data.set_files import set_writer
from setwise.labels.label_sets import LabelSets


def whole_table(file: Path, out: Path, text: list[str]) -> Any:
    """The table; from text to text every column stays as it is written."""
    verbatim = {format_of(file), format_of(out)} <= {"csv", "tsv"}
    return arrow_table(file, text=column_names(file) if verbatim else text)


def write_candidates(
    screen: Screen, out: Path, sets: LabelSets, carried: dict[str, Any], column: str, separator: str
) -> None:
    """Writes the candidate sets beside the other columns, and says what was written."""
    with set_writer(out, column=column, separator=separator, sizes=False) as writer:
        writer.append(sets, carried)
    mean = float(sets.sizes.mean()) if len(sets) else 0.0
    screen.say(f"{len(sets):,} rows, {sets.n_classes:,} classes, {mean:.2f} candidates per row")
    screen.say(f"saved to {out}   try:  setwise inspect {out} --candidates {column}")
    screen.emit({"rows": len(sets), "classes": sets.n_classes, "candidates_per_row": mean, "out": str(out)})
