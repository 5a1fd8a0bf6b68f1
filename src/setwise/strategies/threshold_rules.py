"""Rules: what a strategy makes of evidence. A rule answers a level with a threshold, p-values and a claim.

A rank rule holds one score e per row (`all`: one per candidate) and runs at level + slack, where the slack is
what has to be given up to promise the level itself: the miss rate for `max`, a bound on ρ for mixtures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from setwise._arrays import Floats, Ints
from setwise._lazy import lazy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim, Guarantee
from setwise.ranks import Ascending, beta_interval, instances_needed, order_statistic, rank, upper_bound
from setwise.strategies.judgement import DELTA, Judgement, Setting, judgement

_FEW = 256  # scores that are found sooner without the table of `Ascending`


class Rule(Protocol):
    """A calibrated strategy: asks for a level, answers with a threshold, p-values and a claim."""

    @property
    def evidence(self) -> Evidence:
        """What it rests on."""

    @property
    def setting(self) -> Setting:
        """What the strategy knows beyond the evidence."""

    @property
    def n(self) -> int:
        """How many instances it counts."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Further sentences of its guarantee."""

    def threshold(self, level: Fraction, new_weight: Floats | None = None) -> float | Floats:
        """The stored score up to which labels are in the set; (n,) one per new row, or (1, K) one per label."""

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:
        """The (n, K) p-values: a label is in the set at level 1−ε where its p-value exceeds ε."""

    def claim(self, level: Fraction) -> Guarantee:
        """What may be said about the sets at this level, and what it rests on."""

    def shortage(self, level: Fraction) -> str:
        """Why every label is in every set, and what would help; empty where this is not so."""


class Claimant(Protocol):
    """What states the claims of a rank rule: the strategy itself, or the one that it chose."""

    @property
    def name(self) -> str:
        """How it is called in print."""

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """What the rule promises at a level."""


@dataclass(frozen=True)
class RankRule:
    """Thresholds are order statistics of one score per row, p-values are ranks."""

    claimant: Claimant
    evidence: Evidence
    setting: Setting
    scores: Floats
    n: int
    slack: Fraction = Fraction(0)
    states_law: bool = False
    """Whether sets do what is guaranteed wherever e ≤ q, misses aside: then the Beta law of e ≤ q bounds it."""
    remarks: tuple[str, ...] = ()
    shares: tuple[Floats, float] | None = None
    """What each score weighs, and a new row, where that is not what `evidence.shares` says of rows."""

    @property
    def judged(self) -> Judgement:
        """How premises are known, from all that is known of the rows."""
        return judgement(self.evidence, self.setting)

    @property
    def counts_alike(self) -> bool:
        """Whether every score is one instance: no weights, no groups."""
        return self._weights is None

    def threshold(self, level: Fraction, new_weight: Floats | None = None) -> float | Floats:
        """The stored score up to which labels are in the set; one per new row where rows are weighted."""
        run = level + self.slack
        if not self.counts_alike:
            limits = self._threshold_by_weight(run, self._new_shares(new_weight))
            return float(limits[0]) if new_weight is None else limits
        if rank(self.n, run) > self.n:  # counts instances, however many scores each brought
            return math.inf
        return order_statistic(self.scores, rank(len(self.scores), run))

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:
        """The (n, K) p-values: a label is in the set at level 1−ε if and only if its p-value exceeds ε.

        Whole numbers are divided once, so that the p-value is the nearest double to the exact fraction (for
        weighted rows, up to the rounding of sums of weights).
        """
        first = self.count_below(scores)
        if self.counts_alike:
            return self._by_count.take(first)
        below, own = self._ascending[1], self._new_shares(new_weight)[:, None]
        with np.errstate(invalid="ignore", over="ignore"):
            values: Floats = (below[-1] - below.take(first) + own) / (below[-1] + own) + float(self.slack)
        values[np.isnan(values)] = 1.0  # a new row that outweighs all others beyond what numbers hold
        return np.minimum(values, 1.0)

    @lazy
    def _by_count(self) -> Floats:
        """The p-value by how many of the scores lie strictly below, where all count alike."""
        total, part = len(self.scores) + 1, self.slack.denominator
        at_least = total - np.arange(total)
        if total * part < 2**53:
            values = (at_least * part + self.slack.numerator * total) / (total * part)
        else:
            values = at_least / total + float(self.slack)
        if len(self.scores) != self.n:  # `all`: too few instances leave every label in the set
            np.maximum(values, 1 / (self.n + 1), out=values)
        return np.minimum(values, 1.0)

    def count_below(self, scores: Floats) -> Ints:
        """For each score how many calibration scores lie strictly below it."""
        ordered = self._ascending[0]
        if scores.size < _FEW:
            return np.searchsorted(ordered.values, scores, side="left")
        return ordered.count_below(scores)

    def claim(self, level: Fraction) -> Guarantee:
        """What may be said about the sets at this level, and what it rests on."""
        claims = self.claimant.claims(self, level)
        return Guarantee(
            self.claimant.name,
            self.setting.conformity_score,
            self.n,
            float(level),
            claims,
            "" if claims[0].refuted else format_law(self.law_bound(level)),
            (*remarks_on(self.shortage(level)), *self.remarks),
            unit=self.evidence.unit,
            verified=self.evidence.verified_instances,
        )

    # ------------------------------------------------------------ building blocks of claims

    def plain_claim(self, level: Fraction) -> Claim:
        """With one candidate per row every strategy is split conformal prediction: ρ is the miss rate.

        That rows have one candidate each must be so by design: that it is so in this sample proves nothing.
        """
        reached = level + self.slack - self.setting.miss_rate
        needs = ["truth_is_candidate"]
        if not self.setting.single:
            needs.append("single_by_design")
        return self.judged.claim("truth", _clip(reached), "split conformal prediction", *needs)

    def rho_claim(self, level: Fraction, stranger_than: str) -> Claim:
        """P(y ∈ T) ≥ P(e ≤ q) − ρ with ρ = P(s(x, y) > e(x, S)), which verified rows chosen at random can bound.

        The argument goes through the candidates that the new row would have, had they arisen as these did.
        """
        run = level + self.slack
        label = "the right label that decides" if self.setting.truth else "the true label"
        rho = f"ρ is how often {label} is stranger than {stranger_than}"
        checked, truth = self.evidence.verified, self.evidence.truth
        unknown = truth is None or not checked.any() or self.setting.written
        if truth is None or unknown or len(self.scores) != self.evidence.n or not self.counts_alike:
            note = f"The probability is at least {float(run):g} less ρ. Only verified labels can show ρ: {rho}"
            return self.judged.claim("truth", None, "the ρ line", note=note)
        if self.evidence.chance is not None:
            note = f"{rho}. Rows verified with unequal probabilities do not bound it: use strategy rectified"
            return self.judged.claim("truth", None, "the ρ line", note=note)
        missed, m = int((truth > self.scores)[checked].sum()), int(checked.sum())
        bound = upper_bound(missed, m, DELTA / 2)
        reached, _ = beta_interval(self.n, rank(self.n, run), DELTA)
        note = (
            f"This is {reached:.3f} less {bound:.3f}. A new score lies within the threshold with probability at "
            f"least {reached:.3f}. {label.capitalize()} is stranger than {stranger_than} in at most {bound:.3f} of "
            f"rows ({missed} of {m} verified rows). Each holds in 39 of 40 draws"
        )
        promised = _clip(reached - bound)
        return self.judged.claim("truth", promised, "the ρ line", "verified", note=note, delta=DELTA)

    # ------------------------------------------------------------ helpers

    @property
    def _weights(self) -> tuple[Floats, float] | None:
        return self.evidence.shares if self.shares is None else self.shares

    @lazy
    def _ascending(self) -> tuple[Ascending, Floats]:
        """The scores in order, and the weight strictly before each of them and after the last."""
        if self._weights is None:
            return Ascending(np.sort(self.scores)), np.empty(0)
        order = np.argsort(self.scores)
        return Ascending(self.scores[order]), np.append(0.0, np.cumsum(self._weights[0][order]))

    def _new_shares(self, new_weight: Floats | None) -> Floats:
        """What new rows weigh beside the scores; a new group where no weights are given."""
        unit = 1.0 if self._weights is None else self._weights[1]
        if new_weight is None or self.evidence.weight is None:
            return np.array([unit])
        shares: Floats = unit * new_weight / self.evidence.weight.max()
        return shares

    def _threshold_by_weight(self, run: Fraction, new_shares: Floats) -> Floats:
        """The smallest t with Σ w_i·1{e_i ≤ t} ≥ level·(Σ w_i + w_new), for each new weight."""
        ordered, before = self._ascending
        # Multiplied out, so that whole-numbered weights are compared exactly.
        needed = float(run.numerator) * (before[-1] + new_shares)
        first = np.searchsorted(before[1:] * float(run.denominator), needed, side="left")
        limits: Floats = np.append(ordered.values, math.inf)[first]
        return limits

    def law_bound(self, level: Fraction) -> float | None:
        """The Beta law of P(e ≤ q) given the calibration set, less the miss rate: a bound from below."""
        position = rank(self.n, level + self.slack)
        if not self.states_law or not self.counts_alike or len(self.scores) != self.n or position > self.n:
            return None
        low, _ = beta_interval(self.n, position, 2 * DELTA)
        return max(low - float(self.setting.miss_rate), 0.0)

    def shortage(self, level: Fraction) -> str:
        """Why every label is in every set, and what would help; empty where this is not so."""
        run = level + self.slack
        if self.evidence.weight is not None:
            short = math.isinf(self._threshold_by_weight(run, np.ones(1))[0])
            return (
                f"the {self.n:,} calibration rows weigh too little for confidence {float(level):.12g}"
                if short
                else ""
            )
        if rank(self.n, run) <= self.n:
            return ""
        needed = instances_needed(run)
        if needed is None:
            return (
                f"confidence {float(level):.12g} allows an error of {float(1 - level):g}, and "
                f"{float(self.slack):.3g} of it is already used up (by the miss rate, or bounds from verified rows)"
            )
        needs = f"confidence {float(level):.12g} needs at least {needed:,} calibration {self.evidence.unit}"
        return f"{needs}, and there are {self.n:,}"


def remarks_on(shortage: str) -> tuple[str, ...]:
    """The sentence that every label is in every set, if there is a reason for that."""
    return (f"Every label is in every set: {shortage}.",) if shortage else ()


def format_law(bound: float | None, where: str = "") -> str:
    """The law as a sentence, rounded down, and where it holds; empty where there is none."""
    if bound is None:
        return ""
    low = math.floor(1000 * bound) / 1000
    return f"If rows are independent, this probability is at least {low:.3f} in 19 of 20 draws{where}."


def _clip(probability: Fraction | float) -> float:
    return min(max(float(probability), 0.0), 1.0)
