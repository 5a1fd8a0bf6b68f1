"""`Votes`: who answered what; several answers per example, from people or from repeated calls of a model."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Bools, Floats, Ints, frame_columns, frozen, row_positions, take_rows
from setwise._lazy import lazy
from setwise._types import Column, Indexable, Rows
from setwise.errors import InputError, MisuseWarning, Remedy
from setwise.labels import constructors
from setwise.labels.label_sets import LabelSets, Missing
from setwise.labels.spellings import doubt_spellings
from setwise.labels.vocabulary import (
    Classes,
    LabelledRows,
    Vocabulary,
    as_list,
    is_missing,
    label_vector,
    missing_labels,
)

_SHOWN = 8
_HEAVIEST = 1e12  # the largest weight, so that products of weights stay finite
_MOST = 1_000_000_000  # answers that can be stored one by one
_ROUNDED = 0.01  # by which probabilities that were rounded may exceed one
MODEL = "model"
"""The annotator of proposals."""


@dataclass(frozen=True, eq=False, repr=False)
class Votes(LabelledRows):
    """Answers, each by an annotator about a row, ordered by rows; a row may have any number of them.

    Use one of the `from_…` constructors. Votes are immutable, sliced by rows, and a valid `y` for scikit-learn.
    An answer may carry a weight: an expert counts more, a model gives its own probability.

    Whatever one annotator says about a row is one answer: several labels, a repeated label, the probabilities of a
    model, and repeated calls of it. Together they weigh at most one, in their shares. Weights above one say how
    much answers count, and stay as they are. Answers without annotators are of as many people.

    Attributes
    ----------
    vocabulary
        The labels.
    row, label
        For each label of an answer, the number of its row and the position of the label.
    annotator
        For each of these, the position of its annotator in `annotators`; None where annotators are not named.
    own_weight
        The weights that came with them, where any did. `weight` is how much each counts.
    annotators
        The names of the annotators.
    items
        The names of the rows in the table they came from; None where rows have no names.
    shared
        Whether some annotator has several labels in a row, which are one answer.

    Examples
    --------
    >>> from setwise import Votes
    >>> votes = Votes.from_lists([["cat", "cat", "dog"], ["dog"]])
    >>> votes
    Votes(4 answers on 2 rows, 2 classes): {cat: 2, dog: 1}, {dog: 1}
    >>> votes.counts
    array([[2., 1.],
           [0., 1.]])
    >>> votes.candidates("plurality").to_lists()
    [['cat'], ['dog']]
    """

    vocabulary: Vocabulary
    _n: int
    row: Ints
    label: Ints
    annotator: Ints | None = None
    own_weight: Floats | None = None
    annotators: Array = field(default_factory=lambda: np.empty(0, dtype=object))
    items: Array | None = None
    shared: bool = False

    # ---------------------------------------------------------------- constructors

    @classmethod
    def from_table(
        cls,
        table: Indexable,
        item: str = "item",
        annotator: str | None = "annotator",
        label: str = "label",
        *,
        weight: str | None = None,
        items: Column = None,
        classes: Classes = None,
    ) -> Votes:
        """From a long table with one answer per line.

        Parameters
        ----------
        table
            A pandas, polars or Arrow table, or a dict of columns.
        item, annotator, label
            The names of the columns; ``annotator=None`` where annotators are not named. Lines of one
            annotator about one item are one answer, and a warning says where there are several.
        weight
            Column that says how much an answer counts.
        items
            The items in the order of the rows, with or without answers; by default in the order of the table.
        classes
            The labels; by default those that occur.

        Examples
        --------
        >>> Votes.from_table({"item": ["a", "b", "a"], "annotator": ["x", "x", "y"], "label": [1, 0, 1]}).counts
        array([[0., 2.],
               [1., 0.]])
        """
        names = [name for name in (item, annotator, label, weight) if name is not None]
        held = {name: label_vector(_column(table, name), name) for name in names}
        short = next((name for name in names if len(held[name]) != len(held[label])), None)
        if short is not None:
            raise ValueError(f"{short}: {len(held[short])} lines, but {label} has {len(held[label])}.")
        answered = ~missing_labels(held[label])
        for name in names:
            lost = answered & missing_labels(held[name])
            if lost.any():
                raise ValueError(f"{name}: line {int(np.flatnonzero(lost)[0])} has a label but no {name}.")
        rows = Vocabulary.declare(_items(held[item]) if items is None else _row_names(items))
        row = rows.encode(held[item][answered])
        if (row < 0).any():
            first = int(np.argmax(row < 0))
            raise ValueError(
                f"{item}: {held[item][answered].tolist()[first]!r} is not among items; add it, or leave it out."
            )
        people = None if annotator is None else held[annotator][answered]
        votes = cls.of(
            len(rows),
            row,
            held[label][answered],
            people,
            None if weight is None else _numbers(held[weight][answered], weight, np.flatnonzero(answered)),
            classes=classes,
            items=rows.classes,
        )
        doubt_copies(votes)
        doubt_spellings(votes.annotators.tolist(), "votes", "annotators")
        return votes

    @classmethod
    def from_matrix(
        cls,
        table: Rows,
        classes: Classes = None,
        missing: Hashable = None,
        *,
        annotators: Iterable[Hashable] | None = None,
    ) -> Votes:
        """From one column per annotator; a cell is a label, a collection of labels, or missing.

        Besides None and NaN, the value `missing`, such as −1, means no answer. Several labels in a cell share the
        weight of one answer. The column names of a frame or a dict are the annotators.

        >>> Votes.from_matrix([["cat", "dog"], [None, "dog"]]).sizes
        array([2, 1])
        """
        table = table.to_pydict() if hasattr(table, "to_pydict") else table  # Arrow
        columns = list(table) if isinstance(table, Mapping) else getattr(table, "columns", None)
        n, row, who, labels = constructors.annotator_votes(table, missing)
        width = int(who.max(initial=-1)) + 1
        named = list(annotators if annotators is not None else range(width) if columns is None else columns)
        if len(named) < width:
            raise ValueError(f"annotators: {len(named)} names for {width} columns.")
        people = np.empty(len(named), dtype=object)
        people[:] = named
        return cls.of(n, row, labels, people[who], classes=classes)

    @classmethod
    def from_counts(cls, counts: ArrayLike, classes: Classes = None) -> Votes:
        """From the number of answers for each row and label, n × K; fractions are weights.

        The column names of a frame are the classes. Fractions that sum to at most one in every row are the
        probabilities of one model, and each row is one answer, as in `from_proposals`.
        """
        table, named = np.asarray(counts, dtype=float), frame_columns(counts)
        classes = named if classes is None else classes
        if table.ndim != 2 or not (np.isfinite(table).all() and (table >= 0).all()):
            raise ValueError("counts: expected one row per example, of numbers that are 0 or more.")
        vocabulary = Vocabulary.positions(table.shape[1]) if classes is None else Vocabulary.of(classes, ())
        if len(vocabulary) != table.shape[1]:
            raise ValueError(f"classes: {len(vocabulary)} labels for {table.shape[1]} columns of counts.")
        row, label = np.nonzero(table)
        amount = table[row, label]
        if amount.max(initial=0) > _HEAVIEST or ((amount % 1 == 0).all() and amount.sum() > _MOST):
            raise InputError(
                f"counts: {amount.sum():.3g} answers are too many to store one by one",
                "divide them, since fractions are weights",
            )
        if (amount % 1 == 0).all():
            times = amount.astype(int)
            return cls(vocabulary, len(table), frozen(np.repeat(row, times)), frozen(np.repeat(label, times)))
        if (table.sum(axis=1) <= 1 + _ROUNDED).all():
            labels, model = vocabulary.classes.tolist(), np.zeros_like(row)
            return cls.from_codes(len(table), row, labels, label, [MODEL], model, amount, classes=vocabulary)
        return cls(vocabulary, len(table), frozen(row), frozen(label), own_weight=frozen(amount))

    @classmethod
    def from_lists(cls, rows: Iterable[Any], classes: Classes = None) -> Votes:
        """From one list of answers per row, where labels may be repeated; annotators are not named."""
        labels, sizes, _ = constructors.flatten(rows, "from_lists")
        return cls.of(len(sizes), np.repeat(np.arange(len(sizes)), sizes), labels, classes=classes)

    @classmethod
    def from_proposals(cls, rows: Iterable[Any], classes: Classes = None) -> Votes:
        """From a model's labels with its probabilities: a mapping per row, or several for repeated calls.

        The model is one annotator, who gives each row one answer with a confidence; repeated calls share it.

        >>> votes = Votes.from_proposals([{"cat": 0.7, "dog": 0.2}, [{"cat": 1.0}, {"dog": 1.0}]])
        >>> votes
        Votes(2 answers by 1 annotator on 2 rows, 2 classes): {cat: 0.7, dog: 0.2}, {cat: 0.5, dog: 0.5}
        >>> votes.sizes
        array([1, 1])
        """
        listed = list(rows)
        answers = [
            (i, label, value)
            for i, row in enumerate(listed)
            for proposal in ([row] if isinstance(row, (Mapping, str)) else [] if is_missing(row) else row)
            for label, value in _proposal(proposal, i)
        ]
        row, labels, weight = zip(*answers, strict=True) if answers else ((), (), ())
        model = np.full(len(labels), MODEL, dtype=object)
        return cls.of(len(listed), np.array(row, dtype=int), labels, model, np.array(weight), classes=classes)

    @classmethod
    def of(
        cls,
        n: int,
        row: Ints,
        labels: Sequence[Any] | Array,
        people: Array | None = None,
        weight: Floats | None = None,
        *,
        classes: Classes = None,
        items: Array | None = None,
    ) -> Votes:
        """From the columns of all answers, in any order; all constructors from labels call this one."""
        each = np.arange(len(labels))
        plain, names = (_plain(column) for column in (labels, people))
        return cls.from_codes(n, row, plain, each, names, each, weight, classes=classes, items=items)

    @classmethod
    def from_codes(
        cls,
        n: int,
        row: Ints,
        labels: Sequence[Any],
        codes: Ints,
        people: Sequence[Any] | None = None,
        who: Ints | None = None,
        weight: Floats | None = None,
        *,
        classes: Classes = None,
        items: Array | None = None,
    ) -> Votes:
        """From distinct labels and annotators, and their codes for every answer; no Python code runs per answer.

        >>> Votes.from_codes(2, np.array([0, 1, 1]), ["dog", "cat"], np.array([0, 1, 1])).counts
        array([[0., 1.],
               [2., 0.]])
        """
        distinct, first, local = _occurring(labels, codes)
        vocabulary = Vocabulary.of(classes, distinct)
        label = vocabulary.require(distinct, row[first])[local] if len(distinct) else codes
        names, position = np.empty(0, dtype=object), None
        if people is not None and who is not None:
            own, _, whose = _occurring(people, who)
            named = Vocabulary.infer(own)
            names, position = named.classes, named.encode(own)[whose]
        if weight is not None and not ((weight > 0) & (weight <= _HEAVIEST)).all():
            wrong = int(np.flatnonzero(~((weight > 0) & (weight <= _HEAVIEST)))[0])
            raise InputError(
                f"weight: row {row[wrong]} has an answer of weight {weight[wrong]}",
                f"use positive numbers up to {_HEAVIEST:g}",
            )
        held = {
            "row": row.astype(np.intp, copy=False),
            "label": label,
            "annotator": position,
            "own_weight": weight,
        }
        order = np.argsort(row, kind="stable")
        columns = {name: None if value is None else frozen(value[order]) for name, value in held.items()}
        shared = False
        if position is not None and (weight is None or weight.max(initial=0) <= 1 + _ROUNDED):
            answers = np.sort(row * len(names) + position)
            shared = bool((answers[1:] == answers[:-1]).any())
        return cls(vocabulary, n, **columns, annotators=names, items=items, shared=shared)  # type: ignore[arg-type]

    @classmethod
    def concatenate(cls, parts: Iterable[Votes], *, classes: Classes = None) -> Votes:
        """Concatenates several votes, such as the batches of a stream, reading one at a time.

        Rows with the same item become one row, as a long table may scatter its answers; rows without names follow
        each other. Annotators are matched by name.

        Parameters
        ----------
        parts
            The votes; an iterator will do. Either all of them name their rows or none does; so for annotators.
        classes
            The labels; by default those that the parts declare, otherwise those that occur.

        Examples
        --------
        >>> batches = [{"item": ["a", "b"], "label": ["cat", "dog"]}, {"item": ["a"], "label": ["dog"]}]
        >>> Votes.concatenate(Votes.from_table(batch, annotator=None) for batch in batches).counts
        array([[1., 1.],
               [0., 1.]])
        """
        rows, labels, people = dict[Any, int](), dict[Any, int](), dict[Any, int]()
        columns: dict[str, list[Array]] = {name: [] for name in ("row", "label", "annotator", "weight")}
        first, n = None, 0
        for number, part in enumerate(parts):
            first = part[:0] if first is None else first
            for name, what in (("items", "rows"), ("annotator", "annotators")):
                if (getattr(part, name) is None) != (getattr(first, name) is None):
                    raise ValueError(
                        f"parts: only one of parts 0 and {number} names its {what}; name them in both or none."
                    )
            if classes is None and first.vocabulary.declared and not first.vocabulary.same_labels(part.vocabulary):
                raise InputError(
                    f"parts: part {number} has other classes than part 0",
                    Remedy("classes", None, "to name all of them"),
                )
            own = np.arange(n, n + len(part)) if part.items is None else _positions(rows, part.items)
            n = n + len(part) if part.items is None else len(rows)
            answers = len(part.row)
            columns["row"].append(own[part.row])
            columns["label"].append(_positions(labels, part.classes)[part.label])
            if part.annotator is not None:
                columns["annotator"].append(_positions(people, part.annotators)[part.annotator])
            columns["weight"].append(np.ones(answers) if part.own_weight is None else part.own_weight)
        if first is None:
            raise ValueError("parts: there are no votes to concatenate.")
        held = {name: np.concatenate(arrays) for name, arrays in columns.items() if arrays}
        return cls.from_codes(
            n,
            held["row"],
            list(labels),
            held["label"],
            list(people),
            held.get("annotator"),
            held["weight"] if (held["weight"] != 1).any() else None,
            classes=first.vocabulary if classes is None and first.vocabulary.declared else classes,
            items=None if first.items is None else Vocabulary.declare(rows).classes,
        )

    # ---------------------------------------------------------------- contents

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """The type of `counts`."""
        return np.dtype(np.float64)

    @lazy
    def sizes(self) -> Ints:
        """How many answers each row has, one from each annotator."""
        return np.bincount(self.answers[0], minlength=self._n) if self.shared else self.lines

    @property
    def who(self) -> Ints:
        """The position of each label's annotator; anonymous answers count as one annotator's."""
        return np.zeros(len(self.row), dtype=np.intp) if self.annotator is None else self.annotator

    @lazy
    def answers(self) -> tuple[Ints, Ints, Ints]:
        """The row and the annotator of each answer, and to which answer each label belongs.

        >>> Votes.from_matrix([[["cat", "dog"], "dog"]]).answers
        (array([0, 0]), array([0, 1]), array([0, 0, 1]))
        """
        if not self.shared:
            return self.row, self.who, np.arange(len(self.row))
        keys, which = np.unique(self.row * len(self.annotators) + self.who, return_inverse=True)
        return *np.divmod(keys, len(self.annotators)), which

    @lazy
    def weight(self) -> Floats | None:
        """How much each label of an answer counts; None where each counts as one."""
        if not self.shared:
            return self.own_weight
        own, which = np.ones(len(self.row)) if self.own_weight is None else self.own_weight, self.answers[2]
        return frozen(own / np.maximum(np.bincount(which, own), 1)[which])

    @lazy
    def lines(self) -> Ints:
        """How many labels of answers each row has."""
        return np.bincount(self.row, minlength=self._n)

    @lazy
    def counts(self) -> Floats:
        """(n, K): the total weight of the answers for each label."""
        keys = self.row * self.n_classes + self.label
        totals = np.bincount(keys, weights=self.weight, minlength=self._n * self.n_classes)
        return frozen(totals.astype(float).reshape(self.shape))

    def candidates(self, rule: str = "union", *, missing: Missing = "error") -> LabelSets:
        """The sets of labels that a rule keeps.

        ``"union"`` keeps every label with a vote, ``"at_least:2"`` those with two votes or more, ``"plurality"``
        those with the most votes (ties kept).
        Rules count who names a label, with the weights that came with the answers: several labels share nothing.
        """
        who = np.arange(len(self.row)) if self.annotator is None else self.annotator
        row, codes = constructors.elect(self.row, who, self.label, self.n_classes, rule, self.own_weight)
        sizes = np.bincount(row, minlength=self._n)
        return LabelSets.from_codes(self.vocabulary, codes, sizes, absent=sizes == 0, missing=missing)

    def to_columns(self) -> dict[str, Array]:
        """The columns of a long table, from which `from_table` makes the same votes.

        They are item, annotator, label and weight; those that would be empty are left out. A row without
        answers has one line, without a label.

        >>> votes = Votes.from_lists([["cat", "dog"], []], classes=["cat", "dog", "owl"])
        >>> {name: column.tolist() for name, column in votes.to_columns().items()}
        {'item': [0, 0, 1], 'label': ['cat', 'dog', None]}
        >>> Votes.from_table(votes.to_columns(), annotator=None, classes=votes.classes).counts
        array([[1., 1., 0.],
               [0., 0., 0.]])
        """
        items = np.arange(self._n) if self.items is None else self.items
        _row_names(items)  # a table would merge two rows of the same name
        empty = np.flatnonzero(self.sizes == 0)
        order = np.argsort(np.concatenate([self.row, empty]), kind="stable")

        def lines(values: Array) -> Array:
            return np.concatenate([values.astype(object), np.full(len(empty), None)])[order]

        columns = {"item": items[np.concatenate([self.row, empty])[order]]}
        if self.annotator is not None:
            columns["annotator"] = lines(self.annotators[self.annotator])
        columns["label"] = lines(self.classes[self.label])
        if self.own_weight is not None:
            columns["weight"] = lines(self.own_weight)
        return columns

    def to_frame(self) -> Any:
        """The columns of `to_columns` as a pandas frame."""
        import pandas as pd  # pandas is optional

        return pd.DataFrame(self.to_columns())

    # ---------------------------------------------------------------- other votes

    def recode(self, vocabulary: Vocabulary) -> Votes:
        """The same answers over other labels, or the same labels in another order."""
        if self.vocabulary.same_order(vocabulary):
            return self
        known = self.vocabulary
        if known.declared and known.is_range and len(known) == len(vocabulary) and not vocabulary.holds_numbers:
            return replace(self, vocabulary=vocabulary)  # columns without names are the classes, in order
        return replace(
            self, vocabulary=vocabulary, label=frozen(vocabulary.require(self.classes[self.label], self.row))
        )

    def with_classes(self, classes: Iterable[Hashable]) -> Votes:
        """The same answers over these classes, in this order."""
        return self.recode(Vocabulary.declare(classes))

    def __getitem__(self, key: Any) -> Votes:
        chosen = row_positions(key, self._n, "Votes are indexed by rows; use .counts to select labels.")
        taken = take_rows(self.lines, chosen)
        columns = {
            name: frozen(getattr(self, name)[taken])
            for name in ("label", "annotator", "own_weight")
            if getattr(self, name) is not None
        }
        row = frozen(np.repeat(np.arange(len(chosen)), self.lines[chosen]))
        items = None if self.items is None else self.items[chosen]
        return replace(self, _n=len(chosen), row=row, items=items, **columns)

    def keep(self, chosen: Ints | Bools) -> Votes:
        """The same rows and annotators, with some of the answers alone.

        >>> Votes.from_lists([["cat", "dog"], ["dog"]]).keep(np.array([0, 2]))
        Votes(2 answers on 2 rows, 2 classes): {cat: 1}, {dog: 1}
        """
        columns = {name: getattr(self, name) for name in ("row", "label", "annotator", "own_weight")}
        kept = {name: frozen(column[chosen]) for name, column in columns.items() if column is not None}
        return replace(self, **kept)

    def at(self, rows: Ints) -> Votes:
        """The answers of the rows at these positions; a position of −1 has no answers.

        >>> Votes.from_lists([["cat"], ["dog", "dog"]]).at(np.array([1, -1]))
        Votes(2 answers on 2 rows, 2 classes): {dog: 2}, {}
        """
        if (rows >= 0).all():
            return self[rows]
        items = None if self.items is None else np.array([*self.items.tolist(), None], dtype=object)
        return replace(self, _n=self._n + 1, items=items)[np.where(rows < 0, self._n, rows)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.counts, dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Votes):
            return NotImplemented
        ours, theirs = (
            [getattr(votes, f.name) for f in fields(Votes) if f.name not in {"vocabulary", "shared"}]
            for votes in (self, other)
        )
        same = all(
            (a is None) == (b is None) and (a is None or np.array_equal(a, b))
            for a, b in zip(ours, theirs, strict=True)
        )
        return same and self.vocabulary.same_order(other.vocabulary)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join("{" + self._describe(i) + "}" for i in range(min(3, self._n)))
        more = ", …" if self._n > 3 else ""
        answers, people = self.sizes.sum(), len(self.annotators)
        by = f" by {people:,} annotator{'s' * (people > 1)}" if people else ""
        return f"Votes({answers:,} answers{by} on {self._n:,} rows, {self.n_classes:,} classes): {shown}{more}"

    def _repr_html_(self) -> str:
        head = f"{self.sizes.sum():,} answers on {self._n:,} rows over {self.n_classes:,} classes"
        return self._as_html(head, "answers", [self._describe(row) for row in range(min(_SHOWN, self._n))])

    def _describe(self, row: int) -> str:
        first = int(np.searchsorted(self.row, row))
        mine = range(first, first + int(self.lines[row]))
        weights: dict[str, float] = {}
        for i in mine:
            name = str(self.classes[self.label[i]])
            weights[name] = weights.get(name, 0.0) + (1.0 if self.weight is None else float(self.weight[i]))
        return ", ".join(f"{name}: {number:g}" for name, number in weights.items())


def doubt_copies(votes: Votes, where: str = "") -> None:
    """Warns where an annotator gives a row several answers, as copied lines do, which then count as one."""
    if not votes.shared:
        return
    row, who, which = votes.answers
    several = np.flatnonzero(np.bincount(which, votes.own_weight) > 1 + _ROUNDED)
    if not len(several):
        return
    times = np.count_nonzero(which == several[0])
    items = np.arange(len(votes)) if votes.items is None else votes.items
    item, name = items[row[several[:1]]].tolist()[0], votes.annotators[who[several[:1]]].tolist()[0]
    problem = (
        f"{where}annotator {name!r} gives {times:,} labels to item {item!r}. In {len(np.unique(row[several])):,} "
        f"of {len(votes):,} rows several answers of one annotator count as one"
    )
    warnings.warn(MisuseWarning(problem, "delete copies if there are any"), stacklevel=3)


def _column(table: Any, name: str) -> Any:
    try:
        return table[name]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        names = getattr(table, "column_names", getattr(table, "columns", table))  # Arrow, a frame, a dict
        known = ", ".join(map(repr, list(names)[:12]))
        raise ValueError(f"{name}: the table has no column of this name; it has {known}.") from error


def _items(values: Array) -> list[Any]:
    """The distinct items of a table, in their order; lines without an item are ignored."""
    return list(dict.fromkeys(values[~missing_labels(values)].tolist()))


def _row_names(items: Any) -> list[Any]:
    """The names of the rows, which must be distinct."""
    names: list[Any] = label_vector(items, "items").tolist()
    gone = next((row for row, name in enumerate(names) if is_missing(name)), None)
    if gone is not None:
        raise ValueError(f"items: row {gone} has no name.")
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"items: {twice!r} occurs twice; each row needs a name of its own.")
    return names


def _plain(column: Any) -> Any:
    """An array as Python values, unless whole numbers: these are looked up as arrays."""
    return as_list(column) if isinstance(column, np.ndarray) and column.dtype.kind not in "iu" else column


def _occurring(values: Sequence[Any], codes: Ints) -> tuple[Sequence[Any], Ints, Ints]:
    """The values that occur, where each does first, and the place of each code: `np.unique` without sorting."""
    first = np.full(len(values), len(codes), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    occurs = first < len(codes)
    if occurs.all():
        return values, first, codes
    found = [values[code] for code in np.flatnonzero(occurs).tolist()]
    return found, first[occurs], (np.cumsum(occurs) - 1)[codes]


def _positions(known: dict[Any, int], names: Array) -> Ints:
    """The positions of names among those known, to which new ones are added."""
    return np.array([known.setdefault(name, len(known)) for name in names.tolist()], dtype=np.intp)


def _numbers(values: Array, name: str, lines: Ints) -> Floats:
    """Numbers, or texts that read like numbers."""
    try:
        return values.astype(float)
    except (TypeError, ValueError):
        wrong = next(i for i, value in enumerate(values.tolist()) if not _is_number(value))
        raise ValueError(f"{name}: line {lines[wrong]} holds {values.tolist()[wrong]!r}, not a number.") from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _proposal(proposal: Any, row: int) -> Iterable[tuple[Any, float]]:
    if not isinstance(proposal, Mapping):
        raise TypeError(f"from_proposals: row {row} holds {proposal!r}, not labels with their probabilities.")
    for label, value in proposal.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not 0 <= number <= 1:
            raise ValueError(f"from_proposals: row {row} gives {label!r} the probability {value!r}, not in [0, 1].")
        if number > 0:
            yield label, number
