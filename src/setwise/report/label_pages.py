"""A page on which people label rows: one HTML file that needs no server, for those without a labelling tool.

Verification is blind: it shows neither proposal nor votes, because people whom a proposal leads agree with it more
often than it is right. Review shows the proposal. What is entered stays in the browser until it is downloaded.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pyarrow as pa

from setwise.errors import DataError, Remedy
from setwise.report.html_pages import embedded_picture, fill_page
from setwise.storage.atomic_files import replacing
from setwise.tables.arrow_reading import absent_column
from setwise.tables.label_notation import encode_labels

_PICTURES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg"}
_QUOTED = re.compile(r"""["'](.*?)["']""")  # lists of labels, or numbers by label, as text


def write_label_page(
    path: str | os.PathLike[str],
    columns: Mapping[str, Any],
    classes: Iterable[Any],
    *,
    key: str,
    show: Sequence[str] | None = None,
    separator: str = "|",
    folder: str | os.PathLike[str] = ".",
    proposed: Sequence[Any] | None = None,
    confidence: Sequence[float | None] | None = None,
    marks: Mapping[str, Sequence[Any]] | None = None,
) -> list[str]:
    """Writes a page that shows one row at a time, and that downloads the labels as a table with the `key`.

    It shows the columns `show` and returns them; by default all, for verification those that hold no labels, nor
    lists of them. A cell that names a picture in the `folder` shows the picture. With the `proposed` label of each
    row (None for none) and the `confidence` in it the page is for review, without them for verification. The
    downloaded table also has the columns `marks`, such as how each row was drawn.

    >>> import tempfile
    >>> rows = {"id": ["a7", "b2"], "text": ["ki-ki-ki", "hu-hu"]}
    >>> write_label_page(tempfile.mkdtemp() + "/verify.html", rows, ["owl", "wren"], key="id")
    ['text']
    """
    table = pa.table(dict(columns))
    if strange := [name for name in (key, *(show or ())) if name not in table.column_names]:
        raise absent_column(strange[0], table.column_names, "the page")
    names = [_text(value) for value in table[key].to_pylist()]
    if "" in names or len(set(names)) < len(names):
        raise DataError(f"the column {key!r} does not identify rows: a value is missing or occurs twice")
    labels = list(classes)
    shown = list(show or (name for name in table.column_names if name != key))
    if show is None and proposed is None:
        hidden = telling_columns(columns, labels, key=key, separator=separator)
        shown = [name for name in shown if name not in hidden]
    if not shown:
        raise DataError("no column is left to show on the page", Remedy("show", None, "to name one"))
    cells = {name: [_cell(value, Path(folder)) for value in table[name].to_pylist()] for name in shown}
    kind, column = ("verified", "verified") if proposed is None else ("reviewed", "label")
    place = {label: position for position, label in enumerate(labels)}
    data: dict[str, Any] = {
        "kind": kind,
        "key": key,
        "header": [key, column, *(marks or {}), "note"],
        "file": f"{kind}.csv",
        "labels": [_text(label) for label in labels],
        "written": encode_labels(labels, separator),
        "columns": shown,
        "rows": [{"key": name, "cells": list(row)} for name, *row in zip(names, *cells.values(), strict=True)],
    }
    for row, *mark in zip(data["rows"], *(marks or {}).values(), strict=True):
        row["marks"] = [str(value).lower() if isinstance(value, bool) else _text(value) for value in mark]
    if proposed is not None:
        for row, label, value in zip(data["rows"], proposed, confidence or [None] * len(names), strict=True):
            row["proposed"], row["confidence"] = place.get(label), "" if value is None else f"{value:.2f}"
    data["identity"] = hashlib.sha256(json.dumps(data).encode()).hexdigest()
    title = f"{'Verify' if proposed is None else 'Review'} {len(names):,} rows"
    page = fill_page("label_page", {"title": title}, data=data, scripts=["templates/label_page.js"])
    with replacing(path) as beside:
        beside.write_text(page, encoding="utf-8")
    return shown


def telling_columns(
    columns: Mapping[str, Any], classes: Iterable[Any], *, key: str | None, separator: str = "|"
) -> list[str]:
    """The columns that hold labels, or are named after one as probabilities are: who sees them does not verify.

    Half of the different values, however they are capitalised, are labels or lists of these.

    >>> rows = {"id": [1, 2], "said": ["Owl|wren", "none"], "p_owl": [0.2, 0.9], "text": ["an owl", ""]}
    >>> telling_columns(rows, ["owl", "wren"], key="id")
    ['said', 'p_owl']
    """
    listed = list(classes)
    labels = {text.casefold() for text in (*map(_text, listed), *encode_labels(listed, separator))}
    table = pa.table(dict(columns))
    return [
        name
        for name in table.column_names
        if name != key and (_is_named(name.casefold(), labels) or _tells(table[name], labels, separator))
    ]


def _is_named(name: str, labels: AbstractSet[str]) -> bool:
    """Whether a column is named after a label: cat, p:cat, prob_cat. Features are numbered: x_1."""
    return name in labels or any(
        name.endswith((f":{label}", *(() if label.isdigit() else (f"_{label}", f"-{label}", f".{label}"))))
        for label in labels
    )


def _tells(column: Any, labels: AbstractSet[str], separator: str) -> bool:
    """Whether at least half of the different values of a column, or of the items of its lists, are labels."""
    cells = [value for value in column.to_pylist() if value is not None]
    texts = {_text(part) for value in cells for part in (value if isinstance(value, list | dict) else [value])}
    lists = (_QUOTED.findall(text) if text[:1] in {"[", "{"} else text.split(separator) for text in texts)
    written = {part.strip().casefold() for parts in lists for part in parts} - {""}
    return bool(written) and 2 * len(written & labels) >= len(written)


def _cell(value: Any, folder: Path) -> str | dict[str, str]:
    """A cell as text, or as the picture that it names."""
    text = _text(value)
    is_picture = Path(text).suffix.lower() in _PICTURES
    if is_picture and os.path.isfile(folder / text):  # noqa: PTH113 - any text
        return {"name": text, "picture": embedded_picture(folder / text)}
    return text


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
