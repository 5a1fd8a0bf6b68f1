"""`LabelSets`: one set of labels per example, for candidate sets and for prediction sets alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Bools, Ints, compress, count_true, frozen, row_positions, take_rows
from setwise._lazy import lazy
from setwise._types import Rows
from setwise.errors import InputError, Remedy
from setwise.labels import constructors
from setwise.labels.trees import Tree, TreeLike, leaves_below
from setwise.labels.vocabulary import Classes, LabelledRows, Vocabulary, label_vector, missing_labels

Missing = Literal["error", "full", "empty"]
_HUGE = 2**31  # cells of the largest mask that __array__ makes
_SHOWN = 8
_AT_ONCE = 2**22  # numbers for each level of a tree that `to_nodes` holds at once


@dataclass(frozen=True, eq=False, repr=False)
class LabelSets(LabelledRows):
    """One set of labels per example, over a vocabulary of classes.

    Use one of the `from_…` constructors. The sets are stored as compressed rows or as a boolean mask, whichever
    they were made from, and converted on first use. They are immutable, and a valid `y` for scikit-learn.

    Every constructor that may meet rows without labels takes `missing`: ``"error"`` names the first such
    row, ``"full"`` makes every class a candidate (always valid), ``"empty"`` keeps an empty set. Predictions
    may be empty; the argument `missing` of `conformalize` says what happens to empty candidate sets.

    Examples
    --------
    >>> from setwise import LabelSets
    >>> sets = LabelSets.from_lists([["cat", "dog"], ["dog"]])
    >>> sets
    LabelSets(2 rows, 2 classes): {cat, dog}, {dog}
    >>> sets.sizes
    array([2, 1])
    >>> sets.contains(["cat", "cat"])
    array([ True, False])
    """

    vocabulary: Vocabulary
    _n: int = 0
    _rows: tuple[Ints, Ints] | None = None
    _mask: Bools | None = None
    single: bool = False
    """Whether the sets were made from one label per row, so that each holds exactly one."""
    relative: bool = False
    """Whether some sets mean "every label" of an inferred vocabulary, to which no label may then be added."""
    completed: bool = False
    """Whether rows that had no labels now hold every label."""

    def __post_init__(self) -> None:
        if not isinstance(self.vocabulary, Vocabulary):
            ways = "from_labels for one label per row, or from_mask for a mask"
            raise TypeError(f"LabelSets: use LabelSets.from_lists for a list of labels per row, {ways}.")

    # ---------------------------------------------------------------- constructors

    @classmethod
    def from_lists(cls, rows: Iterable[Any], classes: Classes = None, *, missing: Missing = "error") -> LabelSets:
        """From one collection of labels per row; None is a missing row, an empty collection an empty set.

        >>> LabelSets.from_lists([["b"], []], classes=["a", "b"]).to_lists()
        [['b'], []]
        """
        labels, sizes, absent = constructors.flatten(rows, "from_lists")
        return cls._from_flat(labels, sizes, absent, classes, missing)

    @classmethod
    def from_mask(cls, mask: ArrayLike, classes: Classes = None) -> LabelSets:
        """From an (n, K) boolean mask; a data frame's column names become the classes.

        >>> LabelSets.from_mask([[True, True], [False, True]], classes=["cat", "dog"])
        LabelSets(2 rows, 2 classes): {cat, dog}, {dog}
        """
        if classes is None and hasattr(mask, "columns"):
            classes = list(mask.columns)
        if hasattr(mask, "tocsr"):
            return cls._from_sparse(mask.tocsr(), classes)
        if np.ma.is_masked(mask):
            raise ValueError("mask: some entries are masked; write False where a label is not a candidate.")
        return cls.from_mask_view(np.array(mask), classes)

    @classmethod
    def from_labels(cls, y: ArrayLike, classes: Classes = None, *, missing: Missing = "error") -> LabelSets:
        """From one label per row: every set is a singleton.

        >>> LabelSets.from_labels([2, 0], classes=[0, 1, 2]).to_lists()
        [[2], [0]]
        """
        labels = label_vector(y, "y")
        absent = missing_labels(labels)
        if absent.any():
            return cls._from_flat(labels[~absent], (~absent).astype(np.intp), absent, classes, missing)
        vocabulary, rows = Vocabulary.of(classes, labels), np.arange(len(labels) + 1)
        codes = vocabulary.require(labels, rows).astype(np.int32)
        return cls(vocabulary, len(labels), _rows=(frozen(rows), frozen(codes)), single=True)

    @classmethod
    def from_strings(
        cls,
        texts: Iterable[Any],
        sep: str = "|",
        classes: Classes = None,
        *,
        missing: Missing = "error",
    ) -> LabelSets:
        """From delimited text, as in a CSV column; blank text is a missing row.

        >>> LabelSets.from_strings(["cat|dog", "dog"])
        LabelSets(2 rows, 2 classes): {cat, dog}, {dog}
        """
        labels, sizes, absent = constructors.split_strings(texts, sep)
        if classes is None:
            return cls._from_flat(labels, sizes, absent, None, missing)
        vocabulary = Vocabulary.of(classes, ())
        named = {str(label): label for label in vocabulary.classes.tolist()}
        return cls._from_flat([named.get(text, text) for text in labels], sizes, absent, vocabulary, missing)

    @classmethod
    def from_complementary(cls, not_y: ArrayLike, classes: Classes = None) -> LabelSets:
        """From labels that are known to be wrong: every class but the label (or labels) of each row.

        >>> LabelSets.from_complementary(["dog", "cat"], classes=["cat", "dog", "owl"]).to_lists()
        [['cat', 'owl'], ['dog', 'owl']]
        """
        excluded = not_y if isinstance(not_y, LabelSets) else None
        if excluded is None:
            rows: list[Any] = list(not_y)  # type: ignore[arg-type]
            nested = any(isinstance(row, Iterable) and not isinstance(row, str) for row in rows)
            excluded = (cls.from_lists if nested else cls.from_labels)(rows, classes, missing="empty")
        others = frozen(~excluded.to_mask())
        if excluded.n_classes and (excluded.sizes == excluded.n_classes).any():
            row = int(np.argmax(excluded.sizes == excluded.n_classes))
            raise ValueError(f"not_y: row {row} excludes every class; nothing is left.")
        return cls(excluded.vocabulary, len(excluded), _mask=others, relative=not excluded.vocabulary.declared)

    @classmethod
    def from_annotators(
        cls,
        table: Rows,
        rule: str = "union",
        classes: Classes = None,
        *,
        missing: Missing = "error",
    ) -> LabelSets:
        """From a table with one column per annotator; a cell is a label, a collection of labels, or missing.

        ``rule="union"`` keeps every label that occurs in a row, ``"at_least:2"`` those with two votes or more,
        ``"plurality"`` those with the most votes (ties kept).

        >>> votes = [["cat", "dog", "cat"], ["owl", None, "dog"]]
        >>> LabelSets.from_annotators(votes).to_lists()
        [['cat', 'dog'], ['dog', 'owl']]
        >>> LabelSets.from_annotators(votes, "at_least:2", ["cat", "dog", "owl"], missing="full").to_lists()
        [['cat'], ['cat', 'dog', 'owl']]
        >>> LabelSets.from_annotators(votes, "plurality").to_lists()
        [['cat'], ['dog', 'owl']]
        """
        n, rows, annotators, labels = constructors.annotator_votes(table)
        vocabulary = Vocabulary.of(classes, labels)
        codes = vocabulary.require(labels, rows)
        rows, codes = constructors.elect(rows, annotators, codes, len(vocabulary), rule)
        sizes = np.bincount(rows, minlength=n)
        return cls.from_codes(vocabulary, codes, sizes, absent=sizes == 0, missing=missing)

    @classmethod
    def from_hierarchy(
        cls,
        nodes: Iterable[Hashable] | LabelSets,
        tree: TreeLike,
        classes: Classes = None,
    ) -> LabelSets:
        """From nodes of an ontology: the candidates are the leaves below the node, or below all of a set of nodes.

        `tree` maps a parent to its children (nested or not), lists (parent, child) pairs, or is a frame of these.

        >>> tree = {"animal": ["bird", "cat"], "bird": ["owl", "wren"]}
        >>> LabelSets.from_hierarchy(["bird", "cat"], tree).to_lists()
        [['owl', 'wren'], ['cat']]
        """
        leaves = leaves_below(tree)
        rows = nodes.to_lists() if isinstance(nodes, LabelSets) else [[node] for node in nodes]
        for i, row in enumerate(rows):
            if strange := [node for node in row if node not in leaves]:
                raise ValueError(f"nodes: row {i}, {strange[0]!r}, is not in the tree; add it or correct its name.")
        vocabulary = Vocabulary.of(classes, [node for node, below in leaves.items() if below == [node]])
        below = [[leaf for node in row for leaf in leaves[node]] for row in rows]
        labels, sizes, absent = constructors.flatten(below, "nodes")
        return cls._from_flat(labels, sizes, absent, vocabulary, "error")

    @classmethod
    def from_top_k(
        cls,
        probabilities: ArrayLike,
        *,
        k: int | None = None,
        mass: float | None = None,
        classes: Classes = None,
    ) -> LabelSets:
        """From a model's proposals: the k most probable labels, or the fewest that reach `mass`.

        >>> LabelSets.from_top_k([[0.6, 0.3, 0.1]], mass=0.8).to_lists()
        [[0, 1]]
        """
        return cls.from_mask_view(constructors.top_labels(probabilities, k, mass), classes)

    @classmethod
    def from_arrow(
        cls,
        list_column: Any,
        classes: Classes = None,
        *,
        missing: Missing = "error",
    ) -> LabelSets:
        """From an Arrow list column; null rows are missing."""
        labels, sizes, absent = constructors.arrow_lists(list_column)
        return cls._from_flat(labels, sizes, absent, classes, missing)

    @classmethod
    def from_mask_view(cls, mask: Array, classes: Classes) -> LabelSets:
        """From a mask without copying it; the public constructors pass an array that nobody else holds."""
        if mask.ndim != 2:
            raise ValueError(f"mask: expected shape (rows, classes), got {mask.shape}.")
        if mask.dtype != bool:
            strange = ~np.isin(mask, (0, 1))
            if strange.any():
                row, column = np.argwhere(strange)[0]
                raise ValueError(f"mask: row {row} holds {mask[row, column]}; a mask is True/False or 0/1.")
            mask = mask.astype(bool)
        return cls(_of_columns(classes, mask.shape[1]), len(mask), _mask=frozen(mask))

    @classmethod
    def from_codes(
        cls,
        labels: Vocabulary | Sequence[Any],
        codes: Ints,
        sizes: Ints,
        classes: Classes = None,
        *,
        absent: Bools | None = None,
        missing: Missing = "error",
        first_row: int = 0,
    ) -> LabelSets:
        """From distinct labels, the codes of all labels row by row, and the number of labels in each row.

        All constructors from labels call this one. Codes are positions in `labels`, which may be a `Vocabulary`.
        `absent` marks the rows without labels, to which `missing` applies; errors count rows from `first_row`.

        >>> LabelSets.from_codes(["dog", "cat"], np.array([0, 1, 0]), np.array([2, 1]))
        LabelSets(2 rows, 2 classes): {cat, dog}, {dog}
        """
        if missing not in {"error", "full", "empty"}:
            raise ValueError(f"missing: {missing!r} is not known; use 'error', 'full' or 'empty'.")
        if isinstance(labels, Vocabulary):
            vocabulary, positions = labels, codes
        else:
            vocabulary = Vocabulary.of(classes, labels)
            positions = vocabulary.encode(labels)[codes]
            if (positions < 0).any():
                first = int(np.argmax(positions < 0))
                row = np.searchsorted(np.cumsum(sizes), first, side="right")
                vocabulary.require([labels[codes[first]]], np.array([first_row + row]))
        n, k = len(sizes), len(vocabulary)
        keys = np.repeat(np.arange(n), sizes) * k + positions
        gaps = np.flatnonzero(absent) if absent is not None and missing != "empty" else np.empty(0, dtype=np.intp)
        if missing == "error" and len(gaps):
            raise InputError(
                f"row {first_row + int(gaps[0])} has no labels ({len(gaps)} such rows)",
                Remedy("missing", "full", "to let every label be a candidate there"),
                "leave those rows out",
            )
        if len(gaps):
            keys = np.concatenate([keys, (gaps[:, None] * k + np.arange(k)).ravel()])
        sets = cls.from_keys(vocabulary, n, keys, relative=bool(len(gaps)) and not vocabulary.declared)
        return replace(sets, completed=bool(len(gaps)))

    @classmethod
    def from_keys(cls, vocabulary: Vocabulary, n: int, keys: Ints, *, relative: bool = False) -> LabelSets:
        """From (row, position) pairs, each written as row · K + position, in any order; repeated pairs count once.

        >>> LabelSets.from_keys(Vocabulary.positions(3), 2, np.array([5, 0, 1])).to_lists()
        [[0, 1], [2]]
        """
        if (np.diff(keys) <= 0).any():
            keys = np.sort(keys, kind="stable")  # runs that are sorted already merge in linear time
            keys = keys[np.concatenate([[True], np.diff(keys) > 0])]
        k = max(len(vocabulary), 1)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(keys // k, minlength=n))])
        rows = frozen(indptr), frozen((keys % k).astype(np.int32))
        return cls(vocabulary, n, _rows=rows, relative=relative)

    @classmethod
    def concatenate(cls, parts: Iterable[LabelSets], *, classes: Classes = None) -> LabelSets:
        """Concatenates the rows of several parts, such as the batches of a stream.

        Parameters
        ----------
        parts
            The sets; an iterator will do.
        classes
            The labels; by default those that the parts declare, otherwise those that occur.

        Examples
        --------
        >>> batches = [LabelSets.from_lists([["cat", "dog"]]), LabelSets.from_lists([["owl"]])]
        >>> LabelSets.concatenate(batches)
        LabelSets(2 rows, 3 classes): {cat, dog}, {owl}
        """
        held = list(parts)
        if not held:
            raise ValueError("parts: there are no sets to concatenate.")
        vocabulary = held[0].vocabulary
        if classes is not None:
            vocabulary = Vocabulary.of(classes, ())
        elif vocabulary.declared:
            other = next((i for i, part in enumerate(held) if not vocabulary.same_labels(part.vocabulary)), None)
            if other is not None:
                problem = f"parts: part {other} has other classes than part 0"
                raise InputError(problem, Remedy("classes", None, "to name all of them"))
        elif not all(part.vocabulary.same_order(vocabulary) for part in held):
            vocabulary = Vocabulary.infer([label for part in held for label in part.classes.tolist()])
        held = [part.recode(vocabulary) for part in held]
        filled = [part for part in held if len(part)] or held
        flags: dict[str, Any] = {
            "single": all(part.single for part in filled),
            "relative": any(part.relative for part in held),
            "completed": any(part.completed for part in held),
        }
        n = sum(map(len, held))
        if all(part._mask is not None for part in held):
            return cls(vocabulary, n, _mask=frozen(np.concatenate([part._dense for part in held])), **flags)
        sizes = np.concatenate([part.sizes for part in held])
        indices = np.concatenate([part.rows[1] for part in held])
        return cls(vocabulary, n, _rows=(frozen(np.append(0, np.cumsum(sizes))), frozen(indices)), **flags)

    # ---------------------------------------------------------------- contents

    @property
    def dtype(self) -> np.dtype[np.bool_]:
        """The type of the entries of the mask."""
        return np.dtype(bool)

    @lazy
    def sizes(self) -> Ints:
        """How many labels each set has."""
        if self._rows is None and self._mask is not None and "rows" not in self.__dict__:
            return frozen(count_true(self._mask))
        return frozen((self.rows[0][1:] - self.rows[0][:-1]).astype(np.intp, copy=False))

    @lazy
    def rows(self) -> tuple[Ints, Ints]:
        """Compressed rows `(indptr, indices)`: row i holds positions ``indices[indptr[i]:indptr[i + 1]]``."""
        if self._rows is not None or self._mask is None:
            return self._rows or (np.zeros(1, np.int64), np.zeros(0, np.int32))
        indptr, indices = compress(self._mask)
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

    def to_lists(self) -> list[list[Any]]:
        """One list of labels per row, in the order of the vocabulary."""
        indptr, indices = self.rows
        labels = self.classes[indices].tolist()
        return [labels[a:b] for a, b in pairwise(indptr.tolist())]

    def to_labels(self) -> Array:
        """One label per row, where every set is a singleton: the reverse of `from_labels`.

        >>> LabelSets.from_labels(["b", "a"]).to_labels()
        array(['b', 'a'], dtype='<U1')
        """
        if (self.sizes != 1).any():
            row = int(np.flatnonzero(self.sizes != 1)[0])
            raise ValueError(f"row {row} has {self.sizes[row]} labels, so these sets are not a label vector.")
        return self.classes[self.rows[1]]

    def to_arrow(self) -> Any:
        """An Arrow list column of labels."""
        import pyarrow as pa  # optional, and heavy

        indptr, indices = self.rows
        small = len(indices) < 2**31
        kind, offsets = (pa.ListArray, np.int32) if small else (pa.LargeListArray, np.int64)
        labels = pa.array(self.classes.tolist()).take(pa.array(indices))
        return kind.from_arrays(pa.array(indptr.astype(offsets)), labels)

    def to_frame(self) -> Any:
        """A pandas frame with one row per example: its labels as a list, and how many."""
        import pandas as pd  # optional, and heavy

        return pd.DataFrame({"labels": self.to_lists(), "size": self.sizes})

    # ---------------------------------------------------------------- questions and combinations

    def contains(self, y: ArrayLike) -> Bools:
        """Whether each set holds its row's label; a label outside the vocabulary is in no set."""
        codes = self.vocabulary.encode(label_vector(y, "y"))
        if len(codes) != self._n:
            raise ValueError(f"y: {len(codes)} labels for {self._n} sets; give one label per row.")
        held = np.zeros(self._n, dtype=bool)
        known = np.flatnonzero(codes >= 0)
        if self._mask is not None:
            held[known] = self._mask[known, codes[known]]
        else:
            held[known] = np.isin(known * self.n_classes + codes[known], self._keys, assume_unique=True)
        return held

    def with_classes(self, classes: Iterable[Hashable]) -> LabelSets:
        """The same sets over a declared vocabulary, which must hold every label that occurs.

        >>> LabelSets.from_lists([["b"], ["a"]]).with_classes(["b", "a", "c"]).to_mask()
        array([[ True, False, False],
               [False,  True, False]])
        """
        return self.recode(Vocabulary.declare(classes))

    def recode(self, vocabulary: Vocabulary) -> LabelSets:
        """The same sets by label over another vocabulary, which must hold every label that occurs."""
        if self.vocabulary.same_order(vocabulary):
            return self.rename_classes(vocabulary)
        if self.relative and len(vocabulary) > self.n_classes:
            raise InputError(
                f"some sets mean 'every label', and know only {self.n_classes} of the {len(vocabulary)} labels",
                Remedy("classes", None, "for all labels when you make the sets"),
            )
        positions = vocabulary.encode(self.classes)
        codes = positions[self.rows[1]]
        if (codes < 0).any():
            vocabulary.require(self.classes[self.rows[1]], np.repeat(np.arange(self._n), self.sizes))
        sets = self.from_codes(vocabulary, codes, self.sizes)
        return replace(sets, single=self.single, relative=self.relative, completed=self.completed)

    def issubset(self, other: LabelSets) -> Bools:
        """Whether each set lies inside the other object's set of the same row."""
        other = self._align(other)
        if self._mask is not None and other._mask is not None:
            inside: Bools = np.logical_and.reduce(self._mask <= other._mask, axis=1)
            return inside
        outside = self._keys[~np.isin(self._keys, other._keys, assume_unique=True)] // max(self.n_classes, 1)
        whole: Bools = np.bincount(outside, minlength=self._n) == 0
        return whole

    def __or__(self, other: LabelSets) -> LabelSets:
        return self._combine(other, np.logical_or, np.union1d)

    def __and__(self, other: LabelSets) -> LabelSets:
        return self._combine(other, np.logical_and, np.intersect1d)

    def _combine(self, other: LabelSets, of_masks: Any, of_keys: Any) -> LabelSets:
        other = self._align(other)
        relative = self.relative or other.relative
        if self._mask is not None and other._mask is not None:
            mask = frozen(of_masks(self._mask, other._mask))
            return LabelSets(self.vocabulary, self._n, _mask=mask, relative=relative)
        return self.from_keys(self.vocabulary, self._n, of_keys(self._keys, other._keys), relative=relative)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same labels row by row over the same classes, in whatever class order."""
        if not isinstance(other, LabelSets):
            return NotImplemented
        if len(self) != len(other) or not self.vocabulary.same_labels(other.vocabulary):
            return False
        return np.array_equal(self._keys, self._align(other)._keys)

    __hash__ = None  # type: ignore[assignment]

    @lazy
    def occurring(self) -> Bools:
        """Which classes are in at least one set."""
        mask = np.zeros(self.n_classes, dtype=bool)
        mask[self.rows[1]] = True
        return frozen(mask)

    def fill_empty(self) -> LabelSets:
        """The same sets with every label where a set was empty: always valid where nothing is known."""
        empty = self.sizes == 0
        if not empty.any():
            return self
        return self.from_codes(self.vocabulary, self.rows[1], self.sizes, absent=empty, missing="full")

    def rename_classes(self, vocabulary: Vocabulary) -> LabelSets:
        """The same sets with other names for the classes, by position."""
        return replace(self, vocabulary=vocabulary)

    def to_nodes(self, tree: TreeLike, at_most: int = 1) -> LabelSets:
        """For each set at most so many nodes of a tree, leaves or inner ones, whose leaves hold the set.

        They are those with the fewest leaves; of several such the fewest nodes, then the finest in what comes first
        in the tree. No set loses a label, so coverage can only grow. An empty set has no nodes. The classes must be
        leaves of the tree. `LabelSets.from_hierarchy` gives the leaves of the nodes. Sets that are calibrated with
        the score `Nodes` are so many nodes already, and smaller.

        >>> tree = {"animal": ["bird", "cat", "dog"], "bird": ["crow", "owl", "wren"]}
        >>> sets = LabelSets.from_lists([["owl", "wren"], ["cat"], ["cat", "crow", "owl"]])
        >>> sets.to_nodes(tree).to_lists()
        [['bird'], ['cat'], ['animal']]
        >>> nodes = sets.to_nodes(tree, at_most=2)
        >>> nodes.to_lists()
        [['owl', 'wren'], ['cat'], ['bird', 'cat']]
        >>> LabelSets.from_hierarchy(nodes, tree).to_lists()
        [['owl', 'wren'], ['cat'], ['cat', 'crow', 'owl', 'wren']]
        """
        read = Tree.read(tree, self.classes.tolist(), at_most)
        vocabulary, (indptr, codes) = Vocabulary.declare(read.names), self.rows
        most = min(int(at_most), int(self.sizes.max(initial=1)))
        rows, step = np.repeat(np.arange(self._n), self.sizes), _AT_ONCE // (most + 1) + 1
        ends = indptr[np.searchsorted(indptr, np.arange(step, len(codes), step))]  # whole rows
        found = [np.empty(0, dtype=np.int64)]
        for part, below in zip(np.split(rows, ends), np.split(codes, ends), strict=True):
            row, node = read.cover(part, below, most)
            found.append(row * len(vocabulary) + node - 1)
        return self.from_keys(vocabulary, self._n, np.concatenate(found))

    # ---------------------------------------------------------------- array, sequence, display

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self._mask is None and self._n * self.n_classes > _HUGE:
            raise ValueError(
                f"a mask of {self._n:,} × {self.n_classes:,} cells is too large to make without asking; "
                "use .rows or .to_lists(), or call to_mask() if you mean it."
            )
        return np.array(self._dense, dtype=dtype, copy=copy)

    def __iter__(self) -> Iterator[frozenset[Any]]:
        return (frozenset(labels) for labels in self.to_lists())

    def __getitem__(self, key: Any) -> Any:
        chosen = row_positions(key, self._n, "LabelSets are indexed by rows; use to_mask() to select columns.")
        one = key[0] if isinstance(key, tuple) else key
        if isinstance(one, (int, np.integer)) and not isinstance(one, bool):
            return frozenset(self.classes[self[chosen].rows[1]].tolist())
        if self._mask is not None:
            return replace(self, _n=len(chosen), _mask=frozen(self._mask[chosen]))
        indptr = np.concatenate([[0], np.cumsum(self.sizes[chosen])])
        indices = self.rows[1][take_rows(self.sizes, chosen)]
        return replace(self, _n=len(chosen), _rows=(frozen(indptr), frozen(indices)))

    def __repr__(self) -> str:
        shown = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in self[:3].to_lists())
        more = ", …" if self._n > 3 else ""
        return f"LabelSets({self._n:,} rows, {self.n_classes:,} classes): {shown}{more}"

    def _repr_html_(self) -> str:
        texts = [", ".join(map(str, row)) for row in self[:_SHOWN].to_lists()]
        return self._as_html(f"{self._n:,} sets over {self.n_classes:,} classes", "labels", texts)

    # ---------------------------------------------------------------- helpers

    @classmethod
    def _from_flat(
        cls,
        labels: Sequence[Any] | Array,
        sizes: Ints,
        absent: Bools,
        classes: Classes,
        missing: Missing,
    ) -> LabelSets:
        vocabulary = Vocabulary.of(classes, labels)
        codes = vocabulary.require(labels, np.repeat(np.arange(len(sizes)), sizes))
        return cls.from_codes(vocabulary, codes, sizes, absent=absent, missing=missing)

    @classmethod
    def _from_sparse(cls, matrix: Any, classes: Classes) -> LabelSets:
        """From a scipy CSR matrix of zeros and ones, without a dense copy."""
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if not (matrix.data == 1).all():
            raise ValueError(f"mask: holds {matrix.data[matrix.data != 1][0]}; a mask is True/False or 0/1.")
        return cls.from_codes(_of_columns(classes, matrix.shape[1]), matrix.indices, np.diff(matrix.indptr))

    @lazy
    def _keys(self) -> Ints:
        """Each (row, position) pair as one sorted integer."""
        return np.repeat(np.arange(self._n), self.sizes) * self.n_classes + self.rows[1]

    def _align(self, other: LabelSets) -> LabelSets:
        if len(self) != len(other):
            raise ValueError(f"cannot combine {len(self)} sets with {len(other)}; rows must correspond.")
        if self.vocabulary.same_order(other.vocabulary):
            return other
        if not self.vocabulary.same_labels(other.vocabulary):
            raise ValueError(
                f"cannot combine sets over different classes ({self.n_classes} and {other.n_classes}); "
                "bring both to one vocabulary with with_classes()."
            )
        return other.recode(self.vocabulary)


def _of_columns(classes: Classes, n_classes: int) -> Vocabulary:
    """The vocabulary of a mask's columns."""
    if classes is None:
        return Vocabulary.positions(n_classes)
    vocabulary = Vocabulary.of(classes, ())
    if len(vocabulary) != n_classes:
        raise ValueError(f"classes: {len(vocabulary)} labels for a mask of {n_classes} columns.")
    return vocabulary
