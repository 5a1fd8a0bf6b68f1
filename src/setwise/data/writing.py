"""Label sets to files, exact in every format: CSV, TSV, JSON lines, Parquet, Arrow and npz.

Parquet, Arrow and npz keep the whole vocabulary with its types and order. JSON lines keep the types of labels.
CSV and TSV keep them by the notation of `setwise.data.delimited`. The last three hold the labels that occur; pass
`classes` when reading to have the others and the order back.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import ArrayLike

from setwise._arrays import Floats
from setwise.data.assemble import Missing
from setwise.data.delimited import check_separator, encode_each, encode_labels
from setwise.data.errors import DataError
from setwise.data.sources import ENCODED, format_of
from setwise.data.tables import read_table
from setwise.labels.label_sets import LabelSets

_ROWS = 2**18  # put into text at a time


def write_sets(
    path: str | os.PathLike[str],
    sets: LabelSets,
    *,
    p_values: ArrayLike | None = None,
    carry: Mapping[str, Any] | None = None,
    column: str = "labels",
    separator: str = "|",
    format: str | None = None,  # noqa: A002 - the word users expect
) -> None:
    """Writes label sets with their names, and p-values if given; the file appears whole or not at all.

    Parameters
    ----------
    path
        Ends in .csv, .tsv, .jsonl, .parquet, .feather, .arrow or .npz.
    sets
        Prediction or candidate sets.
    p_values
        One row of K numbers a set, written as columns ``p:label``.
    carry
        Further columns, such as ``{"id": ids}``, written first.
    column
        The name of the column of sets; beside it stands `size`.
    separator
        Between labels in CSV and TSV.
    format
        Where the suffix does not say.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "sets.csv")
    >>> write_sets(path, LabelSets.from_lists([["cat", "dog"], []]), carry={"id": [7, 8]})
    >>> print(path.read_text())
    "id","labels","size"
    7,"cat|dog",2
    8,"",0
    """
    target = Path(path)
    form = format_of(target, format)
    writer = _WRITERS.get(form)
    if writer is None:
        raise DataError(
            f"{target}: sets are not written as {form}; use .parquet, .csv, .tsv, .jsonl, .arrow or .npz."
        )
    check_separator(separator)
    table = _table(sets, p_values, carry or {}, column, None if form not in {"csv", "tsv"} else separator)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            writer(file, table, sets, column)
            file.close()
            Path(file.name).replace(target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def read_sets(path: Any, *, column: str = "labels", missing: Missing = "empty", **options: Any) -> LabelSets:
    """Reads back the sets of a file that `write_sets` wrote; `options` as for `read_table`.

    >>> read_sets({"labels": ["cat|dog", ""]})
    LabelSets(2 rows, 2 classes): {cat, dog}, {}
    """
    sets = read_table(path, candidates=column, features=[], missing=missing, **options).candidates
    if sets is None:
        raise DataError(f"{path}: holds no sets.")
    return sets


def _table(
    sets: LabelSets, p_values: ArrayLike | None, carry: Mapping[str, Any], column: str, separator: str | None
) -> Any:
    """All columns; the sets as text where there is a separator, else as lists with their vocabulary noted."""
    arrays: dict[str, Any] = {name: pa.array(values) for name, values in carry.items()}
    labels, notes = (None, None) if separator else _lists(sets)
    arrays[column] = _texts(sets, encode_labels(sets.classes, separator), separator) if separator else labels
    arrays["size"] = pa.array(sets.sizes)
    if p_values is not None:
        for name, values in zip(_p_names(sets), _checked_p(p_values, sets).T, strict=True):
            arrays[name] = pa.array(np.ascontiguousarray(values))
    for name, array in arrays.items():
        if len(array) != len(sets):
            raise ValueError(f"carry: {name!r} has {len(array)} values for {len(sets)} sets; give one a row.")
    fields = [
        pa.field(name, array.type, metadata=notes if name == column else None) for name, array in arrays.items()
    ]
    return pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields))


def _lists(sets: LabelSets) -> tuple[Any, dict[str, str]]:
    labels = sets.classes.tolist()
    stored = json.dumps({"classes": labels, "declared": sets.vocabulary.declared}, ensure_ascii=False)
    notes = {"setwise.classes": stored}
    if len({type(label) for label in labels}) > 1 or sets.classes.dtype.kind == "O":
        labels, notes[ENCODED] = encode_each(labels), "yes"
    indptr, indices = sets.rows
    return pa.LargeListArray.from_arrays(
        pa.array(indptr, pa.int64()), pa.array(labels).take(pa.array(indices))
    ), notes


def _texts(sets: LabelSets, labels: list[str], separator: str) -> Any:
    """The sets with the given text for each label, joined; in blocks, because Arrow's short strings end at 2 GB."""
    texts = pa.array(labels, pa.string())
    indptr, indices = sets.rows
    chunks = []
    for start in range(0, len(sets), _ROWS):
        bounds = indptr[start : start + _ROWS + 1]
        held = texts.take(pa.array(indices[bounds[0] : bounds[-1]]))
        lists = pa.ListArray.from_arrays(pa.array(bounds - bounds[0], pa.int32()), held)
        chunks.append(pc.binary_join(lists, separator))
    return pa.chunked_array(chunks, pa.string())


def _p_names(sets: LabelSets) -> list[str]:
    return [f"p:{text}" for text in encode_labels(sets.classes.tolist(), "|")]


def _checked_p(p_values: ArrayLike, sets: LabelSets) -> Floats:
    p: Floats = np.asarray(p_values, dtype=np.float64)
    if p.shape != sets.shape:
        raise ValueError(
            f"p_values: shape {p.shape} for sets of shape {sets.shape}; give one number a row and class."
        )
    return p


def _write_csv(delimiter: str) -> Callable[..., None]:
    def write(file: Any, table: Any, _sets: LabelSets, _column: str) -> None:
        pa.csv.write_csv(table, file, pa.csv.WriteOptions(delimiter=delimiter))

    return write


def _write_parquet(file: Any, table: Any, _sets: LabelSets, _column: str) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, needed here alone

    pq.write_table(table, file)


def _write_arrow(file: Any, table: Any, _sets: LabelSets, _column: str) -> None:
    with pa.ipc.new_file(file, table.schema) as sink:
        sink.write_table(table)


def _write_json_lines(file: Any, table: Any, sets: LabelSets, column: str) -> None:
    """One object a row, put together from JSON texts column by column."""
    held = _texts(sets, [json.dumps(label, ensure_ascii=False) for label in sets.classes.tolist()], ",")
    brackets = pc.binary_join_element_wise("[", held, "]", "")
    parts: list[Any] = []
    for name in table.column_names:
        key = (", " if parts else "{") + json.dumps(name, ensure_ascii=False) + ": "
        parts += [key, brackets if name == column else _json_texts(table[name])]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    for start in range(0, len(lines), _ROWS):
        file.write("".join(lines[start : start + _ROWS].to_pylist()).encode())


def _json_texts(column: Any) -> Any:
    """Each value of a column as JSON text; only distinct values pass through Python."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    texts = [json.dumps(value, ensure_ascii=False) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _write_npz(file: Any, table: Any, sets: LabelSets, column: str) -> None:
    stored = {"classes": sets.classes.tolist(), "declared": sets.vocabulary.declared}
    arrays = {name: table[name].to_numpy() for name in table.column_names if name != column}
    if strange := [name for name, array in arrays.items() if array.dtype.kind not in "biuf"]:
        arrays |= {name: np.array(arrays[name].tolist(), dtype=np.str_) for name in strange}
    np.savez(
        file,
        candidates_indptr=sets.rows[0],
        candidates_indices=sets.rows[1],
        classes_json=np.frombuffer(json.dumps(stored).encode(), dtype=np.uint8),
        **arrays,
    )


_WRITERS: dict[str, Callable[..., None]] = {
    "csv": _write_csv(","),
    "tsv": _write_csv("\t"),
    "jsonl": _write_json_lines,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "npz": _write_npz,
}
