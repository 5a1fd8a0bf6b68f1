"""What commands write: rows with labels, candidate sets, tables; into a file or to standard output."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pyarrow as pa

from setwise.cli.options import STANDARD
from setwise.cli.screen import Screen, to_standard_output
from setwise.errors import DataError, Remedy
from setwise.labels.label_sets import LabelSets
from setwise.progress_lines import visible
from setwise.storage.atomic_files import temporary
from setwise.tables.label_studio_tasks import write_tasks
from setwise.tables.rows import columns_as_written
from setwise.tables.set_files import SetWriter, set_writer, sets_format
from setwise.tables.table_files import TableFiles


def refuse_taken(columns: Iterable[str], added: Sequence[str]) -> None:
    """Refuses a table that has one of the columns already that are to be written; --answer names the first."""
    if added[0] in added[1:]:
        problem = f"{added[0]!r} is the name of another column that is written"
        raise DataError(problem, Remedy("answer", None, "for another name"))
    if taken := [name for name in added if name in columns]:
        renamed = [Remedy("answer", None, "for another name")] if taken[0] == added[0] else []
        raise DataError(f"there is a column {taken[0]!r} already, and the output needs it", "rename it", *renamed)


def output_columns(source: TableFiles, out: Path, text: Sequence[str] = ()) -> dict[str, Any]:
    """The columns of a table as they are written to `out`."""
    return columns_as_written(source, "csv" if out == STANDARD else sets_format(out), text=text)


def take(columns: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """The columns of some rows."""
    return {name: values.take(pa.array(rows, pa.int64())) for name, values in columns.items()}


def write_rows(
    out: Path,
    columns: Mapping[str, Any],
    *,
    proposal: Sequence[str] = (),
    labels: Sequence[str] = (),
    separator: str = "|",
    from_name: str | None = None,
    to_name: str = "text",
) -> None:
    """Writes rows, of whose columns `labels` hold labels.

    `proposal` names the columns with a proposed label (or None) and the confidence in it: predictions in a file
    that ends in .json, which holds tasks for Label Studio.
    """
    if out.suffix == ".json":
        shown = {name: values for name, values in columns.items() if name not in proposal}
        proposed = [columns[name] for name in proposal]
        write_tasks(out, shown, *proposed, from_name=from_name or "choice", to_name=to_name)
        return
    with writing(out, separator=separator) as writer:
        named = [*proposal[:1], *labels]
        writer.append_columns({**columns, **{name: writer.label_column(columns[name]) for name in named}})


@contextmanager
def writing(out: Path, **options: Any) -> Iterator[SetWriter]:
    """A writer of sets to a file, or as CSV to standard output once all is written."""
    with file_for(out) as file, set_writer(file, **options) as writer:
        yield writer


@contextmanager
def file_for(out: Path) -> Iterator[Path]:
    """The file to write; for standard output one for CSV, which goes there once all is written."""
    if out != STANDARD:
        yield out
        return
    with temporary(Path(gettempdir()), "out", folder=True, private=True) as folder:
        beside = folder / "out.csv"
        yield beside
        with to_standard_output():
            if hasattr(sys.stdout, "buffer") and not sys.stdout.isatty():  # a table is UTF-8, whatever the encoding
                sys.stdout.flush()
                with beside.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                return
            with beside.open(encoding="utf-8", newline="") as text:
                shown = (f"{visible(line.rstrip())}\n" for line in text) if sys.stdout.isatty() else text
                sys.stdout.writelines(shown)


def write_candidates(
    screen: Screen, out: Path, sets: LabelSets, carried: dict[str, Any], column: str, separator: str
) -> None:
    """Writes the candidate sets beside the other columns, and says what was written."""
    with writing(out, column=column, separator=separator, sizes=False) as writer:
        writer.append(sets, carried)
    mean = float(sets.sizes.mean()) if len(sets) else 0.0
    screen.say(f"{len(sets):,} rows, {sets.n_classes:,} classes, {mean:.2f} candidates per row")
    screen.say(f"saved to {out}   try:  setwise inspect {out} --candidates {column}")
    screen.emit({"rows": len(sets), "classes": sets.n_classes, "candidates_per_row": mean, "out": str(out)})
