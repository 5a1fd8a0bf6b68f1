"""Converts columns of Arrow's rarer types to types that Arrow computes with and that every format can hold.

Views of text, dictionaries and run-end encodings become their values, and extension types become their storage,
also inside lists and objects.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_UUID, _BOOL = "arrow.uuid", "arrow.bool8"


def plain_column(column: Any) -> Any:
    """Converts a column of a rarer type to its plain values; returns any other column as it is."""
    if not _is_rare(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [_plain(chunk) for chunk in column.chunks]
        return pa.chunked_array(chunks or [_plain(pa.nulls(0, column.type))])
    return _plain(column)


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes of any length."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def text_of_bytes(values: Any) -> Any:
    """Bytes as text, if all of them are UTF-8; otherwise as they are."""
    try:
        return values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return values


def is_unsupported(kind: pa.DataType) -> bool:
    """Whether columns of this type cannot be read: month intervals and unions."""
    return pa.types.is_interval(kind) or pa.types.is_union(kind) or any(map(is_unsupported, _inside(kind)))


def _is_rare(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_dictionary(kind)
        or pa.types.is_run_end_encoded(kind)
        or isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
        or (not pa.types.is_map(kind) and any(map(_is_rare, _inside(kind))))
    )


def _inside(kind: pa.DataType) -> list[pa.DataType]:
    if isinstance(kind, pa.BaseExtensionType):
        return [kind.storage_type]
    if pa.types.is_nested(kind) and not pa.types.is_run_end_encoded(kind):
        return [kind.field(i).type for i in range(kind.num_fields)]
    return []


def _plain(values: Any) -> Any:
    kind = values.type
    if not _is_rare(kind):
        return values
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_dictionary(kind):
        return _plain(values.dictionary).take(values.indices)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(values))
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == _UUID:
            held = values.storage.to_pylist()
            return pa.array([None if one is None else str(UUID(bytes=one)) for one in held], pa.string())
        return values.storage.cast(pa.bool_()) if kind.extension_name == _BOOL else _plain(values.storage)
    if pa.types.is_struct(kind):
        parts = [_plain(part) for part in values.flatten()]
        fields = [pa.field(field.name, part.type) for field, part in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())
    sizes = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int64())
    return pa.LargeListArray.from_arrays(offsets, _plain(values.flatten()), mask=values.is_null())
