"""Arrow columns as label sets and as true labels, without a Python loop over rows.

Only the distinct labels of a column pass through Python; the rest are dictionary codes.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setwise._arrays import Array, Bools, Ints
from setwise.errors import DataError, MisuseWarning, Remedy, reading_from
from setwise.labels.label_sets import LabelSets, Missing
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.tables.arrow_types import plain_column
from setwise.tables.label_notation import TokenError, check_separator, decode_labels, match_classes


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text, dictionary-encoded or not."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds one list per row."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def split_text(column: Any, separator: str) -> tuple[list[str], Ints, Ints, Bools]:
    """Splits delimited text: the distinct pieces, a code per piece, the pieces per row, and the empty rows."""
    check_separator(separator)
    text = one_chunk(column).cast(pa.large_string())
    blank = pc.equal(pc.utf8_length(pc.utf8_trim(text, " \t")), 0)
    return _flatten(pc.split_pattern(pc.if_else(blank, None, text), separator))


@dataclass(frozen=True)
class LabelReader:
    """Reads the labels of columns: where these stand, how labels are written, and which there are."""

    where: str
    first_row: int = 0
    separator: str = "|"
    classes: Classes = None
    missing: Missing = "error"

    def sets(self, column: Any, *, encoded: bool = False) -> LabelSets:
        """Label sets from a column of lists, of delimited text, or of one label per row.

        With `encoded`, lists hold labels in the notation of delimited text, which is how files store mixed types.
        """
        return self._sets_of(*self._pieces_of(self.as_lists(column), encoded=encoded))

    def sets_from_flags(self, columns: Mapping[str, Any], labels: Sequence[Any]) -> LabelSets:
        """Label sets from multi-hot columns, one per class; a cell is 0 or 1."""
        held = []
        for name, column in columns.items():
            values, kind = one_chunk(column), column.type
            if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise DataError(
                    f"{self.where}: the column {name!r} holds {kind}; a multi-hot column holds 0 and 1."
                )
            numbers = np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan))
            strange = np.flatnonzero(~((numbers == 0) | (numbers == 1)))
            if len(strange):
                row = int(strange[0])
                found = f"row {self.first_row + row} holds {values[row].as_py()!r} in {name!r}"
                raise DataError(f"{self.where}: {found}; expected 0 or 1.")
            held.append(np.flatnonzero(numbers))
        rows = np.concatenate(held)
        codes = np.repeat(np.arange(len(held)), [len(part) for part in held])[np.argsort(rows, kind="stable")]
        sizes = np.bincount(rows, minlength=len(column))
        classes = Vocabulary.declare(labels) if self.classes is None else self.classes
        return replace(self, classes=classes)._sets_of(list(labels), codes, sizes, sizes == 0)

    def right_labels(self, column: Any) -> Array:
        """All right labels of each row as a tuple, in an array of objects; None where they are not known."""
        labels, codes, sizes, absent = self._pieces_of(self.as_lists(column))
        found, end = match_classes(labels, self.classes, self.separator), np.cumsum(sizes)
        rows = np.full(len(sizes), None, dtype=object)
        for row in np.flatnonzero(~absent).tolist():
            rows[row] = tuple(found[code] for code in codes[end[row] - sizes[row] : end[row]])
        return rows

    def truth(self, column: Any, *, verbatim: bool = False) -> Array:
        """True labels, one per row; an array of objects with None where the label is unknown.

        Text that is not a class but reads like one (``7`` for the number) is that class. With `verbatim`, text is
        the label itself, not the notation of delimited text; empty text is then a label if it is a class.
        """
        if is_list(column.type):
            raise DataError(
                f"{self.where}: a true label is one label per row, but this column holds lists",
                Remedy("candidates", None, "for a column of candidate sets"),
            )
        labels, codes, absent = self.singles(column, verbatim=verbatim)
        vocabulary = Vocabulary.infer(labels)
        if not absent.any():
            return vocabulary.classes[vocabulary.encode(labels)[codes]]
        truth = np.full(len(absent), None, dtype=object)
        distinct = np.empty(len(labels), dtype=object)
        distinct[:] = labels
        truth[~absent] = distinct[codes]
        return truth

    def singles(self, column: Any, *, verbatim: bool = False) -> tuple[list[Any], Ints, Bools]:
        """The distinct labels of a column of one label per row, the codes of rows with one, and which have none."""
        known, array = Vocabulary.or_none(self.classes), one_chunk(column)
        if is_text(column.type):
            text = array.cast(pa.large_string())
            blank = pc.equal(text if verbatim else pc.utf8_trim(text, " \t"), "")
            named = verbatim and known is not None and "" in known.classes.tolist()
            array = text if named else pc.if_else(blank, None, text)
        labels, codes, sizes, absent = _singles(array, self.where)
        if is_text(column.type) and not verbatim:
            return self.decode(labels, codes, sizes), codes, absent
        return match_classes(labels, known, self.separator), codes, absent

    def as_lists(self, column: Any) -> Any:
        """Converts a column to lists if it holds lists in another form; returns any other column as it is.

        Other forms are text such as ``['cat', 'dog']``, as Python and JSON write lists, and labels with numbers:
        ``{"cat": 0.7, "dog": 0.3}``. Labels whose number is 0 are left out.
        """
        array = one_chunk(column)
        if is_text(column.type):
            return _parse_lists(array.cast(pa.large_string()), self.where, self.first_row)
        return _labels_above_zero(array, self.where) if pa.types.is_struct(array.type) else column

    def decode(self, pieces: Sequence[Any], codes: Ints, sizes: Ints) -> list[Any]:
        """Like `decode_labels`, with errors that name the first row with the wrong piece."""
        try:
            return decode_labels(pieces, self.separator, self.classes)
        except TokenError as error:
            place = int(np.flatnonzero(codes == error.position)[0])
            row = self.first_row + int(np.searchsorted(np.cumsum(sizes), place, side="right"))
            raise DataError(f"{self.where}: row {row} {error.problem}", *error.remedies) from None

    def _pieces_of(self, column: Any, *, encoded: bool = False) -> tuple[list[Any], Ints, Ints, Bools]:
        """The distinct labels of a column, a code per entry, the entries per row, and the rows without labels."""
        if is_text(column.type):
            pieces, codes, sizes, absent = split_text(column, self.separator)
            return self.decode(pieces, codes, sizes), codes, sizes, absent
        array = one_chunk(column)
        if not is_list(array.type):
            return _singles(array, self.where)
        if _holds_no_label(inner := array.type.value_type):
            raise DataError(f"{self.where}: its lists hold {inner}, not labels; expected text or numbers.")
        labels, codes, sizes, absent = _flatten(array)
        if encoded:
            labels = self.decode(labels, codes, sizes)
        elif len(sizes) and sizes.min() == sizes.max() > 2 and {*labels} <= {0, 1}:
            problem = f"{self.where}: rows of {sizes[0]} zeros and ones look like a mask, but labels are expected"
            raise DataError(problem, "write the labels of a row as ant|cat", "make a column of each label")
        return labels, codes, sizes, absent

    def _sets_of(self, labels: list[Any], codes: Ints, sizes: Ints, absent: Bools) -> LabelSets:
        with reading_from(self.where):
            return LabelSets.from_codes(
                match_classes(labels, self.classes, self.separator),
                codes,
                sizes,
                self.classes,
                absent=absent | (sizes == 0),
                missing=self.missing,
                first_row=self.first_row,
            )


_CALLED = r"(?:set|frozenset|(?:np\.)?array|c|)"  # what may precede brackets
_WRITTEN = rf"(?s)^\s*(\[.*\]|{_CALLED}\(.*\)|\{{.*\}})?\s*$"


def _parse_lists(texts: Any, where: str, first_row: int) -> Any:
    """Parses text if every cell is written as a list; returns other text unchanged."""
    if not pc.all(pc.match_substring_regex(texts, _WRITTEN)).as_py():
        return texts
    found, codes = distinct(texts)
    cells = [(text or "").strip() or None for text in found]
    written = [cell for cell in cells if cell is not None]
    values = [None if cell is None else _literal(cell) for cell in cells]
    broken = [i for i, (cell, value) in enumerate(zip(cells, values, strict=True)) if cell and value is None]
    if len(broken) == len(written):
        return texts  # labels in brackets
    if broken:
        row = first_row + int(np.flatnonzero(np.isin(codes, broken))[0])
        raise DataError(
            f"{where}: row {row} is {cells[broken[0]]!r}, which is not a list of labels like the others."
        )
    if any(isinstance(value, dict) for value in values):
        _say_unused(where)
        values = [[label for label, p in v.items() if p] if isinstance(v, dict) else v for v in values]
    try:
        lists = pa.array([None if value is None else list(value) for value in values])
    except pa.ArrowException as error:
        raise DataError(f"{where}: its lists hold labels of several types ({error}).") from None
    return lists.take(pa.array(codes))


def _literal(text: str) -> Any:
    """The list, tuple, set or object that a text shows in JSON, Python, numpy or R; otherwise None."""
    if "," not in text:
        quoted = any(mark in text for mark in "'\"")
        text = re.sub(r"(?<=['\"])\s+(?=['\"])" if quoted else r"(?<=\d)\s+(?=[-\d])", ", ", text)
    for read in (json.loads, _evaluate):
        try:
            value = read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        if isinstance(value, (list, tuple, set, dict)):
            return value
    return None


def _evaluate(text: str) -> Any:
    """Evaluates a literal in which calls stand for their arguments: np.str_('a'), frozenset({…}), R's c(…)."""
    return ast.literal_eval(_Arguments().visit(ast.parse(text.strip(), mode="eval")))


class _Arguments(ast.NodeTransformer):
    """Replaces calls that numpy, Python and R print by their arguments; other calls are an error."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name not in {"set", "frozenset", "array", "c"} and not name.startswith("np."):
            raise ValueError(name)
        return node.args[0] if node.args and name != "c" else ast.List(node.args, ast.Load())


def _labels_above_zero(objects: Any, where: str) -> Any:
    """Lists of the labels whose number is above 0, from objects with one number per label."""
    kinds = [one.type for one in objects.type]
    numbers = (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind) for kind in kinds)
    if not kinds or not all(numbers):
        raise DataError(f"{where}: holds {objects.type}; expected labels, or objects with a number per label.")
    _say_unused(where)
    weights = [np.asarray(values.cast(pa.float64(), safe=False).fill_null(0)) for values in objects.flatten()]
    rows, codes = np.nonzero(np.stack(weights, axis=1) > 0)
    labels = pa.array(decode_labels([one.name for one in objects.type], "|", escapes=False))
    absent = np.asarray(pc.is_null(objects))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(objects)))])
    held = labels.take(pa.array(codes))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), held, mask=pa.array(absent))


def _say_unused(where: str) -> None:
    problem = (
        f"{where}: the numbers beside the labels are left out; each label with a number above 0 is a candidate"
    )
    warnings.warn(MisuseWarning(problem, "to use them, pass them as weights of votes"), stacklevel=3)


def _flatten(lists: Any) -> tuple[list[Any], Ints, Ints, Bools]:
    sizes = np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)
    labels, codes = distinct(pc.list_flatten(lists))
    return labels, codes, sizes, np.asarray(pc.is_null(lists))


def _singles(array: Any, where: str) -> tuple[list[Any], Ints, Ints, Bools]:
    """Like `_flatten`, for one label per row; null and NaN mean no label."""
    if _holds_no_label(array.type):
        raise DataError(f"{where}: holds {array.type}, not labels; expected text or numbers.")
    absent = np.asarray(pc.is_null(array, nan_is_null=True))
    present = _plain(array.filter(pa.array(~absent)))
    if pa.types.is_floating(present.type) and pc.all(pc.less(pc.abs(present), 2.0**53)).as_py():
        whole = present.cast(pa.int64(), safe=False)  # a frame with gaps turns integers into floats
        present = whole if pc.all(pc.equal(whole, present)).as_py() else present
    labels, codes = distinct(present)
    return labels, codes, (~absent).astype(np.int64), absent


def distinct(values: Any) -> tuple[list[Any], Ints]:
    """The distinct values, with None for null, and the code of each entry."""
    encoded = pc.dictionary_encode(_plain(values), null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


def _plain(values: Any) -> Any:
    """The values in a type that Arrow computes with."""
    values = plain_column(values)
    if pa.types.is_float16(values.type):
        return values.cast(pa.float32())
    return values.cast(pa.string()) if pa.types.is_null(values.type) else values


def _holds_no_label(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) or "binary" in str(kind) or isinstance(kind, pa.BaseExtensionType)


def one_chunk(column: Any) -> Any:
    """A column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def categories_of(column: Any, name: str, file: Any, first_row: int = 0) -> list[str]:
    """A column of categories as text, so that 1 in Parquet equals "1" in CSV; no row may lack one."""
    values = pc.cast(column if hasattr(column, "type") else pa.array(column, from_pandas=True), pa.string())
    texts: list[str] = values.to_pylist()
    if gone := [row for row, text in enumerate(texts) if not text]:
        raise DataError(f"{file}, column {name!r}: row {first_row + gone[0]} has no category; give it one.")
    return texts
