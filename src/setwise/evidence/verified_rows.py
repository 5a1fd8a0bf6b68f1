"""What verified rows reveal: a choice that was not random, and candidate sets without the truth.

Verified rows speak for the others only if they were chosen at random, or with known probabilities. A choice by the
number of candidates or by the model's confidence can be seen: these are distributed differently in the other rows.
"""

from __future__ import annotations

import warnings

import numpy as np

from setwise._arrays import Bools, Floats, Ints
from setwise.errors import InputError, MisuseWarning, Remedy
from setwise.evidence.evidence import Evidence
from setwise.evidence.row_facts import RowFacts
from setwise.findings import Finding, format_p_value
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING
from setwise.labels.votes import Votes
from setwise.probabilities.proposed_labels import Proposals
from setwise.ranks import log_choose
from setwise.two_samples import gap_between, kolmogorov_smirnov

LEVEL = 0.01
"""Rows that were chosen at random are called different with at most this probability."""
_RARE = 1e-6  # the probability that candidates are called written though rows were drawn at random
_AS_BEFORE = "pass the candidates or votes as they were before rows were verified"
_BINS = 10  # of the probabilities of being verified
_STATISTICS = {
    "number of candidates": "sizes",
    "score of the most plausible candidate": "low",
    "score of the least plausible candidate": "high",
}


def compare_verified(
    evidence: Evidence, category: Ints | None = None, votes: Votes | None = None, *, written: bool = False
) -> Finding | None:
    """Whether verified rows differ from the others in the number or the scores of their candidates, or of answers.

    Whoever checks a row and leaves the label among its votes has given the row away: it has an answer more.

    Two-sample Kolmogorov–Smirnov tests within each category, Bonferroni-corrected, at `LEVEL`. None where they find
    no difference, and where there is nothing to compare. Of rows in groups the groups' means are compared, if
    groups were verified as a whole; otherwise nothing is. Where the probabilities of being verified are given, it
    looks whether as many rows are verified as these say. Where verified labels were `written` into the candidates,
    these tell nothing, and the model's confidence is compared.
    """
    if evidence.chance is not None and evidence.truth is not None:
        return _chances_differ(evidence.chance, evidence.verified)
    columns = _columns(evidence, category, votes, written=written)
    if not columns:
        return None
    samples = [(values[checked], values[~checked]) for _, values, checked in columns]
    sizes = np.array([[len(inside), len(outside)] for inside, outside in samples])
    gaps = [gap_between(*pair) for pair in samples]
    p_values = kolmogorov_smirnov(gaps, *sizes.T, exact_below=50 * LEVEL)  # beyond, nothing is found
    p_value = min(1.0, float(p_values.min()) * len(columns))
    if p_value >= LEVEL:
        return None
    seen = _difference(*columns[int(p_values.argmin())])
    return Finding(p_value, f"verified rows differ from the others in the {seen}; {format_p_value(p_value)})")


def written_back(sizes: Ints, held: Bools, checked: Bools) -> bool:
    """Whether the verified labels were written into the candidates: each is the only one of its row.

    They were if most other rows have several candidates, and rows drawn at random have one candidate each with a
    probability below `_RARE`. Candidates of verified rows then tell nothing of the others'. `held` says whether the
    label is among the candidates.
    """
    alone, m = sizes == 1, int(checked.sum())
    if not m or not (alone & held)[checked].all() or 2 * int((~alone & ~checked).sum()) <= len(sizes) - m:
        return False
    by_chance = float(log_choose(int(alone.sum()), m) - log_choose(len(sizes), m))  # of drawing such rows alone
    return bool(by_chance < np.log(_RARE))


def holds_written(sets: LabelSets, verified: Ints) -> bool:
    """Whether the verified labels, as codes, were written into these sets, as `written_back` says."""
    checked, held = verified != MISSING, np.zeros(len(sets), dtype=bool)
    held[checked] = sets[checked].contains(sets.classes[verified[checked]])
    return written_back(sets.sizes, held, checked)


def refuse_sole_answers(command: str, sets: LabelSets, verified: Ints) -> None:
    """Refuses votes, as sets, in which the verified labels replaced all other answers to their rows."""
    if holds_written(sets, verified):
        problem = (
            f"{command}: the verified labels are the only answers to their rows, which would confirm themselves"
        )
        raise InputError(problem, "pass the votes as they were before rows were verified")


def warn_of_written(sets: LabelSets, verified: Ints | None) -> bool:
    """Whether the verified labels were written into the candidates, with a warning."""
    if verified is None or not holds_written(sets, verified):
        return False
    problem = (
        f"verified: each of the {int((verified != MISSING).sum()):,} verified labels is the only candidate of its "
        "row. They seem to have been written there. If rows were chosen by their candidates instead, nothing is "
        "guaranteed"
    )
    warnings.warn(MisuseWarning(problem, _AS_BEFORE), stacklevel=4)
    return True


def _seem_written(evidence: Evidence, category: Ints | None, votes: Votes | None) -> bool:
    """Whether verified rows differ as they do where their labels were written into the candidates or votes.

    Each label is the only candidate, or rows have more answers among which it is; and the model, which knows
    neither, is as sure of verified rows as of the others.
    """
    checked, held = evidence.verified, evidence.held
    if held is None or evidence.confidence is None or evidence.chance is not None or not held[checked].all():
        return False
    answers = np.zeros(evidence.n) if votes is None else votes.sizes
    alone = bool((evidence.sizes[checked] == 1).all())
    explained = alone or answers[checked].mean() > answers[~checked].mean()
    return explained and not compare_verified(evidence, category, written=True)


def refuse_written(evidence: Evidence, *, written: bool = False) -> None:
    """Refuses to judge proposals by verified rows whose candidates are the verified labels."""
    if evidence.held is None or not (written or written_back(evidence.sizes, evidence.held, evidence.verified)):
        return
    problem = "triage: the verified labels are the candidates of their rows, which would confirm themselves"
    raise InputError(problem, _AS_BEFORE)


_Column = tuple[str, Floats, Bools]
"""The name of a statistic, its value in each row, and which rows are verified."""


def _columns(evidence: Evidence, category: Ints | None, votes: Votes | None, *, written: bool) -> list[_Column]:
    """What verified rows and the others are compared by, within each category; nothing where they cannot be."""
    if evidence.chance is not None or evidence.truth is None:
        return []
    answers = None if votes is None else votes.sizes
    parts = [(evidence, answers)]
    if category is not None:
        groups = [np.flatnonzero(category == code) for code in np.unique(category)]
        parts = [(evidence.rows(rows), None if answers is None else answers[rows]) for rows in groups]
    return [column for part in parts for column in _part_columns(*part, written=written)]


def _part_columns(evidence: Evidence, answers: Ints | None, *, written: bool) -> list[_Column]:
    """The statistics that vary."""
    fields = {"probability of the most probable label": "confidence"} if written else _STATISTICS
    known = {name: getattr(evidence, field) for name, field in fields.items()}
    columns = {name: np.asarray(values, dtype=float) for name, values in known.items() if values is not None}
    if answers is not None and not written:
        columns["number of answers"] = answers.astype(float)
    if np.array_equal(evidence.low, evidence.high) and not written:
        del columns["score of the least plausible candidate"]
    checked = evidence.verified
    if evidence.group is not None:
        _, which, sizes = np.unique(evidence.group, return_inverse=True, return_counts=True)
        columns = {name: np.bincount(which, weights=values) / sizes for name, values in columns.items()}
        share = np.bincount(which, weights=checked) / sizes
        if not np.isin(share, [0, 1]).all():
            return []
        checked = share == 1
    if min(int(checked.sum()), int((~checked).sum())) < 2:
        return []
    return [(name, values, checked) for name, values in columns.items() if np.ptp(values) > 0]


def _difference(name: str, values: Floats, checked: Bools) -> str:
    """How verified rows differ from the others in a statistic; its bracket is left open."""
    inside, outside = values[checked], values[~checked]
    means = f"{inside.mean():.2f} on average, {outside.mean():.2f} elsewhere"
    if not name.startswith("number"):  # the scale on which scores are stored is not the one that is printed
        means = (
            f"{abs(inside.mean() - outside.mean()):.3f} {'higher' if inside.mean() > outside.mean() else 'lower'}"
        )
    return f"{name} ({means}"


def _chances_differ(chance: Floats, checked: Bools) -> Finding | None:
    """Whether more or fewer rows are verified than is probable, among those of about one probability.

    Bernstein's inequality for a sum of independent draws, Bonferroni-corrected.
    """
    certain = int((~checked[chance == 1]).sum())
    if certain:
        return Finding(0.0, f"{certain:,} rows whose probability is 1 are not verified")
    bounds = np.unique(chance)
    if len(bounds) > _BINS:
        bounds = np.unique(np.quantile(chance, np.arange(_BINS) / _BINS))
    place = np.searchsorted(bounds, chance, side="right") - 1
    found, expected, variance = (np.bincount(place, values) for values in (checked, chance, chance * (1 - chance)))
    off = np.abs(found - expected)
    p_values = 2 * np.exp(-(off**2) / (2 * (variance + off / 3) + 1e-300))
    worst = int(p_values.argmin())
    p_value = min(1.0, float(p_values[worst]) * len(p_values))
    if p_value >= LEVEL:
        return None
    told = f"{found[worst]:,.0f} rows are verified where the probabilities given expect {expected[worst]:,.0f}"
    return Finding(p_value, f"{told}; {format_p_value(p_value)}")


def sizes_differ(
    sizes: Ints, checked: Ints, category: Ints | None = None, group: Ints | None = None
) -> Finding | None:
    """Whether the rows at `checked` differ from the others in the number of candidates, within each category."""
    truth = np.full(len(sizes), np.nan)
    truth[checked] = 0.0
    alike = np.zeros(len(sizes))
    return compare_verified(Evidence(alike, alike, sizes, truth=truth, group=group), category)


def surer_of_verified(
    confidence: Floats, checked: Ints, category: Ints | None = None, group: Ints | None = None
) -> Finding | None:
    """Whether a model is surer of the rows at `checked` than of the others, although it learned from these."""
    n, others = len(confidence), np.setdiff1d(np.arange(len(confidence)), checked)
    if confidence[checked].mean() <= confidence[others].mean():
        return None
    truth, proposed = np.full(n, np.nan), Proposals(np.zeros(n, dtype=np.intp), confidence)
    truth[checked] = 0.0
    alike = np.zeros(n)
    evidence = Evidence(alike, alike, np.ones(n, dtype=np.intp), truth=truth, model=proposed, group=group)
    return compare_verified(evidence, category, written=True)


def warn_about_choice(found: Finding | None, *, chances: bool = True, groups: bool = True) -> Finding | None:
    """What was found, after a warning where there is something; `chances` of rows and `groups` may be given."""
    if found is None:
        return None
    draw = "draw the rows to verify at random"
    known = Remedy("verified_probability", None, "with the probability of each row to be verified")
    whole = Remedy("groups", None, "if whole documents or other groups were verified")
    problem = f"verified: not a random choice of the rows: {found.sentence}"
    remedies = [known] * chances + [whole] * groups
    warnings.warn(MisuseWarning(problem, draw, *remedies), stacklevel=5)
    return found


def warn_about_verified(
    evidence: Evidence,
    sets: LabelSets,
    facts: RowFacts,
    category: Ints | None,
    *,
    misses: bool,
    written: bool,
) -> tuple[Finding | None, bool]:
    """Warns if verified rows differ from the others, and if a verified label is no candidate.

    It returns what differs, and whether the labels are taken for written into the candidates or votes. `misses`
    means that labels outside are provided for.
    """
    found = compare_verified(evidence, category, facts.votes, written=written)
    if found and not written and _seem_written(evidence, category, facts.votes):
        problem = (
            f"verified: {found.sentence}. The verified labels seem to have been written into candidates or votes. "
            "If rows were chosen by these instead, nothing is guaranteed"
        )
        warnings.warn(MisuseWarning(problem, _AS_BEFORE), stacklevel=4)
        found, written = None, True
    differs = warn_about_choice(found)
    if not misses:
        warn_outside(sets, facts, facts.verified_rows)
    return differs, written


def warn_outside(sets: LabelSets, facts: RowFacts, rows: Ints) -> None:
    """Warns if the verified label of one of some verified `rows` is not among its candidates."""
    if facts.verified is None or not len(rows):
        return
    inside = sets[rows].contains(sets.classes[facts.verified[rows]]) if facts.held is None else facts.held[rows]
    outside = rows[~inside]
    if len(outside):
        first = int(outside[0])
        label, own = sets.classes.tolist()[facts.verified[first]], sets[first : first + 1].to_lists()[0]
        shown = ", ".join(map(repr, own[:5])) + (", …" if len(own) > 5 else "")
        row = first if facts.position is None else facts.position[first]
        told = f"the label of row {row} is {label!r}, which is not"
        told = told if facts.held is None else f"too few of the right labels of row {row} are"
        problem = (
            f"verified: {told} among its candidates {{{shown}}} "
            f"({len(outside):,} of {len(rows):,} verified rows are such)"
        )
        rate = Remedy("miss_rate", None, "to allow for such rows")
        warnings.warn(MisuseWarning(problem, "correct the candidates", rate), stacklevel=5)
