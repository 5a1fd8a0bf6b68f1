"""What strategies share: a rule that answers a level with a threshold, p-values and a claim.

A rank rule holds one score e per row (`all`: one per candidate) and runs at level + slack, where the slack is
what has to be given up to promise the level itself: the miss rate for `max`, a bound on ρ for mixtures.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from setwise._arrays import Floats, Ints
from setwise._lazy import lazy
from setwise.contamination.assumption import NOTHING, Assumption
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim, Guarantee, Premise
from setwise.probabilities import Domain
from setwise.ranks import beta_interval, clopper_pearson, instances_needed, order_statistic, rank, upper_bound

DELTA = 0.05
"""Bounds from verified rows may fail for this share of samples of verified rows."""

SAME_SOURCE = Premise("new examples come from the same source as these", "not knowable here")
SAME_WITH_CANDIDATES = Premise(
    "new examples and their candidates come from the same source as these", "not knowable here"
)
SAME_CANDIDATES = Premise("candidates arise for new examples as they did here", "not knowable here")
WEIGHTED_SOURCE = Premise(
    "new examples differ from these only in how often each kind occurs, by the weights given", "declared by you"
)
GROUP_SOURCE = Premise("new groups and their rows come from the same source as these", "not knowable here")
RANDOM_CHECKS = Premise("the verified rows were chosen at random", "declared by you")


@dataclass(frozen=True)
class Setting:
    """What a strategy is told beyond the evidence: the score, and what the user declared.

    `domain` is that of the score's probabilities; `single` says that rows have one label by design; `checked` is
    how many rows are verified; `seed` is for strategies that draw.
    """

    conformity_score: str
    n_classes: int
    miss_rate: Fraction = Fraction(0)
    dropped: int = 0
    single: bool = False
    assume: Assumption = NOTHING
    checked: int = 0
    seed: int = 0
    domain: Domain = "simplex"


class Strategy(Protocol):
    """Evidence in, a rule out."""

    @property
    def name(self) -> str:
        """How it is called in `conformalize` and in print."""

    def needs(self, setting: Setting) -> Collection[str]:
        """The columns of `Evidence` that it needs beyond the extremes."""

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The rule that this evidence supports."""

    @property
    def pooled(self) -> bool:
        """Whether it has a cross-conformal form: one score per row, whose ranks may be pooled over folds."""


class OnExtremes:
    """For strategies that look at the extreme candidates alone."""

    pooled: ClassVar[bool] = True

    def needs(self, setting: Setting) -> Collection[str]:  # noqa: ARG002 - whatever the setting
        """Nothing beyond the extremes."""
        return ()


class OnCandidates:
    """For strategies that look at every candidate's score."""

    pooled: ClassVar[bool] = True

    def needs(self, setting: Setting) -> Collection[str]:  # noqa: ARG002 - whatever the setting
        """Every candidate's score."""
        return ("every",)


class Rule(Protocol):
    """A calibrated strategy: asks for a level, answers with a threshold, p-values and a claim."""

    @property
    def evidence(self) -> Evidence:
        """What it rests on."""

    @property
    def setting(self) -> Setting:
        """What was told."""

    @property
    def n(self) -> int:
        """How many instances it counts."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else its guarantee should say."""

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
    source: Premise = SAME_WITH_CANDIDATES
    contained: str = ""
    """What the set contains where e ≤ q, in words, for the law given the calibration set."""
    remarks: tuple[str, ...] = ()

    @property
    def counts_alike(self) -> bool:
        """Whether every row is one instance: no weights, no groups."""
        return self.evidence.shares is None

    def threshold(self, level: Fraction, new_weight: Floats | None = None) -> float | Floats:
        """The stored score up to which labels are in the set; one per new row where rows are weighted."""
        run = level + self.slack
        if not self.counts_alike:
            limits = self._weighted_threshold(run, self._new_shares(new_weight))
            return float(limits[0]) if new_weight is None else limits
        if rank(self.n, run) > self.n:  # counts instances, however many scores each brought
            return math.inf
        return order_statistic(self.scores, rank(len(self.scores), run))

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:
        """The (n, K) p-values: a label is in the set at level 1−ε if and only if its p-value exceeds ε.

        Whole numbers are divided once, so that the p-value is the nearest double to the exact fraction (for
        weighted rows, up to the rounding of sums of weights).
        """
        ordered, below = self._ascending
        first = self.count_below(scores)
        total, part = len(ordered) + 1, self.slack.denominator
        if self.counts_alike and total * part < 2**53:
            counts = (total - first) * part
            values = (counts + self.slack.numerator * total) / (total * part)
        elif self.counts_alike:
            values = (total - first) / total + float(self.slack)
        else:
            own = self._new_shares(new_weight)[:, None]
            values = (below[-1] - below[first] + own) / (below[-1] + own) + float(self.slack)
        if self.counts_alike and len(ordered) != self.n:  # `all`: too few instances leave every label in the set
            np.maximum(values, 1 / (self.n + 1), out=values)
        return np.minimum(values, 1.0)

    def count_below(self, scores: Floats) -> Ints:
        """For each score how many calibration scores lie strictly below it."""
        return np.searchsorted(self._ascending[0], scores, side="left")

    def claim(self, level: Fraction) -> Guarantee:
        """What may be said about the sets at this level, and what it rests on."""
        return Guarantee(
            self.claimant.name,
            self.setting.conformity_score,
            self.n,
            float(level),
            self.claimant.claims(self, level),
            shared_premises(self.evidence, self.setting, self.source),
            self._law(level),
            (*self._shortage(level), *self.remarks),
            unit=self._unit,
        )

    # ------------------------------------------------------------ building blocks of claims

    def plain_claim(self, level: Fraction) -> Claim:
        """With one candidate per row every strategy is split conformal prediction: ρ is the miss rate.

        That rows have one candidate each must be so by design: that it is so in this sample proves nothing.
        """
        reached = level + self.slack - self.setting.miss_rate
        premises = [self.held_premise()]
        if not self.setting.single and self.claimant.name != "max":
            text = "every row has a single candidate by design, as all of these have"
            premises.append(Premise(text, "not knowable here"))
        return Claim("truth", _bounded(reached), "split conformal prediction", tuple(premises))

    def rho_claim(self, level: Fraction, stranger_than: str) -> Claim:
        """P(y ∈ T) ≥ 1 − ε − ρ with ρ = P(s(x, y) > e(x, S)), which verified rows can bound."""
        run = level + self.slack
        rho = f"ρ is how often the true label is stranger than {stranger_than}"
        checked = self.evidence.verified
        if not checked.any() or len(self.scores) != self.evidence.n or not self.counts_alike:
            note = f"it does with at least {float(run):g} − ρ, where {rho}, which candidates cannot tell"
            return Claim("truth", None, "the ρ line", note=note)
        truth = self.evidence.truth
        assert truth is not None  # noqa: S101 - rows are verified, so there are scores of the truth
        missed, m = int((truth > self.scores)[checked].sum()), int(checked.sum())
        bound = upper_bound(missed, m, DELTA)
        note = f"{rho}: {missed} of {m} verified rows, at most {bound:.3f} with {1 - DELTA:.0%} confidence"
        return Claim("truth", _bounded(float(run) - bound), "the ρ line", (RANDOM_CHECKS,), note)

    def held_premise(self) -> Premise:
        """That the true label is a candidate (in all rows but a share of at most the miss rate)."""
        return held_premise(self.evidence, self.setting)

    # ------------------------------------------------------------ helpers

    @lazy
    def _ascending(self) -> tuple[Floats, Floats]:
        """The scores in order, and the weight strictly before each of them and after the last."""
        if self.evidence.shares is None:
            return np.sort(self.scores), np.empty(0)
        order = np.argsort(self.scores)
        return self.scores[order], np.append(0.0, np.cumsum(self.evidence.shares[0][order]))

    def _new_shares(self, new_weight: Floats | None) -> Floats:
        """What new rows weigh beside `Evidence.shares`; a new group where no weights are given."""
        if new_weight is None or self.evidence.weight is None:
            return np.array([1.0 if self.evidence.shares is None else self.evidence.shares[1]])
        shares: Floats = new_weight / self.evidence.weight.max()
        return shares

    def _weighted_threshold(self, run: Fraction, new_shares: Floats) -> Floats:
        """The smallest t with Σ w_i·1{e_i ≤ t} ≥ level·(Σ w_i + w_new), for each new weight."""
        ordered, before = self._ascending
        # Multiplied out, so that whole-numbered weights are compared exactly.
        needed = float(run.numerator) * (before[-1] + new_shares)
        first = np.searchsorted(before[1:] * float(run.denominator), needed, side="left")
        limits: Floats = np.append(ordered, math.inf)[first]
        return limits

    def _law(self, level: Fraction) -> str:
        """The Beta law of P(e ≤ q) given the calibration set; with ties it is a bound from below."""
        position = rank(self.n, level + self.slack)
        if not self.contained or not self.counts_alike or len(self.scores) != self.n or position > self.n:
            return ""
        low, high = beta_interval(self.n, position, DELTA)
        tied = (self.scores == order_statistic(self.scores, position)).sum() > 1
        between = f"at least {low:.3f}" if tied else f"between {low:.3f} and {high:.3f}"
        return (
            f"Given this calibration set of independent rows, the chance of containing {self.contained} is "
            f"{between} in {100 * (1 - DELTA):g} of 100 cases."
        )

    def _shortage(self, level: Fraction) -> tuple[str, ...]:
        reason = self.shortage(level)
        return (f"Every label is in every set: {reason}.",) if reason else ()

    def shortage(self, level: Fraction) -> str:
        """Why every label is in every set, and what would help; empty where this is not so."""
        run = level + self.slack
        if self.evidence.weight is not None:
            short = math.isinf(self._weighted_threshold(run, np.ones(1))[0])
            return f"the weight of the {self.n:,} calibration rows is too small for this level" if short else ""
        if rank(self.n, run) <= self.n:
            return ""
        needed = instances_needed(run)
        if needed is None:
            return (
                f"confidence {float(level):g} leaves an error of {float(1 - level):g}, which the "
                f"{float(self.slack):.3g} already given up uses up"
            )
        needs = f"confidence {float(level):g} needs at least {needed:,} calibration {self._unit}"
        return f"{needs}, and there are {self.n:,}"

    @property
    def _unit(self) -> str:
        return "examples" if self.evidence.group is None else "groups"


def shared_premises(evidence: Evidence, setting: Setting, source: Premise) -> tuple[Premise, ...]:
    """What every claim rests on: where new rows come from, and that dropped rows are like the others."""
    premises = [source]
    if evidence.weight is not None:
        premises = [WEIGHTED_SOURCE]
    elif evidence.group is not None:
        premises = [GROUP_SOURCE]
    if setting.dropped:
        text = "whether a row lacks candidates has nothing to do with its features or its label"
        premises.append(Premise(text, "declared by you", f"{setting.dropped:,} dropped"))
    return tuple(premises)


def held_premise(evidence: Evidence, setting: Setting) -> Premise:
    """That the true label is a candidate (in all rows but a share of at most the miss rate)."""
    rate = float(setting.miss_rate)
    text = (
        f"the true label is missing from at most {rate:g} of the candidate sets"
        if rate
        else "the true label is always a candidate"
    )
    checked, held = evidence.verified, evidence.held
    if held is not None and checked.any():
        m, missed = int(checked.sum()), int((checked & ~held).sum())
        detail = f"missing in {missed} of {m} verified rows"
        if clopper_pearson(missed, m, 2 * DELTA)[0] > rate or (missed and not rate):
            return Premise(text, "refuted by the data", detail)
        if m == evidence.n and missed <= rate * m:
            return Premise(text, "shown by the data", detail)
        return Premise(text, "declared by you", f"miss rate {rate:g}; {detail}")
    return Premise(text, "declared by you", f"miss rate {rate:g}")


def _bounded(probability: Fraction | float) -> float:
    return min(max(float(probability), 0.0), 1.0)
