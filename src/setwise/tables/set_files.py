"""Files of label sets, exact in every format: CSV, TSV, JSON lines, Parquet and Arrow.

Parquet and Arrow store the whole vocabulary with its types and order. JSON lines store the types of labels,
and CSV and TSV store them by the notation of `label_notation`. These three hold only labels that occur; pass
`classes` when reading them to restore the others and their order. P-values and probabilities have columns named
``p:label``.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import ArrayLike

from setwise._arrays import Floats
from setwise.errors import DataError, InputError, MisuseWarning, Omission, Remedy
from setwise.labels.label_sets import LabelSets, Missing
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.storage.atomic_files import replacing
from setwise.tables.arrow_reading import CLASSES, ENCODED, TABLES, column_names
from setwise.tables.arrow_types import is_bytes, plain_column, text_of_bytes
from setwise.tables.json_objects import json_text
from setwise.tables.label_columns import distinct, is_list, is_text, one_chunk
from setwise.tables.label_notation import check_separator, decode_labels, encode_each, encode_labels
from setwise.tables.stored_vocabulary import vocabulary_json
from setwise.tables.table_files import format_of, without_compression
from setwise.tables.tabular import read_table

_ROWS = 2**18  # rows to write at a time: Arrow's short strings end at 2 GB
_WAITING = 2**26  # bytes of rows to hold back while a column has no type yet


def write_sets(
    path: str | os.PathLike[str],
    sets: LabelSets,
    *,
    p_values: ArrayLike | None = None,
    carry: Mapping[str, Any] | None = None,
    column: str = "labels",
    separator: str = "|",
) -> None:
    """Writes label sets, and p-values if given; the file appears whole or not at all.

    Parameters
    ----------
    path
        Ends in .csv, .tsv, .jsonl, .parquet, .feather or .arrow.
    sets
        Prediction or candidate sets.
    p_values
        One row of K numbers per set, written as one column ``p:label`` per class.
    carry
        Further columns, such as ``{"id": ids}``, written first.
    column
        The name of the column of sets; the column `size` follows it.
    separator
        The character between labels in CSV and TSV.

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
    with set_writer(path, column=column, separator=separator) as writer:
        writer.append(sets, carry, p_values)


def read_sets(path: Any, *, column: str = "labels", missing: Missing = "empty", **options: Any) -> LabelSets:
    """Reads the sets of a file that `write_sets` wrote; `options` are those of `read_table`.

    >>> read_sets({"labels": ["cat|dog", ""]})
    LabelSets(2 rows, 2 classes): {cat, dog}, {}
    """
    sets = read_table(path, candidates=column, features=[], missing=missing, **options).candidates
    if sets is None:
        raise DataError(f"{path}: holds no sets.")
    return sets


def read_predicted(
    source: Any,
    column: str = "labels",
    *,
    candidates: str | None = None,
    separator: str = "|",
    classes: Classes = None,
) -> tuple[LabelSets, Floats | None]:
    """Reads prediction sets, and their p-values if columns ``p:label`` follow the sets, otherwise None.

    The classes are those listed, or those of the p-values; otherwise those that occur in the sets and the
    `candidates`.

    >>> table = {"labels": ["cat", ""], "p:cat": [0.9, 0.05], "p:dog": [0.1, 0.05]}
    >>> read_predicted(table)[0]
    LabelSets(2 rows, 2 classes): {cat}, {}
    """
    marked = p_value_columns(column_names(source), column)
    if classes is None and marked:
        classes = probability_labels(marked)
    options: dict[str, Any] = {"classes": classes, "separator": separator}
    sets = read_sets(source, column=column, **options)
    if classes is None:
        found = sets.classes.tolist()
        if candidates is not None:
            known = set(found)
            others = read_sets(source, column=candidates, **options)
            found += [label for label in others.classes.tolist() if label not in known]
        sets = sets.recode(replace(Vocabulary.declare(found), declared=sets.vocabulary.declared))
    if not marked:
        return sets, None
    p = read_table(source, features=marked).X
    held = sets.to_mask()
    if p[held].min(initial=np.inf) < p[~held].max(initial=-np.inf) - 1e-9:  # no confidence level gives these sets
        problem = f"{source}: the columns {marked[0]!r}, … are not the p-values of its sets, and are not used"
        warnings.warn(MisuseWarning(problem, "put columns of your own before that of the sets"), stacklevel=3)
        return sets, None
    return sets, p


@contextmanager
def set_writer(
    path: str | os.PathLike[str],
    *,
    column: str = "labels",
    separator: str = "|",
    sizes: bool = True,
) -> Iterator[SetWriter]:
    """Opens a `SetWriter`; the file appears once all is written, and not at all if something fails."""
    target = Path(path)
    form = sets_format(target)
    check_separator(separator)
    with replacing(target) as beside:
        writer = SetWriter(beside, form, column, separator, sizes)
        try:
            yield writer
        finally:
            writer.close()


def sets_format(target: Path) -> str:
    """The format in which sets are written to a file; an error if it cannot hold sets, or would be unpacked."""
    form = format_of(target)
    if without_compression(target) != target:
        raise DataError(f"{target}: tables are written without compression; leave out {target.suffix}.")
    if form not in TABLES:
        raise DataError(f"{target}: rows are not written as {form}; use .parquet, .csv, .tsv, .jsonl or .arrow.")
    return form


class SetWriter:
    """An open file of label sets, to which batches over one vocabulary are appended."""

    def __init__(self, path: Path, form: str, column: str, separator: str, sizes: bool) -> None:
        self._path, self._form = path, form
        self._column, self._separator, self._sizes = column, separator, sizes
        self._vocabulary: Vocabulary | None = None
        self._relative = False
        self._notes: dict[bytes, bytes] = {}
        self._file: Any = None
        self._schema: Any = None
        self._waiting: list[Any] = []

    def append(
        self, sets: LabelSets, carry: Mapping[str, Any] | None = None, p_values: ArrayLike | None = None
    ) -> None:
        """Writes the columns `carry`, the sets, and one column of p-values per class."""
        for arrays in self._arrays(sets, carry, p_values):
            self._write(arrays)

    def _arrays(
        self, sets: LabelSets, carry: Mapping[str, Any] | None, p_values: ArrayLike | None
    ) -> Iterator[dict[str, Any]]:
        """The columns, in blocks of rows."""
        carry = {name: _as_array(values) for name, values in (carry or {}).items()}
        self._use(sets)
        p_names = [] if p_values is None else self._p_names
        _check_columns(carry, [self._column, *(["size"] if self._sizes else [])], p_names, len(sets))
        p: Floats | None = None if p_values is None else np.asarray(p_values, dtype=np.float64)
        if p is not None and p.shape != sets.shape:
            problem = f"p_values: shape {p.shape} for sets of shape {sets.shape}"
            raise ValueError(f"{problem}; give one number per row and class.")
        for start in range(0, max(len(sets), 1), _ROWS):
            rows = slice(start, start + _ROWS)
            arrays = {name: values[rows] for name, values in carry.items()}
            arrays[self._column] = self._encode_sets(sets if len(sets) <= _ROWS else sets[rows])
            if self._sizes:
                arrays["size"] = pa.array(sets.sizes[rows])
            if p is not None:
                columns = zip(p_names, p[rows].T, strict=True)
                arrays |= {name: pa.array(np.ascontiguousarray(values)) for name, values in columns}
            yield arrays

    def append_columns(self, columns: Mapping[str, Any]) -> None:
        """Writes rows without sets; single labels come from `label_column`."""
        whole = {name: _as_array(values) for name, values in columns.items()}
        n = max(map(len, whole.values()), default=0)
        for start in range(0, max(n, 1), _ROWS):
            self._write({name: values[start : start + _ROWS] for name, values in whole.items()})

    def label_column(self, labels: Sequence[Any], classes: Sequence[Any] = ()) -> Any:
        """A column of single labels, None for none; text files hold them in the notation of labels.

        `classes` determine the type, as the labels may be some of those of a file, or none.
        """
        listed = [label.item() if hasattr(label, "item") else label for label in labels]
        given = [label for label in listed if label is not None]
        known = classes or given
        if self._form in {"csv", "tsv"}:
            texts = iter(encode_labels(given, self._separator))
        elif len({type(label) for label in known}) > 1:
            texts = iter(encode_each(given))
        else:
            return pa.array(listed, pa.array(known).type)
        return pa.array([None if label is None else next(texts) for label in listed], pa.string())

    def close(self) -> None:
        """Finishes the file."""
        self._write_waiting()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _use(self, sets: LabelSets) -> None:
        """Prepares the labels of the first vocabulary for writing; another vocabulary is an error."""
        vocabulary = sets.vocabulary
        if self._vocabulary is not None and sets.relative and not self._relative:
            raise ValueError(
                "sets: these mean 'every label seen', but those written before did not; declare the classes."
            )
        if vocabulary is self._vocabulary:
            return
        if self._vocabulary is not None and not vocabulary.same_order(self._vocabulary):
            raise ValueError("sets: these have other classes than those written before; a file has one vocabulary.")
        self._vocabulary, self._relative = vocabulary, sets.relative
        labels = vocabulary.classes.tolist()
        self._p_names = _p_names(labels)
        if self._form in {"csv", "tsv"}:
            self._labels = pa.array(encode_labels(labels, self._separator), pa.string())
        elif self._form == "jsonl":
            self._labels = pa.array([json.dumps(label, ensure_ascii=False) for label in labels], pa.string())
        else:
            self._notes = {CLASSES: vocabulary_json(sets).encode()}
            if vocabulary.classes.dtype.kind == "O":
                labels, self._notes[ENCODED] = encode_each(labels), b"yes"
            self._labels = pa.array(labels)

    def _encode_sets(self, sets: LabelSets) -> Any:
        """The sets as lists, or as text for text files."""
        indptr, indices = sets.rows
        labels = self._labels.take(pa.array(indices))
        if self._form not in {"csv", "tsv", "jsonl"}:
            return pa.LargeListArray.from_arrays(pa.array(indptr, pa.int64()), labels)
        separator = "," if self._form == "jsonl" else self._separator
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(indptr, pa.int32()), labels), separator)

    def _write(self, arrays: dict[str, Any]) -> None:
        held_as_bytes = [name for name, values in arrays.items() if is_bytes(values.type)]
        if held_as_bytes and self._form in {"csv", "tsv", "jsonl"}:
            problem = f"the column {held_as_bytes[0]!r} holds bytes, which text files cannot hold"
            raise InputError(problem, "write .parquet")
        if self._form == "jsonl":
            self._file = self._file or self._path.open("wb")
            self._file.write("".join(_json_lines(arrays, self._column).to_pylist()).encode())
            return
        if self._form in {"csv", "tsv"}:
            arrays = {name: self._as_text(values) for name, values in arrays.items()}
            _refuse_nul(arrays)
        table = self._as_table(arrays)
        if self._file is None:
            self._schema = table.schema if self._schema is None else _with_types(self._schema, table.schema)
        self._waiting.append(table if table.schema == self._schema else _cast(table, self._schema))
        untyped = self._file is None and any(map(pa.types.is_null, self._schema.types))
        if not untyped or sum(one.nbytes for one in self._waiting) >= _WAITING:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Writes the rows that were held back; after that, the types of columns are fixed."""
        tables, self._waiting = self._waiting, []
        for table in tables:
            self._file = self._file or self._open(self._schema)
            self._file.write_table(table if table.schema == self._schema else _cast(table, self._schema))

    def _as_table(self, arrays: dict[str, Any]) -> Any:
        fields = [
            pa.field(name, values.type, metadata=self._notes if name == self._column else None)
            for name, values in arrays.items()
        ]
        return pa.table(list(arrays.values()), schema=pa.schema(fields))

    def _as_text(self, values: Any) -> Any:
        """Converts lists of text to delimited labels and other nested values to JSON; keeps plain values."""
        values = plain_column(values)
        if pa.types.is_null(values.type):
            return values.cast(pa.string())  # later rows may hold anything
        if not pa.types.is_nested(values.type):
            return values
        if not (is_list(values.type) and is_text(values.type.value_type)):
            return _json_texts(values)
        found, codes = distinct(pc.list_flatten(values))
        written = [None if label is None else encode_labels([label], self._separator)[0] for label in found]
        texts = pa.array(written, pa.string()).take(pa.array(codes))
        sizes = np.asarray(pc.list_value_length(values).fill_null(0))
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), self._separator)
        joined = pc.if_else(values.is_valid(), joined, None)
        if None not in found:
            return joined
        return pc.if_else(pc.and_(joined.is_null(), values.is_valid()), _json_texts(values), joined)

    def _open(self, schema: Any) -> Any:
        if self._form == "parquet":
            import pyarrow.parquet as pq  # slow to import, needed here alone

            return pq.ParquetWriter(self._path, schema)
        if self._form == "arrow":
            return pa.ipc.new_file(str(self._path), schema)
        delimiter = "\t" if self._form == "tsv" else ","
        return pa.csv.CSVWriter(str(self._path), schema, write_options=pa.csv.WriteOptions(delimiter=delimiter))


def set_table(
    sets: LabelSets,
    *,
    p_values: ArrayLike | None = None,
    carry: Mapping[str, Any] | None = None,
    column: str = "labels",
) -> Any:
    """Label sets as the Arrow table that `write_sets` writes into a Parquet file; options as there.

    >>> set_table(LabelSets.from_lists([["cat", "dog"], []]), carry={"id": [7, 8]}).to_pylist()
    [{'id': 7, 'labels': ['cat', 'dog'], 'size': 2}, {'id': 8, 'labels': [], 'size': 0}]
    """
    writer = SetWriter(Path(), "arrow", column, "|", sizes=True)
    return pa.concat_tables([writer._as_table(arrays) for arrays in writer._arrays(sets, carry, p_values)])


def probability_columns(names: Sequence[str], labels: Sequence[Any]) -> list[str] | None:
    """The columns named after the labels, ``p:cat`` or ``cat``, in their order; None if one is absent."""
    plain = [str(label) for label in labels]
    for columns in (_p_names(labels), encode_labels(labels, "|"), plain, [f"p:{text}" for text in plain]):
        if set(columns) <= set(names):
            return columns
    return None


def probability_labels(columns: Sequence[str]) -> list[Any]:
    """The labels after which columns are named, ``p:cat`` or ``cat``; the inverse of `probability_columns`."""
    marked = all(name.startswith("p:") for name in columns)
    return decode_labels([name[2:] if marked else name for name in columns], "|", escapes=marked)


def p_value_columns(names: Sequence[str], sets: str) -> list[str]:
    """The columns ``p:label`` of p-values, which follow the sets; carried columns precede the sets.

    >>> p_value_columns(["id", "p:cat", "p:dog", "labels", "size"], "labels")
    []
    """
    behind = names[names.index(sets) :] if sets in names else []
    return [name for name in behind if name.startswith("p:")]


def _p_names(labels: Sequence[Any]) -> list[str]:
    return [f"p:{text}" for text in encode_labels(labels, "|")]


def _check_columns(carry: Mapping[str, Any], ours: Sequence[str], p_names: Sequence[str], n: int) -> None:
    taken = {*p_names}
    for name, values in carry.items():
        if name in taken:
            problem = f"carry: there is a column {name!r} already, and the p-values need it"
            raise InputError(problem, "rename or remove it", Omission("p_values", "no p_values"))
        if name in ours:
            raise InputError(
                f"carry: there is a column {name!r} already, and the sets need it",
                "rename it",
                *([Remedy("column", None, "to name that of the sets")] if name == ours[0] else []),
            )
        if len(values) != n:
            raise ValueError(f"carry: {name!r} has {len(values)} values for {n} sets; give one per row.")


def _cast(table: Any, schema: Any) -> Any:
    """Casts a table to the columns of those written before."""
    held = {*table.column_names}
    for field in schema:
        if field.name not in held:
            raise InputError(f"there is no column {field.name!r}, which the rows before have")
        kind = table.schema.field(field.name).type
        if kind != field.type and not _keeps(table[field.name], field.type):
            gap = pa.types.is_null(field.type)
            problem = f"the column {field.name!r} holds {kind}, but {field.type} in the rows before"
            raise InputError(problem, "give all rows one type", *(["write .csv or .jsonl"] if gap else []))
    if added := sorted(held - {*schema.names}):
        raise InputError(f"there is a column {added[0]!r}, which the rows before lack")
    table = table.select(schema.names)
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_null(kind):  # Arrow casts null to few types
            table = table.set_column(place, schema.field(place), pa.nulls(len(table), schema.field(place).type))
    return table.cast(schema)


def _with_types(schema: Any, later: Any) -> Any:
    """The schema, with columns of nulls given the types of later rows."""
    for place, field in enumerate(schema):
        if pa.types.is_null(field.type) and field.name in later.names:
            schema = schema.set(place, field.with_type(later.field(field.name).type))
    return schema


def _keeps(values: Any, kind: pa.DataType) -> bool:
    """Whether values stay the same when cast to a type: 007 is not 7, and a time is not a number."""
    if pa.types.is_null(values.type):
        return True
    if is_text(values.type) > is_text(kind):
        return False
    if not is_text(kind) and pa.types.is_temporal(values.type) != pa.types.is_temporal(kind):
        return False
    try:
        back = values.cast(kind).cast(values.type)
    except pa.ArrowException:
        return False
    if pa.types.is_floating(values.type):
        back, values = (pc.if_else(pc.is_nan(one), None, one) for one in (back, values))
    return bool(back.equals(values))


def _as_array(values: Any) -> Any:
    array = one_chunk(values) if isinstance(values, pa.ChunkedArray) else pa.array(values)
    return text_of_bytes(array) if is_bytes(array.type) else array


def _refuse_nul(arrays: Mapping[str, Any]) -> None:
    """Refuses text with the character NUL, which readers of delimited text reject."""
    for name, values in arrays.items():
        if "\0" in name or (is_text(values.type) and pc.any(pc.match_substring(values, "\0")).as_py()):
            raise InputError(
                f"the column {name!r} holds the character NUL, which text files cannot hold", "write .parquet"
            )


def _json_lines(arrays: Mapping[str, Any], sets: str) -> Any:
    """One JSON object per row, assembled column by column."""
    parts: list[Any] = []
    for name, values in arrays.items():
        key = (", " if parts else "{") + json.dumps(name, ensure_ascii=False) + ": "
        parts += [key, "[", values, "]"] if name == sets else [key, _json_texts(values)]
    return pc.binary_join_element_wise(*parts, "}\n", "")


def _json_texts(values: Any) -> Any:
    """Each value as JSON text; unless they are nested, only distinct values pass through Python."""
    values = plain_column(values)
    values = values.cast(_python_type(values.type))
    if pa.types.is_nested(values.type):
        return pa.array([json_text(value) for value in values.to_pylist()], pa.string())
    if pa.types.is_null(values.type):
        return pa.array(["null"] * len(values), pa.string())
    encoded = values.dictionary_encode(null_encoding="encode")
    texts = [json_text(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _python_type(kind: pa.DataType) -> pa.DataType:
    """The type with text in place of times and durations in nanoseconds, which Python has not."""
    if pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_python_type(field.type)) for field in kind])
    return pa.large_list(_python_type(kind.value_type)) if is_list(kind) else kind
