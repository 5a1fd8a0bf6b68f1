"""What calibration rows tell: the scores of their candidates, and of the truth where somebody checked.

Evidence is all that a strategy sees. It is frozen, can be merged, split by rows, and written to arrays.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, take_rows
from setwise._lazy import lazy
from setwise.evidence.column_schema import Column, read_columns
from setwise.evidence.row_facts import LastingFacts, RowFacts
from setwise.evidence.score_table import ScoreTable, Table
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING
from setwise.labels.votes import Votes
from setwise.probabilities.base import Probabilities
from setwise.probabilities.dense import TOLERANCE
from setwise.probabilities.kept_arrays import LaterProposals
from setwise.probabilities.proposed_labels import Proposals, most_probable
from setwise.scores import Score

_SCORE, _MOST = Column("f"), 1 + TOLERANCE  # of a probability


@dataclass(frozen=True)
class Evidence(LastingFacts):
    """Per calibration row: the smallest and largest score over its candidates, and their number.

    What follows is there where a strategy asks for it, or where rows are verified; else it is None. Of candidates
    there is one entry for each, row after row.
    """

    low: Annotated[Floats, _SCORE]  # the stored score of the least strange candidate
    high: Annotated[Floats, _SCORE]  # and of the most strange one
    sizes: Annotated[Ints, Column("iu", 1)]
    every: Annotated[Floats | None, Column("f", per="candidate")] = None  # the scores of all candidates
    share: Annotated[Floats | None, Column("f", 0, _MOST, per="candidate")] = None
    """The model's probability of each candidate given that it is one of them."""
    backing: Annotated[Floats | None, Column("f", 0, _MOST, per="candidate", gaps=True)] = None
    """The share of the row's answers that each candidate has, NaN where there are none."""
    posterior: Annotated[Floats | None, Column("f", 0, _MOST, per="label")] = None
    """The (n, K) probabilities of the labels given the row's answers."""
    table: Annotated[Table | None, Column("f", per="label")] = None  # the (n, K) scores, by blocks of rows
    named: Annotated[Bools | None, Column("b", per="label")] = None  # which of these labels are candidates
    total: Annotated[Floats | None, Column("f", 0)] = None  # the sum of the row's probabilities
    truth: Annotated[Floats | None, Column("f", gaps=True)] = None
    """The score of the verified label, NaN where nobody checked; None where nobody checked anything."""
    held: Annotated[Bools | None, Column("b")] = None
    """Whether the verified label is a candidate (or enough of several right ones); False where nobody checked."""
    model: Annotated[
        Proposals | LaterProposals | None,
        {"predicted": Column("iu", 0, labels=True), "confidence": Column("f", 0, _MOST)},
    ] = None
    """The position of the most probable label, and its probability: `predicted` and `confidence` in files."""
    label: Annotated[Ints | None, Column("iu", MISSING, labels=True)] = None
    """The position of the verified label, `MISSING` where nobody checked; of rows with one label by design that."""
    consensus: Annotated[Ints | None, Column("iu", MISSING, labels=True)] = None
    """The position of the label that the row's answers (or candidates) and the model propose, unverified."""
    consensus_confidence: Annotated[Floats | None, Column("f", 0, _MOST, gaps=True)] = None
    answered_truth: Annotated[Floats | None, Column("f", gaps=True)] = None
    """Of verified rows with answers the score of the label, by an annotator model fitted to the other rows."""
    answered: Annotated[Ints | None, Column("iu", MISSING, labels=True)] = None  # what that model proposes
    answered_confidence: Annotated[Floats | None, Column("f", 0, _MOST, gaps=True)] = None
    noise: Annotated[Floats | None, Column("f", 0, 1)] = None
    """A uniform number that depends on the row alone, by which ties between confidences are broken."""

    @classmethod
    def of(cls, *, predicted: Ints | None = None, confidence: Floats | None = None, **columns: Any) -> Evidence:
        """From columns by name, as `to_arrays` gives them."""
        if (predicted is None) != (confidence is None):
            raise ValueError("evidence: predicted and confidence belong together")
        model = None if predicted is None or confidence is None else Proposals(predicted, confidence)
        return cls(**columns, model=model)

    @property
    def predicted(self) -> Ints | None:
        """The position of the most probable label."""
        return None if self.model is None else self.model.label

    @property
    def confidence(self) -> Floats | None:
        """The probability of the most probable label."""
        return None if self.model is None else self.model.confidence

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.low)

    @property
    def instances(self) -> int:
        """How many instances there are for the rank rule: groups, or rows on their own."""
        return self.n if self.group is None else len(np.unique(self.group))

    @property
    def unit(self) -> str:
        """What these instances are called."""
        return "rows" if self.group is None else "groups"

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

    @lazy
    def verified_instances(self) -> int:
        """How many rows somebody checked; of grouped rows how many groups."""
        return int(self.verified.sum()) if self.group is None else len(np.unique(self.group[self.verified]))

    @property
    def verified_by_group(self) -> bool:
        """Whether rows come in groups, of which somebody checked all rows or none."""
        return self.group is not None and not np.isin(self.group[~self.verified], self.group[self.verified]).any()

    @property
    def precise(self) -> bool:
        """Whether every row has exactly one candidate: ordinary labels."""
        return bool((self.sizes == 1).all())

    def rows(self, chosen: Ints) -> Evidence:
        """The evidence of some rows, by their positions."""
        held = self._columns
        ragged = {
            name for name, column in read_columns(Evidence).items() if column.per == "candidate"
        } & held.keys()
        taken = {name: value[chosen] for name, value in held.items() if name not in {"table", *ragged}}
        if (table := held.get("table")) is not None:
            taken["table"] = table.take(chosen) if isinstance(table, ScoreTable) else table[chosen]
        if ragged:
            entries = take_rows(self.sizes, chosen)
            taken |= {name: held[name][entries] for name in ragged}
        return Evidence(**taken)

    def merge(self, other: Evidence) -> Evidence:
        """Both bodies of evidence as one; they must hold the same kinds of columns."""
        ours, theirs = self.to_arrays(), other.to_arrays()
        if ours.keys() != theirs.keys():
            raise ValueError(f"cannot merge: {sorted(ours.keys() ^ theirs.keys())} is on one side only.")
        return Evidence.of(**{name: np.concatenate([ours[name], theirs[name]]) for name in ours})

    def to_arrays(self) -> dict[str, Array]:
        """The columns that are there, by name."""
        held = self._columns
        if (model := held.pop("model", None)) is not None:
            held |= {"predicted": model.label, "confidence": model.confidence}
        return {name: np.asarray(value) for name, value in held.items()}

    @property
    def _columns(self) -> dict[str, Any]:
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in held.items() if value is not None}


def gather(
    score: Score,
    probabilities: Probabilities,
    candidates: LabelSets,
    facts: RowFacts | None = None,
    needs: Collection[str] = (),
) -> Evidence:
    """The extremes of the candidates' scores, the columns named in `needs`, and what the facts of the rows add."""
    facts = facts or RowFacts()
    u, verified, n = facts.u, facts.verified, len(candidates)
    probabilities.check_known(score, needs, verified=verified is not None, votes=facts.votes is not None)
    low, high, every = probabilities.score_candidates(score, candidates, u, every="every" in needs)
    truth = held = None
    if verified is not None:
        known = facts.verified_rows
        truth, held = np.full(n, np.nan), np.zeros(n, dtype=bool)
        truth[known] = probabilities[known].score_labels(score, verified[known], None if u is None else u[known])
        inside = candidates[known].contains(candidates.classes[verified[known]])
        held[known] = inside if facts.held is None else facts.held[known]
    agreed = None
    if verified is not None or "consensus" in needs:
        agreed = probabilities.among(candidates) if facts.posterior is None else most_probable(facts.posterior)
    alone = verified is None and candidates.single
    return Evidence(
        low,
        high,
        candidates.sizes,
        every=every if "every" in needs else None,
        share=_shares(probabilities.values_of(candidates), candidates) if "share" in needs else None,
        backing=_backing(facts.votes, candidates) if "backing" in needs and facts.votes is not None else None,
        posterior=facts.posterior if "posterior" in needs else None,
        table=ScoreTable(score, probabilities.array, u) if "table" in needs else None,
        named=candidates.to_mask() if "table" in needs else None,
        total=probabilities.totals() if "total" in needs else None,
        truth=truth,
        held=held,
        model=probabilities.proposed,
        label=candidates.rows[1].astype(np.intp) if alone else verified,
        consensus=None if agreed is None else agreed.label,
        consensus_confidence=None if agreed is None else agreed.confidence,
        noise=None if verified is None else u,
        **facts.lasting,
    )


def _shares(values: Floats, candidates: LabelSets) -> Floats:
    """f_y / Σ_{y'∈S} f_y' of every candidate, row after row; equal parts where the model gives them nothing."""
    exact = values.astype(np.float64)
    total = np.repeat(np.add.reduceat(exact, candidates.rows[0][:-1]), candidates.sizes)
    equal = 1 / np.repeat(candidates.sizes, candidates.sizes)
    shares: Floats = np.divide(exact, total, out=equal, where=total > 0)
    return shares


def _backing(votes: Votes, candidates: LabelSets) -> Floats:
    """The share of the answers that each candidate has, row after row; NaN where a row has none."""
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    with np.errstate(invalid="ignore"):
        shares: Floats = votes.counts[rows, candidates.rows[1]] / votes.counts.sum(axis=1)[rows]
    return shares
