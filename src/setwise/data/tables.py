"""Features, candidates and truth from the tables people have: files by their suffix, and data frames."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from setwise._arrays import Array, Floats, frozen
from setwise.data.assemble import Missing
from setwise.data.columns import sets_from_column, sets_from_flags, truth_from_column
from setwise.data.delimited import check_separator, decode_labels
from setwise.data.errors import DataError
from setwise.data.features import Categories, Impute, feature_matrix
from setwise.data.sources import ENCODED, arrow_table, format_of, is_path
from setwise.errors import Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary

Columns = str | Sequence[str] | None


@dataclass(frozen=True, eq=False)
class Table:
    """What a table says, ready for learning.

    Attributes
    ----------
    X, feature_names
        Features, (n, d), and the column each came from.
    candidates
        Candidate sets, or None where no column was named.
    truth
        True labels, or None; an array of objects with None in rows where the truth is not known.
    carried
        Columns that are neither, unchanged: identifiers, groups, notes.
    source, first_row
        The file (or "the table"), and which of its rows is the first here (batches start later).
    imputed, categories
        What `impute` and `categories` learned; pass them on to read the next file alike.
    """

    X: Floats = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    candidates: LabelSets | None
    truth: Array | None = field(repr=False)
    carried: Mapping[str, Array] = field(repr=False)
    source: str
    first_row: int = 0
    imputed: Mapping[str, float] = field(default_factory=dict, repr=False)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what; the options of `read_table` under one name."""

    candidates: Columns = None
    truth: str | None = None
    features: Columns = None
    carry: Sequence[str] = ()
    separator: str = "|"
    escapes: bool = True
    classes: Vocabulary | Iterable[Hashable] | None = None
    missing: Missing = "error"
    impute: Impute = None
    categories: Categories = None
    format: str | None = None
    delimiter: str | None = None

    def __post_init__(self) -> None:
        check_separator(self.separator)
        if self.classes is not None and not isinstance(self.classes, Vocabulary):
            object.__setattr__(self, "classes", Vocabulary.declare(self.classes))
        if isinstance(self.carry, str):
            object.__setattr__(self, "carry", (self.carry,))

    @property
    def text_columns(self) -> list[str]:
        """Columns of a text file that are not to be read as numbers."""
        named = [self.candidates] if isinstance(self.candidates, str) else []
        return [*named, *([self.truth] if self.truth else []), *self.carry]


def read_table(
    source: Any,
    *,
    candidates: Columns = None,
    truth: str | None = None,
    features: Columns = None,
    carry: Sequence[str] = (),
    candidates_file: Any = None,
    key: str | None = None,
    **options: Any,
) -> Table:
    r"""Reads features, candidates and truth from a file or a data frame.

    Parameters
    ----------
    source
        A path ending in .csv, .tsv, .jsonl, .parquet, .feather, .arrow, .npz or .mat (text may be gzipped), or a
        pandas, polars or Arrow table, or a dict of columns.
    candidates
        A column of delimited text (``cat|dog``), of lists, or of single labels; or the start of multi-hot column
        names (``candidate`` for ``candidate:cat``, ``candidate:dog``); or a list of multi-hot columns.
    truth
        A column with the true label; empty where it is not known.
    features
        Names of the feature columns, or of one column of lists; by default every column not named otherwise.
    carry
        Columns to keep unchanged, such as identifiers.
    candidates_file, key
        Another file or frame that has the `candidates` column: row by row, or matched by the column `key`.
    **options
        `separator` ("|"), `escapes` (True; see `setwise.data.delimited`), `classes` (declares the vocabulary),
        `missing` ("error", "full" or "empty": rows without candidates), `impute` (None: missing features are an
        error; "nan", "mean", "median", a number or a mapping), `categories` (None: text is an error; "onehot" or
        a mapping), `format` (where the suffix does not say), `delimiter` (of columns).

    Examples
    --------
    >>> frame = {"x": [0.5, 1.5], "answers": ["cat|dog", "dog"], "checked": ["dog", None]}
    >>> table = read_table(frame, candidates="answers", truth="checked")
    >>> table.X.shape, table.candidates, table.truth.tolist()
    ((2, 1), LabelSets(2 rows, 2 classes): {cat, dog}, {dog}, ['dog', None])
    """
    if candidates_file is not None:
        main = read_table(
            source, truth=truth, features=features, carry=[*carry, *([key] if key else [])], **options
        )
        return _joined(main, candidates_file, candidates or "candidates", key, options)
    layout = Layout(candidates=candidates, truth=truth, features=features, carry=carry, **options)
    where = str(source) if is_path(source) else "the table"
    if is_path(source) and format_of(Path(source), layout.format) in {"npz", "mat"}:
        from setwise.data.array_files import read_array_file  # noqa: PLC0415 - knows `Table` itself

        return read_array_file(Path(source), layout)
    table = arrow_table(source, form=layout.format, text=layout.text_columns, delimiter=layout.delimiter)
    return interpret(table, layout, where)


def interpret(table: Any, layout: Layout, where: str, first_row: int = 0) -> Table:
    """An Arrow table, or a batch of one, as a `Table`."""
    flags = _flag_columns(table, layout, where)
    sets = _candidates(table, layout, flags, where, first_row)
    true = None
    if layout.truth is not None:
        _require(table, [layout.truth], where)
        true = truth_from_column(
            table[layout.truth],
            where=f"{where}, column {layout.truth!r}",
            separator=layout.separator,
            escapes=layout.escapes,
            classes=sets.vocabulary if sets is not None else layout.classes,
            first_row=first_row,
        )
    _require(table, layout.carry, where)
    taken = {layout.candidates if isinstance(layout.candidates, str) else None, layout.truth, *layout.carry, *flags}
    if layout.features is None:
        columns = [name for name in table.column_names if name not in taken]
    else:
        columns = [layout.features] if isinstance(layout.features, str) else list(layout.features)
        _require(table, columns, where)
    made = feature_matrix(
        table, columns, impute=layout.impute, categories=layout.categories, where=where, first_row=first_row
    )
    return Table(
        X=frozen(made.X),
        feature_names=made.names,
        candidates=sets,
        truth=None if true is None else frozen(true),
        carried={name: table[name].to_numpy() for name in layout.carry},
        source=where,
        first_row=first_row,
        imputed=made.imputed,
        categories=made.categories,
    )


def _candidates(table: Any, layout: Layout, flags: list[str], where: str, first_row: int) -> LabelSets | None:
    if layout.candidates is None:
        return None
    if flags:
        return sets_from_flags(
            [table[name] for name in flags],
            _flag_labels(flags, layout),
            flags,
            where=where,
            classes=layout.classes,
            missing=layout.missing,
            first_row=first_row,
        )
    name = str(layout.candidates)
    notes = table.schema.field(name).metadata or {}
    return sets_from_column(
        table[name],
        where=f"{where}, column {name!r}",
        separator=layout.separator,
        escapes=layout.escapes,
        classes=layout.classes if layout.classes is not None else stored_vocabulary(notes, where),
        missing=layout.missing,
        first_row=first_row,
        encoded=ENCODED.encode() in notes,
    )


def stored_vocabulary(notes: Mapping[bytes, bytes], where: str) -> Vocabulary | None:
    """The vocabulary a Parquet or Arrow column was written with, types and order included."""
    if b"setwise.classes" not in notes:
        return None
    try:
        stored = json.loads(notes[b"setwise.classes"])
        vocabulary = Vocabulary.declare(stored["classes"])
        return Vocabulary(vocabulary.classes, declared=bool(stored["declared"]))
    except (ValueError, TypeError, KeyError) as error:
        problem = f"{where}: the stored vocabulary cannot be read ({error})"
        raise DataError(problem, Remedy("classes", None, "to declare it")) from None


def _flag_columns(table: Any, layout: Layout, where: str) -> list[str]:
    """The multi-hot columns that hold the candidates; none if a column of sets does."""
    if layout.candidates is None:
        return []
    if not isinstance(layout.candidates, str):
        _require(table, layout.candidates, where)
        return list(layout.candidates)
    if layout.candidates in table.column_names:
        return []
    start = layout.candidates if layout.candidates.endswith(":") else f"{layout.candidates}:"
    flags = [name for name in table.column_names if name.startswith(start)]
    if not flags:
        _require(table, [layout.candidates], where)
    return flags


def _flag_labels(flags: list[str], layout: Layout) -> list[Any]:
    if not isinstance(layout.candidates, str):
        return flags
    start = len(layout.candidates.removesuffix(":")) + 1
    known = layout.classes.classes.tolist() if isinstance(layout.classes, Vocabulary) else None
    return decode_labels([name[start:] for name in flags], layout.separator, known, escapes=layout.escapes)


def _require(table: Any, names: Sequence[str], where: str) -> None:
    absent = [name for name in names if name not in table.column_names]
    if absent:
        found = ", ".join(table.column_names[:8]) + (", …" if len(table.column_names) > 8 else "")
        raise DataError(f"{where}: there is no column {absent[0]!r}; it has {found or 'none'}.")


def _joined(main: Table, other: Any, column: Columns, key: str | None, options: Mapping[str, Any]) -> Table:
    """The table with candidates from another source, in the order of the table's rows."""
    found = read_table(other, candidates=column, features=[], carry=[key] if key else [], **options)
    if found.candidates is None:
        raise DataError(f"{found.source}: holds no candidates.")
    if key is None:
        if len(found) != len(main) and len(found.candidates) != len(main):
            raise DataError(
                f"{found.source}: {len(found.candidates)} sets for {len(main)} rows",
                Remedy("key", None, "to match them by a column"),
            )
        sets = found.candidates
    else:
        ours, theirs = (pa.array(part.carried[key].tolist()) for part in (main, found))
        if len(theirs.unique()) < len(theirs):
            raise DataError(f"{found.source}: the key {key!r} has a value twice; one row an example is needed.")
        rows = np.asarray(pa.compute.index_in(ours, theirs).fill_null(-1))
        if (rows < 0).any():
            row = int(np.flatnonzero(rows < 0)[0])
            raise DataError(
                f"{found.source}: no row with {key} = {ours[row].as_py()!r}, which is row {row} of {main.source}."
            )
        sets = found.candidates[rows]
    fields = {name: getattr(main, name) for name in main.__dataclass_fields__}
    return Table(**{**fields, "candidates": sets})
