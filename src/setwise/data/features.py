"""The feature matrix of a table: what is not a finite number is an error that names column and row.

Two exceptions, both asked for: `impute` fills what is missing, `categories` turns text into indicator columns.
What they learned is returned, so that the next file is treated alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setwise._arrays import Array, Bools, Floats
from setwise.data.doubts import names_rows
from setwise.data.label_columns import is_list, is_text
from setwise.errors import DataError, Remedy

Impute = Literal["nan", "mean", "median"] | float | Mapping[str, float] | None
_BLOCK = 2048
_FIT_FILLING = "say how to fill them when the model is fitted (setwise fit --impute median)"
Categories = Literal["onehot"] | Mapping[str, Sequence[str]] | None


@dataclass(frozen=True)
class Features:
    """A feature matrix, its column names, and what was learned to make it."""

    X: Floats
    names: tuple[str, ...]
    imputed: dict[str, float]
    categories: dict[str, tuple[str, ...]]


def feature_matrix(
    table: Any, columns: Sequence[str], *, impute: Impute, categories: Categories, where: str, first_row: int = 0
) -> Features:
    """The named columns as one matrix; a single column of lists is a matrix already."""
    if isinstance(impute, str) and impute not in {"nan", "mean", "median"}:
        raise ValueError(f"impute: {impute!r} is not known; use 'nan', 'mean', 'median', a number or a mapping.")
    if len(columns) == 1 and is_list(table.schema.field(columns[0]).type):
        X = _from_lists(table[columns[0]], f"{where}, column {columns[0]!r}", first_row)
        return Features(X, tuple(f"{columns[0]}[{j}]" for j in range(X.shape[1])), {}, {})
    plain = _plain_matrix(table, columns)
    if plain is not None and (impute in (None, "nan") or isinstance(impute, Mapping)):  # nothing is to be learned
        return Features(plain, tuple(columns), {}, {})
    narrow = all(table.schema.field(name).type in {pa.float32(), pa.float16()} for name in columns) and columns
    parts: list[Array] = []
    names: list[str] = []
    imputed: dict[str, float] = {}
    learned: dict[str, tuple[str, ...]] = {}
    for name in columns:
        place = f"{where}, column {name!r}"
        if is_text(table.schema.field(name).type):
            known = categories.get(name) if isinstance(categories, Mapping) else None
            if categories is None or (known is None and isinstance(categories, Mapping)):
                _refuse_text(name, table[name], place, first_row)
            learned[name], indicators = _indicators(table[name], known, place, first_row)
            parts.extend(indicators)
            names.extend(f"{name}={value}" for value in learned[name])
            continue
        values = _numbers(table[name], place, first_row)
        gaps = np.isnan(values)
        _learn_filling(values, gaps, name, impute, imputed)
        if name not in imputed and impute != "nan" and gaps.any():
            raise DataError(
                f"{place}: row {first_row + int(np.flatnonzero(gaps)[0])} is missing ({int(gaps.sum())} such rows)",
                _FIT_FILLING if isinstance(impute, Mapping) else Remedy("impute", "median", "to fill such gaps"),
                "fill them yourself",
            )
        parts.append(np.where(gaps, imputed[name], values) if name in imputed else values)
        names.append(name)
    dtype = np.float32 if narrow else np.float64
    X = np.empty((len(table), len(parts)), dtype=dtype)
    for j, part in enumerate(parts):
        X[:, j] = part
    return Features(X, tuple(names), imputed, learned)


def _plain_matrix(table: Any, columns: Sequence[str]) -> Floats | None:
    """The matrix of columns that are all float32, or all float64, and finite; None where some are not."""
    kinds = {table.schema.field(name).type for name in columns}
    if kinds not in ({pa.float32()}, {pa.float64()}) or any(table[name].null_count for name in columns):
        return None
    X = np.empty((len(table), len(columns)), dtype=np.float32 if kinds == {pa.float32()} else np.float64)
    values = [table[name].to_numpy() for name in columns]
    for start in range(0, len(X), _BLOCK):  # which stays near the core, row by row
        block = X[start : start + _BLOCK]
        for j, column in enumerate(values):
            block[:, j] = column[start : start + _BLOCK]
    return X if np.isfinite([X.min(initial=0), X.max(initial=0)]).all() else None


def _numbers(column: Any, place: str, first_row: int) -> Floats:
    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise DataError(
            f"{place}: holds {kind}, not numbers",
            Remedy("features", None, "to name the features"),
            Remedy("carry", None, "for a column that is no feature"),
        )
    plain = pc.cast(column, pa.uint8()) if pa.types.is_boolean(kind) else column
    values: Floats = np.array(pc.cast(plain, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(f"{place}: row {first_row + int(infinite[0])} is infinite; repair or remove such rows.")
    return values


def _learn_filling(values: Floats, gaps: Bools, name: str, impute: Impute, imputed: dict[str, float]) -> None:
    """Notes what this column's gaps are filled with, if `impute` is given; an empty column has no statistics."""
    if isinstance(impute, Mapping):
        if name in impute:
            imputed[name] = float(impute[name])
    elif isinstance(impute, (int, float)):
        imputed[name] = float(impute)
    elif impute in {"mean", "median"} and not gaps.all():
        imputed[name] = float((np.nanmean if impute == "mean" else np.nanmedian)(values))


def _indicators(
    column: Any, known: Sequence[str] | None, place: str, first_row: int
) -> tuple[tuple[str, ...], list[Array]]:
    """Categories in order, and a column of 0 and 1 for each; a missing value is 0 in all of them."""
    encoded = pc.cast(column, pa.large_string()).combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    found = encoded.dictionary.to_pylist()
    order = tuple(sorted(set(found) - {""})) if known is None else tuple(known)
    position = {value: i for i, value in enumerate(order)}
    codes = np.array([position.get(value, -1 if value == "" else -2) for value in found] or [-1])
    held = np.where(
        np.asarray(encoded.is_valid()), codes[np.asarray(encoded.indices.fill_null(0), dtype=np.intp)], -1
    )
    strange = np.flatnonzero(held == -2)
    if len(strange):
        row = int(strange[0])
        shown = ", ".join(map(str, order[:6])) + (", …" if len(order) > 6 else "")
        problem = f"{place}: row {first_row + row} is {column[row].as_py()!r}, which is no known category ({shown})"
        raise DataError(problem, "write one of these, or leave the cell empty")
    return order, [held == i for i in range(len(order))]


def _from_lists(column: Any, place: str, first_row: int) -> Floats:
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    lengths = np.asarray(pc.list_value_length(lists).fill_null(-1))
    width = int(lengths[0]) if len(lengths) else 0
    uneven = np.flatnonzero((lengths != width) | (lengths < 0))
    if len(uneven):
        row = int(uneven[0])
        raise DataError(
            f"{place}: row {first_row + row} has {max(int(lengths[row]), 0)} numbers, the first {max(width, 0)}."
        )
    flat = pc.list_flatten(lists)
    if not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        raise DataError(f"{place}: its lists hold {flat.type}, not numbers.")
    values: Array = np.array(flat.to_numpy(zero_copy_only=False))
    X: Array = values.astype(
        np.float32 if values.dtype in {np.dtype("f2"), np.dtype("f4")} else np.float64
    ).reshape(-1, width)
    wrong = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(wrong):
        raise DataError(f"{place}: row {first_row + int(wrong[0])} holds a number that is missing or infinite.")
    return X


def _refuse_text(name: str, column: Any, place: str, first_row: int) -> None:
    """Raises the error for a text column among the features, naming the first value that is no number."""
    texts = pc.cast(column, pa.large_string())
    plain = pc.match_substring_regex(texts, r"^\s*([-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?)?\s*$")
    wrong = np.flatnonzero(~np.asarray(pc.fill_null(plain, True)))
    if not len(wrong):  # the decimal mark that fewer have
        marked = (np.flatnonzero(np.asarray(pc.fill_null(pc.match_substring(texts, m), False))) for m in ",.")
        wrong = min((rows for rows in marked if len(rows)), key=len, default=wrong)
    row = int([*wrong, *np.flatnonzero(np.asarray(pc.is_valid(texts))), 0][0])
    shown = (texts[row].as_py() if len(texts) else "") or ""
    problem = f"{place}: row {first_row + row} is {shown!r}, not a number"
    if re.fullmatch(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*", shown):
        groups = re.fullmatch(r"\s*[-+]?\d{1,3},\d{3}\s*", shown)
        thousands = ["write it without if it separates thousands"] if groups else []
        raise DataError(problem, Remedy("decimal", ",", "if the comma is the decimal mark"), *thousands)
    if re.fullmatch(r"\s*[-+]?\d{1,3}([., ']\d{3})+([.,]\d+)?\s*", shown):
        raise DataError(problem, "write numbers without marks between thousands")
    ways = [
        Remedy("categories", "onehot", "to turn text into indicators"),
        Remedy("carry", name, "if it is no feature"),
        Remedy("features", None, "to name the features"),
    ]
    if len(wrong) == len(column) and names_rows(name, column):  # every row would have an indicator of its own
        ways = [Remedy("carry", name, "to keep an identifier out of the features"), ways[2]]
    raise DataError(problem, *ways)
