"""Reads candidates in any form, and makes sure that position k means probability column k."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from setwise._arrays import Array
from setwise.errors import InputError, Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Classes, Vocabulary, is_collection, label_array
from setwise.labels.votes import Votes


def as_candidates(
    candidates: Any,
    n_classes: int,
    classes: Classes = None,
    *,
    name: str = "candidates",
) -> LabelSets:
    """Reads candidates so that position k means probability column k; an error says why that is impossible.

    Masks and the integers 0..K−1 need nothing; other labels need a declared vocabulary of length K.
    Rows without labels become empty sets, which the caller accepts or refuses.
    """
    declared = Vocabulary.or_none(classes)
    if declared is not None and len(declared) != n_classes:
        raise ValueError(f"classes: {len(declared)} labels for {n_classes} probability columns.")
    known = declared
    if (
        known is None
        and isinstance(candidates, np.ndarray)
        and candidates.ndim == 1
        and candidates.dtype.kind in "iu"
    ):
        known = Vocabulary.positions(n_classes)  # whole numbers are columns: none of them needs to be looked up
    sets = as_label_sets(candidates, known, name=name)
    with _naming(name):
        return _on_columns(sets, n_classes, declared)


def as_label_sets(value: Any, vocabulary: Vocabulary | None = None, *, name: str = "candidates") -> LabelSets:
    """One set of labels per row from votes, a mask, a label vector, collections, a frame, a sparse matrix or Arrow.

    Without a vocabulary labels are taken as they come, and the vocabulary is inferred. Rows without labels
    become empty sets.
    """
    if isinstance(value, LabelSets):
        return value
    if isinstance(value, Votes):
        return value.candidates(missing="empty")
    if isinstance(value, dict):
        raise TypeError(f"{name}: expected one set of labels per row, got a dict; pass its values as a list.")
    if isinstance(value, str) or not (hasattr(value, "__iter__") or hasattr(value, "__array__")):
        raise TypeError(f"{name}: expected one set of labels per row, got {value!r}.")
    with _naming(name):
        return _read(value, vocabulary, name)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Makes errors that arise inside begin with the name of the argument."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error.problem}", *error.remedies) from error
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(str(error) if str(error).startswith(name) else f"{name}: {error}") from error


def _on_columns(sets: LabelSets, n_classes: int, declared: Vocabulary | None) -> LabelSets:
    known = sets.vocabulary
    if declared is not None:
        if known.declared and known.is_range and len(known) == n_classes and not declared.holds_numbers:
            return sets.rename_classes(declared)  # a mask without names: its columns are the classes, in order
        return sets.recode(declared)
    if known.declared:
        if len(known) != n_classes:
            raise ValueError(f"{len(known)} classes for {n_classes} probability columns.")
        return sets
    if known.holds_integers:
        return sets.recode(Vocabulary.positions(n_classes))
    raise InputError(
        f"labels such as {known.classes.tolist()[0]!r} do not say which probability column they mean",
        Remedy("classes", None, f"for the {n_classes} labels in the order of the columns (model.classes_)"),
    )


def _read(value: Any, vocabulary: Vocabulary | None, name: str) -> LabelSets:
    if np.ma.is_masked(value):
        if np.ndim(value) != 1:
            raise ValueError(f"{name}: a masked array with masked entries; write empty sets instead.")
        value = np.where(np.ma.getmaskarray(value), None, value.data)
    if hasattr(value, "toarray"):
        return LabelSets.from_mask(value)
    if hasattr(value, "columns"):
        named = all(isinstance(column, str) for column in value.columns)
        return LabelSets.from_mask(value if named else value.to_numpy())
    if hasattr(value, "value_lengths") or (hasattr(value, "combine_chunks") and "list" in str(value.type)):
        return LabelSets.from_arrow(value, vocabulary, missing="empty")
    array = _as_array(value)
    if array.ndim == 1 and array.dtype == object and any(_holds_labels(row) for row in array):
        _refuse_numeric_mask(array, name)
        return LabelSets.from_lists(array, vocabulary, missing="empty")
    if array.ndim == 2 and array.dtype == bool:
        return LabelSets.from_mask_view(array.view(), None)
    if array.ndim > 2:
        raise ValueError(f"expected a mask of shape (rows, classes), got shape {array.shape}.")
    if array.ndim == 2 and array.shape[1] != 1:
        raise ValueError(
            f"a 2-D array of {array.dtype} could be a mask or a table of labels; "
            "use LabelSets.from_mask for 0/1, LabelSets.from_lists for labels, Votes.from_counts for counts."
        )
    _refuse_joined(array if vocabulary is None else array[:0])
    return LabelSets.from_labels(array, vocabulary, missing="empty")


def _as_array(value: Any) -> Array:
    """A numpy array: 2-D for masks, 1-D objects for collections, 1-D for labels."""
    if hasattr(value, "__array__"):
        return np.asarray(value.combine_chunks() if hasattr(value, "combine_chunks") else value)
    rows = list(value)
    flags = [is_collection(row) and all(isinstance(v, (bool, np.bool_)) for v in row) for row in rows]
    if rows and all(flags) and len({len(row) for row in rows}) == 1 and len(rows[0]):
        return np.array([list(row) for row in rows], dtype=bool)
    plain = np.empty(len(rows), dtype=object)
    plain[:] = rows
    if any(row is None or _holds_labels(row) for row in rows):
        return plain
    if all(isinstance(row, (int, float)) for row in rows) and (numbers := np.asarray(rows)).tolist() == rows:
        return numbers  # numpy did not round them
    return label_array(rows)


def _holds_labels(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str)


def _refuse_joined(labels: Array) -> None:
    """Refuses "cat|dog" beside "cat" and "dog": a row's labels written as one text."""
    if labels.dtype.kind in "biufcmM":  # no text among them
        return
    texts = {label for label in labels.ravel().tolist() if isinstance(label, str)}
    for sep in "|;,":
        for text in sorted(text for text in texts if sep in text):
            if {part.strip() for part in text.split(sep)} <= texts:
                raise InputError(
                    f"{text!r} is made of other labels of y",
                    f"use LabelSets.from_strings(y, sep={sep!r}) for rows of several labels",
                    "use LabelSets.from_labels(y) if each text is one label",
                )


def _refuse_numeric_mask(rows: Array, name: str) -> None:
    """Rows of zeros and ones, all of one length and with repetitions, are a mask and not lists of labels."""
    listed = [row for row in rows if is_collection(row)]
    lengths = {len(row) for row in listed}
    if len(lengths) == 1 and max(lengths) > 2 and all(set(row) <= {0, 1} for row in listed):
        raise ValueError(f"{name}: rows of zeros and ones look like a mask; use LabelSets.from_mask.")
