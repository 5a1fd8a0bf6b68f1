"""Verified labels in a file of their own: a table with a column of answers, or a Label Studio export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from setwise._arrays import Array
from setwise.errors import DataError, Remedy
from setwise.labels.vocabulary import missing_labels
from setwise.tables.importers.imported import id_array
from setwise.tables.importers.label_studio import from_label_studio, is_export
from setwise.tables.key_join import matching_rows
from setwise.tables.label_notation import match_classes
from setwise.tables.table_files import TableFiles, names_files, table_files
from setwise.tables.tabular import read_table

_SHOWN = 8


def read_verified(
    file: Any,
    ids: Sequence[Any] | Array,
    classes: Sequence[Any],
    *,
    key: str,
    column: str = "verified",
    source: str = "the table",
    separator: str = "|",
    from_name: str | None = None,
) -> Array:
    """The verified label of each row of another table, or None where the file has none.

    Parameters
    ----------
    file
        A table, or a Label Studio export (JSON), where an annotation marked as ground truth takes precedence.
    ids
        The values of the column `key` in the other table, whose name is `source`.
    classes
        All labels.
    key
        The column that identifies the row; for an export, the field of the data of a task.
    column
        The column of verified labels, empty where there is none; an export has the control `from_name` instead.
    source, separator, from_name
        As above, and as in `read_table` and `from_label_studio`.

    Examples
    --------
    >>> answers = {"id": ["b", "a", "c"], "verified": ["owl", "", "wren"]}
    >>> read_verified(answers, ["a", "b", "c", "d"], ["owl", "wren"], key="id").tolist()
    [None, 'owl', 'wren', None]
    """
    files = table_files(file) if names_files(file) else None
    where = "the verified labels" if files is None else str(files)
    if files is not None and is_export(files):
        known, answers = _read_export(files, key, where, from_name, classes)
    else:
        options: dict[str, Any] = {"features": [], "carry": [key], "separator": separator, "classes": classes}
        table = read_table(file, truth=column, **options)
        known, answers = table.carried[key], np.asarray(table.truth, dtype=object)
    rows = matching_rows(key, known, ids, source=where, other=source)
    given = np.flatnonzero(~missing_labels(answers))
    row, times = Counter(rows[given].tolist()).most_common(1)[0] if len(given) else (0, 0)
    if times > 1:
        raise DataError(f"{where}: {key} = {ids[row]!r} has {times} verified labels; keep one of them.")
    labels = set(classes)
    strange = next((place for place in given if answers[place] not in labels), None)
    if strange is not None:
        names = ", ".join(map(str, list(classes)[:_SHOWN])) + (", …" if len(classes) > _SHOWN else "")
        problem = (
            f"{where}: {key} = {known[strange]!r} has the label {answers[strange]!r}, which is not one of {names}"
        )
        raise DataError(problem, "correct it", Remedy("classes", None, "to list all labels"))
    verified = np.full(len(ids), None, dtype=object)
    verified[rows[given]] = answers[given]
    return verified


def merge_verified(ours: Array | None, others: Array, *, source: str, other: str) -> Array:
    """Merges two arrays of verified labels; an error if they differ in a row."""
    if ours is None:
        return others
    here, there = (~missing_labels(labels) for labels in (ours, others))
    differ = np.flatnonzero(here & there & (ours != others))
    if len(differ):
        row = int(differ[0])
        problem = f"{other}: the verified label of row {row} is {others[row]!r}, but {ours[row]!r} in {source}"
        raise DataError(problem, "correct one of them")
    return np.where(here, np.asarray(ours, dtype=object), others)


def _read_export(
    files: TableFiles, key: str, where: str, from_name: str | None, classes: Sequence[Any]
) -> tuple[Array, Array]:
    """The keys of all tasks, and the label of each task, or None."""
    ids: list[Any] = []
    answers: list[Any] = []
    for path in files.paths:
        found = from_label_studio(path, key=key, from_name=from_name, missing="empty")
        truth = [None] * len(found) if found.truth is None else found.truth.tolist()
        for name, true, said in zip(found.ids.tolist(), truth, found.candidates.to_lists(), strict=True):
            if true is None and len(said) > 1:
                problem = f"{where}: {key} = {name!r} has several answers ({', '.join(said)})"
                raise DataError(problem, "mark one as the ground truth")
            label = true if true is not None else next(iter(said), None)
            answers.append(label)
            ids.append(name)
    answers = match_classes(answers, classes)  # Label Studio has text only
    return id_array(ids), id_array([*answers, None])[:-1]  # the extra None makes it an array of objects
