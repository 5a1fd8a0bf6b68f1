"""Tables of votes with one vote per line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from setwise._arrays import Bools, Floats, Ints, frozen
from setwise.errors import DataError, Remedy, reading_from
from setwise.labels.label_sets import Missing
from setwise.labels.spellings import doubt_spellings
from setwise.labels.vocabulary import Classes, Vocabulary, is_missing
from setwise.labels.votes import Votes, doubt_copies
from setwise.tables.arrow_reading import absent_column, as_written, is_delimited
from setwise.tables.importers.imported import Imported, id_array
from setwise.tables.label_columns import LabelReader, distinct, one_chunk
from setwise.tables.table_files import source_name

_ITEM, _ANNOTATOR = ("item", "task", "id", "custom_id"), ("annotator", "worker", "performer")  # their usual names
_LABEL = ("label", "answer")
_NAMED = {
    "item": Remedy("item", None, "to name its column of items"),
    "annotator": Remedy("annotator", None, "to name its column of annotators"),
    "label": Remedy("label", None, "to name its column of answers"),
    "weight": Remedy("weight", None, "to name its column of weights"),
}


def from_annotators_long(
    table: Any,
    *,
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    rule: str = "union",
    classes: Classes = None,
    missing: Missing = "error",
) -> Imported:
    """Votes from a long table with one vote per line: item, annotator, label.

    This is the form of crowd-kit and of cleanlab.

    Parameters
    ----------
    table
        A file or a frame.
    item, annotator, label
        The columns of the table. By default `item` is the first of item, task, id and custom_id, `annotator` the
        first of annotator, worker and performer, and `label` is label or answer. Where no column has the annotator
        and each item has one line, annotators are not named.
    weight
        The column with the weight of a vote, if there is one.
    rule
        ``"union"``, ``"at_least:k"`` or ``"plurality"``, as for `Votes.candidates`.
    classes, missing
        The vocabulary, and what to do with items without a label (no vote, or none that satisfies `rule`).

    Examples
    --------
    >>> votes = {"task": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "dog"]}
    >>> from_annotators_long(votes)
    Imported(candidates=LabelSets(2 rows, 2 classes): {cat, dog}, {dog})
    >>> from_annotators_long(votes).votes
    Votes(3 answers by 2 annotators on 2 rows, 2 classes): {cat: 1, dog: 1}, {dog: 1}
    """
    where = source_name(table)
    named = ((item,) if item else _ITEM, (annotator,) if annotator else _ANNOTATOR, (label,) if label else _LABEL)
    lines = as_written(table, ids=[*named[0], *named[1]], text=named[2])
    there = lines.column_names
    item, annotator, label = (next((name for name in names if name in there), names[0]) for names in named)
    roles = {"item": item, "annotator": annotator, "label": label, **({"weight": weight} if weight else {})}
    alone = named[1] is _ANNOTATOR and annotator not in there and item in there
    if alone and len(distinct(one_chunk(lines[item]))[0]) == len(lines):  # the labels of one person or model
        del roles["annotator"]
    for role, name in roles.items():
        if name not in lines.column_names:
            raise absent_column(name, lines.column_names, where, "", _NAMED[role])
    taken = list(roles.values())
    if twice := [name for name in taken if taken.count(name) > 1]:
        raise DataError(f"{where}: the column {twice[0]!r} is named twice; name another column for one of them.")
    values, rows = distinct(one_chunk(lines[item]))
    annotators, who = distinct(one_chunk(lines[annotator])) if "annotator" in roles else (None, None)
    classes = Vocabulary.or_none(classes)
    reader = LabelReader(f"{where}, column {label!r}", classes=classes)
    labels, codes, absent = reader.singles(lines[label], verbatim=not is_delimited(lines))
    given = ~absent
    _refuse_gaps(rows, values, np.ones_like(given), where, item)
    if annotators is not None and who is not None:
        _refuse_gaps(who, annotators, given, where, annotator)
    ids = frozen(id_array(values))
    with reading_from(where):
        votes = Votes.from_codes(
            len(values),
            rows[given],
            labels,
            codes,
            annotators,
            None if who is None else who[given],
            None if weight is None else _weights(lines[weight], weight)[given],
            classes=classes,
            items=ids,
        )
        doubt_spellings(votes.annotators.tolist(), where, "annotators")
        if classes is None:
            doubt_spellings(votes.classes.tolist(), where)
        doubt_copies(votes, f"{where}: ")
        return Imported(votes.candidates(rule, missing=missing), ids, votes, name=item)


def _refuse_gaps(codes: Ints, values: list[Any], given: Bools, where: str, name: str) -> None:
    """Refuses votes without an annotator, and items without an identifier."""
    empty = np.array([is_missing(value) or value == "" for value in values], dtype=bool)
    if empty.any() and (lost := given & empty[codes]).any():
        raise DataError(f"{where}: row {int(np.argmax(lost))} has no {name}.")


def _weights(column: Any, name: str) -> Floats:
    """The numbers of a column, with NaN for gaps."""
    try:
        found: Floats = column.cast("float64").to_numpy()
    except pa.ArrowException as error:
        raise DataError(f"{name}: holds something other than numbers ({error}).") from None
    return found
