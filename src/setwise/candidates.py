"""Reading what people hand in as candidates, so that position k means probability column k."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from setwise.labels import LabelSets
from setwise.vocabulary import Vocabulary, is_collection


def as_candidates(
    candidates: Any,
    n_classes: int,
    classes: Iterable[Hashable] | None = None,
    *,
    name: str = "candidates",
) -> LabelSets:
    """Reads candidates so that position k means probability column k, or says why it cannot.

    Masks and the integers 0..K−1 need nothing; other labels need a declared vocabulary of length K.
    Rows without labels become empty sets, for the caller to judge.
    """
    declared = None if classes is None else Vocabulary.declare(classes)
    if declared is not None and len(declared) != n_classes:
        raise ValueError(f"classes: {len(declared)} labels for {n_classes} probability columns.")
    sets = candidates if isinstance(candidates, LabelSets) else _read(candidates, declared, n_classes, name)
    if declared is not None:
        return sets if sets.vocabulary is declared else sets.recoded(declared)
    if sets.vocabulary.declared:
        if sets.n_classes != n_classes:
            raise ValueError(f"{name}: {sets.n_classes} classes for {n_classes} probability columns.")
        return sets
    positions = Vocabulary.positions(n_classes)
    whole = sets.classes.dtype.kind == "f" and (sets.classes == np.floor(sets.classes)).all()
    if sets.classes.dtype.kind in "iu" or whole:  # integers beside missing values arrive as floats
        return sets.recoded(positions)
    raise ValueError(
        f"{name}: labels such as {sets.classes.tolist()[0]!r} do not say which probability column they mean; "
        f"pass classes=[…], the {n_classes} labels in the order of the columns (scikit-learn: model.classes_)."
    )


def _read(value: Any, declared: Vocabulary | None, n_classes: int, name: str) -> LabelSets:
    if hasattr(value, "toarray") or hasattr(value, "columns"):
        return LabelSets.from_mask(value)
    classes = None if declared is None else declared.classes.tolist()
    if hasattr(value, "value_lengths") or hasattr(value, "combine_chunks"):
        return LabelSets.from_arrow(value, classes, missing="empty")
    array = value if isinstance(value, np.ndarray) else None
    if array is None:
        rows = value.to_list() if hasattr(value, "to_list") else list(value)
        if any(isinstance(row, Iterable) and not isinstance(row, str) for row in rows):
            if all(isinstance(row, np.ndarray) and row.dtype == bool for row in rows) or (
                rows and all(_is_mask_row(row, n_classes) for row in rows)
            ):
                return LabelSets.from_mask(np.array(rows), classes)
            return LabelSets.from_lists(rows, classes, missing="empty")
        array = np.array(rows, dtype=object) if any(row is None for row in rows) else np.asarray(rows)
    if array.ndim == 1 and array.dtype == object and any(is_collection(row) for row in array):
        return LabelSets.from_lists(array, classes, missing="empty")
    if array.ndim == 2 and array.dtype == bool:
        return LabelSets.from_mask_view(array.view(), classes)
    if array.ndim == 2 and array.shape[1] != 1:
        raise ValueError(
            f"{name}: a 2-D array of {array.dtype} could be a mask or a table of labels; "
            "use LabelSets.from_mask for 0/1 entries, LabelSets.from_lists for labels."
        )
    return LabelSets.from_labels(array, classes, missing="empty")


def _is_mask_row(row: Any, n_classes: int) -> bool:
    return is_collection(row) and len(row) == n_classes and all(isinstance(v, (bool, np.bool_)) for v in row)
