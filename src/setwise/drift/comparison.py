"""Whether new rows are like the calibration rows, as far as the model's answers and features tell.

Calibration and new rows are exchangeable if they come from one source. Then the most probable label, its
probability and every feature have one distribution in both, which is tested: the probability by Kolmogorov–Smirnov,
each label by Fisher's exact test, features as in `feature_summary`; within categories, whose mix may change; of
rows in groups one value per group. Bonferroni over the kinds of tests and, within a kind, over its tests: rows from
one source are called different with probability at most `LEVEL`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from setwise._arrays import Floats, Ints
from setwise._types import Candidates, Column, Features
from setwise.calibration.base import BaseCalibration
from setwise.calibration.new_rows import NewRows
from setwise.calibration.pooled import AnyCalibration
from setwise.drift.feature_summary import Family, FeatureSummary, FeatureTally
from setwise.errors import InputError
from setwise.evidence.row_facts import categories
from setwise.findings import Finding, format_p_value
from setwise.guarantees import Guarantee, format_lines
from setwise.labels.vocabulary import Vocabulary
from setwise.ranks import Level
from setwise.two_samples import Points, fisher, kolmogorov_smirnov

LEVEL = 0.01
"""Rows from one source are called different with at most this probability."""
_ALL, _STEP = 2**17, 8  # rows of a stream that are all counted, and the step at which others are
_MOST, _SHOWN = 32, 3  # findings that are kept, and that are named in a sentence


@dataclass(frozen=True, eq=False)
class Comparison:
    """Whether new rows are like the calibration rows: one look, which errs in 1 of 100 batches that are.

    Of many batches from one source some are called different by chance; `monitor` watches rows as they arrive.

    Attributes
    ----------
    p_value
        How probable a difference as large as the largest one seen is if all rows come from one source; corrected
        for the number of tests. None where nothing could be compared.
    findings
        What differs: each with its p-value, corrected alike, and a sentence; the most certain first.
    remarks
        What was not compared, and why.
    n, m
        How many calibration rows (or groups) and new ones were compared.
    used
        What shows that new rows were learned from or calibrated on.
    left_out
        How many new rows of a long stream were not compared.
    """

    p_value: float | None
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]
    n: int
    m: int
    calibration: AnyCalibration | None = field(default=None, repr=False)
    used: Finding | None = None
    left_out: int = 0

    @property
    def refuted(self) -> bool:
        """Whether these are no new rows from the same source: at the level of 1 %, or because they were used."""
        return self.used is not None or (self.p_value is not None and self.p_value < LEVEL)

    @property
    def differs(self) -> Finding | None:
        """What shows that these are no new rows from the same source, the most certain findings in one."""
        if self.used is not None or not self.refuted or self.p_value is None:
            return self.used
        return Finding(self.p_value, f"{self._seen}; {format_p_value(self.p_value)}")

    @property
    def _seen(self) -> str:
        more = len(self.findings) - _SHOWN
        named = "; ".join(finding.sentence for finding in self.findings[:_SHOWN])
        return f"{named}; and {more:,} more" if more > 0 else named

    def guarantee(self, confidence_level: Level = 0.9) -> Guarantee:
        """What may be claimed for these rows: nothing that rests on the same source, where that is refuted."""
        if self.calibration is None:
            raise ValueError("guarantee: this comparison was read from a file, without the calibration.")
        calibration = self.calibration.withdraw(self.differs) if self.differs else self.calibration
        return calibration.guarantee(confidence_level)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data, ready for JSON."""
        return {
            "p_value": self.p_value,
            "refuted": self.refuted,
            "findings": [asdict(found) for found in self.findings],
            "remarks": list(self.remarks),
            "calibration_rows": self.n,
            "new_rows": self.m,
            "left_out": self.left_out,
            "used": None if self.used is None else asdict(self.used),
            "text": self.sentence,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Comparison:
        """A comparison from what `to_dict` gave, without the calibration."""
        findings = tuple(Finding.from_dict(found) for found in plain["findings"])
        plain = {"left_out": 0, **plain}  # of a file of 0.2
        rows = int(plain["calibration_rows"]), int(plain["new_rows"])
        used = None if plain["used"] is None else Finding.from_dict(plain["used"])
        more: dict[str, Any] = {"used": used, "left_out": int(plain["left_out"])}
        made = cls(plain["p_value"], findings, tuple(plain["remarks"]), *rows, **more)
        if {name for name, value in made.to_dict().items() if plain[name] != value} - {"text"}:
            raise ValueError("its entries are not those of a comparison")
        return made

    @property
    def headline(self) -> str:
        """What was found, in a sentence."""
        if self.used is not None:
            return f"{self.used}."
        if self.p_value is None:
            return "These rows were not compared with the calibration rows."
        what = "differ" if self.refuted else "show no difference"
        p = format_p_value(self.p_value)
        among = f"; {self.m:,} of them were compared" if self.left_out else ""
        return f"The {self.m + self.left_out:,} new rows {what} from the {self.n:,} calibration rows ({p}{among})."

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """What is printed below the headline: labels and texts, what is guaranteed first."""
        compared = self.used is None and self.p_value is not None
        lines = [("Guaranteed", "nothing for these rows.")] if self.refuted else []
        if self.refuted and compared:
            lines += [("Seen", f"{self._seen}.")]
            lines += [("Do next", "verify some of the new rows, drawn at random, and calibrate again with them.")]
        elif compared:
            lines += [("Assumed", "new rows come from the same source. A small difference may go unnoticed.")]
        if compared:
            chance = "at most 1 of 100 batches from the same source is called different by chance."
            lines += [("Note", f"{chance} For many batches, use monitor() in Python.")]
        return (*lines, *(("Not compared", f"{remark}.") for remark in self.remarks))

    @property
    def sentence(self) -> str:
        """All of it in one line, as warnings need it."""
        return " ".join([self.headline, *(f"{label}: {text}" for label, text in self.lines)])

    def __str__(self) -> str:
        return "\n".join([self.headline, *format_lines(self.lines)])


class RowTally:
    """New rows beside calibration rows, batch by batch, of which only counts are kept.

    Rows are compared within each category, where the calibration has any, unless `by_category` is false.
    """

    def __init__(
        self, calibration: AnyCalibration, features: FeatureSummary | None = None, *, by_category: bool = True
    ) -> None:
        self._calibration = calibration
        first = calibration.parts[0]
        self._grouped = first.evidence.group is not None
        self._remarks: dict[str, None] = {}
        self._left_out = 0
        if first.evidence.weight is not None:
            self._remarks.setdefault("calibrated with weights, which declare how new rows differ")
        elif first.judgement.selection:
            self._remarks.setdefault(first.judgement.selection)
        self._apart = bool(self._remarks)
        self._tallies = (
            [] if self._apart else [_PartTally(part, by_category=by_category) for part in calibration.parts]
        )
        plain = not self._apart and not self._grouped and first.category is None
        self._summarised = features is not None
        self._features = FeatureTally(features) if features is not None and plain else None
        if features is not None and not plain and not self._apart:
            self._remarks.setdefault("features, which are compared for rows without groups and categories")

    def add(
        self,
        probabilities: Any,
        *,
        by: Column = None,
        candidates: Candidates = None,
        groups: Column = None,
        X: Features | None = None,
        first_row: int | None = None,
    ) -> RowTally:
        """Counts some new rows; the rows of a group come together. Arguments as in `Calibration.compare`.

        `first_row` is the number of the first one in a stream, of which all rows up to 131,072 are counted, and
        then every eighth: a difference that more would show is too small to matter.
        """
        if self._apart:
            return self
        parts = self._calibration.parts
        given = [probabilities] if len(parts) == 1 else probabilities
        if first_row is not None and groups is None and candidates is None:
            numbers = first_row + np.arange(len(given[0]))
            taken = np.flatnonzero((numbers < _ALL) | (numbers % _STEP == 0))
            if len(taken) < len(numbers):
                self._left_out += len(numbers) - len(taken)
                given, by = [matrix[taken] for matrix in given], None if by is None else np.asarray(by)[taken]
        if len(given) != len(parts):
            raise ValueError(f"probabilities: {len(given)} matrices for {len(parts)} folds.")
        rows = [
            read_new_rows(part, matrix, by=by, candidates=candidates)
            for part, matrix in zip(parts, given, strict=True)
        ]
        return self.add_read(rows, groups=groups, X=X)

    def add_read(self, rows: Sequence[NewRows], *, groups: Any = None, X: Any = None) -> RowTally:
        """Counts some new rows as each part of the calibration has read them."""
        if self._apart:
            return self
        if groups is not None and not self._grouped:
            raise InputError("groups: calibrated without groups", "pass groups to conformalize too")
        if self._grouped and groups is None:
            self._remarks.setdefault("calibrated by groups, and the new rows came without theirs (groups)")
            self._tallies = []
        for tally, read in zip(self._tallies, rows, strict=False):
            tally.add(read, groups)
        if X is not None and self._features is not None:
            self._features.add(X)
        elif X is not None and not self._summarised:
            kept = "of which a model keeps a summary only for tables of up to 1,000 columns"
            self._remarks.setdefault(f"features, {kept}")
        return self

    def export(self) -> dict[str, Any]:
        """What was counted so far as plain data, for `include` elsewhere."""
        features = None if self._features is None else self._features.export()
        return {
            "remarks": list(self._remarks),
            "left_out": self._left_out,
            "tallies": [t.export() for t in self._tallies],
            "features": features,
        }

    def include(self, counted: Mapping[str, Any]) -> None:
        """Adds what was counted elsewhere of other rows beside the same calibration; in any order."""
        self._remarks |= dict.fromkeys(counted["remarks"])
        self._left_out += counted["left_out"]
        self._tallies = self._tallies[: len(counted["tallies"])]  # none of rows that cannot be compared
        for tally, held in zip(self._tallies, counted["tallies"], strict=False):
            tally.include(held)
        if self._features is not None and counted["features"] is not None:
            self._features.include(counted["features"])

    def compare(self) -> Comparison:
        """What the rows so far show."""
        families = [_probabilities(self._tallies), _labels(self._tallies)]
        if self._features is not None:
            families += self._features.tests()
            self._remarks |= dict.fromkeys(self._features.remarks)
        made = [family for family in families if len(family.p_values)]
        found: list[tuple[float, Family, int]] = []
        for family in made:
            p_values = bonferroni(family.p_values, len(made) * len(family.p_values))
            found += [(float(p_values[i]), family, int(i)) for i in np.argsort(p_values, kind="stable")[:_MOST]]
        found.sort(key=lambda test: test[0])
        findings = tuple(Finding(p, family.sentence(i)) for p, family, i in found[:_MOST] if p < LEVEL)
        first = self._tallies[0] if self._tallies else None
        return Comparison(
            found[0][0] if found else None,
            findings,
            tuple(self._remarks),
            sum(tally.n for tally in self._tallies),
            0 if first is None else first.m,
            self._calibration,
            left_out=self._left_out,
        )


def bonferroni(p_values: Floats, tests: int) -> Floats:
    """P-values of one of so many tests."""
    return np.minimum(p_values * tests, 1.0)


def read_new_rows(part: BaseCalibration, probabilities: Any, *, by: Any = None, candidates: Any = None) -> NewRows:
    """New rows that are to be compared with those of one calibration, which needs all probabilities."""
    part.reader.need_all_labels("compare")
    return part.reader.read(probabilities, by=by, candidates=candidates)


# -------------------------------------------------------------------- what the model says


class _PartTally:
    """The new rows that one calibration was asked about: counts by top probability and by predicted label."""

    def __init__(self, part: BaseCalibration, *, by_category: bool) -> None:
        evidence = part.evidence
        if evidence.predicted is None or evidence.confidence is None:
            raise ValueError("this evidence does not keep what the model predicted; calibrate again.")
        self.classes = part.classes
        self.categories = part.category_names if by_category and part.category is not None else None
        codes = np.zeros(evidence.n, dtype=np.intp)
        if part.category is not None and by_category:
            codes = part.category
        rows = _Rows(evidence.confidence, evidence.predicted, codes)
        if evidence.group is not None:
            rows = rows.of_groups(evidence.group)
        self.k = len(self.classes)
        self.n, self.m = len(rows.codes), 0
        self.cells = [_Cell(rows.confidence[rows.codes == code]) for code in range(len(self.categories or [None]))]
        self.labels, self.new_labels = Counter(rows.keys(self.k)), Counter[int]()
        self.tied = False

    def add(self, new: NewRows, groups: Column) -> None:
        n, matrix, off, proposed = len(new), new.matrix, new.off, new.predicted
        codes = None if self.categories is None else new.codes
        codes = np.zeros(n, dtype=np.intp) if codes is None else codes
        rows = _Rows(proposed.confidence, proposed.label, codes)
        if groups is not None:
            named = categories(groups, n, "groups")
            rows = rows.of_groups(Vocabulary.infer(named).encode(named))
        known = rows.codes >= 0  # of other categories there are no calibration rows
        rows = _Rows(rows.confidence[known], rows.predicted[known], rows.codes[known])
        if off and n:  # in another precision equal probabilities may differ, and another label come first
            first_two = np.partition(matrix, -2, axis=1)[:, -2:]
            self.tied |= bool((np.ptp(first_two, axis=1) <= 2 * off).any())
        self.m += len(rows.codes)
        for code in np.unique(rows.codes):
            self.cells[code].add(rows.confidence[rows.codes == code], off)
        self.new_labels.update(rows.keys(self.k))

    def within(self, code: int) -> str:
        """In which category, as part of a sentence."""
        return "" if self.categories is None else f" in category {self.categories[code]!r}"

    def export(self) -> dict[str, Any]:
        """What `include` adds elsewhere."""
        return {
            "m": self.m,
            "tied": self.tied,
            "labels": list(self.new_labels.items()),
            "cells": [(cell.below, cell.upto, cell.new_total, cell.m) for cell in self.cells],
        }

    def include(self, held: Mapping[str, Any]) -> None:
        """Adds what another tally beside the same calibration counted."""
        labels = dict(held["labels"])
        if any(not 0 <= key < self.k * len(self.cells) for key in labels):
            raise ValueError("labels: counted beside another calibration.")
        self.m += held["m"]
        self.tied |= held["tied"]
        self.new_labels.update(labels)
        for cell, (below, upto, total, m) in zip(self.cells, held["cells"], strict=True):
            cell.below += below
            cell.upto += upto
            cell.new_total += total
            cell.m += m


@dataclass(frozen=True, eq=False)
class _Rows:
    """The top probability of some rows, its label, and their category."""

    confidence: Floats
    predicted: Ints
    codes: Ints

    def of_groups(self, group: Ints) -> _Rows:
        """One row for each group (and category in it): the mean probability, and the label predicted most often."""
        pairs, which = np.unique(np.stack([self.codes, group]), axis=1, return_inverse=True)
        which = which.ravel()
        mean = np.bincount(which, weights=self.confidence) / np.bincount(which)
        triples, counts = np.unique(np.stack([which, self.predicted]), axis=1, return_counts=True)
        order = np.lexsort([triples[1], -counts, triples[0]])
        first = np.unique(triples[0][order], return_index=True)[1]
        return _Rows(mean, triples[1][order][first], pairs[0])

    def keys(self, k: int) -> dict[int, int]:
        """Category and label as one number, and how many rows have it."""
        counts = np.bincount(self.codes.astype(np.int64) * k + self.predicted)
        held = np.flatnonzero(counts)
        return dict(zip(held.tolist(), counts[held].tolist(), strict=True))


class _Cell:
    """The top probabilities of one category."""

    def __init__(self, confidence: Floats) -> None:
        self.points = Points.of(confidence)
        self.total, self.new_total, self.m = float(confidence.sum()), 0.0, 0
        steps = len(self.points.values) + 1
        self.below, self.upto = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)

    def add(self, confidence: Floats, off: float) -> None:
        """Counts new values, each where it makes the difference smallest that it may be off by."""
        values, steps = self.points.values, len(self.below)
        ordered = np.sort(confidence)  # several times faster to look up
        self.below += np.bincount(np.searchsorted(values, ordered + off, side="right"), minlength=steps)
        self.upto += np.bincount(np.searchsorted(values, ordered - off, side="left"), minlength=steps)
        self.new_total += float(confidence.sum())
        self.m += len(confidence)

    @property
    def gap(self) -> int:
        """n·m times the largest difference of the two distribution functions."""
        return self.points.gap(np.cumsum(self.below)[:-1], np.cumsum(self.upto)[:-1], self.m)[0]


def _probabilities(tallies: list[_PartTally]) -> Family:
    """A test of the top probability in each category."""
    cells = [
        (tally, code, cell)
        for tally in tallies
        for code, cell in enumerate(tally.cells)
        if cell.m and cell.points.n
    ]

    def sentence(i: int) -> str:
        tally, code, cell = cells[i]
        old, new = cell.total / cell.points.n, cell.new_total / cell.m
        means = f"{new:.3f} on average, and {old:.3f} in the calibration rows"
        return f"the largest probability of a row{tally.within(code)} is {means}"

    sizes = ([cell.points.n for *_, cell in cells], [cell.m for *_, cell in cells])
    p_values = kolmogorov_smirnov([cell.gap for *_, cell in cells], *sizes) if cells else np.empty(0)
    return Family(p_values, sentence)


def _labels(tallies: list[_PartTally]) -> Family:
    """A test of how often each label is predicted in each category."""
    tests: list[tuple[_PartTally, int, int, int]] = []
    p_values: list[Floats] = []
    for tally in tallies:
        if tally.m == 0:
            continue
        if tally.tied:  # not made, and counted
            tests.append((tally, 0, 0, 0))
            p_values.append(np.ones(1))
            continue
        keys = np.array(sorted(tally.labels.keys() | tally.new_labels.keys()), dtype=np.int64)
        counts = np.array([[tally.labels[key], tally.new_labels[key]] for key in keys.tolist()])
        for code in np.unique(keys // tally.k).tolist():
            inside = keys // tally.k == code
            old, new = counts[inside].T
            cell = tally.cells[code]
            if len(old) < 2 or not cell.m or not cell.points.n:
                continue  # a single label, or one side only
            p_values.append(fisher(old, cell.points.n, new, cell.m))
            tests += [(tally, int(key), int(a), int(b)) for key, a, b in zip(keys[inside], old, new, strict=True)]

    def sentence(i: int) -> str:
        tally, key, old, new = tests[i]
        code, label = divmod(key, tally.k)
        cell = tally.cells[code]
        shares = f"{new / cell.m:.1%} of the new rows and {old / cell.points.n:.1%} of the calibration rows"
        return f"{tally.classes.tolist()[label]!r} is predicted for {shares}{tally.within(code)}"

    return Family(np.concatenate(p_values) if p_values else np.empty(0), sentence)
