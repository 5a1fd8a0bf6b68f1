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


@dataclass(frozen=True, eq=False, repr=False)
class Votes(LabelledRows):
    """Answers, each by an annotator about a row, ordered by rows; a row may have any number of them.

    Use one of the `from_…` constructors. Votes are immutable, sliced by rows, and a valid `y` for scikit-learn.
    An answer may carry a weight (an expert counts more, a model gives its own probability), and it may say that a
    label is *not* the true one.

    Attributes
    ----------
    vocabulary
        The labels.
    row, label
        For each answer, the number of its row and the position of its label.
    annotator
        For each answer, the position of its annotator in `annotators`; None where annotators are not named.
    weight
        How much each answer counts; None where each counts as one.
    against
        Whether each answer says "not this label"; None where none does.
    annotators
        The names of the annotators.
    items
        The names of the rows in the table they came from; None where rows have no names.

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
    weight: Floats | None = None
    against: Bools | None = None
    annotators: Array = field(default_factory=lambda: np.empty(0, dtype=object))
    items: Array | None = None

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
        against: str | None = None,
        items: Column = None,
        classes: Classes = None,
    ) -> Votes:
        """From a long table with one answer per line.

        Parameters
        ----------
        table
            A pandas, polars or Arrow table, or a dict of columns.
        item, annotator, label
            The names of the columns; ``annotator=None`` where annotators are not named. Each line with a label
            counts as an answer; a warning says where an annotator gives an item the same label twice.
        weight
            Column that says how much an answer counts.
        against
            Column that is true where the answer is "not this label".
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
        names = [name for name in (item, annotator, label, weight, against) if name is not None]
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
            None if against is None else _flags(held[against][answered], against, np.flatnonzero(answered)),
            classes=classes,
            items=rows.classes,
        )
        doubt_copies(votes)
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
        columns = list(table) if isinstance(table, Mapping) else getattr(table, "columns", None)
        n, row, who, labels = constructors.annotator_votes(table, missing)
        width = int(who.max(initial=-1)) + 1
        named = list(annotators if annotators is not None else range(width) if columns is None else columns)
        if len(named) < width:
            raise ValueError(f"annotators: {len(named)} names for {width} columns.")
        people = np.empty(len(named), dtype=object)
        people[:] = named
        return cls.of(n, row, labels, people[who], classes=classes).share_weights()

    @classmethod
    def from_counts(cls, counts: ArrayLike, classes: Classes = None) -> Votes:
        """From the number of answers for each row and label, n × K; fractions are weights.

        The column names of a frame are the classes.
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
        return cls(vocabulary, len(table), frozen(row), frozen(label), weight=frozen(amount))

    @classmethod
    def from_lists(cls, rows: Iterable[Any], classes: Classes = None) -> Votes:
        """From one list of answers per row, where labels may be repeated; annotators are not named."""
        labels, sizes, _ = constructors.flatten(rows, "from_lists")
        return cls.of(len(sizes), np.repeat(np.arange(len(sizes)), sizes), labels, classes=classes)

    @classmethod
    def from_proposals(cls, rows: Iterable[Any], classes: Classes = None) -> Votes:
        """From a model's labels with its probabilities: a mapping per row, or several for repeated calls.

        >>> Votes.from_proposals([{"cat": 0.7, "dog": 0.2}, [{"cat": 1.0}, {"dog": 1.0}]]).counts
        array([[0.7, 0.2],
               [1. , 1. ]])
        """
        listed = list(rows)
        answers = [
            (i, label, value)
            for i, row in enumerate(listed)
            for proposal in ([row] if isinstance(row, (Mapping, str)) else [] if is_missing(row) else row)
            for label, value in _proposal(proposal, i)
        ]
        row, labels, weight = zip(*answers, strict=True) if answers else ((), (), ())
        return cls.of(len(listed), np.array(row, dtype=int), list(labels), weight=np.array(weight), classes=classes)

    @classmethod
    def of(
        cls,
        n: int,
        row: Ints,
        labels: Sequence[Any] | Array,
        people: Array | None = None,
        weight: Floats | None = None,
        against: Bools | None = None,
        *,
        classes: Classes = None,
        items: Array | None = None,
    ) -> Votes:
        """From the columns of all answers, in any order; all constructors from labels call this one."""
        each = np.arange(len(labels))
        plain = as_list(labels) if isinstance(labels, np.ndarray) else labels
        names = None if people is None else as_list(people)
        return cls.from_codes(n, row, plain, each, names, each, weight, against, classes=classes, items=items)

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
        against: Bools | None = None,
        *,
        classes: Classes = None,
        items: Array | None = None,
    ) -> Votes:
        """From distinct labels and annotators, and their codes for every answer; no Python code runs per answer.

        >>> Votes.from_codes(2, np.array([0, 1, 1]), ["dog", "cat"], np.array([0, 1, 1])).counts
        array([[0., 1.],
               [2., 0.]])
        """
        known, first, local = np.unique(codes, return_index=True, return_inverse=True)
        distinct = [labels[code] for code in known.tolist()]
        vocabulary = Vocabulary.of(classes, distinct)
        label = vocabulary.require(distinct, row[first])[local] if len(known) else codes
        names, position = np.empty(0, dtype=object), None
        if people is not None and who is not None:
            present, whose = np.unique(who, return_inverse=True)
            own = [people[one] for one in present.tolist()]
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
            "weight": weight,
            "against": against if against is not None and against.any() else None,
        }
        order = np.argsort(row, kind="stable")
        columns = {name: None if value is None else frozen(value[order]) for name, value in held.items()}
        return cls(vocabulary, n, **columns, annotators=names, items=items)  # type: ignore[arg-type]

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
        columns: dict[str, list[Array]] = {name: [] for name in ("row", "label", "annotator", "weight", "against")}
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
            columns["weight"].append(np.ones(answers) if part.weight is None else part.weight)
            columns["against"].append(np.zeros(answers, bool) if part.against is None else part.against)
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
            held["against"],
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
        """How many answers each row has."""
        return np.bincount(self.row, minlength=self._n)

    @lazy
    def counts(self) -> Floats:
        """(n, K): the total weight of the answers for each label; "not this label" does not count."""
        positive = slice(None) if self.against is None else ~self.against
        keys = self.row[positive] * self.n_classes + self.label[positive]
        weight = None if self.weight is None else self.weight[positive]
        totals = np.bincount(keys, weights=weight, minlength=self._n * self.n_classes)
        return frozen(totals.astype(float).reshape(self.shape))

    def candidates(self, rule: str = "union", *, missing: Missing = "error") -> LabelSets:
        """The sets of labels that a rule keeps.

        ``"union"`` keeps every label with a vote, ``"at_least:2"`` those with two votes or more, ``"plurality"``
        those with the most votes (ties kept). A row whose answers all say "not this label" keeps the other labels.
        """
        positive = np.arange(len(self.row)) if self.against is None else np.flatnonzero(~self.against)
        who = (np.arange(len(self.row)) if self.annotator is None else self.annotator)[positive]
        weight = None if self.weight is None else self.weight[positive]
        row, codes = constructors.elect(self.row[positive], who, self.label[positive], self.n_classes, rule, weight)
        if self.against is not None:
            mask = np.zeros(self.shape, dtype=bool)
            only = np.setdiff1d(self.row, self.row[positive])  # rows with nothing but "not this label"
            mask[only] = True
            mask[self.row[self.against], self.label[self.against]] = False
            more, labels = np.nonzero(mask)
            order = np.argsort(np.concatenate([row, more]), kind="stable")
            row, codes = np.concatenate([row, more])[order], np.concatenate([codes, labels])[order]
        sizes = np.bincount(row, minlength=self._n)
        return LabelSets.from_codes(self.vocabulary, codes, sizes, absent=sizes == 0, missing=missing)

    def to_columns(self) -> dict[str, Array]:
        """The columns of a long table, from which `from_table` makes the same votes.

        They are item, annotator, label, weight and against; those that would be empty are left out. A row without
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
        for name in ("weight", "against"):
            if getattr(self, name) is not None:
                columns[name] = lines(getattr(self, name))
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

    def share_weights(self) -> Votes:
        """The same answers, where several labels from one annotator on a row share the weight of one answer."""
        if self.annotator is None:
            return self
        _, which, several = np.unique(
            self.row * len(self.annotators) + self.annotator, return_inverse=True, return_counts=True
        )
        if (several == 1).all():
            return self
        return replace(self, weight=frozen((1.0 if self.weight is None else self.weight) / several[which]))

    def with_classes(self, classes: Iterable[Hashable]) -> Votes:
        """The same answers over these classes, in this order."""
        return self.recode(Vocabulary.declare(classes))

    def __getitem__(self, key: Any) -> Votes:
        chosen = row_positions(key, self._n, "Votes are indexed by rows; use .counts to select labels.")
        taken = take_rows(self.sizes, chosen)
        columns = {
            name: frozen(getattr(self, name)[taken])
            for name in ("label", "annotator", "weight", "against")
            if getattr(self, name) is not None
        }
        row = frozen(np.repeat(np.arange(len(chosen)), self.sizes[chosen]))
        items = None if self.items is None else self.items[chosen]
        return replace(self, _n=len(chosen), row=row, items=items, **columns)

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
            [getattr(votes, f.name) for f in fields(Votes) if f.name != "vocabulary"] for votes in (self, other)
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
        by = f" by {len(self.annotators):,} annotators" if len(self.annotators) else ""
        return (
            f"Votes({len(self.row):,} answers{by} on {self._n:,} rows, {self.n_classes:,} classes): {shown}{more}"
        )

    def _repr_html_(self) -> str:
        head = f"{len(self.row):,} answers on {self._n:,} rows over {self.n_classes:,} classes"
        return self._as_html(head, "answers", [self._describe(row) for row in range(min(_SHOWN, self._n))])

    def _describe(self, row: int) -> str:
        first = int(np.searchsorted(self.row, row))
        mine = range(first, first + int(self.sizes[row]))
        weights: dict[str, float] = {}
        for i in mine:
            name = f"{'not ' if self.against is not None and self.against[i] else ''}{self.classes[self.label[i]]}"
            weights[name] = weights.get(name, 0.0) + (1.0 if self.weight is None else float(self.weight[i]))
        return ", ".join(f"{name}: {number:g}" for name, number in weights.items())


def doubt_copies(votes: Votes, where: str = "") -> None:
    """Warns where an annotator gives a row the same answer more than once, as copied lines do."""
    if votes.annotator is None:
        return
    keys = (votes.row * len(votes.annotators) + votes.annotator) * votes.n_classes + votes.label
    if votes.against is not None:
        keys = 2 * keys + votes.against
    order = np.argsort(keys, kind="stable")
    copies = order[1:][keys[order[1:]] == keys[order[:-1]]]
    if len(copies):
        first = copies.min()
        items = np.arange(len(votes)) if votes.items is None else votes.items
        columns = ((votes.annotators, votes.annotator), (items, votes.row), (votes.classes, votes.label))
        who, item, label = (names[code[[first]]].tolist()[0] for names, code in columns)
        problem = (
            f"{where}{who!r} gives {item!r} the label {label!r} more than once ({len(copies):,} answers repeat an "
            "earlier one); each counts as an answer"
        )
        warnings.warn(MisuseWarning(problem, "delete the copies"), stacklevel=3)


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


def _flags(values: Array, name: str, lines: Ints) -> Bools:
    """Booleans, zeros and ones, or their names in text, as booleans."""
    texts = np.char.lower(values.astype(str))
    true, false = np.isin(texts, ["true", "1", "1.0"]), np.isin(texts, ["false", "0", "0.0"])
    if not (true | false).all():
        wrong = int(np.argmin(true | false))
        raise ValueError(f"{name}: line {lines[wrong]} holds {values.tolist()[wrong]!r}, neither true nor false.")
    return true


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
