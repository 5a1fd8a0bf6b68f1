"""The rows that a set does not decide, as a CSV file inside the page: the empty sets first, then the largest."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from typing import Any
from urllib.parse import quote

import numpy as np

from setwise.report.label_entry_levels import EntrySource, Sweep
from setwise.report.reported_rows import Rows
from setwise.tables.label_notation import encode_labels

_MOST = 5_000  # rows that are listed
_LABELS = 20  # labels of a row that are listed


def review_facts(source: EntrySource, sweep: Sweep, rows: Rows, level: Fraction) -> dict[str, Any] | None:
    """How many rows there are to look at, how many are listed, and the file as a link; None without any."""
    at = sweep.levels.index(level)
    sizes = sweep.sizes[:, at]
    left = np.flatnonzero(sizes != 1)
    if not len(left):
        return None
    order = left[np.lexsort((left, -sizes[left], sizes[left] > 0))][:_MOST]
    names = encode_labels(rows.vocabulary.classes.tolist(), "|")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["row", *([] if rows.ids is None else ["id"]), "size", "labels"])
    for row, entries in zip(order.tolist(), source.entries(order), strict=True):
        inside = np.argsort(entries, kind="stable")[: min(int(sizes[row]), _LABELS)]
        more = ["…"] if sizes[row] > _LABELS else []
        name = [] if rows.ids is None else [rows.ids[row]]
        writer.writerow([rows.numbers[row], *name, sizes[row], "|".join([*(names[k] for k in inside), *more])])
    link = f"data:text/csv;charset=utf-8,{quote(text.getvalue())}"
    return {"rows": len(left), "listed": len(order), "link": link}
