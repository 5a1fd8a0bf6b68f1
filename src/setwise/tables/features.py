"""The features of a table: a cell that is not a finite number is an error that names its column and row.

There are two exceptions: `impute` fills missing cells, and `categories` turns text into indicator columns. With
`as_frame` columns stay as they are, for a model that begins with a `ColumnEncoder` of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setwise._arrays import Array, Floats
from setwise.errors import DataError, Remedy
from setwise.learn.feature_frame import FeatureFrame, Impute, category_codes
from setwise.tables.label_columns import is_list, is_text
from setwise.tables.table_warnings import names_rows

_FIT_FILLING = "say how to fill them when the model is fitted (impute='median')"
Categories = Literal["onehot"] | Mapping[str, Sequence[str]] | None


@dataclass(frozen=True)
class Features:
    """Features as a matrix or a frame, their names, and the fillings and categories that were learned."""

    X: Floats | FeatureFrame
    names: tuple[str, ...]
    imputed: dict[str, float]
    categories: dict[str, tuple[str, ...]]


def read_features(
    table: Any,
    columns: Sequence[str],
    *,
    impute: Impute,
    categories: Categories,
    as_frame: bool,
    where: str,
    first_row: int = 0,
) -> Features:
    """The named columns as one matrix, or as a frame; a single column of lists is a matrix already."""
    if isinstance(impute, str) and impute not in {"nan", "mean", "median"}:
        raise ValueError(f"impute: {impute!r} is not known; use 'nan', 'mean', 'median', a number or a mapping.")
    if not columns:
        return Features(np.empty((len(table), 0)), (), {}, {})
    if len(columns) == 1 and is_list(table.schema.field(columns[0]).type):
        X = _from_lists(table[columns[0]], f"{where}, column {columns[0]!r}", first_row)
        return Features(X, tuple(f"{columns[0]}[{j}]" for j in range(X.shape[1])), {}, {})
    plain = None if as_frame else _plain_matrix(table, columns)
    if plain is not None and (impute in (None, "nan") or isinstance(impute, Mapping)):  # nothing to learn
        return Features(plain, tuple(columns), {}, {})
    values: dict[str, Array] = {}
    known: dict[str, tuple[str, ...]] = {}
    declared = categories if isinstance(categories, Mapping) else {}
    for name in columns:
        place = f"{where}, column {name!r}"
        if name in declared or (is_text(table.schema.field(name).type) and categories == "onehot"):
            texts = pc.cast(table[name], pa.large_string())
            texts = pc.if_else(pc.equal(texts, ""), None, texts)
            values[name] = np.array(texts.to_numpy(zero_copy_only=False), dtype=object)
            known[name] = tuple(declared.get(name) or sorted({*values[name].tolist()} - {None}))
            category_codes(values[name], known[name], place, first_row)
        elif is_text(table.schema.field(name).type):
            _refuse_text(name, table[name], place, first_row)
        else:
            values[name] = _numbers(table[name], place, first_row)
            _check_gaps(values[name], name, impute, place, first_row)
    frame = FeatureFrame(values)
    if as_frame:
        return Features(frame, tuple(columns), {}, known)
    from setwise.learn.column_encoder import ColumnEncoder  # imports scikit-learn

    encoder = ColumnEncoder(impute, known).fit(frame)
    encoder.categories_ = known  # also categories that occur in the next table only
    return Features(encoder.transform(frame), tuple(encoder.get_feature_names_out()), encoder.fillings_, known)


def _plain_matrix(table: Any, columns: Sequence[str]) -> Floats | None:
    """The matrix of columns that are all float32 or all float64, and finite; otherwise None."""
    kinds = {table.schema.field(name).type for name in columns}
    if kinds not in ({pa.float32()}, {pa.float64()}) or any(table[name].null_count for name in columns):
        return None
    X: Floats = np.column_stack([table[name].to_numpy() for name in columns])
    return X if np.isfinite([X.min(initial=0), X.max(initial=0)]).all() else None


def _numbers(column: Any, place: str, first_row: int) -> Floats:
    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise DataError(
            f"{place}: holds {kind}, not numbers",
            Remedy("features", None, "to name the features"),
            Remedy("carry", None, "to leave out a column that is not a feature"),
        )
    plain = pc.cast(column, pa.uint8()) if pa.types.is_boolean(kind) else column
    narrow = kind in {pa.float32(), pa.float16()}
    wide = pc.cast(plain, pa.float32() if narrow else pa.float64(), safe=False).to_numpy()
    values: Floats = np.array(wide, dtype=np.float32 if narrow else np.float64)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(f"{place}: row {first_row + int(infinite[0])} is infinite; repair or remove such rows.")
    return values


def _check_gaps(values: Floats, name: str, impute: Impute, place: str, first_row: int) -> None:
    """Refuses gaps that `impute` does not fill; an empty column has no mean or median."""
    gaps = np.isnan(values)
    statistic = isinstance(impute, str) and impute != "nan"
    filled = name in impute if isinstance(impute, Mapping) else impute is not None
    if gaps.any() and (not filled or (statistic and gaps.all())):
        raise DataError(
            f"{place}: row {first_row + int(np.flatnonzero(gaps)[0])} is missing ({int(gaps.sum())} such rows)",
            _FIT_FILLING if isinstance(impute, Mapping) else Remedy("impute", "median", "to fill such gaps"),
            "fill them yourself",
        )


def _from_lists(column: Any, place: str, first_row: int) -> Floats:
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    lengths = np.asarray(pc.list_value_length(lists).fill_null(-1))
    width = int(lengths[0]) if len(lengths) else 0
    uneven = np.flatnonzero((lengths != width) | (lengths < 0))
    if len(uneven):
        row = int(uneven[0])
        numbers = f"row {first_row + row} has {max(int(lengths[row]), 0)} numbers"
        raise DataError(f"{place}: {numbers}, but the first row has {max(width, 0)}.")
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
    """Raises the error for a text column among the features, naming the first value that is not a number."""
    texts = pc.cast(column, pa.large_string())
    plain = pc.match_substring_regex(texts, r"^\s*([-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?)?\s*$")
    wrong = np.flatnonzero(~np.asarray(pc.fill_null(plain, True)))
    if not len(wrong):  # all are numbers, with two decimal marks: name the rarer one
        marked = (np.flatnonzero(np.asarray(pc.fill_null(pc.match_substring(texts, m), False))) for m in ",.")
        wrong = min((rows for rows in marked if len(rows)), key=len, default=wrong)
    row = int([*wrong, *np.flatnonzero(np.asarray(pc.is_valid(texts))), 0][0])
    shown = (texts[row].as_py() if len(texts) else "") or ""
    problem = f"{place}: row {first_row + row} is {shown!r}, not a number"
    if re.fullmatch(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*", shown):
        groups = re.fullmatch(r"\s*[-+]?\d{1,3},\d{3}\s*", shown)
        thousands = ["write the number without it if it separates thousands"] if groups else []
        raise DataError(problem, Remedy("decimal", ",", "if the comma is the decimal mark"), *thousands)
    if re.fullmatch(r"\s*[-+]?\d{1,3}([., ']\d{3})+([.,]\d+)?\s*", shown):
        raise DataError(problem, "write numbers without marks between thousands")
    ways = [
        Remedy("categories", "onehot", "to turn text into indicators"),
        Remedy("carry", name, "if it is not a feature"),
        Remedy("features", None, "to name the features"),
    ]
    if len(wrong) == len(column) and names_rows(name, column):  # every row would have an indicator of its own
        ways = [Remedy("carry", name, "to keep an identifier out of the features"), ways[2]]
    raise DataError(problem, *ways)
