"""What calibration rows tell: the scores of their candidates, and of the truth where somebody checked.

Evidence is all that a strategy sees. It is frozen, can be merged, split by rows, and written to arrays.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, blocks, take_rows
from setwise._lazy import lazy
from setwise.evidence.proposals import among_candidates, most_probable
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.score_table import ScoreTable, Table
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes
from setwise.scores import Score


@dataclass(frozen=True)
class Evidence:
    """Per calibration row: the smallest and largest score over its candidates, and their number.

    Attributes
    ----------
    low, high
        Stored scores of the least and the most strange candidate.
    sizes
        How many candidates the row has.
    every
        The scores of all candidates, row after row; only where a strategy asks for them.
    share
        The model's probability of each candidate given that it is one of them, row after row; on request.
    backing
        The share of the row's answers that each candidate has, row after row, NaN where there are none; on request.
    posterior
        The (n, K) probabilities of the labels given the row's answers; on request.
    agreed, excess
        The share of pairs of answers that agree, and by how much it exceeds what independent annotators would show;
        NaN in rows with fewer than two answers.
    table, named
        The (n, K) scores of all labels, by blocks of rows, and which of them are candidates; on request.
    total
        The sum of the row's probabilities; on request.
    truth
        The score of the verified label, NaN where nobody checked; None where nobody checked anything.
    held
        Whether the verified label is among the candidates (False where nobody checked).
    predicted, confidence
        The position of the most probable label, and its probability.
    label
        The position of the verified label, `MISSING` where nobody checked; None where nobody checked anything. Of
        rows with one label by design, that label.
    consensus, consensus_confidence
        The position of the label that the row's answers (or candidates) and the model propose, and how sure that
        is; where rows are verified, whose labels do not enter, or on request.
    answered_truth, answered, answered_confidence
        Of verified rows with answers the score of the label, and what is proposed, by an annotator model that was
        fitted to the other rows; NaN elsewhere, and None where there are none.
    noise
        A uniform number that depends on the row alone, by which ties between confidences are broken; where rows are
        verified.
    position
        The row's number as it was given, where rows were dropped or held out.
    chance
        With which probability each row was to be verified; None where all had the same.
    weight
        The rows' weights; None for equal ones.
    group
        Which cluster each row belongs to, as a number; None where rows are on their own. The rows of a
        group share one unit of weight, and groups are the instances.
    """

    low: Floats
    high: Floats
    sizes: Ints
    every: Floats | None = None
    share: Floats | None = None
    backing: Floats | None = None
    posterior: Floats | None = None
    agreed: Floats | None = None
    excess: Floats | None = None
    table: Table | None = None
    named: Bools | None = None
    total: Floats | None = None
    truth: Floats | None = None
    held: Bools | None = None
    predicted: Ints | None = None
    confidence: Floats | None = None
    label: Ints | None = None
    consensus: Ints | None = None
    consensus_confidence: Floats | None = None
    answered_truth: Floats | None = None
    answered: Ints | None = None
    answered_confidence: Floats | None = None
    noise: Floats | None = None
    position: Ints | None = None
    chance: Floats | None = None
    weight: Floats | None = None
    group: Ints | None = None

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.low)

    @property
    def instances(self) -> int:
        """How many instances there are for the rank rule: groups, or rows on their own."""
        return self.n if self.group is None else len(np.unique(self.group))

    @lazy
    def shares(self) -> tuple[Floats, float] | None:
        """Each row's weight and that of a new row (or of a new group), where rows do not count alike.

        Weights are relative to the largest one, so that equal ones are exactly one; a group's unit is the
        least common multiple of the group sizes, so that its rows' shares are whole numbers.
        """
        if self.weight is not None:
            return self.weight / self.weight.max(), 1.0
        if self.group is None:
            return None
        _, which, sizes = np.unique(self.group, return_inverse=True, return_counts=True)
        unit = math.lcm(*map(int, np.unique(sizes)))
        unit = unit if unit * len(sizes) < 2**50 else 1
        return unit / sizes[which], float(unit)

    @lazy
    def mean(self) -> Floats:
        """The average score over each row's candidates."""
        if self.every is None:
            raise ValueError("this evidence holds extremes only; gather it with needs={'every'}.")
        starts = np.cumsum(self.sizes) - self.sizes
        # Dividing by one is exact: with precise labels the mean is the score itself, to the last bit.
        return np.clip(np.add.reduceat(self.every, starts) / self.sizes, self.low, self.high)

    @lazy
    def verified(self) -> Bools:
        """Which rows somebody checked."""
        return np.zeros(self.n, bool) if self.truth is None else ~np.isnan(self.truth)

    @property
    def precise(self) -> bool:
        """Whether every row has exactly one candidate: ordinary labels."""
        return bool((self.sizes == 1).all())

    def rows(self, chosen: Ints) -> Evidence:
        """The evidence of some rows, by their positions."""
        held, ragged = self._columns, ("every", "share", "backing")
        taken = {name: _rows_of(value, chosen) for name, value in held.items() if name not in ragged}
        if any(name in held for name in ragged):
            entries = take_rows(self.sizes, chosen)
            taken |= {name: held[name][entries] for name in ragged if name in held}
        return Evidence(**taken)

    def merge(self, other: Evidence) -> Evidence:
        """Both bodies of evidence as one; they must hold the same kinds of columns."""
        ours, theirs = self.to_arrays(), other.to_arrays()
        if ours.keys() != theirs.keys():
            raise ValueError(f"cannot merge: {sorted(ours.keys() ^ theirs.keys())} is on one side only.")
        return Evidence(**{name: np.concatenate([ours[name], theirs[name]]) for name in ours})

    def to_arrays(self) -> dict[str, Array]:
        """The columns that are there, by name."""
        return {name: np.asarray(value) for name, value in self._columns.items()}

    @property
    def _columns(self) -> dict[str, Any]:
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in held.items() if value is not None}


def _rows_of(column: Any, chosen: Ints) -> Any:
    return column.take(chosen) if isinstance(column, ScoreTable) else column[chosen]


def gather(
    score: Score,
    probabilities: Floats,
    candidates: LabelSets,
    facts: RowFacts | None = None,
    needs: Collection[str] = (),
) -> Evidence:
    """The extremes of the candidates' scores, the columns named in `needs`, and what the facts of the rows add."""
    facts = facts or RowFacts()
    u, verified = facts.u, facts.verified
    indptr, indices = candidates.rows
    starts = indptr[:-1]
    if "every" in needs or score.elementwise or not score.monotone:
        scores = _score_candidates(score, probabilities, candidates, u)
        low, high = np.minimum.reduceat(scores, starts), np.maximum.reduceat(scores, starts)
    else:
        scores = None
        likeliest, unlikeliest = _extreme_labels(probabilities, candidates)
        low = score.score(probabilities, likeliest, u=u)
        one = len(indices) == len(candidates)
        high = low if one else score.score(probabilities, unlikeliest, u=u)
    truth = held = None
    if verified is not None:
        known = facts.checked
        truth = np.full(len(candidates), np.nan)
        some_u = None if u is None else u[known]
        truth[known] = score.score(probabilities[known], verified[known], u=some_u)
        held = np.zeros(len(candidates), dtype=bool)
        held[known] = candidates[known].contains(candidates.classes[verified[known]])
    model, agreed = most_probable(probabilities), None
    if verified is not None or "consensus" in needs:
        voted = facts.posterior
        agreed = among_candidates(probabilities, candidates) if voted is None else most_probable(voted)
    return Evidence(
        low,
        high,
        candidates.sizes,
        every=scores if "every" in needs else None,
        share=_shares(probabilities, candidates) if "share" in needs else None,
        backing=_backing(facts.votes, candidates) if "backing" in needs and facts.votes is not None else None,
        posterior=facts.posterior if "posterior" in needs else None,
        agreed=facts.agreed,
        excess=facts.excess,
        table=ScoreTable(score, probabilities, u) if "table" in needs else None,
        named=candidates.to_mask() if "table" in needs else None,
        total=probabilities.sum(axis=1, dtype=np.float64) if "total" in needs else None,
        truth=truth,
        held=held,
        predicted=model.label,
        confidence=model.confidence,
        label=indices.astype(np.intp) if verified is None and candidates.single else verified,
        consensus=None if agreed is None else agreed.label,
        consensus_confidence=None if agreed is None else agreed.confidence,
        noise=None if verified is None else u,
        position=facts.position,
        chance=facts.chance,
        weight=facts.weight,
        group=facts.group,
    )


def _shares(probabilities: Floats, candidates: LabelSets) -> Floats:
    """f_y / Σ_{y'∈S} f_y' of every candidate, row after row; equal parts where the model gives them nothing."""
    indptr, indices = candidates.rows
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    values = probabilities[rows, indices].astype(np.float64)
    total = np.add.reduceat(values, indptr[:-1])[rows]
    equal = 1 / candidates.sizes[rows]
    return np.divide(values, total, out=equal, where=total > 0)


def _backing(votes: Votes, candidates: LabelSets) -> Floats:
    """The share of the answers that each candidate has, row after row; NaN where a row has none."""
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    with np.errstate(invalid="ignore"):
        shares: Floats = votes.counts[rows, candidates.rows[1]] / votes.counts.sum(axis=1)[rows]
    return shares


def _score_candidates(score: Score, probabilities: Floats, candidates: LabelSets, u: Floats | None) -> Floats:
    """The score of every candidate, row after row."""
    indptr, indices = candidates.rows
    scores = np.empty(len(indices))
    for block in blocks(probabilities):
        inside = slice(indptr[block.start], indptr[block.stop])
        rows = np.repeat(np.arange(block.stop - block.start), candidates.sizes[block])
        part = probabilities[block]
        if score.elementwise:
            scores[inside] = score.score(part[rows, indices[inside], None])[:, 0]
        else:
            scores[inside] = score.score(part, u=None if u is None else u[block])[rows, indices[inside]]
    return scores


def _extreme_labels(probabilities: Floats, candidates: LabelSets) -> tuple[Ints, Ints]:
    """The most and the least probable candidate of each row (the first of equals)."""
    indptr, indices = candidates.rows
    if len(indices) == len(candidates):
        return indices, indices
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    values = probabilities[rows, indices]
    return tuple(  # type: ignore[return-value]
        _first_equal(values, extreme.reduceat(values, indptr[:-1]), rows, indices)
        for extreme in (np.maximum, np.minimum)
    )


def _first_equal(values: Floats, wanted: Floats, rows: Ints, indices: Ints) -> Ints:
    found = np.flatnonzero(values == wanted[rows])[::-1]
    labels = np.empty(len(wanted), dtype=np.intp)
    labels[rows[found]] = indices[found]  # written from the back: the first of equals stays
    return labels
