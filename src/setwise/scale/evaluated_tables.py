"""What prediction sets in tables achieved, batch by batch: only counts are kept."""

from __future__ import annotations

from typing import Any

from setwise.data.arrow_tables import column_names
from setwise.data.label_columns import categories_of
from setwise.data.set_files import probability_labels
from setwise.data.table_files import TableFiles
from setwise.data.tabular import read_batches
from setwise.metrics import SetCounts


def evaluate_table(
    files: TableFiles,
    column: str,
    *,
    truth: str | None = None,
    candidates: str | None = None,
    by: str | None = None,
    separator: str = "|",
) -> dict[str, Any]:
    """The result of `setwise.evaluate` for a column of sets, beside true labels, candidates or categories.

    The classes are those of p-values that stand beside; else those stored with the sets; else those that occur
    among sets and candidates, for which the files are read twice.
    """
    told: dict[str, Any] = {"features": [], "separator": separator}
    marked = [name for name in column_names(files) if name.startswith("p:")]
    classes = probability_labels(marked) if marked else _classes(files, [column, candidates], told)
    told["classes"] = classes
    options: dict[str, Any] = {"truth": truth, "carry": [by] if by else []}
    sets = read_batches(files, candidates=column, missing="empty", **options, **told)
    others = (
        (None for _ in iter(int, 1)) if candidates is None else read_batches(files, candidates=candidates, **told)
    )
    counts = SetCounts()
    for batch, own in zip(sets, others, strict=False):
        groups = categories_of(batch.carried[by], by, files, batch.first_row) if by else None
        counts.add(batch.candidates, batch.truth, candidates=None if own is None else own.candidates, by=groups)
    return counts.result()


def _classes(files: TableFiles, columns: list[str | None], told: dict[str, Any]) -> list[Any]:
    """The labels in some columns, in order, the first column's first."""
    found: dict[Any, None] = {}
    for column in filter(None, columns):
        batch = next(read_batches(files, candidates=column, missing="empty", **told))
        assert batch.candidates is not None  # noqa: S101 - a column is named
        found |= dict.fromkeys(batch.candidates.classes.tolist())
    return list(found)
