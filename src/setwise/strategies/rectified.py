"""`rectified`: many candidates, corrected by a few verified labels.

With m_i(t) = Σ_{y∈S_i} w_iy·1{s_iy ≤ t} the posterior-weighted indicator of row i, ξ_i whether the row was verified
and π_i the probability that it was to be,

    N_i(t) = λ·m_i(t) + (ξ_i/π_i)·(1{s(x_i, y_i) ≤ t} − λ·m_i(t))

has mean P(s(x, y) ≤ t) for every λ, however candidates arise and whatever the posterior is worth: the better it is,
the smaller the variance (prediction-powered inference: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science
2023). λ = 0 is the verified rows alone. It is the regression of 1{s(x, y) ≤ t} on m(t), found on each half of the
verified rows for the other half, so that the mean stays exact. As in the rank rule the new row counts as one more
verified row that is missed: by the step 1 − λ·w_y that its truth would have made, on average over the strangest
fifth of the verified rows, among which the threshold falls.

With the finite margin λ is 1, and the unverified rows and the verified ones are two independent samples, of
m_i and of 1{s(x_i, y_i) ≤ t} − m_i: their means add up to the coverage, and each is bounded at δ/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from setwise._arrays import Floats
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim
from setwise.strategies.base import RankRule, Rule
from setwise.strategies.curves import Curve, CurveRule, Margin, Steps, check_margin, steps, unweighted
from setwise.strategies.posterior import padded
from setwise.strategies.premises import DELTA, Setting
from setwise.strategies.rank_based import Max


@dataclass(frozen=True)
class Rectified:
    """A few verified labels (``verified=``) make any contamination tractable.

    Where at least half of the rows are verified these alone are used: split conformal prediction, which is exact.
    That rule looks at numbers only, never at the resulting sets.

    Parameters
    ----------
    margin, delta
        As for `Corrected`.
    """

    margin: Margin = "none"
    delta: float = DELTA
    name: ClassVar[str] = "rectified"
    pooled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_margin(self.margin, self.delta)

    def needs(self, setting: Setting) -> tuple[str, ...]:  # noqa: ARG002 - whatever the setting
        """Every candidate's score and its share of the posterior."""
        return ("every", "share")

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The curve of rectified coverage, or split conformal prediction on the verified rows."""
        unweighted(evidence, self.name)
        m = int(evidence.verified.sum())
        if m == 0:
            raise InputError(
                "strategy 'rectified' needs verified labels",
                Remedy("verified", None, "for the true labels of rows that somebody checked, missing elsewhere"),
                Remedy("strategy", "max", "without any"),
            )
        plenty = m == evidence.n or (2 * m >= evidence.n and self.margin == "none")
        if plenty and evidence.chance is None:
            return _verified_alone(evidence, setting)
        if self.margin != "finite":
            curve = Curve(rectified_steps(evidence), self.margin, self.delta)
        elif evidence.chance is None:
            partial, checked = _two_samples(evidence)
            curve = Curve(partial, self.margin, self.delta, checked)
        else:
            raise ValueError(
                "margin: 'finite' is proved for rows verified with equal probability; with verified_probability "
                "use 'normal'."
            )
        basis = f"rectified with {m:,} verified labels"
        return CurveRule(self.name, evidence, setting, curve, basis, ("checks",), m, "verified labels")


def rectified_steps(evidence: Evidence) -> Steps:
    """The step functions N_i, with d_i = 1."""
    scores, weights = padded(evidence)
    inverse = _inverse_chance(evidence)
    truth = np.where(evidence.verified, evidence.truth, evidence.low)  # type: ignore[arg-type]
    lean, own = _leans(evidence, scores, weights)
    share = (weights * (scores == truth[:, None])).sum(axis=1)
    strange = evidence.verified & (truth >= np.quantile(truth[evidence.verified], 0.8))
    missed = float((inverse * (1 - own * share))[strange].mean())
    return steps(
        np.column_stack([scores, truth]),
        np.column_stack([weights * (lean - inverse * own)[:, None], inverse]),
        np.ones(evidence.n),
        spread=math.nan,  # for the finite margin, which these rows have no proof of
        new=missed,
    )


def _two_samples(evidence: Evidence) -> tuple[Steps, Steps]:
    """m_i on the unverified rows, and what it lacks on the verified ones."""
    scores, weights = padded(evidence)
    rest, checked = np.flatnonzero(~evidence.verified), np.flatnonzero(evidence.verified)
    assert evidence.truth is not None  # noqa: S101 - rows are verified
    partial = steps(scores[rest], weights[rest], np.ones(len(rest)), spread=1.0)
    table = np.column_stack([scores[checked], evidence.truth[checked]])
    lacking = np.column_stack([-weights[checked], np.ones(len(checked))])
    return partial, steps(table, lacking, np.ones(len(checked)), spread=2.0)


def _leans(evidence: Evidence, scores: Floats, weights: Floats) -> tuple[float, Floats]:
    """The weight of the posterior: λ on average, and for each verified row that of the other half."""
    checked = np.flatnonzero(evidence.verified)
    assert evidence.truth is not None  # noqa: S101 - rows are verified
    own = np.zeros(evidence.n)
    halves = checked[::2], checked[1::2]
    for half, other in (halves, halves[::-1]):
        own[half] = _regression(evidence.truth[other], scores[other], weights[other])
    return float(own[checked].mean()), own


def _regression(truth: Floats, scores: Floats, weights: Floats) -> float:
    """The slope of 1{s(x, y) ≤ t} on m(t), over the upper half of thresholds, within [0, 1]."""
    together = alone = 0.0
    for t in np.quantile(truth, np.linspace(0.5, 0.95, 10)) if len(truth) else ():
        hit, m = truth <= t, (weights * (scores <= t)).sum(axis=1)
        together += float(((hit - hit.mean()) * (m - m.mean())).sum())
        alone += float(np.square(m - m.mean()).sum())
    return min(max(together / alone, 0.0), 1.0) if alone > 0 else 0.0


def _inverse_chance(evidence: Evidence) -> Floats:
    """ξ_i/π_i, scaled to the mean one (the number of verified rows is then no source of noise)."""
    inverse: Floats = evidence.verified / (1.0 if evidence.chance is None else evidence.chance)
    inverse *= evidence.n / inverse.sum()
    return inverse


def _verified_alone(evidence: Evidence, setting: Setting) -> Rule:
    """Split conformal prediction on the verified rows, whose truth is their one candidate."""
    rows = evidence.rows(np.flatnonzero(evidence.verified))
    assert rows.truth is not None  # noqa: S101 - these rows are verified
    plain = Evidence(rows.truth, rows.truth, np.ones(rows.n, dtype=np.intp))
    rule = Max().calibrate(plain, replace(setting, miss_rate=Fraction(0), single=True))
    remark = f"At least half of the rows are verified, so these {rows.n:,} alone are used."
    return replace(rule, claimant=_Alone(), remarks=(remark,))


@dataclass(frozen=True)
class _Alone:
    """The claimant of the verified rows alone."""

    name: ClassVar[str] = "rectified"
    pooled: ClassVar[bool] = False

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Split conformal prediction."""
        return (rule.judged.claim("truth", float(level), "split conformal prediction", "checks"),)
