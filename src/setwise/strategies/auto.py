"""The default: whatever is justified by what was verified and declared, and `max` when nothing was.

With verified rows the sets at a level contain those of split conformal prediction on these rows alone, and so its
promise is theirs, whatever the candidates are:

    T(level) = max{ alone(level), min{ rectified(level − δ), otherwise(level) } },    δ = 1/(2(m + 1))

`alone` is the threshold of the m verified rows alone, `rectified` varies less from sample to sample, and
`otherwise` is the rule without verified rows (`corrected` or `max`); it is left out where the verified rows refute
it. δ is half of what one verified row weighs: without it, where candidates say next to nothing, `rectified` ends
at the next verified label after `alone`, and sets grow for no gain (by 10 % with 50 verified rows of KMNIST).

Verified rows suffice for a level where `alone` is finite: ⌈(m+1)·level⌉ ≤ m. Above the last such level the rule is
`otherwise`, and at least the strangest verified label, so that sets still grow with the level; every label where
`otherwise` is refuted.

Groups that were verified as a whole count in place of rows, and `rectified` is then `alone`. Where only some
rows of a group were verified they are left out: how these were chosen could depend on the size of the group.

With unequal chances π whether `alone` is finite depends on which rows were verified, and a rule that is changed
where it is not would cover less than either. So the rule stays the same: every label where `alone` is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from setwise._arrays import Floats
from setwise.contamination.diagnose import AssumptionRefuted
from setwise.errors import InputError
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim, Guarantee
from setwise.ranks import instances_needed
from setwise.strategies.base import StrategyTraits
from setwise.strategies.corrected import Corrected
from setwise.strategies.crowd import Crowd
from setwise.strategies.judgement import Setting, judgement
from setwise.strategies.random_answer import RandomAnswer
from setwise.strategies.rank_strategies import Max
from setwise.strategies.rectified import Rectified, calibrate_verified, heaviest
from setwise.strategies.threshold_rules import RankRule, Rule, remarks_on


@dataclass(frozen=True)
class Auto(StrategyTraits):
    """Verified rows: at least these alone; a declared contamination not refuted: `corrected`; else `max`.

    Of votes: declared independent and not refuted `crowd`, else `votes`.

    It never adopts an assumption that was not declared.
    """

    name: ClassVar[str] = "auto"
    pooled: ClassVar[bool] = True
    uses_verified_rows: ClassVar[bool] = True
    several: ClassVar[bool] = True
    adapts: ClassVar[bool] = True

    def needs(self, setting: Setting) -> Collection[str]:
        """What the strategies need that may be chosen."""
        if setting.votes:
            model = setting.checked or setting.assume.kind == "independent"
            return {*RandomAnswer().needs(setting), *(Crowd().needs(setting) if model else ())}
        declared = () if setting.assume.kind == "nothing" else Corrected().needs(setting)
        return {*declared, *(Rectified().needs(setting) if setting.checked else ())}

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The rule of the strategy that is chosen, which also states the claim."""
        if not evidence.verified.any():
            if evidence.chance is not None:
                alone = "verify rows there" if setting.checked else "leave it out, or verify rows"
                raise InputError("verified_probability: no row is verified", alone)
            return _rule_without_verified(evidence, setting)
        if evidence.shares is not None and not (evidence.verified_by_group and evidence.chance is None):
            if evidence.chance is not None:
                raise InputError(
                    "verified_probability: not together with sample_weight or groups, where rows are not verified "
                    "one by one",
                    "leave one of them out",
                )
            rule = _rule_without_verified(evidence, setting)
            m = int(evidence.verified.sum())
            why = f"With sample_weight auto cannot use the {m:,} verified rows."
            if evidence.weight is None:
                why = f"With groups auto cannot use the {m:,} verified rows: verify whole groups."
            return _add_remark(rule, why)
        otherwise = _rule_without_verified(evidence, setting)
        refuted = {premise.name for premise in otherwise.claim(Fraction(9, 10)).claims[0].refuted}
        return VerifiedRule(
            evidence,
            setting,
            calibrate_verified(evidence, setting),
            Rectified().calibrate(evidence, setting),
            None if refuted & {"truth_is_candidate", "miss_rate", "labels_right", "error_rate"} else otherwise,
        )


def half_step(verified: int) -> Fraction:
    """δ: half of what one verified row weighs."""
    return Fraction(1, 2 * (verified + 1))


def _rule_without_verified(evidence: Evidence, setting: Setting) -> Rule:
    """The rule without verified rows."""
    if setting.votes:
        return _of_votes(evidence, setting)
    if setting.assume.kind == "nothing" or setting.filled or evidence.shares is not None or evidence.n == 1:
        return Max().calibrate(evidence, setting)
    try:
        rule = Corrected().calibrate(evidence, setting)
    except AssumptionRefuted as refuted:
        return _add_remark(Max().calibrate(evidence, setting), f"auto chose max: {refuted.diagnosis.sentence}")
    return _add_remark(rule, "auto chose corrected: the data do not contradict the contamination that you state.")


def _of_votes(evidence: Evidence, setting: Setting) -> Rule:
    """The annotator model where it is declared and not refuted; else a promise about a random answer."""
    plain = RandomAnswer().calibrate(evidence, setting)
    if setting.assume.kind != "independent" or evidence.shares is not None or setting.filled:
        return plain
    judged = judgement(evidence, setting)
    if judged.dependence is None:
        return _add_remark(plain, "auto chose votes: too few rows have two answers to fit the annotator model.")
    crowd, independent = Crowd().calibrate(evidence, setting), judged.independence
    if independent.status != "refuted by the data":
        return _add_remark(crowd, "auto chose crowd: the data do not contradict that annotators err independently.")
    level = Fraction(9, 10)
    table = np.asarray(evidence.table)
    sizes = [float((table <= rule.threshold(level)).sum(axis=1).mean()) for rule in (plain, crowd)]
    why = f"auto chose votes: annotators do not err independently ({independent.detail})."
    instead = f"At 0.9 crowd would give {sizes[1]:.2f} labels per set, not {sizes[0]:.2f}, but without a guarantee."
    return _add_remark(_add_remark(plain, instead) if sizes[1] < sizes[0] - 0.005 else plain, why)


def _add_remark(rule: Rule, remark: str) -> Rule:
    return replace(rule, remarks=(remark, *rule.remarks))  # type: ignore[type-var]


@dataclass(frozen=True)
class VerifiedRule:
    """The larger of two thresholds where the verified rows suffice for the level, and another rule where not."""

    evidence: Evidence
    setting: Setting
    alone: RankRule
    rectified: Rule
    otherwise: Rule | None
    """The rule without verified rows; None where these refute it."""
    remarks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many rows there are; of grouped rows how many groups."""
        return self.evidence.instances

    def threshold(self, level: Fraction, new_weight: Floats | None = None) -> float:  # noqa: ARG002 - unweighted
        """The stored score up to which labels are in the set."""
        otherwise = self._otherwise(level)
        if self._uses_verified_rows(level):
            lower = level - half_step(self.alone.n)
            rectified = float(self.rectified.threshold(lower)) if lower > 0 else -math.inf
            return max(self._alone(level), min(rectified, otherwise))
        return max(otherwise, float(self.alone.scores.max()))

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:  # noqa: ARG002 - unweighted
        """The (n, K) p-values: a label is in the set at level 1−ε if and only if its p-value exceeds ε."""
        new = heaviest(self.evidence)
        otherwise = np.ones(scores.shape) if self.otherwise is None else self.otherwise.p_values(scores)
        rectified: Floats = np.minimum(self.rectified.p_values(scores) - float(half_step(self.alone.n)), otherwise)
        values: Floats = np.maximum(self.alone.p_values(scores, new), rectified)
        if new is not None:
            return values
        fewest = 1 / (self.alone.n + 1)
        return np.where(values > fewest, values, np.minimum(otherwise, fewest))

    def claim(self, level: Fraction) -> Guarantee:
        """Split conformal prediction on the verified rows, or the claim of the rule that is in force."""
        judged = judgement(self.evidence, self.setting)
        if self._uses_verified_rows(level):
            (claim,) = self.alone.claimant.claims(self.alone, level)
            return self._guarantee(level, claim, self.alone.claim(level).given_calibration)
        if self.otherwise is None:
            return self._guarantee(level, judged.claim("truth", float(level), "every label"))
        made = self.otherwise.claim(level)
        # Verified rows are calibrated on before others: fair to all rows if these were chosen at random.
        larger = self.threshold(level) > self._otherwise(level)
        return replace(
            made,
            claims=tuple(replace(claim, premises=(*claim.premises, *judged.verification)) for claim in made.claims),
            given_calibration="" if larger else made.given_calibration,
            remarks=(f"Too few {self.evidence.unit} are verified: {self._shortage(level)}.", *made.remarks),
        )

    def shortage(self, level: Fraction) -> str:
        """Why every label is in every set, and what would help; empty where this is not so."""
        if math.isfinite(self.threshold(level)):
            return ""
        if self._uses_verified_rows(level):
            chance = heaviest(self.evidence)
            least = "" if chance is None else f" (one row was verified with probability {1 / float(chance[0]):.2g})"
            return f"the {self.alone.n:,} verified rows weigh too little for confidence {float(level):.12g}{least}"
        if self.otherwise is not None:
            return self.otherwise.shortage(level)
        held = "enough right labels are candidates" if self.setting.truth else "the true label is a candidate"
        return f"{self._shortage(level)}, and these refute that {held}"

    def _guarantee(self, level: Fraction, claim: Claim, law: str = "") -> Guarantee:
        score, verified = self.setting.conformity_score, self.alone.n
        remarks = (*remarks_on(self.shortage(level)), *self.remarks)
        n, unit = self.n, self.evidence.unit
        return Guarantee(Auto.name, score, n, float(level), (claim,), law, remarks, unit=unit, verified=verified)

    def _uses_verified_rows(self, level: Fraction) -> bool:
        return self.evidence.chance is not None or math.isfinite(self._alone(level))

    def _alone(self, level: Fraction) -> float:
        return float(np.max(self.alone.threshold(level, heaviest(self.evidence))))

    def _otherwise(self, level: Fraction) -> float:
        return math.inf if self.otherwise is None else float(self.otherwise.threshold(level))

    def _shortage(self, level: Fraction) -> str:
        what = "labels" if self.evidence.group is None else "groups"
        needed = f"confidence {float(level):.12g} needs at least {instances_needed(level):,} verified {what}"
        return f"{needed}, and there are {self.alone.n:,}"
