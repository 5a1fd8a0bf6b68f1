"""The final table of a labelling project: accepted, verified and reviewed rows, and where each label comes from.

A row without a label, a row with two, and an answer from review that counts as verified are errors.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from setwise.errors import DataError, MisuseWarning, Remedy
from setwise.labels.vocabulary import is_missing
from setwise.tables.arrow_reading import absent_column, arrow_table, column_names, has_rows
from setwise.tables.importers.label_studio import is_export
from setwise.tables.key_join import key_column
from setwise.tables.label_columns import one_chunk
from setwise.tables.label_notation import match_classes
from setwise.tables.table_files import names_files, source_name
from setwise.tables.verified_files import Answers, read_answers

_LABELS = ("verified", "label", "answer")
_OURS = {*_LABELS, "drawn", "draw", "source", "confidence", "rank", "proposed", "note"}
"""Columns that setwise writes beside those of the user."""
_ORDER = ("accepted", "reviewed", "verified")
_FROM = re.compile(r"from (\d+) rows, seed")


def merge_labels(
    files: Sequence[tuple[Any, str | None]],
    *,
    key: str,
    rows: Any = None,
    answer: str = "label",
    separator: str = "|",
    from_name: str | None = None,
) -> dict[str, Any]:
    """Joins the labels of several files into one table.

    Parameters
    ----------
    files
        Tables and Label Studio exports, each with the name of its column of labels or its control; None for the
        usual names: verified, label or answer. What `triage` accepted has a confidence; rows that `suggest` drew
        are marked by a column `drawn`, those for review by false in it.
    key
        The column that identifies the row.
    rows
        A table of all rows, whose columns and order are kept. Without it, all rows of all files are needed.
    answer
        The name of the column of labels.
    separator, from_name
        As in `read_table` and `from_label_studio`.

    Returns
    -------
    The columns of the final table: those that all files share, the label, its `source` (accepted, verified or
    reviewed), and `drawn`: whether the row was drawn at random, empty where nobody looked at it.

    Examples
    --------
    >>> accepted = {"id": ["a", "b"], "label": ["owl", "ant"], "confidence": [0.9, 0.8]}
    >>> verified = {"id": ["c"], "verified": ["owl"], "drawn": [True]}
    >>> rows = {"id": ["a", "b", "c"]}
    >>> final = merge_labels([(accepted, None), (verified, None)], key="id", rows=rows)
    >>> final["label"].to_pylist(), final["source"].to_pylist()
    (['owl', 'ant', 'owl'], ['accepted', 'accepted', 'verified'])
    """
    parts = _read_all(files, key, {"separator": separator, "from_name": from_name})
    classes = dict.fromkeys(
        label
        for _, part in parts
        for label in part.labels.tolist()
        if not (isinstance(label, str) or is_missing(label))
    )
    found: dict[str, tuple[Any, str, str]] = {}
    listed: dict[str, str] = {}
    reviewed: dict[str, str] = {}
    for where, part in parts:
        own = match_classes([None if is_missing(one) or one == "" else one for one in part.labels], [*classes])
        classes |= dict.fromkeys(label for label in own if label is not None)
        for row, (name, one, source) in enumerate(zip(part.keys.tolist(), own, part.sources, strict=True)):
            text, place = _text(name), f"{where}: row {row} ({key} = {name!r})"
            if not text:
                raise DataError(f"{where}: row {row} has no {key}", "give it one")
            listed.setdefault(text, place)
            if source == "reviewed":
                reviewed.setdefault(text, place)
            if one is None:
                continue
            before, first, there = found.get(text, (one, source, place))
            if before != one:
                problem = f"{place} has the label {one!r}, but {there} has {before!r}"
                raise DataError(problem, "correct one of them")
            found[text] = (one, max(first, source, key=_ORDER.index), there)
    if false := [text for text, (_, source, _) in found.items() if source == "verified" and text in reviewed]:
        problem = f"{found[false[0]][2]} is called verified, but it was chosen for review: {reviewed[false[0]]}"
        raise DataError(problem, "give answers from review as such, with false in a column drawn")
    names, table = _all_rows(rows, key, parts, listed)
    if lost := [text for text in names if text not in found]:
        place = listed.get(lost[0], f"{source_name(rows)}: {key} = {lost[0]!r}")
        problem = f"{place} has no label ({len(lost):,} such rows)"
        raise DataError(problem, "label it, or name the file with its label")
    known = {*names}
    if strange := [place for text, (_, _, place) in found.items() if text not in known]:
        raise DataError(f"{strange[0]} is no row of {source_name(rows)}", "leave it out")
    labels, sources, _ = zip(*(found[text] for text in names), strict=True)
    drawn = [{"verified": True, "reviewed": False}.get(source) for source in sources]
    plain = labels if len({type(label) for label in labels}) == 1 else [*map(str, labels)]
    return {**table, answer: pa.array(plain), "source": pa.array(sources), "drawn": pa.array(drawn, pa.bool_())}


def _read_all(
    files: Sequence[tuple[Any, str | None]], key: str, options: Mapping[str, Any]
) -> list[tuple[str, Answers]]:
    """The names and answers of all files with rows; where triage accepted every row, none are left to review."""
    parts = []
    for file, column in files:
        tool = names_files(file) and is_export(file)  # with a line for each annotation
        if tool or has_rows(file):
            where, part = _read(file, column, key, options, tool=tool)
            seen: dict[str, int] = {}
            for row, text in enumerate(map(_text, () if tool else part.keys.tolist())):
                if text and seen.setdefault(text, row) != row:
                    problem = f"{where}: row {row} ({key} = {text!r}) has the {key} of row {seen[text]}"
                    raise DataError(problem, "keep one of them")
            parts.append((where, part))
    if not parts:
        raise DataError("the files hold no rows", "name those with labels")
    return parts


def _read(
    file: Any, column: str | None, key: str, options: Mapping[str, Any], *, tool: bool
) -> tuple[str, Answers]:
    where = source_name(file)
    unmarked = "reviewed"
    if not tool:
        names = column_names(file)
        if key not in names:
            raise absent_column(key, names, where)
        column = column or next((name for name in _LABELS if name in names), None)
        if column is None:
            raise absent_column(
                _LABELS[0], names, where, f" or {' or '.join(_LABELS[1:])}", f"write {where}:COLUMN"
            )
        unmarked = "verified" if column == "verified" else "accepted" if "confidence" in names else "reviewed"
    return where, read_answers(file, key, column, where=where, unmarked=unmarked, **options)


def _all_rows(
    rows: Any, key: str, parts: Sequence[tuple[str, Answers]], listed: Mapping[str, str]
) -> tuple[list[str], dict[str, Any]]:
    """The keys of all rows as text, and their columns."""
    if rows is not None:
        table = arrow_table(rows, text=[key])
        if key not in table.column_names:
            raise absent_column(key, table.column_names, source_name(rows))
        names = [*map(_text, table[key].to_pylist())]
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise DataError(f"{source_name(rows)}: {key} = {twice[0]!r} occurs twice", "keep one of them")
        return names, {name: one_chunk(table[name]) for name in table.column_names}
    draws = (_FROM.search(str(text)) for _, part in parts for text in part.columns.get("draw", ())[:1])
    drawn = next((int(found[1]) for found in draws if found), None)
    remedy = Remedy("rows", None, "to name the table of all rows")
    if drawn is None:
        problem = "no file says how many rows there are, so that missing rows are not noticed"
        warnings.warn(MisuseWarning(problem, remedy), stacklevel=3)
    elif len(listed) < drawn:
        files = ", ".join(where for where, _ in parts)
        problem = f"{files}: they have {len(listed):,} of the {drawn:,} rows that those to verify were drawn from"
        raise DataError(problem, "name the files of the others", remedy)
    shared = [
        name for name in parts[0][1].columns if all(name in part.columns for _, part in parts) and name not in _OURS
    ]
    kept: dict[str, list[Any]] = {}
    for _, part in parts:
        values = zip(*(part.columns[name] for name in shared), strict=True) if shared else [()] * len(part.keys)
        for name, cells in zip(part.keys.tolist(), values, strict=True):
            kept.setdefault(_text(name), [name, *cells])
    columns = zip(*kept.values(), strict=True) if kept else ()
    return list(kept), {name: key_column(values) for name, values in zip([key, *shared], columns, strict=True)}


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()  # of frames with gaps
    return "" if is_missing(value) else str(int(value) if whole else value)
