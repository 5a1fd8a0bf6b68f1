"""Snorkel's label matrices."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import frozen
from setwise.errors import DataError, reading_from
from setwise.labels.label_sets import Missing
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.labels.votes import Votes
from setwise.tables.importers.imported import Imported


def from_snorkel(
    matrix: ArrayLike,
    *,
    classes: Classes = None,
    ids: ArrayLike | None = None,
    functions: Sequence[Hashable] | None = None,
    against: Collection[Hashable] = (),
    rule: str = "union",
    missing: Missing = "full",
) -> Imported:
    """Votes from a Snorkel label matrix: one column per labelling function, −1 (or masked) where it abstains.

    Rows where every function abstains have all labels as candidates by default (`missing`). `functions` names the
    columns, by default by position; those in `against` vote against their label.

    >>> from_snorkel([[0, 1, -1], [-1, -1, -1]], classes=["ham", "spam", "other"]).candidates.to_lists()
    [['ham', 'spam'], ['ham', 'spam', 'other']]
    >>> from_snorkel([[0, -1], [-1, 0]], classes=["ham", "spam", "other"], against={1}).candidates.to_lists()
    [['ham'], ['spam', 'other']]
    """
    given = np.asarray(np.ma.filled(matrix, -1))  # masked entries are abstentions
    if given.ndim != 2 or given.dtype.kind not in "iu":
        raise DataError(
            f"matrix: expected integers, one column per function, got {given.dtype} of shape {given.shape}."
        )
    if classes is None:
        with reading_from("matrix"):
            vocabulary = replace(Vocabulary.up_to_largest(given), declared=False)
    else:
        vocabulary = Vocabulary.of(classes, ())
    outside = np.argwhere((given < -1) | (given >= len(vocabulary)))
    if len(outside):
        row, column = outside[0]
        raise DataError(
            f"matrix: row {row}, function {column}: {given[row, column]} is outside −1..{len(vocabulary) - 1}."
        )
    names = list(range(given.shape[1]) if functions is None else functions)
    if len(names) != given.shape[1]:
        raise DataError(f"functions: {len(names)} names for {given.shape[1]} columns.")
    if unknown := [name for name in against if name not in names]:
        raise DataError(f"against: there is no function {unknown[0]!r}; name one of functions, or a column number.")
    rows, who = np.nonzero(given >= 0)
    denied = np.array([name in against for name in names], dtype=bool)[who]
    labels, identifiers = vocabulary.classes.tolist(), np.array(np.arange(len(given)) if ids is None else ids)
    if identifiers.shape != (len(given),):
        raise ValueError(f"ids: shape {identifiers.shape} for {len(given)} rows; give one identifier per row.")
    with reading_from("matrix"):
        columns = (rows, labels, given[rows, who], names, who, None, denied)
        votes = Votes.from_codes(len(given), *columns, classes=vocabulary, items=identifiers)
        return Imported(votes.candidates(rule, missing=missing), frozen(identifiers), votes=votes)
