"""`evaluate`: coverage and size of prediction sets."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import chain
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Bools, Floats, Ints
from setwise._types import Candidates, Column, Truth
from setwise.errors import InputError, MisuseWarning, Remedy, check_length, refuse_names
from setwise.evidence.right_labels import count_needed, read_truth
from setwise.evidence.row_facts import categories, refuse_sets, sets_among
from setwise.evidence.row_names import check_row_names
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import UNKNOWN, Vocabulary, label_array, label_vector, missing_labels
from setwise.ranks import clopper_pearson, share_interval

_SIZE_BINS = ((0, 0), (1, 1), (2, 3), (4, 10), (11, 100), (101, 1000), (1001, None))


def evaluate(
    sets: LabelSets | ArrayLike,
    y: Column = None,
    *,
    candidates: Candidates = None,
    by: Column = None,
    groups: Column = None,
    delta: float = 0.05,
    truth: Truth = None,
    ordered: bool = False,
    **others: Never,
) -> dict[str, Any]:
    """Coverage and size of prediction sets, in all and by size, class and category, as a plain dictionary.

    Parameters
    ----------
    sets
        Prediction sets.
    y
        True labels; rows where it is None or NaN are left out of everything that needs truth. A label
        outside the vocabulary counts as missed and is reported under ``unknown_labels``. With `truth` a row may
        have a set of right labels.
    candidates
        Candidate sets of the same rows: how often the prediction set holds all of them and at least one of
        them, and the interval in which coverage then lies if the truth is a candidate.
    by
        A category per row, for coverage and size by category.
    groups
        Which rows belong together (frames of one film). Intervals then hold for groups that were drawn at random,
        and are None for fewer than 20 groups. A rare group that outweighs all others may escape them.
    delta
        Intervals miss with at most this probability: exactly binomial for independent rows.
    truth
        Where rows have several right labels, how many of them a set must contain to count as covered, as in
        `conformalize`: ``"all"``, ``"one"`` or a share. Coverage by class is that of all rows where it is right.
    ordered
        Whether `classes` have an order. Adds ``distance``, the mean distance from a true label to the nearest
        label in its set, in the unit of the labels where these are numbers, else in steps from class to class;
        ``distance_missed``, that of labels that their set misses; and ``gap_rate``, the share of sets that are no
        interval. An empty set, and a label outside the vocabulary, have no distance.

    Examples
    --------
    >>> from setwise import LabelSets, evaluate
    >>> result = evaluate(LabelSets.from_lists([["cat", "dog"], ["dog"]]), ["cat", "cat"])
    >>> result["coverage"], result["mean_size"], result["singleton_rate"]
    (0.5, 1.5, 0.5)
    >>> sets = LabelSets.from_lists([["cat", "dog"], ["dog"]])
    >>> evaluate(sets, [["cat", "dog"], ["cat", "dog"]], truth="all")["coverage"]
    0.5
    >>> ratings = LabelSets.from_lists([["poor", "fair"], ["fair"]], ["poor", "fair", "good", "great"])
    >>> result = evaluate(ratings, ["poor", "great"], ordered=True)
    >>> result["distance"], result["distance_missed"], result["gap_rate"]
    (1.0, 2.0, 0.0)
    """
    refuse_names(others, alpha="confidence_level", y_true="y", y_pred="sets", y_pred_set="sets")
    if not isinstance(sets, LabelSets) and np.ndim(sets) != 2:
        raise TypeError("sets: expected LabelSets or a mask, one row per example; see LabelSets.from_labels.")
    counts = SetCounts(delta, ordered=ordered)
    counts.add(sets, y, candidates=candidates, by=by, groups=groups, truth=truth)
    return counts.result()


def unknown_labels(count: int, label: Any, row: int) -> str:
    """What is wrong with true labels outside the classes, of which this is the first.

    >>> unknown_labels(3, "owl ", 7)
    "some true labels are in no set at all, and count as missed (3 of them); the first is 'owl ' (row 7)"
    """
    missed = f"some true labels are in no set at all, and count as missed ({count:,} of them)"
    return f"{missed}; the first is {label!r} (row {row})"


class SetCounts:
    """What `evaluate` says of sets that come in batches, of which only counts are kept.

    Examples
    --------
    >>> from setwise import LabelSets
    >>> counts = SetCounts()
    >>> counts.add(LabelSets.from_lists([["cat", "dog"]], ["cat", "dog"]), ["cat"])
    >>> counts.add(LabelSets.from_lists([["dog"]], ["cat", "dog"]), ["cat"])
    >>> counts.result()["coverage"]
    0.5
    """

    def __init__(self, delta: float = 0.05, *, ordered: bool = False) -> None:
        if not 0 < delta < 1:
            raise ValueError(f"delta: {delta} is not between 0 and 1.")
        self.delta, self.ordered = delta, ordered
        self._sizes: Counter[int] = Counter()
        self._vocabulary: Vocabulary | None = None
        self._given = dict.fromkeys(("y", "candidates", "by", "groups"), False)
        self._unknown: tuple[Any, int] | None = None  # the first label that is no class, and its row
        # For each kind of cell and each cell: how many rows, how many of them covered, how many labels in all.
        self._cells: dict[str, Counter[Any]] = {}

    def add(
        self,
        sets: Any,
        y: Any = None,
        *,
        candidates: Any = None,
        by: Any = None,
        groups: Any = None,
        truth: Truth = None,
    ) -> None:
        """Counts some sets over the same classes; arguments as in `evaluate`, and the same ones every time."""
        check_row_names(sets=sets, y=y, candidates=candidates, by=by, groups=groups)
        sets = sets if isinstance(sets, LabelSets) else LabelSets.from_mask(sets)
        if y is None and candidates is None:
            raise ValueError("evaluate: give y (true labels) or candidates (candidate sets).")
        if y is None and truth is not None:
            raise InputError(
                "truth: counts right labels, and no row has any", Remedy("y", None, "for these"), "leave it out"
            )
        if self._vocabulary is not None and not self._vocabulary.same_order(sets.vocabulary):
            raise ValueError("sets: these have other classes than those before; declare the same for all.")
        self._vocabulary = sets.vocabulary
        given = {"y": y, "candidates": candidates, "by": by, "groups": groups}
        self._given |= {name: value is not None for name, value in given.items()}
        sizes, counts = np.unique(sets.sizes, return_counts=True)
        self._sizes.update(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
        if self.ordered:
            sets.vocabulary.check_ordered()
            self._count("gaps", np.zeros(len(sets), dtype=np.intp), [None], _gaps(sets), sets.sizes)
        category = None if by is None else categories(by, len(sets))
        group = None if groups is None else categories(groups, len(sets), "groups")
        if y is not None:
            self._add_truth(sets, y, truth, category, group)
        if candidates is not None:
            self._add_candidates(sets, candidates, category, group)

    def include(self, other: SetCounts) -> None:
        """Counts what another counted, of later sets over the same classes."""
        if other._vocabulary is None:
            return
        if self._vocabulary is not None and not self._vocabulary.same_order(other._vocabulary):
            raise ValueError("sets: these have other classes than those before; declare the same for all.")
        self._vocabulary = other._vocabulary
        self._given = {name: given or other._given[name] for name, given in self._given.items()}
        if other._unknown is not None and self._unknown is None:
            self._unknown = other._unknown[0], other._unknown[1] + sum(self._sizes.values())
        self._sizes.update(other._sizes)
        for kind, cells in other._cells.items():
            self._cells.setdefault(kind, Counter()).update(cells)

    def result(self) -> dict[str, Any]:
        """What `evaluate` returns, for all sets so far."""
        n = sum(self._sizes.values())
        if n == 0:
            raise ValueError("sets: no rows to evaluate.")
        sizes = np.array(sorted(self._sizes))
        upto = np.cumsum([self._sizes[size] for size in sizes.tolist()])
        middle = sizes[np.searchsorted(upto, [(n - 1) // 2, n // 2], side="right")]
        result: dict[str, Any] = {
            "n": n,
            "mean_size": sum(size * count for size, count in self._sizes.items()) / n,
            "median_size": float(middle.mean()),
            "empty_rate": self._sizes[0] / n,
            "singleton_rate": self._sizes[1] / n,
        }
        if self._given["y"]:
            result |= self._truth()
        if self.ordered:
            result["gap_rate"] = self._cell("gaps", None)[1] / n
        if self._given["candidates"]:
            result |= self._rates("held", None)
            if self._given["by"]:
                names = self._names("held by category")
                result["candidates_by_category"] = {name: self._rates("held by category", name) for name in names}
        return result

    # ---------------------------------------------------------------- counting

    def _add_truth(
        self, sets: LabelSets, y: Any, truth: Truth, category: Array | None, group: Array | None
    ) -> None:
        known, where, labels = _right_labels(y, len(sets), truth)
        inside, sizes = sets[known[where]].contains(labels), sets.sizes[known]
        found, right = (np.bincount(where, weights, minlength=len(known)) for weights in (inside, None))
        covered = found >= count_needed(right, read_truth("all" if truth is None else truth))
        codes = sets.vocabulary.encode(labels)
        if (codes == UNKNOWN).any() and self._unknown is None:
            first = int(np.argmax(codes == UNKNOWN))
            row = sum(self._sizes.values()) - len(sets) + int(known[where[first]])
            self._unknown = labels.tolist()[first], row
        if self.ordered:
            is_class = codes != UNKNOWN
            apart = _distances(sets, known[where][is_class], codes[is_class])
            apart = apart[np.isfinite(apart)]
            self._count("apart", np.zeros(len(apart), dtype=np.intp), [None], apart > 0, apart)
        bins = np.array([low for low, _ in _SIZE_BINS])
        everything = np.zeros(len(known), dtype=np.intp)
        self._count("all", everything, [None], covered, sizes, None if group is None else group[known])
        self._count("size", np.searchsorted(bins, sizes, side="right") - 1, list(range(len(bins))), covered, sizes)
        self._count(
            "class",
            np.where(codes == UNKNOWN, sets.n_classes, codes),
            list(range(sets.n_classes + 1)),
            inside,
            sizes[where],
        )
        if category is not None:
            vocabulary = Vocabulary.infer(category)
            names = vocabulary.classes.tolist()
            self._count("category", vocabulary.encode(category)[known], names, covered, sizes)

    def _add_candidates(
        self, sets: LabelSets, candidates: Any, category: Array | None, group: Array | None
    ) -> None:
        own = as_candidates(candidates, sets.n_classes, sets.classes)
        check_length("candidates", len(own), len(sets), "sets")
        if (own.sizes == 0).any():
            row = int(np.flatnonzero(own.sizes == 0)[0])
            raise ValueError(f"candidates: row {row} is empty; leave it out of both, or use filled().")
        inside, touched = own.issubset(sets), ((own & sets).sizes > 0).astype(np.int64)
        self._count("held", np.zeros(len(sets), dtype=np.intp), [None], inside, touched, group)
        if category is not None:
            vocabulary = Vocabulary.infer(category)
            codes = vocabulary.encode(category)
            self._count("held by category", codes, vocabulary.classes.tolist(), inside, touched, group)

    def _count(
        self, kind: str, codes: Ints, names: list[Any], hits: Bools, totals: Array, group: Array | None = None
    ) -> None:
        """Adds to the cells of one kind how many rows there are, how many hits, and a total; also by group."""
        if group is not None:
            known = Vocabulary.infer(group)
            pairs, place = np.unique(codes * len(known) + known.encode(group), return_inverse=True)
            both = [
                (names[pair // len(known)], known.classes.tolist()[pair % len(known)]) for pair in pairs.tolist()
            ]
            self._count(f"{kind} in groups", place, both, hits, totals)
        cells = self._cells.setdefault(kind, Counter())
        for place, weights in enumerate((None, hits, totals)):
            found = np.bincount(codes, weights=weights, minlength=len(names))
            exact = found if found.dtype.kind == "f" and (found % 1).any() else found.astype(np.int64)
            cells.update({(names[i], place): exact[i].item() for i in np.flatnonzero(found).tolist()})

    # ---------------------------------------------------------------- what was counted

    def _cell(self, kind: str, name: Any) -> tuple[int, int, int]:
        cells = self._cells[kind]
        return cells[name, 0], cells[name, 1], cells[name, 2]

    def _names(self, kind: str) -> list[Any]:
        """The cells of one kind that rows are in, in order."""
        return list(Vocabulary.infer([name for name, place in self._cells[kind] if place == 0]).classes.tolist())

    def _interval(self, kind: str, name: Any, place: int = 1) -> tuple[float, float] | None:
        """The interval of a share, of the hits or of the totals."""
        if not self._given["groups"]:
            cell = self._cell(kind, name)
            return clopper_pearson(cell[place], cell[0], self.delta)
        cells = self._cells[f"{kind} in groups"]
        found = [(cells[pair, place], n) for (pair, what), n in cells.items() if what == 0 and pair[0] == name]
        hits, sizes = np.array(found).T
        return share_interval(hits, sizes, self.delta)

    def _share(self, kind: str, name: Any) -> dict[str, float]:
        n, hits, total = self._cell(kind, name)
        return {"n": n, "coverage": hits / n, "mean_size": total / n}

    def _truth(self) -> dict[str, Any]:
        n, covered, _ = self._cell("all", None)
        if n == 0:
            problem = "y: no row has a true label"
            raise InputError(problem, Remedy("candidates", None, "to compare with candidate sets"))
        assert self._vocabulary is not None  # noqa: S101 - there are rows
        classes = self._vocabulary.classes.tolist()
        unknown = self._cell("class", len(classes))[0]
        if self._unknown is not None:
            way = f"write labels as the sets do ({classes[0]!r})"
            warnings.warn(MisuseWarning(unknown_labels(unknown, *self._unknown), way), stacklevel=4)
        bins = [
            f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}" for low, high in _SIZE_BINS
        ]
        by_size = {bins[i]: self._share("size", i) for i in self._names("size")}
        by_class: dict[Any, dict[str, Any]] = {
            classes[i]: self._share("class", i)
            | {"coverage_interval": None if self._given["groups"] else self._interval("class", i)}
            for i in self._names("class")
            if i < len(classes)
        }
        by_class = dict(sorted(by_class.items(), key=lambda item: (item[1]["coverage"], -item[1]["n"])))
        worst = next(iter(by_class.items()), None)
        result: dict[str, Any] = {
            "n_truth": n,
            "coverage": covered / n,
            "coverage_interval": self._interval("all", None),
            "unknown_labels": unknown,
            "by_size": by_size,
            "worst_size_coverage": min(cell["coverage"] for cell in by_size.values()),
            "by_class": by_class,
            "worst_class": None if worst is None else {"label": worst[0], **worst[1]},
        }
        if self.ordered:
            n, missed, total = self._cell("apart", None)
            result |= {"distance": total / n if n else None, "distance_missed": total / missed if missed else None}
        if self._given["by"]:
            result["by_category"] = {name: self._share("category", name) for name in self._names("category")}
        return result

    def _rates(self, kind: str, name: Any) -> dict[str, Any]:
        n, inside, touched = self._cell(kind, name)
        low, high = self._interval(kind, name), self._interval(kind, name, 2)
        return {
            "all_candidates_rate": inside / n,
            "any_candidate_rate": touched / n,
            "coverage_bracket": None if low is None or high is None else (low[0], high[1]),
        }


def _right_labels(y: Any, n: int, truth: Truth) -> tuple[Ints, Ints, Array]:
    """The rows of which right labels are known, and all these labels, each with the place of its row among them."""
    rows = sets_among(y)
    if rows is not None and truth is None:
        refuse_sets(rows, "y")
    labels = np.array([]) if rows is not None else label_vector(y, "y")
    given = len(labels) if rows is None else len(rows)
    if given != n:
        raise ValueError(f"y: {given} labels for {n} sets; give one per row.")
    if rows is None:
        known = np.flatnonzero(~missing_labels(labels))
        return known, np.arange(len(known)), labels[known]
    known = np.array([i for i, row in enumerate(rows) if row is not None], dtype=np.intp)
    listed = [list(dict.fromkeys(rows[i])) for i in known]
    if [] in listed:
        raise ValueError(f"y: row {known[listed.index([])]} has no right label; give None for rows to leave out.")
    where, labels = np.repeat(np.arange(len(known)), [*map(len, listed)]), label_array([*chain(*listed)])
    if (gone := missing_labels(labels)).any():
        row = known[where[gone.argmax()]]
        raise InputError(f"y: row {row}: a label is missing (None or NaN)", "remove it from the set")
    return known, where, labels


def _gaps(sets: LabelSets) -> Bools:
    """Which sets lack a class between two of their own."""
    (indptr, indices), sizes = sets.rows, sets.sizes
    some = np.flatnonzero(sizes)
    found = np.zeros(len(sets), dtype=bool)
    found[some] = indices[indptr[1:][some] - 1] - indices[indptr[some]] >= sizes[some]
    return found


def _distances(sets: LabelSets, rows: Ints, codes: Ints) -> Floats:
    """How far some rows' labels are from the nearest ones in their sets; infinite for an empty set."""
    scale, indices = sets.vocabulary.scale, sets.rows[1]
    keys = np.repeat(np.arange(len(sets)), sets.sizes) * sets.n_classes + indices
    place = np.searchsorted(keys, rows * sets.n_classes + codes)
    found = np.full(len(rows), np.inf)
    for side in (place - 1, place):  # the labels before and after its own
        inside = np.flatnonzero((side >= 0) & (side < len(keys)))
        inside = inside[keys[side[inside]] // sets.n_classes == rows[inside]]
        apart = np.abs(scale[indices[side[inside]]] - scale[codes[inside]])
        found[inside] = np.minimum(found[inside], apart)
    return found


def groups_of_new_rows(groups: Column, n: int, *, calibrated: bool) -> Column:
    """Which of n new rows belong together: all, for what is known, where calibration rows did and nobody says."""
    return np.zeros(n, dtype=np.intp) if groups is None and calibrated else groups
