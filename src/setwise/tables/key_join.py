"""Rows of two tables matched by a key column."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setwise._arrays import Ints
from setwise.errors import DataError, MisuseWarning, Remedy
from setwise.labels.vocabulary import is_missing
from setwise.tables.arrow_reading import arrow_batches, column_names
from setwise.tables.label_columns import is_text, one_chunk
from setwise.tables.table_files import source_name

_ROWS = 2**16


def matching_rows(
    key: str, ours: Any, theirs: Any, *, source: str, other: str, absent: bool = False, all_used: bool = False
) -> Ints:
    """For each row of the key column `ours` (of `source`), the row of `theirs` (of `other`) with the same value.

    If one side is text, both are compared as text. A key that is missing, that `other` lacks, or that occurs twice
    in `other` is an error. With `absent`, a key that `other` lacks gives −1, unless it lacks all of them. With
    `all_used`, warns about rows of `other` that are unused or used twice.

    >>> matching_rows("id", ["b", "a"], ["a", "b", "c"], source="x.csv", other="s.csv")
    array([1, 0])
    """
    columns = [*map(key_column, (ours, theirs))]
    nested = next((each.type for each in columns if pa.types.is_nested(each.type)), None)
    if nested is not None:
        raise DataError(f"{key}: holds {nested}, which names no row", "name a column of text or numbers")
    wanted, known = (
        pc.if_else(pc.equal(values, ""), None, values) if is_text(values.type) else values for values in columns
    )
    for values, file in ((wanted, source), (known, other)):
        absent_keys = pc.is_null(values, nan_is_null=True)
        if pc.any(absent_keys).as_py():
            raise DataError(f"{file}: row {pc.index(absent_keys, True).as_py()} has no {key}; give it one.")
    wanted, known = _comparable(key, wanted, known, source, other)
    counts = pc.value_counts(known)
    several = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(several):
        raise DataError(
            f"{other}: {key} = {several[0]['values'].as_py()!r} occurs twice; one row per value is needed."
        )
    if len(known) == 0:
        raise DataError(f"{other}: holds no rows.")
    rows = pc.index_in(wanted, value_set=known)
    left = len(known) - len(pc.unique(rows.drop_null()))
    if rows.null_count and not (absent and rows.null_count < len(rows)):
        row = pc.index(pc.is_null(rows), True).as_py()
        problem = f"{other}: no row with {key} = {wanted[row].as_py()!r}, which is row {row} of {source}"
        ways = [f"write them alike: it has {known[0].as_py()!r}"] if rows.null_count == len(rows) else []
        raise DataError(problem, *ways)
    rows = rows.fill_null(-1)
    if all_used and left:
        problem = f"{other}: {left:,} of {len(known):,} values of {key} are not in {source} and are not used"
        warnings.warn(MisuseWarning(problem), stacklevel=3)
    if all_used and (again := len(wanted) - len(pc.unique(wanted))):
        problem = f"{source}: {again:,} rows repeat the {key} of another row and share its row of {other}"
        warnings.warn(MisuseWarning(problem, "give every row its own, if each file counts from 0"), stacklevel=3)
    return np.asarray(rows, dtype=np.int64)


def refuse_other_order(source: Any, other: Any) -> None:
    """Refuses to match tables row by row if a shared column shows that their orders differ.

    It shows this if at least half of the rows have a unique value that both tables hold, some in another place.
    """
    shared = [name for name in column_names(source) if name in column_names(other)]
    if not shared:
        return
    ours, theirs = (_columns(table, shared) for table in (source, other))
    for name in shared:
        try:
            wanted, known = _comparable(name, ours[name], theirs[name], "", "")
            if wanted.equals(known) or len(wanted) != len(known):
                continue
            names = _single(wanted)
            names = names.filter(pc.is_in(names, _single(known)))
            if 2 * len(names) < len(wanted) or pc.index_in(names, wanted).equals(pc.index_in(names, known)):
                continue
        except (DataError, pa.ArrowException):  # lists and values that cannot be compared name no rows
            continue
        raise DataError(
            f"{source_name(other)}: the column {name!r} names the rows of {source_name(source)} in another order",
            Remedy("key", name, "to match them"),
        )


def _single(values: Any) -> Any:
    """The values that occur exactly once."""
    counted = pc.value_counts(values)
    return counted.field("values").filter(pc.equal(counted.field("counts"), 1))


def _columns(source: Any, names: list[str]) -> dict[str, Any]:
    """Reads some columns of a table; the others may not fit into memory."""
    batches = list(arrow_batches(source, _ROWS, text=names, only=names))
    columns = {name: [one_chunk(batch[name]) for batch in batches] for name in names}
    return {
        name: pa.concat_arrays(parts)
        if len({part.type for part in parts}) == 1
        else key_column([value for part in parts for value in part.to_pylist()])
        for name, parts in columns.items()
    }


def key_column(values: Any) -> Any:
    """The values as an array; if text and numbers are mixed, all become text.

    >>> key_column(["a", 7]).to_pylist()
    ['a', '7']
    """
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if is_missing(value) else str(value) for value in values])


def _comparable(key: str, wanted: Any, known: Any, source: str, other: str) -> tuple[Any, Any]:
    """Casts both columns to one type."""
    if wanted.type == known.type:
        return wanted, known
    if is_text(wanted.type) or is_text(known.type):
        return wanted.cast(pa.large_string()), known.cast(pa.large_string())
    kinds = (wanted.type, known.type)
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        try:
            return wanted.cast(pa.int64()), known.cast(pa.int64())
        except pa.ArrowInvalid:
            exact = all(map(pa.types.is_integer, kinds))  # beyond 64 bits with a sign
            common = pa.large_string() if exact else pa.float64()
        try:
            return wanted.cast(common), known.cast(common)
        except pa.ArrowInvalid:
            problem = f"{key}: {source} holds {kinds[0]}, {other} holds {kinds[1]}, which would be rounded"
            raise DataError(problem, "write it as text in both") from None
    if all(pa.types.is_temporal(kind) for kind in kinds):
        if len({getattr(kind, "tz", None) is None for kind in kinds}) == 2:
            problem = f"{key}: {source} holds {kinds[0]}, {other} holds {kinds[1]}: only one has a time zone"
            raise DataError(problem, "write the zone of both")
        return wanted.cast(pa.timestamp("ns")), known.cast(pa.timestamp("ns"))
    raise DataError(f"{key}: {source} holds {kinds[0]}, {other} holds {kinds[1]}; these cannot be matched.")
