"""Reads rows from files: a request names the columns and files, and one reader brings them together.

Candidates, true labels and categories may stand in the table of the rows or in another table. Votes and verified
labels have files of their own. Rows of other files are matched by a key, or come in the same order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from setwise._arrays import concatenate
from setwise.errors import DataError, InputError, Remedy
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.tables.arrow_reading import (
    absent_column,
    arrow_table,
    batches_with_origin,
    column_names,
    has_column,
)
from setwise.tables.importers.imported import Imported
from setwise.tables.importers.label_studio import is_export
from setwise.tables.importers.vote_sources import VoteColumns, import_votes
from setwise.tables.key_join import key_column, matching_rows, refuse_other_order
from setwise.tables.label_columns import categories_of, one_chunk
from setwise.tables.table_files import names_files, source_name, table_files
from setwise.tables.table_warnings import count_unanswered, doubt_features
from setwise.tables.tabular import Layout, Table, candidate_columns, interpret, read_table, table_of
from setwise.tables.verified_files import merge_verified, read_verified

_ROWS = 2**14


@dataclass(frozen=True, kw_only=True)
class RowRequest(Layout):
    """The files and columns that describe the rows of a table.

    Columns are named as in `Layout`. Candidates, true labels and categories are read from `labels` if it has them,
    otherwise from `source`; everything else is read from `source`. By default, features are all columns of `source`
    that have no other role.

    Attributes
    ----------
    source
        The files or the frame of the rows; None if the rows are the items of `votes`.
    labels
        Another table about the same rows, matched by `key` or in the same order.
    votes, vote_columns
        A file of votes in place of candidates, matched by `key`, and its columns. Rows that it lacks have no votes.
    verified, verified_column
        A file of verified labels, matched by `key`: a table and its column (None: ``verified``), or a Label Studio
        export. They join those of the column `truth`.
    from_name
        The control of a Label Studio export.
    key
        The column of identifiers.
    by
        The column of categories.

    Examples
    --------
    >>> rows = {"id": ["a", "b"], "x": [0.5, 1.5]}
    >>> answers = {"id": ["b", "a"], "said": ["cat", "cat|dog"]}
    >>> read_rows(RowRequest(source=rows, labels=answers, candidates="said", key="id")).candidates
    LabelSets(2 rows, 2 classes): {cat, dog}, {cat}
    """

    source: Any
    labels: Any = None
    votes: Any = None
    vote_columns: VoteColumns | None = None
    verified: Any = None
    verified_column: str | None = None
    from_name: str | None = None
    key: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("source", "labels", "votes", "verified"):
            if names_files(getattr(self, name)):
                object.__setattr__(self, name, table_files(getattr(self, name)))
        matched = self.votes is not None or self.verified is not None
        if self.key is None and matched and self.source is not None:
            problem = "votes and verified labels are matched with the rows by an identifier"
            raise InputError(problem, Remedy("key", None, "to name its column"))


def read_rows(request: RowRequest) -> Table:
    """Reads the rows that a request describes, in the order of their table."""
    main = _vote_items(request) if request.source is None else _table_rows(request)
    if request.votes is not None and request.source is not None:
        found, key = _import_votes(request), str(request.key)
        files: dict[str, Any] = {"source": main.source, "other": source_name(request.votes)}
        rows = matching_rows(key, main.carried[key], found.ids, absent=True, all_used=True, **files)
        main = replace(main, candidates=None, votes=found.votes.at(rows))
    if main.votes is not None:
        count_unanswered(main.votes, source_name(request.votes))
    if request.features is None:
        votes = main.votes
        doubt_features(main if votes is None else replace(main, candidates=votes.candidates(missing="empty")))
    return main if request.verified is None else _with_verified(request, main)


def _match_tables(key: str | None, source: Any, main: Table, labels: Any, other: Table) -> Any:
    """The positions of the rows of a table in another table, matched by a key or in the same order."""
    if key is not None:
        files: dict[str, Any] = {"source": main.source, "other": other.source}
        return matching_rows(key, main.carried[key], other.carried[key], all_used=True, **files)
    if len(other) != len(main):
        problem = f"{other.source}: {len(other)} rows for {len(main)} rows of {main.source}"
        raise DataError(problem, Remedy("key", None, "to match them"))
    refuse_other_order(source, labels)
    return slice(None)


def _feature_columns(request: RowRequest) -> list[str]:
    """The feature columns: those that the request names, otherwise all others."""
    others = other_columns(request)
    if request.features is None:
        return others
    named = [request.features] if isinstance(request.features, str) else list(request.features)
    if twice := [name for name in column_names(request.source) if name in named and name not in others]:
        raise InputError(f"{twice[0]!r} is named both as a feature and as something else; a column has one role")
    return named


def other_columns(request: RowRequest) -> list[str]:
    """The columns of `source` to which the request gives no role."""
    names, sets = column_names(request.source), request.candidates
    sets = candidate_columns(names, sets) if isinstance(sets, str) else sets
    taken = {*(sets or ()), request.candidates, request.truth, request.key, request.by, *request.carry}
    return [name for name in names if name not in taken]


def output_columns(source: Any, rows: Table) -> dict[str, Any]:
    """The columns to write for some rows."""
    if source is None:  # the items of votes
        name, values = next(iter(rows.carried.items()))
        return {name: pa.array(values)}
    return columns_as_written(source)


def columns_as_written(source: Any, form: str = "csv", *, text: Collection[str] = ()) -> dict[str, Any]:
    """All columns of a table, to be written in a format; from text file to text file, cells stay as they are.

    From a text file to another format, cells become numbers where they can, except in the columns `text`.
    """
    files = table_files(source)
    plain = {form, *map(files.form, files.paths)} <= {"csv", "tsv"}
    whole = arrow_table(files, text=column_names(files) if plain else text)
    return {name: one_chunk(whole[name]) for name in whole.column_names}


def _table_rows(request: RowRequest) -> Table:
    """The rows, with their columns in their own table and in the table of labels."""
    truth_there, by_there = (_stands_in_labels(request, name) for name in (request.truth, request.by))
    key, by = ([] if name is None else [name] for name in (request.key, request.by))
    main = _read(
        replace(
            request,
            features=_feature_columns(request),
            candidates=request.candidates if request.labels is None and request.votes is None else None,
            truth=None if truth_there else request.truth,
            carry=list(dict.fromkeys([*request.carry, *key, *([] if by_there else by)])),
        )
    )
    if request.by is not None and not by_there:
        main = replace(main, by=categories_of(main.carried[request.by], request.by, main.source))
    if request.labels is None:
        return main
    carry = list(dict.fromkeys([*key, *(by if by_there else [])]))
    beside = replace(request, features=(), truth=request.truth if truth_there else None, carry=carry)
    other = table_of(request.labels, beside)
    rows = _match_tables(request.key, request.source, main, request.labels, other)
    if request.by is not None and by_there:
        main = replace(main, by=categories_of(other.carried[request.by][rows], request.by, other.source))
    return replace(
        main,
        candidates=None if other.candidates is None else other.candidates[rows],
        truth=main.truth if other.truth is None else other.truth[rows],
    )


def _read(request: RowRequest) -> Table:
    """Reads the columns of `source`; if the request names few, the others are not kept in memory."""
    undeclared = request.truth is not None and request.classes is None  # how labels are read depends on all of them
    if request.features or request.candidates is not None or undeclared:
        return table_of(request.source, request)
    text = request.text_columns
    only = text or column_names(request.source)[:1]  # only the number of rows is needed
    batches = batches_with_origin(request.source, _ROWS, text=text, only=only)
    parts = [interpret(batch, request, where, first) for where, first, batch in batches]
    truths = [part.truth.astype(object) for part in parts if part.truth is not None]
    return replace(
        parts[0],
        X=np.empty((sum(map(len, parts)), 0)),
        truth=np.concatenate(truths) if truths else None,
        carried={name: concatenate([part.carried[name] for part in parts]) for name in request.carry},
        source=source_name(request.source),
    )


def _vote_items(request: RowRequest) -> Table:
    """The items of votes as a table, for votes alone; their column keeps its name."""
    found = _import_votes(request)
    name = (request.vote_columns or VoteColumns()).item or request.key or found.name
    items = key_column(found.ids.tolist())
    named = dict.fromkeys([name, request.key or name], items)
    return replace(read_table(named, features=[], carry=list(named)), votes=found.votes)


def _import_votes(request: RowRequest) -> Imported:
    named: dict[str, Any] = {"classes": _list_classes(request.classes), "from_name": request.from_name}
    return import_votes(request.votes, request.vote_columns, request.key, **named)


def _with_verified(request: RowRequest, main: Table) -> Table:
    """The true labels from the column of a table and from the file of verified labels."""
    file, column = request.verified, request.verified_column or "verified"
    if not (names_files(file) and is_export(file)) and not has_column(file, column):
        remedy = Remedy("verified", f"{source_name(file)}:COLUMN", "to name that of true labels")
        raise absent_column(column, column_names(file), source_name(file), "", remedy)
    classes = (_list_classes(request.classes) or []) if main.answers is None else main.answers.classes.tolist()
    key = request.key or next(iter(main.carried))  # of votes alone, the item
    options: dict[str, Any] = {"key": key, "column": request.verified_column, "from_name": request.from_name}
    options |= {"source": main.source, "separator": request.separator, "several": request.several}
    labels, known = read_verified(file, main.carried[key], classes, **options)
    truth = merge_verified(main.truth, labels, source=main.source, other=source_name(file))
    return replace(main, truth=truth, known=known)


def _stands_in_labels(request: RowRequest, name: str | None) -> bool:
    """Whether to read a column from `labels`: if it has the column, or no table does, so that an error follows."""
    if name is None or request.labels is None:
        return False
    return has_column(request.labels, name) or not has_column(request.source, name)


def _list_classes(classes: Classes) -> list[Any] | None:
    return classes.classes.tolist() if isinstance(classes, Vocabulary) else None
