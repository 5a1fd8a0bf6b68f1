"""What verified rows reveal: a choice that was not random, and candidate sets without the truth.

Verified rows speak for the others only if they were chosen at random, or with known probabilities. A choice by the
number of candidates or by the model's confidence can be seen: these are distributed differently in the other rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from setwise._arrays import Bools, Floats, Ints
from setwise.errors import MisuseWarning, Remedy
from setwise.evidence.evidence import Evidence
from setwise.evidence.row_facts import RowFacts
from setwise.labels.label_sets import LabelSets

LEVEL = 0.01
"""Rows that were chosen at random are called different with at most this probability."""
_EXACT = 5_000_000
_STATISTICS = {
    "number of candidates": "sizes",
    "score of the most plausible candidate": "low",
    "score of the least plausible candidate": "high",
}


@dataclass(frozen=True)
class Finding:
    """What the rows speak against: the p-value of the test, and a sentence about what was seen."""

    p_value: float
    sentence: str


def checks_differ(evidence: Evidence, level: float = LEVEL) -> Finding | None:
    """Whether verified rows differ from the others in their candidates' number or scores.

    Two-sample Kolmogorov–Smirnov tests, Bonferroni-corrected, at `level`. None where they find no difference, where
    the probabilities of being verified are known, and where there is nothing to compare. Grouped rows are compared by
    the means of groups if groups were checked as a whole; otherwise they are not compared.
    """
    if evidence.chance is not None or evidence.truth is None:
        return None
    columns = {name: np.asarray(getattr(evidence, field), dtype=float) for name, field in _STATISTICS.items()}
    checked = evidence.verified
    if evidence.group is not None:
        _, which, sizes = np.unique(evidence.group, return_inverse=True, return_counts=True)
        part = np.bincount(which, weights=checked) / sizes
        if not np.isin(part, [0, 1]).all():
            return None
        columns = {name: np.bincount(which, weights=values) / sizes for name, values in columns.items()}
        checked = part == 1
    if min(int(checked.sum()), int((~checked).sum())) < 2:
        return None
    if np.array_equal(evidence.low, evidence.high):
        del columns["score of the least plausible candidate"]
    found = {name: _p_value(values, checked) for name, values in columns.items() if np.ptp(values) > 0}
    if not found:
        return None
    name = min(found, key=lambda one: found[one])
    p_value = min(1.0, found[name] * len(found))
    if p_value >= level:
        return None
    inside, outside = columns[name][checked].mean(), columns[name][~checked].mean()
    seen = f"{inside:.2f} on average, {outside:.2f} elsewhere"
    if columns[name] is not columns["number of candidates"]:
        seen = f"{abs(inside - outside):.3f} {'higher' if inside > outside else 'lower'} on average"
    shown = "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.4f}"
    sentence = (
        f"the {int(evidence.verified.sum()):,} verified rows differ from the others in the {name} ({seen}; {shown})"
    )
    return Finding(p_value, sentence)


def warn_about_checks(
    evidence: Evidence, sets: LabelSets, facts: RowFacts, category: Ints | None, kept: Ints | None, *, misses: bool
) -> None:
    """Warns if verified rows differ from the others (within a category), and if one has its label outside its set.

    `kept` are the rows' numbers where some were dropped; `misses` says that labels outside are provided for.
    """
    codes = [0] if category is None else np.unique(category).tolist()
    parts = [evidence if category is None else evidence.rows(np.flatnonzero(category == code)) for code in codes]
    found = [finding for part in parts if (finding := checks_differ(part, LEVEL / len(parts)))]
    if found:
        worst = min(found, key=lambda finding: finding.p_value)
        where = "" if category is None else f" in {len(found)} of {len(parts)} categories"
        problem = f"verified: {worst.sentence}{where}: they were not chosen at random"
        draw = "draw the rows to verify at random"
        known = Remedy("verified_probability", None, "with the probability of each row to be verified")
        warnings.warn(MisuseWarning(problem, draw, known), stacklevel=4)
    if misses or evidence.held is None or facts.verified is None:
        return
    outside = np.flatnonzero(evidence.verified & ~evidence.held)
    if len(outside):
        first = int(outside[0])
        label, own = sets.classes[facts.verified[first]], sets[first : first + 1].to_lists()[0]
        row = first if kept is None else int(kept[first])
        problem = (
            f"verified: the label of row {row} is {_plain(label)!r}, which is not among its candidates "
            f"{_abridged(own)} ({len(outside):,} of {len(facts.checked):,} verified rows are such)"
        )
        rate = Remedy("miss_rate", None, "to allow for such rows")
        warnings.warn(MisuseWarning(problem, "correct the candidates", rate), stacklevel=4)


def _plain(label: object) -> object:
    return label.item() if isinstance(label, np.generic) else label


def _abridged(labels: list[object]) -> str:
    shown = ", ".join(map(repr, labels[:5]))
    return f"[{shown}{', …' if len(labels) > 5 else ''}]"


def _p_value(values: Floats, checked: Bools) -> float:
    from scipy.stats import ks_2samp  # noqa: PLC0415 - it is heavy, and needed for verified rows only

    inside, outside = values[checked], values[~checked]
    method = "auto" if len(inside) * len(outside) <= _EXACT else "asymp"
    return float(ks_2samp(inside, outside, method=method).pvalue)
