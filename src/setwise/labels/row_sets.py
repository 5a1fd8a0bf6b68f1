"""`RowSets`: one set of positions per row, compressed or as a mask; the ground that `LabelSets` stands on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from setwise._arrays import Array, Bools, Ints, compress, count_true, frozen, take_rows
from setwise._lazy import lazy
from setwise.errors import InputError, Remedy
from setwise.labels.vocabulary import Classes, Vocabulary

Missing = Literal["error", "full", "empty"]
_HUGE = 2**31  # cells of a mask that __array__ still makes without being asked by name


@dataclass(frozen=True, eq=False, repr=False)
class RowSets:
    """Sets of positions in a vocabulary, row by row: storage, conversion, selection and set algebra.

    Holds compressed rows or a boolean mask, whichever it was born with, and converts on first need.
    """

    vocabulary: Vocabulary
    _n: int
    _rows: tuple[Ints, Ints] | None = None
    _mask: Bools | None = None
    single: bool = False
    """Made from one label a row: singletons by design, not by chance."""
    relative: bool = False
    """Some sets say "every label" of an inferred vocabulary, so that no label may be added to it later."""

    # ---------------------------------------------------------------- what it holds

    @property
    def classes(self) -> Array:
        """The vocabulary, in the order of the mask's columns."""
        return self.vocabulary.classes

    @property
    def n_classes(self) -> int:
        """How many classes the vocabulary has."""
        return len(self.vocabulary)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, classes), as of the mask."""
        return self._n, self.n_classes

    @property
    def ndim(self) -> int:
        """Two: rows and classes."""
        return 2

    @property
    def dtype(self) -> np.dtype[np.bool_]:
        """That of the mask."""
        return np.dtype(bool)

    @lazy
    def sizes(self) -> Ints:
        """How many labels each set has."""
        if self._rows is None and self._mask is not None:
            return frozen(count_true(self._mask))
        return frozen(np.diff(self.rows[0]).astype(np.intp))

    @lazy
    def rows(self) -> tuple[Ints, Ints]:
        """Compressed rows `(indptr, indices)`: row i holds positions ``indices[indptr[i]:indptr[i + 1]]``."""
        if self._rows is not None or self._mask is None:
            return self._rows or (np.zeros(1, np.int64), np.zeros(0, np.int32))
        indptr, indices = compress(self._mask, self.sizes)
        return frozen(indptr), frozen(indices)

    def to_mask(self) -> Bools:
        """The (n, K) boolean mask, read-only."""
        return self._dense

    @lazy
    def _dense(self) -> Bools:
        if self._mask is not None:
            return self._mask
        mask = np.zeros(self.shape, dtype=bool)
        mask[np.repeat(np.arange(self._n), self.sizes), self.rows[1]] = True
        return frozen(mask)

    # ---------------------------------------------------------------- combinations

    def issubset(self, other: Self) -> Bools:
        """Whether each set lies inside the other object's set of the same row."""
        other = self._aligned(other)
        if self._mask is not None and other._mask is not None:
            inside: Bools = np.logical_and.reduce(self._mask <= other._mask, axis=1)
            return inside
        outside = self._keys[~np.isin(self._keys, other._keys, assume_unique=True)] // max(self.n_classes, 1)
        whole: Bools = np.bincount(outside, minlength=self._n) == 0
        return whole

    def __or__(self, other: Self) -> Self:
        return self._combined(other, np.logical_or, np.union1d)

    def __and__(self, other: Self) -> Self:
        return self._combined(other, np.logical_and, np.intersect1d)

    def _combined(self, other: Self, of_masks: Any, of_keys: Any) -> Self:
        other = self._aligned(other)
        relative = self.relative or other.relative
        if self._mask is not None and other._mask is not None:
            mask = frozen(of_masks(self._mask, other._mask))
            return type(self)(self.vocabulary, self._n, _mask=mask, relative=relative)
        return replace(self._from_keys(of_keys(self._keys, other._keys)), relative=relative)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same labels row by row over the same classes, in whatever class order."""
        if not isinstance(other, RowSets):
            return NotImplemented
        if len(self) != len(other) or not self.vocabulary.same_labels(other.vocabulary):
            return False
        return np.array_equal(self._keys, self._aligned(other)._keys)

    __hash__ = None  # type: ignore[assignment]

    def filled(self) -> Self:
        """Empty sets replaced by full ones: "nothing is known" as candidates, which is always valid."""
        empty = self.sizes == 0
        return self._from_codes(self.vocabulary, self.rows[1], self.sizes, empty, "full") if empty.any() else self

    def named(self, vocabulary: Vocabulary) -> Self:
        """The same positions under another vocabulary of as many classes."""
        return replace(self, vocabulary=vocabulary)

    # ---------------------------------------------------------------- a `y` for scikit-learn

    def __len__(self) -> int:
        return self._n

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self._mask is None and self._n * self.n_classes > _HUGE:
            raise ValueError(
                f"a mask of {self._n:,} × {self.n_classes:,} cells is too large to make unasked; "
                "use .rows or .to_lists(), or call to_mask() if you mean it."
            )
        return np.array(self._dense, dtype=dtype, copy=copy)

    def _selected(self, key: Any) -> Self:
        """Some rows, by slice, positions or flags."""
        chosen = np.arange(self._n)[key if isinstance(key, (slice, list)) else np.asarray(key)]
        if self._mask is not None:
            return replace(self, _n=len(chosen), _mask=frozen(self._mask[chosen]))
        indptr = np.concatenate([[0], np.cumsum(self.sizes[chosen])])
        indices = self.rows[1][take_rows(self.sizes, chosen)]
        return replace(self, _n=len(chosen), _rows=(frozen(indptr), frozen(indices)))

    # ---------------------------------------------------------------- how it is put together

    @classmethod
    def _from_codes(
        cls,
        vocabulary: Vocabulary,
        codes: Ints,
        sizes: Ints,
        absent: Bools,
        missing: Missing,
    ) -> Self:
        if missing not in {"error", "full", "empty"}:
            raise ValueError(f"missing: {missing!r} is not known; use 'error', 'full' or 'empty'.")
        if missing == "error" and absent.any():
            raise InputError(
                f"row {int(np.flatnonzero(absent)[0])} has no labels ({int(absent.sum())} such rows)",
                Remedy("missing", "full", "to let every label be a candidate there"),
                "leave those rows out",
            )
        rows = np.repeat(np.arange(len(sizes)), sizes)
        keys = rows * len(vocabulary) + codes
        if missing == "full" and absent.any():
            full = np.flatnonzero(absent)[:, None] * len(vocabulary) + np.arange(len(vocabulary))
            keys = np.concatenate([keys, full.ravel()])
        if (np.diff(keys) <= 0).any():
            keys = np.unique(keys)
        unknown = missing == "full" and bool(absent.any()) and not vocabulary.declared
        return cls(vocabulary, len(sizes), relative=unknown)._from_keys(keys)

    @classmethod
    def from_mask_view(cls, mask: Array, classes: Classes) -> Self:
        """Takes the array over without a copy; the public constructors hand in one nobody else holds."""
        if mask.ndim != 2:
            raise ValueError(f"mask: expected shape (rows, classes), got {mask.shape}.")
        if mask.dtype != bool:
            strange = ~np.isin(mask, (0, 1))
            if strange.any():
                row, column = np.argwhere(strange)[0]
                raise ValueError(f"mask: row {row} holds {mask[row, column]}; a mask is True/False or 0/1.")
            mask = mask.astype(bool)
        vocabulary = Vocabulary.positions(mask.shape[1]) if classes is None else Vocabulary.of(classes, ())
        if len(vocabulary) != mask.shape[1]:
            raise ValueError(f"classes: {len(vocabulary)} labels for a mask of {mask.shape[1]} columns.")
        return cls(vocabulary, len(mask), _mask=frozen(mask))

    @classmethod
    def _from_sparse(cls, matrix: Any, classes: Classes) -> Self:
        """From a scipy CSR matrix of zeros and ones, without a dense copy."""
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if not (matrix.data == 1).all():
            raise ValueError(f"mask: holds {matrix.data[matrix.data != 1][0]}; a mask is True/False or 0/1.")
        vocabulary = Vocabulary.positions(matrix.shape[1]) if classes is None else Vocabulary.of(classes, ())
        if len(vocabulary) != matrix.shape[1]:
            raise ValueError(f"classes: {len(vocabulary)} labels for a mask of {matrix.shape[1]} columns.")
        sizes = np.diff(matrix.indptr)
        return cls._from_codes(vocabulary, matrix.indices, sizes, np.zeros(len(sizes), bool), "empty")

    @lazy
    def _keys(self) -> Ints:
        """Each (row, position) pair as one sorted integer."""
        return np.repeat(np.arange(self._n), self.sizes) * self.n_classes + self.rows[1]

    def _from_keys(self, keys: Ints) -> Self:
        k = max(self.n_classes, 1)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(keys // k, minlength=self._n))])
        rows = frozen(indptr), frozen((keys % k).astype(np.int32))
        return type(self)(self.vocabulary, self._n, _rows=rows, relative=self.relative)

    def recoded(self, vocabulary: Vocabulary) -> Self:
        """The same sets by label over another vocabulary, which must hold every label that occurs."""
        if self.vocabulary.same_order(vocabulary):
            return self.named(vocabulary)
        if self.relative and len(vocabulary) > self.n_classes:
            raise InputError(
                f"sets that mean 'every label' were made over the {self.n_classes} labels seen, and there are "
                f"{len(vocabulary)}",
                Remedy("classes", None, "to declare all labels there are when you make them"),
            )
        positions = vocabulary.encode(self.classes)
        codes = positions[self.rows[1]]
        if (codes < 0).any():
            vocabulary.require(self.classes[self.rows[1]], np.repeat(np.arange(self._n), self.sizes))
        made = self._from_codes(vocabulary, codes, self.sizes, np.zeros(self._n, bool), "empty")
        return replace(made, single=self.single)

    def _aligned(self, other: Self) -> Self:
        if len(self) != len(other):
            raise ValueError(f"cannot combine {len(self)} sets with {len(other)}; rows must correspond.")
        if self.vocabulary.same_order(other.vocabulary):
            return other
        if not self.vocabulary.same_labels(other.vocabulary):
            raise ValueError(
                f"cannot combine sets over different classes ({self.n_classes} and {other.n_classes}); "
                "bring both to one vocabulary with with_classes()."
            )
        return other.recoded(self.vocabulary)
