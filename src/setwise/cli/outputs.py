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
    taken = next((name for name in added if name in columns), None)
    if taken is not None:
        renamed = [Remedy("answer", None, "for another name")] if taken == added[0] else []
        raise DataError(f"there is a column {taken!r} already, and the output needs it", "rename it", *renamed)


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
    label: tuple[str, Any] | None = None,
    confidence: Any = None,
    more: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    separator: str = "|",
    from_name: str | None = None,
    to_name: str = "text",
) -> None:
    """Writes rows with a label each (its column's name, and labels or None), its confidence, and `more` columns.

    `labels` names lists of labels among these. A file that ends in .json holds tasks for Label Studio, in which the
    label is a prediction.
    """
    added = {} if label is None else {label[0]: label[1], "confidence": confidence}
    added |= more or {}
    if out.suffix == ".json":
        proposed = () if label is None else (label[1], confidence)
        write_tasks(out, {**columns, **(more or {})}, *proposed, from_name=from_name or "choice", to_name=to_name)
        return
    with writing(out, separator=separator) as writer:
        every = {**columns, **added}
        named = labels if label is None else [label[0], *labels]
        writer.append_columns({**every, **{name: writer.label_column(every[name]) for name in named}})


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
