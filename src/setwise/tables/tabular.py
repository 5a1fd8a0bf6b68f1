"""Reads features, candidates and true labels from files and data frames, whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setwise._arrays import Array, Bools, Ints, frozen
from setwise.errors import DataError, refuse_names
from setwise.labels.label_sets import LabelSets, Missing
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.labels.votes import Votes
from setwise.learn.feature_frame import FeatureFrame, Impute
from setwise.tables.arrow_reading import (
    ENCODED,
    absent_column,
    arrow_batches,
    arrow_table,
    batches_with_origin,
    column_names,
    has_rows,
    is_delimited,
)
from setwise.tables.features import Categories, read_features
from setwise.tables.label_columns import LabelReader, is_list, is_text, split_text
from setwise.tables.label_notation import TokenError, check_separator, decode_labels
from setwise.tables.stored_vocabulary import over_classes, parse_vocabulary
from setwise.tables.table_files import names_files, source_name, table_files
from setwise.tables.table_warnings import doubt_features, doubt_labels

Columns = str | Sequence[str] | None


@dataclass(frozen=True, eq=False)
class Table:
    """The contents of a table, ready for learning.

    Attributes
    ----------
    X, feature_names
        Features, (n, d), and the column of each; a `FeatureFrame` with `as_frame`.
    candidates
        Candidate sets, or None if no column was named.
    truth
        True labels, or None; an array of objects with None in rows whose true label is unknown.
    carried
        Other columns, unchanged: identifiers, groups, notes.
    votes, by
        The votes about the rows and the category of each row, if `read_rows` was to read them.
    known
        Rows whose label somebody wrote down, but which were not drawn at random and are not in `truth`.
    source, first_row
        The file (or "the table"), and the number of its row that comes first here (batches start later).
    imputed, categories
        What `impute` and `categories` learned; pass them on to read the next file in the same way.
    """

    X: Any = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    candidates: LabelSets | None
    truth: Array | None = field(repr=False)
    carried: Mapping[str, Array] = field(repr=False)
    source: str
    first_row: int = 0
    imputed: Mapping[str, float] = field(default_factory=dict, repr=False)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    votes: Votes | None = field(default=None, repr=False)
    by: list[str] | None = field(default=None, repr=False)
    known: Bools | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Ints) -> Table:
        """Some of the rows."""
        given = {name: getattr(self, name) for name in ("X", "candidates", "truth", "votes", "known")}
        taken: dict[str, Any] = {name: values[rows] for name, values in given.items() if values is not None}
        carried = {name: values[rows] for name, values in self.carried.items()}
        by = None if self.by is None else [self.by[row] for row in rows.tolist()]
        return replace(self, **taken, carried=carried, by=by)

    @property
    def answers(self) -> LabelSets | Votes | None:
        """The votes about the rows if there are any, otherwise the candidates."""
        return self.candidates if self.votes is None else self.votes


@dataclass(frozen=True)
class Layout:
    """The roles of the columns of a table: the options of `read_table`."""

    candidates: Columns = None
    truth: str | None = None
    features: Columns = None
    carry: Sequence[str] = ()
    separator: str = "|"
    classes: Classes = None
    missing: Missing = "error"
    impute: Impute = None
    categories: Categories = None
    as_frame: bool = False
    several: bool = False

    def __post_init__(self) -> None:
        check_separator(self.separator)
        if self.classes is not None and not isinstance(self.classes, Vocabulary):
            object.__setattr__(self, "classes", Vocabulary.declare(self.classes))
        if isinstance(self.carry, str):
            object.__setattr__(self, "carry", (self.carry,))

    def reader(self, where: str, first_row: int = 0) -> LabelReader:
        """Reads labels from the columns of a table as the layout says."""
        return LabelReader(where, first_row, self.separator, self.classes, self.missing)

    @property
    def text_columns(self) -> list[str]:
        """Columns of a text file that stay text."""
        named = [self.candidates] if isinstance(self.candidates, str) else []
        return [*named, *([self.truth] if self.truth else []), *self.carry]


def read_table(
    source: Any,
    *,
    candidates: Columns = None,
    truth: str | None = None,
    features: Columns = None,
    carry: Sequence[str] = (),
    **options: Any,
) -> Table:
    r"""Reads features, candidates and truth from a file or a data frame.

    Parameters
    ----------
    source
        A path ending in .csv, .tsv, .txt, .jsonl, .json, .parquet, .feather, .arrow or .xlsx (text may be
        gzipped), several paths or a pattern (``parts/*.csv``); or a pandas, polars or Arrow table, or a dict of
        columns.
    candidates
        A column of delimited text (``cat|dog``), of lists (also as text: ``['cat', 'dog']``), of objects with a
        number per label (those above 0 are candidates), or of single labels; or the start of multi-hot column
        names (``candidate`` for ``candidate:cat``, ``candidate:dog``); or a list of multi-hot columns.
    truth
        A column with the true label; empty where it is unknown.
    features
        Names of the feature columns, or of one column of lists; by default all columns without another role.
    carry
        Columns to keep unchanged, such as identifiers.
    **options
        `separator` ("|"), `classes` (declares the
        vocabulary), `missing` ("error", "full" or "empty": rows without candidates), `impute` (None: missing
        features are an error; "nan", "mean", "median", a number or a mapping), `categories` (None: text is an
        error; "onehot" or a mapping), `as_frame` (True keeps text and gaps as they are where these allow them),
        `several` (True: `truth` names a column of sets of right labels, which are read as tuples). For
        text files: `delimiter` (by default the one of ``,;|`` and tab that the first lines show), `encoding` (by
        default as a byte order mark shows, or UTF-8), `decimal` (".").

    Examples
    --------
    >>> frame = {"x": [0.5, 1.5], "answers": ["cat|dog", "dog"], "verified": ["dog", None]}
    >>> table = read_table(frame, candidates="answers", truth="verified")
    >>> table.X.shape, table.candidates, table.truth.tolist()
    ((2, 1), LabelSets(2 rows, 2 classes): {cat, dog}, {dog}, ['dog', None])
    """
    source, options = _open_source(source, options)
    return table_of(source, Layout(candidates=candidates, truth=truth, features=features, carry=carry, **options))


def table_of(source: Any, layout: Layout) -> Table:
    """Reads files or a frame, with the roles of columns that the layout gives."""
    read = interpret(arrow_table(source, text=layout.text_columns), layout, source_name(source))
    doubt_labels(read)
    if layout.features is None and read.candidates is not None:
        doubt_features(read)
    return read


def read_batches(source: Any, *, batch_rows: int = 65_536, **options: Any) -> Iterator[Table]:
    """Reads a table batch by batch, as `read_table` reads it whole.

    The vocabulary is the same in every batch: the declared one (`classes`), the one stored in the file, or that of
    the whole column of candidates, for which the file is read twice.

    Parameters
    ----------
    source
        A .csv, .tsv, .jsonl, .parquet, .feather or .arrow file, or a frame.
    batch_rows
        The largest number of rows in a batch.
    **options
        Those of `read_table`. Statistics over all rows (`impute="mean"`, `categories="onehot"`) need the whole
        table: take them from a sample read with `read_table`, and pass them.

    Examples
    --------
    >>> frame = {"x": [1.0, 2.0, 3.0], "s": ["a|b", "b", "c"]}
    >>> [(batch.first_row, batch.candidates) for batch in read_batches(frame, candidates="s", batch_rows=2)]
    [(0, LabelSets(2 rows, 3 classes): {a, b}, {b}), (2, LabelSets(1 rows, 3 classes): {c})]
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows: {batch_rows}; a batch needs at least one row.")
    source, options = _open_source(source, options)
    layout = Layout(**options)
    if layout.impute in ("mean", "median") or layout.categories == "onehot":
        raise ValueError(
            "impute and categories: a batch does not know the statistics of the whole table; read a sample with "
            "read_table and pass its `imputed` and `categories`."
        )
    where = source_name(source)
    layout = _with_vocabulary(source, layout, where, batch_rows)
    first_row = 0
    for place, start, batch in batches_with_origin(source, batch_rows, text=columns_of_text(source, layout)):
        yield replace(interpret(batch, layout, place, start), source=where, first_row=first_row)
        first_row += len(batch)


def columns_of_text(source: Any, layout: Layout) -> list[str]:
    """The columns of text files that stay text, including unused ones.

    If no features are named, all other columns are features.
    """
    told = layout.text_columns
    if layout.features is None or not names_files(source):
        return told
    files = table_files(source)
    if files.form(files.paths[0]) not in {"csv", "tsv"} or not has_rows(files):
        return told
    names = column_names(files)
    numbers = {layout.features} if isinstance(layout.features, str) else {*layout.features}
    if isinstance(layout.candidates, str):
        numbers |= {*candidate_columns(names, layout.candidates)} - {layout.candidates}
    else:
        numbers |= {*(layout.candidates or ())}
    return [*told, *(name for name in names if name not in numbers)]


def interpret(table: Any, layout: Layout, where: str, first_row: int = 0) -> Table:
    """Converts an Arrow table, or a batch of one, to a `Table`."""
    flags = _flag_columns(table, layout, where)
    sets = _candidates(table, layout, flags, where, first_row)
    true = None
    if layout.truth is not None:
        _require(table, [layout.truth], where)
        reader = replace(
            layout.reader(f"{where}, column {layout.truth!r}", first_row),
            classes=sets.vocabulary if sets is not None else layout.classes,
        )
        if layout.several:
            true = reader.right_labels(table[layout.truth])
        else:
            true = reader.truth(table[layout.truth], verbatim=not _in_notation(table, layout, sets))
    _require(table, layout.carry, where)
    taken = {layout.candidates if isinstance(layout.candidates, str) else None, layout.truth, *layout.carry, *flags}
    if layout.features is None:
        columns = [name for name in table.column_names if name not in taken]
    else:
        columns = [layout.features] if isinstance(layout.features, str) else list(layout.features)
        _require(table, columns, where)
    asked: dict[str, Any] = {"impute": layout.impute, "categories": layout.categories, "as_frame": layout.as_frame}
    made = read_features(table, columns, **asked, where=where, first_row=first_row)
    return Table(
        X=made.X if isinstance(made.X, FeatureFrame) else frozen(made.X),
        feature_names=made.names,
        candidates=sets,
        truth=None if true is None else frozen(true),
        carried={name: _as_numpy(table[name]) for name in layout.carry},
        source=where,
        first_row=first_row,
        imputed=made.imputed,
        categories=made.categories,
    )


def _as_numpy(column: Any) -> Array:
    """A column as numpy holds it; times with a zone, which numpy would drop, as `datetime` objects."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        with suppress(pa.ArrowInvalid):  # finer than microseconds
            return np.array(column.cast(pa.timestamp("us", "UTC")).to_pylist(), dtype=object)
    found: Array = column.to_numpy()
    return found


def _candidates(table: Any, layout: Layout, flags: list[str], where: str, first_row: int) -> LabelSets | None:
    if layout.candidates is None:
        return None
    if flags:
        columns = {name: table[name] for name in flags}
        return layout.reader(where, first_row).sets_from_flags(columns, _flag_labels(flags, layout, where))
    name = str(layout.candidates)
    notes = table.schema.field(name).metadata or {}
    stored, relative = parse_vocabulary(notes, where)
    reader = layout.reader(f"{where}, column {name!r}", first_row)
    if relative or layout.classes is None:
        reader = replace(reader, classes=stored)
    sets = reader.sets(table[name], encoded=ENCODED in notes)
    return over_classes(sets, relative, layout.classes, where)


def _in_notation(table: Any, layout: Layout, sets: LabelSets | None) -> bool:
    """Whether true labels use the notation of delimited text, in a text file or with candidates in that notation.

    Labels of several types use it everywhere, as a column has one type.
    """
    vocabulary = layout.classes if sets is None else sets.vocabulary
    mixed = isinstance(vocabulary, Vocabulary) and vocabulary.classes.dtype == object
    named = layout.candidates if isinstance(layout.candidates, str) else None
    beside = named in table.column_names and is_text(table.schema.field(named).type)
    return beside or mixed or is_delimited(table)


def _flag_columns(table: Any, layout: Layout, where: str) -> list[str]:
    """The multi-hot columns of the candidates; none if there is one column of sets."""
    if layout.candidates is None:
        return []
    if not isinstance(layout.candidates, str):
        _require(table, layout.candidates, where)
        return list(layout.candidates)
    if layout.candidates in table.column_names:
        return []
    flags = candidate_columns(table.column_names, layout.candidates)
    if not flags:
        _require(table, [layout.candidates], where)
    return flags


def candidate_columns(names: Sequence[str], candidates: str) -> list[str]:
    """The column of candidates, or the multi-hot columns whose names start with that name.

    >>> candidate_columns(["id", "answers:cat", "answers:dog"], "answers")
    ['answers:cat', 'answers:dog']
    """
    if candidates in names:
        return [candidates]
    return [name for name in names if name.startswith(f"{candidates.removesuffix(':')}:")]


def _flag_labels(flags: list[str], layout: Layout, where: str) -> list[Any]:
    if not isinstance(layout.candidates, str):
        return flags
    start = len(layout.candidates.removesuffix(":")) + 1
    names = [name[start:] for name in flags]
    try:
        return decode_labels(names, layout.separator, layout.classes)
    except TokenError as error:
        column = flags[error.position]
        raise DataError(f"{where}: the name of column {column!r} {error.problem}", *error.remedies) from None


def _require(table: Any, names: Sequence[str], where: str) -> None:
    held = {*table.column_names}  # Arrow rebuilds the list each time
    if absent := [name for name in names if name not in held]:
        raise absent_column(absent[0], table.column_names, where)


def _open_source(source: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The source, with paths as files and what the options declare about their text, and the other options."""
    declared = {name: options[name] for name in ("delimiter", "encoding", "decimal") if name in options}
    others = {name: value for name, value in options.items() if name not in declared}
    known = {part.name for part in fields(Layout)}
    refuse_names({name: value for name, value in others.items() if name not in known}, sep="delimiter")
    return table_files(source, **declared) if names_files(source) else source, others


def _with_vocabulary(source: Any, layout: Layout, where: str, batch_rows: int) -> Layout:
    """The layout with the vocabulary that all batches share."""
    name = layout.candidates
    if layout.classes is not None or not isinstance(name, str):
        return layout
    pieces: dict[str, None] = {}  # pieces of delimited text are decoded once all are known
    labels: dict[Any, None] = {}
    rows = 0
    for batch in arrow_batches(source, batch_rows, text=layout.text_columns, only=[name]):
        if name not in batch.column_names:
            return layout  # multi-hot columns, or an error that `interpret` raises
        reader = layout.reader(f"{where}, column {name!r}", rows)
        column = reader.as_lists(batch[name])
        notes = batch.schema.field(name).metadata or {}
        stored, _ = parse_vocabulary(notes, where)
        if stored is not None:
            return replace(layout, classes=stored)
        if is_text(column.type):
            found, codes, sizes, _ = split_text(column, layout.separator)
            reader.decode(found, codes, sizes)
            pieces.update(dict.fromkeys(found))
        else:
            flat = pc.list_flatten(column) if is_list(column.type) else column
            held = [label for label in pc.unique(flat).to_pylist() if label is not None]
            labels.update(dict.fromkeys(decode_labels(held, "|") if ENCODED in notes else held))
        rows += len(batch)
    decoded = decode_labels(list(pieces), layout.separator)
    return replace(layout, classes=Vocabulary.infer([*labels, *decoded]))
