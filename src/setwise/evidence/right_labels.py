"""Several right labels in a row: how many of them a set must contain, and which of them decides whether it does.

The labels y with s(x, y) ≤ t contain at least r of the right labels Y exactly where t reaches the r-th smallest of
their scores: with r = |Y| the largest (`max` in the paper), with r = 1 the smallest (`min`), with r = ⌈share·|Y|⌉
an order statistic. So the label with that score decides. It stands for the true label from there on, and what is
proved of a row with one true label holds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setwise._arrays import Bools, Floats, Ints
from setwise.errors import InputError, Remedy
from setwise.evidence.row_facts import RowFacts
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING
from setwise.probabilities.base import Probabilities
from setwise.ranks import as_fraction
from setwise.scores import Score


def read_truth(truth: Any) -> str:
    """How many right labels a set is to contain, as it is kept: ``"all"``, ``"one"``, a share, or nothing.

    >>> read_truth("all"), read_truth(0.9), read_truth(1.0), read_truth(None)
    ('all', '0.9', 'all', '')
    """
    if truth is None or (isinstance(truth, str) and truth in {"all", "one"}):
        return truth or ""
    if isinstance(truth, str) or not 0 < (share := as_fraction(truth, "truth")) <= 1:
        raise ValueError(f"truth: {truth!r} is not known; use 'all', 'one', or a share such as 0.9.")
    return "all" if share == 1 else str(float(share))


def count_needed(sizes: Ints, truth: str) -> Ints:
    """How many of a row's right labels a set must contain.

    >>> count_needed(np.array([1, 2, 10, 11]), "0.9")
    array([ 1,  2,  9, 10])
    """
    if truth in {"all", "one"}:
        return sizes if truth == "all" else np.minimum(sizes, 1)
    share = as_fraction(float(truth), "truth")
    return -(-share.numerator * sizes // share.denominator)


def contains_enough(sets: LabelSets, right: LabelSets, truth: str) -> Bools:
    """Whether each set contains as many right labels of its row as it must."""
    return (sets & right).sizes >= count_needed(right.sizes, truth)


def leave_out_empty(
    rows: Probabilities, sets: LabelSets, facts: RowFacts, truth: str, empty: str
) -> tuple[Probabilities, LabelSets, RowFacts, int]:
    """The rows that have right labels, and how many have none; −1 where these are not to be left out.

    Of verified rows only these are then kept: nobody knows which of the others have a right label, so that they say
    nothing of new rows that have one.
    """
    if empty not in {"error", "drop"}:
        raise ValueError(f"empty: {empty!r} is not known; use 'error' or 'drop'.")
    if empty == "drop" and not truth:
        raise InputError("empty: only where several labels may be right", Remedy("truth", "all", "to state that"))
    if not truth:
        return rows, sets, facts, -1
    if facts.right is None and sets.completed:
        problem = "candidates: rows without labels were given every label, and not all of these are right"
        raise InputError(problem, "leave their sets empty", "leave these rows out")
    name, right = ("candidates", sets) if facts.right is None else ("verified", facts.right)
    known = np.arange(len(sets)) if facts.right is None else facts.verified_rows
    none, kept = known[right.sizes[known] == 0], known[right.sizes[known] > 0]
    if len(none) and (empty == "error" or not len(kept)):
        problem = f"{name}: row {none[0]} has no right label ({len(none):,} such rows)"
        raise InputError(problem, *([Remedy("empty", "drop", "to leave them out")] if len(kept) else []))
    if empty == "error":
        return rows, sets, facts, -1
    for argument, column in {"verified_probability": facts.chance, "groups": facts.group}.items():
        if column is not None:
            raise InputError(f"{argument}: not where rows without a right label are left out", "leave it out")
    facts = replace(facts, position=np.arange(len(sets))) if facts.position is None else facts
    return rows[kept], sets[kept], facts.take(kept), len(none)


def decide_right(
    score: Score, rows: Probabilities, sets: LabelSets, facts: RowFacts, truth: str
) -> tuple[LabelSets, RowFacts]:
    """Candidates and facts with the right label that decides in the place of the true one.

    Where no row is verified the candidates are the right labels themselves.
    """
    if not truth:
        return sets, facts
    if facts.right is None:
        codes = _deciding(score, rows, sets, facts.u, truth)
        return replace(LabelSets.from_codes(sets.vocabulary, codes, np.ones_like(codes)), single=True), facts
    known = facts.verified_rows
    right, u = facts.right[known], None if facts.u is None else facts.u[known]
    verified, held = np.full(len(sets), MISSING), np.zeros(len(sets), dtype=bool)
    verified[known] = _deciding(score, rows[known], right, u, truth)
    held[known] = contains_enough(sets[known], right, truth)
    return sets, replace(facts, verified=verified, held=held, right=None)


def _deciding(score: Score, rows: Probabilities, right: LabelSets, u: Floats | None, truth: str) -> Ints:
    """Of each row the right label whose score is as large as that of as many right labels as a set must contain."""
    indptr, labels = right.rows
    *_, scores = rows.score_candidates(score, right, u, every=True)
    order = np.lexsort((np.asarray(scores), np.repeat(np.arange(len(right)), right.sizes)))
    deciding: Ints = labels[order[indptr[:-1] + count_needed(right.sizes, truth) - 1]].astype(np.intp)
    return deciding
