"""`LabelSets`: one set of labels per example, for candidate sets and for prediction sets alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Bools, Ints, frozen
from setwise.labels import constructors
from setwise.labels.row_sets import Missing, RowSets
from setwise.labels.vocabulary import Classes, Vocabulary, label_vector, missing_labels

_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class LabelSets(RowSets):
    """One set of labels per example, over a vocabulary of classes.

    Made by one of the `from_…` constructors. Holds compressed rows or a boolean mask, whichever it was
    born with, and converts on first need. It is immutable, and it is a valid `y` for scikit-learn.

    Every constructor that may meet rows without labels takes `missing`: ``"error"`` names the first such
    row, ``"full"`` lets every class be a candidate (always valid), ``"empty"`` keeps an empty set (which
    predictions may be, and which `conformalize` refuses or handles as its own `missing` says).

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

    # ---------------------------------------------------------------- constructors

    @classmethod
    def from_lists(cls, rows: Iterable[Any], classes: Classes = None, *, missing: Missing = "error") -> LabelSets:
        """From one collection of labels a row; a row that is None is missing, an empty one is empty.

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
        return cls.from_mask_view(np.array(mask), classes)

    @classmethod
    def from_labels(cls, y: ArrayLike, classes: Classes = None, *, missing: Missing = "error") -> LabelSets:
        """From one label a row: every set is a singleton.

        >>> LabelSets.from_labels([2, 0], classes=[0, 1, 2]).to_lists()
        [[2], [0]]
        """
        labels = label_vector(y, "y")
        absent = missing_labels(labels)
        made = cls._from_flat(labels[~absent], (~absent).astype(np.intp), absent, classes, missing)
        return replace(made, single=not absent.any())

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
        """From "not this one": every class but the given label (or labels) of each row.

        >>> LabelSets.from_complementary(["dog", "cat"], classes=["cat", "dog", "owl"]).to_lists()
        [['cat', 'owl'], ['dog', 'owl']]
        """
        excluded = not_y if isinstance(not_y, LabelSets) else None
        if excluded is None:
            rows: list[Any] = list(not_y)  # type: ignore[arg-type]
            nested = any(isinstance(row, Iterable) and not isinstance(row, str) for row in rows)
            excluded = (cls.from_lists if nested else cls.from_labels)(rows, classes, missing="empty")
        others = frozen(~excluded.to_mask())
        return cls(excluded.vocabulary, len(excluded), _mask=others, relative=not excluded.vocabulary.declared)

    @classmethod
    def from_annotators(
        cls,
        table: Any,
        rule: str = "union",
        classes: Classes = None,
        *,
        missing: Missing = "error",
    ) -> LabelSets:
        """From a table with one column an annotator; a cell is a label, a collection of labels, or missing.

        ``rule="union"`` keeps every label somebody gave, ``"at_least:2"`` those given twice or more,
        ``"largest"`` the single largest answer (of equals the first).

        >>> votes = [["cat", "dog", "cat"], ["owl", None, "dog"]]
        >>> LabelSets.from_annotators(votes).to_lists()
        [['cat', 'dog'], ['dog', 'owl']]
        >>> LabelSets.from_annotators(votes, "at_least:2", ["cat", "dog", "owl"], missing="full").to_lists()
        [['cat'], ['cat', 'dog', 'owl']]
        """
        n, rows, annotators, labels = constructors.annotator_votes(table)
        vocabulary = Vocabulary.of(classes, labels)
        codes = vocabulary.require(labels, rows)
        rows, codes = constructors.elect(rows, annotators, codes, len(vocabulary), rule)
        sizes = np.bincount(rows, minlength=n)
        return cls._from_codes(vocabulary, codes, sizes, sizes == 0, missing)

    @classmethod
    def from_hierarchy(
        cls,
        nodes: Iterable[Hashable],
        tree: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
        classes: Classes = None,
    ) -> LabelSets:
        """From nodes of an ontology: the candidates are the leaves below the node.

        `tree` maps a parent to its children, or lists (parent, child) pairs.

        >>> tree = {"animal": ["bird", "cat"], "bird": ["owl", "wren"]}
        >>> LabelSets.from_hierarchy(["bird", "cat"], tree).to_lists()
        [['owl', 'wren'], ['cat']]
        """
        leaves = constructors.leaves_below(tree)
        nodes = list(nodes)
        for i, node in enumerate(nodes):
            if node not in leaves:
                raise ValueError(f"nodes: row {i}, {node!r}, is not in the tree; add it or correct its name.")
        vocabulary = Vocabulary.of(classes, [node for node, below in leaves.items() if below == [node]])
        below = [leaves[node] for node in nodes]
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

    # ---------------------------------------------------------------- what it holds

    def to_lists(self) -> list[list[Any]]:
        """One list of labels a row, in the order of the vocabulary."""
        indptr, indices = self.rows
        labels = self.classes[indices].tolist()
        return [labels[a:b] for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)]

    def to_labels(self) -> Array:
        """One label a row, where every set is a singleton: the reverse of `from_labels`.

        >>> LabelSets.from_labels(["b", "a"]).to_labels()
        array(['b', 'a'], dtype='<U1')
        """
        if (self.sizes != 1).any():
            row = int(np.flatnonzero(self.sizes != 1)[0])
            raise ValueError(f"row {row} has {self.sizes[row]} labels, so these sets are not a label vector.")
        labels: Array = self.classes[self.rows[1]]
        return labels

    def to_arrow(self) -> Any:
        """An Arrow list column of labels."""
        import pyarrow as pa  # noqa: PLC0415 - optional, and heavy

        indptr, indices = self.rows
        small = len(indices) < 2**31
        kind, offsets = (pa.ListArray, np.int32) if small else (pa.LargeListArray, np.int64)
        labels = pa.array(self.classes.tolist()).take(pa.array(indices))
        return kind.from_arrays(pa.array(indptr.astype(offsets)), labels)

    def to_frame(self) -> Any:
        """A pandas frame with one row an example: its labels as a list, and how many."""
        import pandas as pd  # noqa: PLC0415 - optional, and heavy

        return pd.DataFrame({"labels": self.to_lists(), "size": self.sizes})

    # ---------------------------------------------------------------- questions and combinations

    def contains(self, y: ArrayLike) -> Bools:
        """Whether each set holds its row's label; a label outside the vocabulary is in no set."""
        codes = self.vocabulary.encode(label_vector(y, "y"))
        if len(codes) != self._n:
            raise ValueError(f"y: {len(codes)} labels for {self._n} sets; give one label a row.")
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
        return self.recoded(Vocabulary.declare(classes))

    # ---------------------------------------------------------------- a sequence, a `y`, a picture

    def __iter__(self) -> Iterator[frozenset[Any]]:
        return (frozenset(labels) for labels in self.to_lists())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            key, *rest = key
            if any(part is not Ellipsis and part != slice(None) for part in rest):
                raise IndexError("LabelSets are indexed by rows; use to_mask() to select columns.")
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return frozenset(self.classes[self[np.array([key])].rows[1]].tolist())
        return self._selected(key)

    def __repr__(self) -> str:
        shown = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in self[:3].to_lists())
        more = ", …" if self._n > 3 else ""
        return f"LabelSets({self._n:,} rows, {self.n_classes:,} classes): {shown}{more}"

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td>{i}</td><td>{escape(', '.join(map(str, row))) or '∅'}</td></tr>"
            for i, row in enumerate(self[:_SHOWN].to_lists())
        )
        more = f"<tr><td colspan=2>… {self._n - _SHOWN:,} more</td></tr>" if self._n > _SHOWN else ""
        head = f"{self._n:,} sets over {self.n_classes:,} classes"
        return f"<table><caption>{head}</caption><tr><th>row</th><th>labels</th></tr>{body}{more}</table>"

    # ---------------------------------------------------------------- how it is put together

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
        return cls._from_codes(vocabulary, codes, sizes, absent, missing)
