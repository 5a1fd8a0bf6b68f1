"""From codes to `LabelSets` without a Python loop over rows: the one door from this room to the core."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from setwise._arrays import Bools, Ints
from setwise.data.errors import DataError
from setwise.errors import Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, Vocabulary

Missing = Literal["error", "full", "empty"]


def sets_from_keys(vocabulary: Vocabulary, n: int, keys: Ints) -> LabelSets:
    """Sets from (row, position) pairs, each written as the integer row · K + position; any order, repeats fold."""
    if (np.diff(keys) <= 0).any():
        keys = np.sort(keys, kind="stable")  # runs that are sorted already merge in linear time
        keys = keys[np.concatenate([[True], np.diff(keys) > 0])] if len(keys) else keys
    return LabelSets(vocabulary, n)._from_keys(keys)


def sets_from_encoded(
    labels: Sequence[Any],
    codes: Ints,
    sizes: Ints,
    absent: Bools,
    *,
    classes: Vocabulary | Iterable[Hashable] | None = None,
    missing: Missing = "error",
    where: str = "candidates",
    first_row: int = 0,
) -> LabelSets:
    """Sets from distinct `labels`, a code into them for every label held, and how many each row holds.

    Errors speak of `where` (a file and column) and count rows from `first_row`.
    """
    if missing not in {"error", "full", "empty"}:
        raise ValueError(f"missing: {missing!r} is not known; use 'error', 'full' or 'empty'.")
    vocabulary = as_vocabulary(classes, labels)
    positions = vocabulary.encode(list(labels))
    if (positions < 0).any() and len(codes):
        wrong = np.flatnonzero(positions[codes] < 0)
        if len(wrong):
            row = first_row + int(np.searchsorted(np.cumsum(sizes), wrong[0], side="right"))
            label = labels[int(codes[wrong[0]])]
            _refuse(label, f"{where}: row {row}", positions[codes[wrong[0]]] == MISSING, len(vocabulary))
    if missing == "error" and absent.any():
        row = first_row + int(np.flatnonzero(absent)[0])
        raise DataError(
            f"{where}: row {row} has no labels ({int(absent.sum())} such rows)",
            Remedy("missing", "full", "to let every label be a candidate there"),
            "leave those rows out",
        )
    keys = np.repeat(np.arange(len(sizes)), sizes) * len(vocabulary) + positions[codes]
    if missing == "full" and absent.any():
        full = np.flatnonzero(absent)[:, None] * len(vocabulary) + np.arange(len(vocabulary))
        keys = np.concatenate([keys, full.ravel()])
    return sets_from_keys(vocabulary, len(sizes), keys)


def as_vocabulary(classes: Vocabulary | Iterable[Hashable] | None, labels: Sequence[Any]) -> Vocabulary:
    """The vocabulary somebody declared, else the sorted labels that occur."""
    if classes is None:
        return Vocabulary.infer(labels)
    return classes if isinstance(classes, Vocabulary) else Vocabulary.declare(classes)


def _refuse(label: Any, place: str, missing: bool, n_classes: int) -> None:
    if missing:
        raise DataError(f"{place} has a label that is null or NaN; remove it from the set.")
    raise DataError(
        f"{place}: {label!r} is not among the {n_classes} classes",
        Remedy("classes", None, "to declare all labels there are"),
        "correct the label",
    )
