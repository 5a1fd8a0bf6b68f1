"""Snorkel's label matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from setwise.data.importers.imported import Answers, Imported, row_ids
from setwise.errors import DataError
from setwise.labels.label_sets import Missing
from setwise.labels.vocabulary import Classes, Vocabulary


def from_snorkel(
    matrix: ArrayLike,
    *,
    classes: Classes = None,
    ids: ArrayLike | None = None,
    rule: str = "union",
    missing: Missing = "full",
) -> Imported:
    """A Snorkel label matrix, one column per labelling function, −1 where it abstains.

    Rows where every function abstains may be anything: they are full by default.

    >>> from_snorkel([[0, 1, -1], [-1, -1, -1]], classes=["ham", "spam", "other"]).candidates.to_lists()
    [['ham', 'spam'], ['ham', 'spam', 'other']]
    """
    votes = np.asarray(matrix)
    if votes.ndim != 2 or votes.dtype.kind not in "iu":
        raise DataError(
            f"matrix: expected integers, one column per function, got {votes.dtype} of shape {votes.shape}."
        )
    seen = replace(Vocabulary.positions(int(votes.max(initial=0)) + 1), declared=False)
    vocabulary = seen if classes is None else Vocabulary.of(classes, ())
    outside = np.argwhere((votes < -1) | (votes >= len(vocabulary)))
    if len(outside):
        row, column = outside[0]
        raise DataError(
            f"matrix: row {row}, function {column}: {votes[row, column]} is outside −1..{len(vocabulary) - 1}."
        )
    rows, workers = np.nonzero(votes >= 0)
    answers = Answers(len(votes), vocabulary.classes.tolist(), rows, workers, votes[rows, workers])
    sets = answers.elected(rule, classes=vocabulary, missing=missing, where="matrix")
    return Imported(sets, row_ids(ids, len(votes)))
