"""Warnings about tables that can be read but look like a mistake: two spellings of a label, identifiers, the truth.

Each is a `MisuseWarning` that names the columns or labels.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setwise._arrays import Array, Floats
from setwise.errors import MisuseWarning, Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.spellings import doubt_spellings
from setwise.labels.votes import Votes
from setwise.learn.feature_frame import FeatureFrame, category_codes
from setwise.tables.arrow_reading import arrow_batches
from setwise.tables.label_columns import is_text

if TYPE_CHECKING:
    from setwise.tables.tabular import Table

_ID = re.compile(r"(^|[^a-zA-Z])(?i:ids?|idx|index|uuid|guid|key|row|nr|no|number)$|[a-z]I[dD]$|^Unnamed: \d+$|^$")
_FEW = 20  # with so few rows, every column may look like an identifier
_LOOKED_AT = 10_000  # rows to test whether a feature gives the label away


def doubt_labels(table: Table) -> None:
    """Warns about labels in two spellings and labels such as "NA", unless the classes are declared."""
    if table.candidates is not None and table.candidates.vocabulary.declared:
        return
    labels = [] if table.candidates is None else table.candidates.classes.tolist()
    rows = [] if table.truth is None else table.truth.tolist()
    true = [label for row in rows for label in (row if isinstance(row, tuple) else (row,))]
    doubt_spellings([*labels, *true], table.source)


def doubt_separator(sets: LabelSets | None, separator: str) -> None:
    """Warns if no row has two candidates, but labels seem to hold several, with another separator."""
    if sets is None or len(sets) == 0 or sets.sizes.max() > 1:
        return
    texts = [label for label in sets.classes.tolist() if isinstance(label, str)]
    for mark in ("|", ",", ";", "/", "+", "&", " and ", "\n", " "):
        several = [text for text in texts if mark in text.strip(mark)]
        if mark.isspace() or len(mark) > 1:  # a label may be several words: split it only if each part is a label
            several = [text for text in several if {part.strip() for part in text.split(mark)} <= {*texts}]
        if several and mark != separator:
            problem = f"every row has one candidate, such as {several[0]!r}"
            plain = mark in "|,;/+& " and not any(bracket in several[0] for bracket in "[](){}\"'‘“")
            joined = Remedy("separator", mark, f"if {mark!r} stands between labels")
            _warn(problem, joined if plain else "write the labels of a row as ant|cat")
            return


def doubt_features(table: Table) -> None:
    """Warns about features that number the rows and features that give the label away."""
    if len(table) < _FEW:
        return
    columns = dict(_columns(table))
    for name, values in columns.items():
        if len(table.categories.get(name, ())) == len(table) or _numbers_rows(name, values):
            problem = f"{table.source}: the column {name!r} has another value in every row, like an identifier"
            _warn(problem, Remedy("carry", name, "to keep it out of the features"))
    if table.candidates is None:
        return
    labels = {str(label) for label in table.candidates.classes.tolist()}
    sets = table.candidates[:_LOOKED_AT]
    for name, values in columns.items():
        if name in table.categories and set(table.categories[name]) <= labels:
            shows = "holds labels"
        elif _determines(values[:_LOOKED_AT], sets):
            shows = "tells which label is a candidate in every row"
        else:
            continue
        problem = f"{table.source}: the column {name!r} {shows}; if it is the truth, new rows will lack it"
        _warn(problem, Remedy("carry", name, "to leave it out"))


def identifiers(source: Any, names: Sequence[str]) -> list[str]:
    """The columns among `names` that look like identifiers in the first rows of a table."""
    first = next(arrow_batches(source, _LOOKED_AT, only=names))
    return [name for name in names if names_rows(name, first[name])]


def names_rows(name: str, column: Any) -> bool:
    """Whether an Arrow column looks like an identifier: text or whole numbers, different in every row."""
    values, kind = column.drop_null(), column.type
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return False
    if len(values) < len(column) or pc.count_distinct(values).as_py() < len(values):
        return False
    if is_text(kind):
        return len(values) >= _FEW or bool(_ID.search(name))
    return len(values) >= _FEW and _numbers_rows(name, values.to_numpy())


def _columns(table: Table) -> Iterator[tuple[str, Array]]:
    """The feature columns as they were read, with text as the number of its category."""
    if isinstance(table.X, FeatureFrame):
        for name in table.X.columns:
            values, known = table.X[name], table.categories.get(name)
            yield name, values if known is None else category_codes(values, known, name)
        return
    place = 0
    while place < len(table.feature_names):
        name = table.feature_names[place]
        of = next(
            (one for one, values in table.categories.items() if values and name == f"{one}={values[0]}"), None
        )
        width = 1 if of is None else len(table.categories[of])
        block: Floats = table.X[:, place : place + width]
        yield (name, block[:, 0]) if of is None else (of, np.where(block.any(axis=1), block.argmax(axis=1), -1))
        place += width


def _numbers_rows(name: str, values: Array) -> bool:
    """Whether whole numbers without repetition have the name of an identifier, or count the rows."""
    start = values[:1000]
    if not ((start == np.round(start)).all() and ((np.abs(np.diff(start)) == 1).all() or _ID.search(name))):
        return False
    return len(np.unique(values)) == len(values)


def _determines(values: Array, sets: LabelSets) -> bool:
    """Whether rows with the same value always share one candidate, and rows with different values do not."""
    k = sets.n_classes
    if len(np.unique(values[:1000])) > 4 * k:
        return False
    distinct, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if not 1 < len(distinct) <= min(4 * k, len(values) // 10):
        return False
    rows = np.repeat(codes, sets.sizes)
    held = np.bincount(rows * k + sets.rows[1], minlength=len(distinct) * k).reshape(-1, k)
    shared = held == counts[:, None]
    return bool(shared.any(axis=1).all() and not shared.all(axis=0).any() and (shared.sum(axis=1) == 1).all())


def _warn(problem: str, *remedies: Any) -> None:
    warnings.warn(MisuseWarning(problem, *remedies), stacklevel=4)


def count_unanswered(votes: Votes, where: str) -> None:
    """Says how many rows nobody answered."""
    if blank := int((votes.sizes == 0).sum()):
        warnings.warn(MisuseWarning(f"{where}: nobody answered {blank:,} of {len(votes):,} rows"), stacklevel=3)
