"""`votes`: an answer drawn at random from those that a new example would get is in the set.

Let ℓ_i(t) be the share of row i's answers whose score exceeds t. With the smallest t for which
(Σ ℓ_i(t) + 1)/(n + 1) ≤ ε an answer drawn at random from a new row's is in the set with probability at least 1 − ε,
if rows with their answers are exchangeable (conformal risk control: Angelopoulos, Bates, Fisch, Lei and Schuster,
ICLR 2024). It is a rank rule in which the answers of a row share one unit of weight. Of a row without answers the
worst candidate counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from setwise._arrays import Floats
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim, Premise
from setwise.ranks import instances_needed
from setwise.strategies.base import StrategyTraits
from setwise.strategies.judgement import Setting
from setwise.strategies.threshold_rules import RankRule

_WHOLE = 2**50  # up to which sums of whole numbers are exact
_VERIFIED = 50  # rows, with which sets are about as large as with many


@dataclass(frozen=True)
class RandomAnswer(StrategyTraits):
    """The share of a row's answers outside the set is kept small: a promise about annotators, whoever they are.

    It is one about the truth only where answers are distributed as the truth is.
    """

    name: ClassVar[str] = "votes"
    columns: ClassVar[tuple[str, ...]] = ("every", "backing")

    def calibrate(self, evidence: Evidence, setting: Setting) -> RankRule:
        """Every answer's score, with its share of the row."""
        check_votes(setting, self.name)
        if evidence.every is None or evidence.backing is None:
            raise ValueError("strategy 'votes' needs evidence gathered with needs={'every', 'backing'}.")
        rows = np.repeat(np.arange(evidence.n), evidence.sizes)
        answered = ~np.isnan(evidence.backing)
        last = np.append(rows[1:] != rows[:-1], True)
        scores = np.where(answered, evidence.every, evidence.high[rows])
        held = np.where(answered, evidence.backing, last)
        shares, new = (np.ones(evidence.n), 1.0) if evidence.shares is None else evidence.shares
        unit = _unit(held)
        weights = shares[rows] * np.rint(held * unit) if unit > 1 else shares[rows] * held
        return RankRule(self, evidence, setting, scores, evidence.instances, shares=(weights, new * unit))

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """About a random answer; about the truth where answers are distributed as it is."""
        source, judged = "conformal risk control", rule.judged
        ambiguous = Premise("answers_as_truth", "assumed")
        needed = max(_VERIFIED, instances_needed(level) or 0)
        advice = f"Verify {needed:,} rows drawn at random: auto then guarantees this without the condition"
        return (
            judged.claim("answer", float(level), source, "same_annotators"),
            judged.claim("truth", float(level), source, ambiguous, note="" if rule.evidence.shares else advice),
        )


def _unit(shares: Floats) -> float:
    """A number that makes whole numbers of all shares, where there is one that is not too large; else 1."""
    parts = np.unique(shares[shares > 0])
    denominators = {Fraction(float(part)).limit_denominator(1000).denominator for part in parts[:1000]}
    unit = math.lcm(*denominators)
    whole = unit * len(shares) < _WHOLE and np.abs(parts * unit - np.rint(parts * unit)).max(initial=0) < 1e-6
    return float(unit) if whole else 1.0


def check_votes(setting: Setting, name: str) -> None:
    """Refuses candidates that do not come from votes."""
    if not setting.votes:
        raise InputError(
            f"strategy {name!r} is about votes, and these candidates do not say who or how many gave them",
            "pass Votes in place of candidates",
            Remedy("strategy", "max", "for candidate sets"),
        )
