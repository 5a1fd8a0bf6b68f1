"""The features of the calibration rows, kept small: enough to see later that those of new rows differ.

Of a column of numbers the counts at up to 32 of its values are kept, which is all that the Kolmogorov–Smirnov test
needs; of a column of text the counts of its values, if there are at most 100. A missing value counts by itself.

Noise moves each feature a little and all of them together far. So rows are also compared by their distance from
the rows that the model learned from: the mean of |x − mean|/deviation over their numbers, at most 10 each, with
mean and deviation of the learning rows. It depends on the row alone, so that calibration and new rows from one
source have one distribution.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, check_sizes
from setwise.labels.vocabulary import missing_labels
from setwise.storage.container import read_container, reading_untrusted, write_container
from setwise.storage.directory import Source
from setwise.storage.stored_arrays import check_array
from setwise.two_samples import Points, counts_at, fisher, kolmogorov_smirnov

FORMAT, VERSION = "setwise-feature-summary", 2
MOST_FEATURES = 1000
"""Wider rows are not summarised."""
_POINTS = 32
_VALUES = 100
_STEPS = 1024  # points at which distances are compared
_FARTHEST = 10.0
_KINDS: dict[type, str] = {Points: "points", Counter: "values"}
_ROWS, _TAKEN = 8192, 2048  # of so many rows, so many are looked at


@dataclass(frozen=True, eq=False)
class Family:
    """Tests of one kind: their p-values, and a sentence about each."""

    p_values: Floats
    sentence: Callable[[int], str]


@dataclass(frozen=True, eq=False)
class Reference:
    """Mean and standard deviation of each feature in the rows that were learned from; NaN of a column of text."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, X: Any) -> Reference | None:
        """Of rows in a table or a dense matrix; None where X is something else."""
        named = _columns(X)
        if named is None or len(named[0][1]) == 0:
            return None
        found = []
        for _, values in named:
            numbers = _numbers(values)
            numbers = np.empty(0) if numbers is None else numbers[np.isfinite(numbers)]
            found.append((numbers.mean(), numbers.std()) if len(numbers) else (np.nan, np.nan))
        mean, deviation = np.array(found).T
        return cls(mean, deviation)

    def distances(self, X: Any) -> Floats | None:
        """How far each row lies from the mean, in standard deviations; None where it has other columns."""
        named = _columns(X)
        if named is None or len(named) != len(self.mean):
            return None
        total, present = np.zeros(len(named[0][1])), np.zeros(len(named[0][1]))
        for (_, values), mean, deviation in zip(named, self.mean, self.deviation, strict=True):
            numbers = None if np.isnan(mean) else _numbers(values)
            if numbers is None:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                far = np.where(numbers == mean, 0.0, np.abs(numbers - mean) / deviation)
            seen = ~np.isnan(numbers)
            total[seen] += np.minimum(far[seen], _FARTHEST)
            present += seen
        return total / np.maximum(present, 1)


@dataclass(frozen=True, eq=False)
class FeatureSummary:
    """The features of calibration rows."""

    names: tuple[str, ...]
    columns: tuple[Points | Counter[str] | None, ...]  # counts at points, or of values; None of too many texts
    rows: int
    reference: Reference | None = None  # what distances are taken from; None without known learning rows
    distances: Floats | None = None  # those of the calibration rows

    @classmethod
    def of(cls, X: Any, reference: Reference | None = None) -> FeatureSummary | None:
        """Of rows in a table or a dense matrix; None where X is something else, or has more columns than 1,000."""
        named = _columns(X)
        if named is None:
            return None
        columns = tuple(_summary(values) for _, values in named)
        distances = None if reference is None else reference.distances(X)
        kept = None if distances is None else reference
        return cls(tuple(name for name, _ in named), columns, len(named[0][1]), kept, distances)

    def rename(self, names: Sequence[str] | None) -> FeatureSummary:
        """The same with other names of its columns, where there are as many."""
        if names is None or len(names) != len(self.names):
            return self
        return replace(self, names=tuple(map(str, names)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes it as one file."""
        kinds = [_KINDS.get(type(column)) for column in self.columns]
        header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "rows": self.rows, "names": self.names}
        header |= {"kinds": kinds, "values": [dict(c) for c in self.columns if isinstance(c, Counter)]}
        points = [column for column in self.columns if isinstance(column, Points)]
        empty = np.empty(0)
        arrays: dict[str, Array] = {
            "lengths": np.array([len(column.values) for column in points], dtype=np.int64),
            "n": np.array([column.n for column in points], dtype=np.int64),
            "points": np.concatenate([empty, *(column.values for column in points)]),
            "below": np.concatenate([empty, *(column.below for column in points)]).astype(np.int64),
            "upto": np.concatenate([empty, *(column.upto for column in points)]).astype(np.int64),
        }
        if self.reference is not None and self.distances is not None:
            arrays |= {"mean": self.reference.mean, "deviation": self.reference.deviation}
            arrays["distances"] = self.distances
        write_container(path, header, arrays)

    @classmethod
    def read(cls, source: Source) -> FeatureSummary:
        """Reads what `write` wrote; refuses what is not of one piece."""
        header, arrays = read_container(source, FORMAT, VERSION)
        with reading_untrusted(source, FORMAT):
            names, kinds, rows = header["names"], header["kinds"], int(header["rows"])
            values = iter([Counter({str(k): int(v) for k, v in each.items()}) for each in header["values"]])
            points = _split(arrays)
            held: dict[str | None, Iterator[Any]] = {"points": points, "values": values, None: repeat(None)}
            columns = tuple([next(held[kind], None) for kind in kinds])
            if len(names) != len(kinds) or not 0 <= rows < 2**63:
                raise ValueError("its parts do not belong together")
            if "distances" not in arrays:
                return cls(tuple(map(str, names)), columns, rows)
            distances: Floats = check_array(arrays["distances"], "distances", "f", (rows,), 0)
            shape = (len(names),)
            mean = check_array(arrays["mean"], "mean", "f", shape, gaps=True)
            deviation = check_array(arrays["deviation"], "deviation", "f", shape, 0, gaps=True)
            return cls(tuple(map(str, names)), columns, rows, Reference(mean, deviation), distances)


class FeatureTally:
    """New rows beside the summary of the calibration rows."""

    def __init__(self, summary: FeatureSummary) -> None:
        self.summary = summary
        self.remarks: list[str] = []
        self.rows = 0
        size = [len(column.values) if isinstance(column, Points) else 0 for column in summary.columns]
        self._counts = [(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)) for n in size]
        self._values: list[Counter[str]] = [Counter() for _ in summary.columns]
        self._many = np.zeros(len(size), dtype=bool)
        self._present = np.zeros(len(size), dtype=np.int64)
        self._far = None if summary.distances is None else Points.of(summary.distances, _STEPS)
        steps = 0 if self._far is None else len(self._far.values)
        self._far_counts = np.zeros((2, steps), dtype=np.int64)
        self._far_total = 0.0

    def add(self, X: Any) -> None:
        """Counts some rows: of every 8,192 rows, 2,048 at equal steps."""
        named = _columns(X)
        if named is None or len(named) != len(self.summary.columns):
            self.remarks = ["features, because these rows are not a table like that of the calibration rows"]
            return
        rows = len(named[0][1])
        taken = np.zeros(rows, dtype=bool)
        for start in range(0, rows, _ROWS):
            taken[start : start + _ROWS : -(-min(rows - start, _ROWS) // _TAKEN)] = True
        self.rows += int(taken.sum())
        distances = None if self.summary.reference is None else self.summary.reference.distances(X)
        if distances is not None and self._far is not None:
            self._far_counts += np.stack(counts_at(self._far.values, np.sort(distances[taken])))
            self._far_total += float(distances[taken].sum())
        for i, (column, (_, every)) in enumerate(zip(self.summary.columns, named, strict=True)):
            values = every[taken]
            if isinstance(column, Points):
                numbers = _numbers(values)
                if numbers is None and column.n == 0:  # all were missing: numbers or text, nobody knows
                    self._present[i] += len(_texts(values))
                    continue
                if numbers is None:
                    self.remarks = [f"features, because {self.summary.names[i]!r} was a column of numbers"]
                    return
                present = numbers[~np.isnan(numbers)]
                below, upto = counts_at(column.values, np.sort(present))
                self._counts[i][0][:] += below
                self._counts[i][1][:] += upto
                self._present[i] += len(present)
            elif column is not None:
                found = _texts(values)
                self._values[i].update(found)
                self._present[i] += len(found)
                self._forget_many(i, column)

    def export(self) -> dict[str, Any]:
        """What was counted so far, for `include` elsewhere."""
        held = {
            name: getattr(self, name) for name in ("remarks", "rows", "_counts", "_values", "_many", "_present")
        }
        return held | {"far": (self._far_counts, self._far_total)}

    def include(self, held: Mapping[str, Any]) -> None:
        """Adds what was counted elsewhere of other rows beside the same summary."""
        self.remarks = self.remarks or held["remarks"]
        self.rows += held["rows"]
        self._present += held["_present"]
        self._many |= held["_many"]
        self._far_counts += held["far"][0]
        self._far_total += held["far"][1]
        for i, column in enumerate(self.summary.columns):
            for own, other in zip(self._counts[i], held["_counts"][i], strict=True):
                own += other  # noqa: PLW2901 - in place
            self._values[i].update(held["_values"][i])
            self._forget_many(i, column)

    def _forget_many(self, i: int, column: Points | Counter[str] | None) -> None:
        """Of a column with many values only those of the calibration rows are counted."""
        if isinstance(column, Counter):
            self._many[i] |= len(column.keys() | self._values[i].keys()) > _VALUES
            if self._many[i]:
                self._values[i] = Counter({value: self._values[i][value] for value in column})

    def tests(self) -> Iterator[Family]:
        """The tests of distances, of numbers, of values of text, and of missing entries."""
        if self.rows == 0 or self.summary.rows == 0 or self.remarks:
            return
        yield self._distances()
        yield self._numbers()
        yield self._texts()
        yield self._missing()

    def _distances(self) -> Family:
        if self._far is None or self.summary.distances is None:
            return Family(np.empty(0), str)
        below, upto = self._far_counts
        gap, _ = self._far.gap(below, upto, self.rows)
        new, old = self._far_total / self.rows, self.summary.distances.mean()
        told = (
            f"the features of a row lie {new:.3f} standard deviations from the average of those learned from, "
            f"{old:.3f} in the calibration rows"
        )
        return Family(kolmogorov_smirnov([gap], [self._far.n], [self.rows]), lambda _: told)

    def _numbers(self) -> Family:
        here = [(i, c) for i, c in enumerate(self.summary.columns) if isinstance(c, Points) and c.n]
        here = [(i, column) for i, column in here if self._present[i]]
        gaps = [column.gap(*self._counts[i], int(self._present[i])) for i, column in here]
        if not here:
            return Family(np.empty(0), str)
        sizes = ([column.n for _, column in here], [int(self._present[i]) for i, _ in here])
        p_values = kolmogorov_smirnov([gap for gap, _ in gaps], *sizes)

        def sentence(test: int) -> str:
            (i, column), (_, at) = here[test], gaps[test]
            new, old = self._counts[i][1][at] / self._present[i], column.upto[at] / column.n
            value = f"{column.values[at]:.4g}"
            return f"{self._name(i)} is at most {value} in {_shares(new, old)}"

        return Family(p_values, sentence)

    def _texts(self) -> Family:
        found: list[tuple[int, str]] = []
        p_values = []
        for i, column in enumerate(self.summary.columns):
            if not isinstance(column, Counter):
                continue
            values = sorted(column.keys() | self._values[i].keys())
            if not column or not self._present[i]:
                continue
            old, new = (np.array([counts[value] for value in values]) for counts in (column, self._values[i]))
            n, m = column.total(), int(self._present[i])
            # There are at most as many distinct values as rows, which is what a choice among them has to pay for.
            paid = (n + m) / len(values) if self._many[i] else 1.0
            p_values.append(np.minimum(fisher(old, n, new, m) * paid, 1.0))
            found += [(i, value) for value in values]

        def sentence(test: int) -> str:
            i, value = found[test]
            column: Any = self.summary.columns[i]
            new, old = self._values[i][value] / self._present[i], column[value] / column.total()
            return f"{self._name(i)} is {value!r} in {_shares(new, old)}"

        return Family(np.concatenate(p_values) if p_values else np.empty(0), sentence)

    def _missing(self) -> Family:
        columns = self.summary.columns
        old: Ints = self.summary.rows - np.array([_present(column) for column in columns])
        new = self.rows - self._present
        some: Bools = (old + new > 0) & np.array([column is not None for column in columns])
        where = np.flatnonzero(some)

        def sentence(test: int) -> str:
            i = int(where[test])
            return f"{self._name(i)} is missing in {_shares(new[i] / self.rows, old[i] / self.summary.rows)}"

        return Family(fisher(old[some], self.summary.rows, new[some], self.rows), sentence)

    def _name(self, i: int) -> str:
        return f"feature {self.summary.names[i]!r}"


def _summary(values: Array) -> Points | Counter[str] | None:
    numbers = _numbers(values)
    if numbers is not None:
        return Points.of(numbers[~np.isnan(numbers)], _POINTS)
    counts = Counter(_texts(values))
    return counts if len(counts) <= _VALUES else None


def _shares(new: float, old: float) -> str:
    """In how many new rows, and in how many calibration rows."""
    return f"{new:.1%} of the new rows and {old:.1%} of the calibration rows"


def _present(column: Points | Counter[str] | None) -> int:
    """How many entries are not missing."""
    if column is None:
        return 0
    return column.n if isinstance(column, Points) else column.total()


def _columns(X: Any) -> list[tuple[str, Array]] | None:
    """The columns of a table or a dense matrix by their names; None of anything else."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        if not 0 < len(names) <= MOST_FEATURES:
            return None
        return [(str(name), np.asarray(X[name])) for name in names]
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError:
            return None
    if not isinstance(X, np.ndarray) or X.ndim != 2 or not 0 < X.shape[1] <= MOST_FEATURES:
        return None
    return [(str(i), column) for i, column in enumerate(X.T)]


def _numbers(values: Array) -> Floats | None:
    """The numbers of a column, NaN where one is missing; None where it holds something else."""
    if values.dtype.kind == "O":
        present = ~missing_labels(values)
        if any(isinstance(value, str) for value in values[present]):
            return None
        plain = np.full(len(values), np.nan)
        try:
            plain[present] = values[present].astype(np.float64)
        except (TypeError, ValueError):
            return None
        return plain
    return values.astype(np.float64) if values.dtype.kind in "biuf" else None


def _texts(values: Array) -> list[str]:
    """The values of a column as text, without the missing ones; empty text is missing."""
    return [text for value in values[~missing_labels(values)].tolist() if (text := str(value))]


def _split(arrays: dict[str, Array]) -> Iterator[Points]:
    n = arrays["n"]
    lengths = check_array(arrays["lengths"], "lengths", "iu", n.shape, 0)
    entries = len(arrays["points"])
    check_sizes(lengths, entries)
    check_array(n, "n", "iu", n.shape, 0)
    bounds: dict[str, tuple[str, float]] = {"points": ("f", -np.inf), "below": ("iu", 0), "upto": ("iu", 0)}
    parts = [check_array(arrays[name], name, kinds, (entries,), low) for name, (kinds, low) in bounds.items()]
    ends = np.cumsum(lengths)[:-1]
    for values, below, upto, rows in zip(*(np.split(part, ends) for part in parts), n.tolist(), strict=False):
        yield Points(values, below, upto, rows)
