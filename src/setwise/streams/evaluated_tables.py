"""What prediction sets in tables achieved, batch by batch: only counts are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from setwise._types import Truth
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.metrics import SetCounts
from setwise.streams.engines import Engine, run_local
from setwise.streams.table_parts import check_alike
from setwise.tables.arrow_reading import column_names, has_rows
from setwise.tables.label_columns import categories_of
from setwise.tables.set_files import p_value_columns, probability_labels
from setwise.tables.table_files import TableFiles
from setwise.tables.tabular import read_batches


@dataclass(frozen=True)
class SetCounter:
    """A worker of an engine: counts of the sets of some files; `reading` and `names` are how, and their columns."""

    column: str
    reading: dict[str, Any]
    names: tuple[str, ...]
    truth: str | None = None
    candidates: str | None = None
    by: str | None = None
    groups: str | None = None
    ordered: bool = False
    right: Truth = None

    def __call__(self, files: TableFiles) -> SetCounts:
        """What is counted of some files."""
        counts = SetCounts(ordered=self.ordered)
        if not has_rows(files):
            return counts
        check_alike(files, self.names)
        options: dict[str, Any] = {"truth": self.truth, "carry": list(filter(None, [self.by, self.groups]))}
        options["several"] = self.right is not None
        sets = read_batches(files, candidates=self.column, missing="empty", **options, **self.reading)
        others: Iterator[Any] = repeat(None)
        if self.candidates is not None:
            others = read_batches(files, candidates=self.candidates, **self.reading)
        for batch, own in zip(sets, others, strict=False):
            category, group = (
                categories_of(batch.carried[name], name, files, batch.first_row) if name else None
                for name in (self.by, self.groups)
            )
            known = None if own is None else own.candidates
            counts.add(batch.candidates, batch.truth, candidates=known, by=category, groups=group, truth=self.right)
        return counts


def evaluate_table(
    files: TableFiles,
    column: str,
    *,
    separator: str = "|",
    classes: Classes = None,
    engine: Engine = run_local,
    **beside: Any,
) -> dict[str, Any]:
    """The result of `setwise.evaluate` for a column of sets, beside columns of what else is known.

    `beside` names these: `truth`, `candidates`, `by` and `groups`; and says whether classes are `ordered`. With
    `right` the column `truth` holds sets, of which so many labels must be in a set.

    The classes are those listed; else those of p-values that stand behind the sets; else those stored with them;
    else those that occur among sets and candidates, for which the files are read twice.
    """
    told: dict[str, Any] = {"features": [], "separator": separator}
    names = column_names(files)
    marked = p_value_columns(names, column)
    if classes is None:
        classes = (
            probability_labels(marked) if marked else _classes(files, [column, beside.get("candidates")], told)
        )
    told["classes"] = classes
    counter = SetCounter(column, told, tuple(names), **beside)
    parts = [files] if engine is run_local else [replace(files, paths=(path,)) for path in files.paths]
    counts = SetCounts(ordered=counter.ordered)
    for found in engine(parts, counter):
        counts.include(found)
    return counts.result()


def _classes(files: TableFiles, columns: list[str | None], told: dict[str, Any]) -> Vocabulary:
    """The labels in some columns, in order, the first column's first."""
    found: dict[Any, None] = {}
    declared = True
    for column in filter(None, columns):
        batch = next(read_batches(files, candidates=column, missing="empty", **told))
        assert batch.candidates is not None  # noqa: S101 - a column is named
        found |= dict.fromkeys(batch.candidates.classes.tolist())
        declared &= batch.candidates.vocabulary.declared
    return replace(Vocabulary.declare(found), declared=declared)
