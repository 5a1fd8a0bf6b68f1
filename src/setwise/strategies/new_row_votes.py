"""New rows that bring answers of their own: scored by the posterior of the annotator model, calibrated on checks.

The posterior of a row is one function of its answers and probabilities for checked and new rows: the annotator
model is fitted to the rows that nobody checked. So the score of the true label is exchangeable among checked and
new rows, whoever the annotators are, and the verified rows alone are split conformal prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim, Premise
from setwise.strategies.judgement import Setting
from setwise.strategies.rectified import calibrate_verified
from setwise.strategies.threshold_rules import Claimant, RankRule


def vote_rule(evidence: Evidence, setting: Setting) -> RankRule:
    """Split conformal prediction on the verified rows, by the scores that their answers give them."""
    check_answered(evidence)
    rule = calibrate_verified(replace(evidence, truth=evidence.answered_truth), setting)
    return replace(rule, claimant=_Answered(rule.claimant))


def check_answered(evidence: Evidence) -> None:
    """Refuses votes of new rows where verified rows have none, or do not count alike."""
    without = "leave candidates out"
    if evidence.answered_truth is None:
        problem = "candidates: votes of new rows are used where calibration rows have votes and some are verified"
        check = Remedy("verified", None, "with the labels of rows drawn at random, when you calibrate on votes")
        raise InputError(problem, check, without)
    if evidence.shares is not None or evidence.chance is not None:
        problem = "candidates: votes of new rows are not used with weights, groups or unequal verification"
        raise InputError(problem, without)


@dataclass(frozen=True)
class _Answered:
    """The claimant: as of the verified rows alone, and new rows are answered as these were."""

    alone: Claimant
    name: ClassVar[str] = "answers of new rows"

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Split conformal prediction."""
        like = Premise("same_annotators", "stated by you", "their answers are passed")
        return tuple(replace(claim, premises=(*claim.premises, like)) for claim in self.alone.claims(rule, level))
