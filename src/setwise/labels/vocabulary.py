"""The vocabulary: an ordered list of distinct labels, and the way from a label to its position."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, frozen
from setwise._lazy import lazy
from setwise.errors import InputError, Remedy

UNKNOWN = -1
MISSING = -2
_LONE = re.compile("[\ud800-\udfff]")  # surrogates without their other half
_KINDS = {int: "i", str: "U", float: "f", bool: "b"}  # numpy's kind for each Python type
Classes: TypeAlias = "Vocabulary | Iterable[Hashable] | None"
"""The classes in order; None where they are to be inferred."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Distinct labels in a fixed order.

    `declared` says whether the user gave that order (then position k is probability column k) or whether it was
    inferred from the labels that occur (then it says nothing about columns).
    """

    classes: Array
    declared: bool

    @classmethod
    def declare(cls, classes: Iterable[Hashable]) -> Vocabulary:
        """A vocabulary that the user gives; its labels must be distinct."""
        if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
            raise TypeError(f"classes: expected the labels in order, such as ['cat', 'dog'], got {classes!r}.")
        vocabulary = cls(_label_array(classes), declared=True)
        try:
            distinct = len(vocabulary._index)
        except TypeError as error:
            raise TypeError(f"classes: labels must be hashable (strings, integers, …): {error}.") from error
        if distinct < len(vocabulary):
            twice = next(x for i, x in enumerate(vocabulary.classes.tolist()) if vocabulary._index[x] != i)
            raise ValueError(f"classes: the label {twice!r} occurs twice; each class needs one position.")
        return vocabulary

    @classmethod
    def from_file(cls, labels: Iterable[Hashable], name: str) -> Vocabulary:
        """A declared vocabulary from one of our own files, where all labels are of one kind."""
        vocabulary = cls.declare(labels)
        if vocabulary.classes.dtype == object:
            raise ValueError(f"{name} are not all of one kind")
        return vocabulary

    @classmethod
    def positions(cls, n_classes: int) -> Vocabulary:
        """The labels 0..K−1: a label is its own position."""
        return cls(frozen(np.arange(n_classes)), declared=True)

    @classmethod
    def infer(cls, labels: Sequence[Any] | Array) -> Vocabulary:
        """The sorted distinct labels that occur."""
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "biufU":
            known = labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels
            return cls(_label_array(_distinct(known)), declared=False)
        try:
            distinct = {label for label in labels if not is_missing(label)}
        except TypeError as error:
            raise TypeError(f"labels must be hashable (strings, integers, …): {error}.") from error
        if distinct & {0, 1}:
            _refuse_twins(labels)
        try:
            ordered = sorted(distinct)
        except TypeError:  # labels of mixed types have no common order
            ordered = sorted(distinct, key=lambda label: (type(label).__name__, repr(label)))
        return cls(_label_array(ordered), declared=False)

    @classmethod
    def of(cls, classes: Classes, labels: Sequence[Any] | Array) -> Vocabulary:
        """The vocabulary of `classes`; inferred from the labels where `classes` is None."""
        if classes is None:
            return cls.infer(labels)
        return classes if isinstance(classes, Vocabulary) else cls.declare(classes)

    @classmethod
    def or_none(cls, classes: Classes) -> Vocabulary | None:
        """The vocabulary of `classes`; None where `classes` is None."""
        return None if classes is None else cls.of(classes, ())

    def __len__(self) -> int:
        return len(self.classes)

    @lazy
    def is_range(self) -> bool:
        """Whether the labels are the integers 0..K−1 in order."""
        return self.classes.dtype.kind in "iu" and np.array_equal(self.classes, np.arange(len(self)))

    @lazy
    def holds_numbers(self) -> bool:
        """Whether all labels are numbers."""
        return self.classes.dtype.kind in "iuf"

    @lazy
    def holds_integers(self) -> bool:
        """Whether all labels are whole numbers (which arrive as floats beside missing values)."""
        return self.holds_numbers and bool((self.classes == np.floor(self.classes)).all())

    @lazy
    def scale(self) -> Floats:
        """Where each class stands on a line: at its number where numbers ascend, else at its position."""
        self.check_ordered()
        ascend = self.holds_numbers and bool((np.diff(self.classes.astype(np.float64)) > 0).all())
        return self.classes.astype(np.float64) if ascend else np.arange(len(self), dtype=np.float64)

    def check_ordered(self) -> None:
        """Refuses labels whose order nobody gave: sorted text has one that means nothing."""
        if not (self.declared or self.holds_numbers):
            least, *_, most = self.classes.tolist()
            problem = f"the order of the classes is not known: {least!r} to {most!r} is alphabetical"
            raise InputError(
                problem, Remedy("classes", None, "to list them from lowest to highest where sets or votes are made")
            )

    @lazy
    def _index(self) -> dict[Any, int]:
        return {label: position for position, label in enumerate(self.classes.tolist())}

    def encode(self, labels: Sequence[Any] | Array) -> Ints:
        """Positions of the labels; `UNKNOWN` for labels outside, `MISSING` for None and NaN."""
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "biuf" and self.is_range:
            return self._encode_numbers(labels)
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
            distinct, place = np.unique(labels, return_inverse=True)
            return self.encode(distinct.tolist())[place]
        plain = as_list(labels) if isinstance(labels, np.ndarray) else labels
        index = self._index
        codes = (MISSING if is_missing(label) else index.get(label, UNKNOWN) for label in plain)
        try:
            return np.fromiter(codes, dtype=np.intp, count=len(plain))
        except TypeError as error:
            raise TypeError(f"labels must be hashable (strings, integers, …): {error}.") from error

    def _encode_numbers(self, labels: Array) -> Ints:
        with np.errstate(invalid="ignore"):
            codes = labels.astype(np.intp)
        outside = (codes < 0) | (codes >= len(self))
        if labels.dtype.kind != "f":
            codes[outside] = UNKNOWN
            return codes
        codes[outside | (codes != labels)] = UNKNOWN
        codes[np.isnan(labels)] = MISSING
        return codes

    def require(self, labels: Sequence[Any] | Array, rows: Ints) -> Ints:
        """As `encode`, but an unknown or missing label is an error that names its row."""
        codes = self.encode(labels)
        if (codes >= 0).all():
            return codes
        first = int(np.flatnonzero(codes < 0)[0])
        row, label = int(rows[first]), labels[first]
        if codes[first] == MISSING:
            raise InputError(f"row {row}: a label is missing (None or NaN)", "remove it from the set")
        plain = label.item() if isinstance(label, np.generic) else label
        raise InputError(
            f"row {row}: {plain!r} is not among the {len(self)} classes",
            Remedy("classes", None, "to declare it too"),
            "correct the label",
        )

    def same_labels(self, other: Vocabulary) -> bool:
        """Whether both hold the same labels, in whatever order."""
        return self is other or self._index.keys() == other._index.keys()

    def same_order(self, other: Vocabulary) -> bool:
        """Whether both hold the same labels in the same order."""
        return self is other or self.classes.tolist() == other.classes.tolist()


def _distinct(labels: Array) -> Array:
    """The sorted distinct labels; small whole numbers are counted, which is faster than sorting them."""
    if labels.dtype.kind in "iu" and len(labels) and labels.min() >= 0 and labels.max() < len(labels):
        return np.flatnonzero(np.bincount(labels.astype(np.intp, copy=False)))
    return np.unique(labels)


def as_list(labels: Array | np.generic) -> Any:
    """An array or a number as Python values; times in nanoseconds stay times, where numpy would make numbers."""
    if labels.dtype.name.endswith(("[ns]", "[ps]", "[fs]", "[as]")):
        coarse = labels.astype(f"{labels.dtype.kind}8[us]")
        if not np.array_equal(coarse.astype(labels.dtype), labels, equal_nan=True):
            raise ValueError("labels: times finer than a microsecond cannot be labels; write them as text.")
        return coarse.tolist()
    return labels.tolist()


def is_missing(value: Any) -> bool:
    """Whether a value stands for "not recorded": None, NaN, or a data frame's NA."""
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value  # noqa: PLR0124


def is_collection(value: Any) -> bool:
    """Whether a value holds labels rather than being one (a tuple is a collection where rows are read)."""
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))


def missing_labels(labels: Array) -> Bools:
    """Which entries of a label vector are missing."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.fromiter((is_missing(label) for label in labels), dtype=bool, count=len(labels))


def label_vector(y: Any, name: str) -> Array:
    """One label per row as a 1-D array, (n, 1) flattened; strings keep their length, mixed types stay apart."""
    if hasattr(y, "to_labels"):  # LabelSets of singletons
        return label_vector(y.to_labels(), name)
    if hasattr(y, "combine_chunks"):  # by chunks Arrow takes gaps of a dictionary for its last label
        y = y.combine_chunks()
    plain = y.to_numpy() if hasattr(y, "to_numpy") and not hasattr(y, "to_pylist") else y  # Arrow: by __array__
    if np.ma.is_masked(plain):
        plain = np.where(np.ma.getmaskarray(plain), None, plain.data)
    if isinstance(plain, str) or not hasattr(plain, "__iter__"):
        raise TypeError(f"{name}: expected one label per row, got {y!r}.")
    array = np.asarray(plain) if hasattr(plain, "__array__") else label_array(list(plain))
    if array.dtype == object:
        row = next((i for i, label in enumerate(array) if isinstance(label, (list, set, np.ndarray))), None)
        if row is not None:
            raise TypeError(f"{name}: row {row} is {array[row]!r}, not one label.")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one label per row, got shape {array.shape}.")
    return array


def _refuse_twins(labels: Iterable[Any]) -> None:
    """Refuses True beside 1: they are equal in Python, and two labels in a file."""
    known = (label for label in labels if not is_missing(label))
    typed = {(isinstance(label, (bool, np.bool_)), label) for label in known if label in (0, 1)}
    twin = next((label for flag, label in typed if flag and (False, label) in typed), None)
    if twin is not None:
        problem = f"the labels {bool(twin)} and {int(twin)} are equal in Python"
        raise InputError(problem, "write both as text, or both as numbers")


def _label_array(labels: Iterable[Any]) -> Array:
    """A frozen 1-D array that returns the labels unchanged (mixed types stay objects)."""
    plain = as_list(labels) if isinstance(labels, np.ndarray) else list(labels)
    for label in plain:
        if isinstance(label, str) and not label.isascii() and _LONE.search(label):
            raise ValueError(f"the label {label!r} is not text: it holds half of a character; write it again.")
    return frozen(label_array(plain) if plain else np.array([], dtype=np.int64))


def label_array(labels: list[Any]) -> Array:
    """A 1-D array that returns the labels unchanged: as objects where types are mixed or numpy would alter them."""
    labels = [as_list(label) if isinstance(label, np.generic) else label for label in labels]
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and (kind := _KINDS.get(*kinds)):
        uniform = np.array(labels)
        loses_nul = kind == "U" and "\0" in "".join(labels) and uniform.tolist() != labels
        if uniform.dtype.kind == kind and not loses_nul:
            return uniform
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


class LabelledRows:
    """Rows over a vocabulary; scikit-learn sees an array with one column per class."""

    vocabulary: Vocabulary
    _n: int

    @property
    def classes(self) -> Array:
        """The labels, in the order of the columns."""
        return self.vocabulary.classes

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.vocabulary)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes."""
        return self._n, self.n_classes

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    def __len__(self) -> int:
        return self._n

    def _as_html(self, caption: str, heading: str, texts: Sequence[str]) -> str:
        """An HTML table of the first rows."""
        body = "".join(f"<tr><td>{row}</td><td>{escape(text) or '∅'}</td></tr>" for row, text in enumerate(texts))
        more = f"<tr><td colspan=2>… {self._n - len(texts):,} more</td></tr>" if self._n > len(texts) else ""
        return f"<table><caption>{caption}</caption><tr><th>row</th><th>{heading}</th></tr>{body}{more}</table>"
