"""`rectified`: many candidates, corrected by a few verified labels.

With m_i(t) = Σ_{y∈S_i} w_iy·1{s_iy ≤ t} the posterior-weighted indicator of row i, ξ_i whether the row was verified
and π_i the probability that it was to be,

    N_i(t) = λ·m_i(t) + (ξ_i/π_i)·(1{s(x_i, y_i) ≤ t} − λ·m_i(t))

has mean P(s(x, y) ≤ t) for every λ, however candidates arise and whatever the posterior is worth: the better it is,
the smaller the variance (prediction-powered inference: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science
2023). λ = 0 is the verified rows alone. It is the regression of 1{s(x, y) ≤ t} on m(t), found on each half of the
verified rows for the other half, so that the mean stays exact. As in the rank rule the new row counts as one more
verified row that is missed, by the steps that its truth would have made in both sums: λ·w_y in the first and
(1 − λ·w_y)/π in the second, on average over the strangest fifth of the verified rows, among which the threshold
falls.

With the finite margin the verified rows are used alone: the coverage at the r-th smallest of their m scores is
Beta(r, m + 1 − r), an exact tolerance bound. The alternative with a proof, empirical Bernstein bounds with λ = 1 on
all rows, gave larger sets at every m up to 10,000 of 100,000 rows, and to take the smaller of both would need δ/2.

`calibrate_verified` is split conformal prediction on the verified rows. Where these were verified with unequal
probabilities π (a function of the row, independently of the others), their rows weigh w = 1/π and the new row w*,
the largest 1/π of all n calibration rows: weighted conformal prediction (Tibshirani, Barber, Candès and Ramdas,
NeurIPS 2019). The new row weighs more than w* with probability at most 1/(n + 1), which is what the promise loses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.special import betaincinv

from setwise._arrays import Floats
from setwise._lazy import lazy
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim
from setwise.strategies.curves import Curve, CurveRule, Levels, WithMargin, refuse_weights
from setwise.strategies.judgement import Setting, judgement
from setwise.strategies.posterior import pad_scores
from setwise.strategies.step_function_sums import Steps
from setwise.strategies.threshold_rules import RankRule, Rule


@dataclass(frozen=True)
class Rectified(WithMargin):
    """A few verified labels (``verified=``) make any contamination tractable.

    Where at least half of the rows are verified these alone are used: split conformal prediction, which is exact.
    That rule looks at numbers only, never at the resulting sets. Of rows in groups those groups that were
    verified as a whole are used alone, and counted: the guarantee is about a row of a new group.

    Parameters
    ----------
    margin, delta
        As for `Corrected`.
    look
        The number of this look, for whoever verifies more rows after seeing what the last ones gave, and stops when
        the sets are small enough. With ``margin="finite"`` look k spends 6/(π²k²) of `delta`, so that all looks
        together fail in at most a share `delta` of samples, whenever one stops.
    """

    look: int | None = None
    name: ClassVar[str] = "rectified"
    uses_verified_rows: ClassVar[bool] = True
    several: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.look is not None and (not isinstance(self.look, int) or self.look < 1 or self.margin != "finite"):
            raise ValueError(f"look: {self.look!r}; a whole number from 1 on, and with margin='finite'.")

    def needs(self, setting: Setting) -> tuple[str, ...]:
        """Every candidate's score and its share of the posterior; of votes, every label's."""
        return ("table", "posterior") if setting.votes else ("every", "share")

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The curve of rectified coverage, or split conformal prediction on the verified rows."""
        if not (evidence.verified_by_group and self.margin == "none"):
            refuse_weights(evidence, self.name)
        m = int(evidence.verified.sum())
        if m == 0:
            raise InputError(
                "strategy 'rectified' needs verified labels",
                Remedy("verified", None, "for the true labels of verified rows, missing elsewhere"),
                Remedy("strategy", "max", "without any"),
            )
        if evidence.group is not None:
            remark = f"The sets rest on the {evidence.verified_instances:,} verified groups alone."
            return replace(calibrate_verified(evidence, setting), remarks=(remark,))
        if 2 * m >= evidence.n and self.margin == "none" and evidence.chance is None:
            remark = f"At least half of the rows are verified: the sets rest on these {m:,} alone."
            return replace(calibrate_verified(evidence, setting), remarks=(remark,))
        if self.margin != "finite":
            curve = Curve(rectified_steps(evidence, alone=setting.written))
        elif evidence.chance is None:
            assert evidence.truth is not None  # noqa: S101 - rows are verified
            truth = evidence.truth[evidence.verified][:, None]
            spent = self.delta if self.look is None else 6 * self.delta / (math.pi * self.look) ** 2
            alone = Steps(truth, np.ones((m, 1)).__getitem__, np.ones(m))
            curve = _Tolerance(alone, self.margin, spent)
        else:
            raise ValueError(
                "margin: 'finite' is proved for rows verified with equal probability; with verified_probability "
                "use 'none'."
            )
        basis = f"rectified with {m:,} verified labels"
        whole = None if self.look is None else self.delta
        return CurveRule(
            self.name, evidence, setting, curve, basis, ("verified",), m, "verified labels", looks=whole
        )


def rectified_steps(evidence: Evidence, *, alone: bool = False) -> Steps:
    """The step functions N_i, with d_i = 1; with λ = 0 where the verified rows count `alone`."""
    scores, weights = pad_scores(evidence)
    inverse = _inverse_chance(evidence)
    truth = np.where(evidence.verified, evidence.truth, evidence.low)  # type: ignore[arg-type]
    own = np.zeros(evidence.n) if alone else _leans(evidence, scores, weights)
    lean = float((inverse * own).sum()) / evidence.n
    step = own * (weights * (scores == truth[:, None])).sum(axis=1)
    strange = evidence.verified & (truth >= np.quantile(truth[evidence.verified], 0.8))
    missed = float((step + inverse * (1 - step))[strange].mean())
    return Steps(
        np.column_stack([scores, truth]),
        np.column_stack([weights * (lean - inverse * own)[:, None], inverse]).__getitem__,
        np.ones(evidence.n),
        missed,
    )


class _Tolerance(Curve):
    """The coverage at the r-th smallest of m scores is at least the δ-quantile of Beta(r, m + 1 − r)."""

    @lazy
    def certified(self) -> Levels:
        m = self.steps.n
        scores = np.concatenate([part for _, part, _ in self.steps.parts(ordered=False)])
        thresholds, tied = np.unique(scores, return_counts=True)
        r = np.cumsum(tied)
        return Levels(thresholds, betaincinv(r, m + 1 - r, self.delta).round(12))


def _leans(evidence: Evidence, scores: Floats, weights: Floats) -> Floats:
    """The weight λ of the posterior in each verified row: that of the other half."""
    checked = np.flatnonzero(evidence.verified)
    assert evidence.truth is not None  # noqa: S101 - rows are verified
    own = np.zeros(evidence.n)
    halves = checked[::2], checked[1::2]
    for half, other in (halves, halves[::-1]):
        own[half] = _regression(evidence.truth[other], scores[other], weights[other])
    return own


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


def calibrate_verified(evidence: Evidence, setting: Setting) -> RankRule:
    """Split conformal prediction on the verified rows, weighted by 1/π where rows had unequal chances.

    Of groups that were verified as a whole the rows share one unit of weight each: a group is one instance.

    With weights, thresholds and p-values are those of a new row that weighs `heaviest(evidence)`.
    """
    assert evidence.truth is not None  # noqa: S101 - rows are verified
    checked = evidence.verified
    truth, weight = evidence.truth[checked], None if evidence.chance is None else 1 / evidence.chance[checked]
    group = None if evidence.group is None else evidence.group[checked]
    plain = Evidence(truth, truth, np.ones(len(truth), dtype=np.intp), weight=weight, group=group)
    judged = judgement(evidence, setting)
    told = replace(setting, miss_rate=Fraction(0), single=True, judged=judged)
    return RankRule(_Alone(evidence.n), plain, told, truth, plain.instances, states_law=True)


def heaviest(evidence: Evidence) -> Floats | None:
    """The largest 1/π of all rows, as the weight of a new row; None where all had the same chance."""
    return None if evidence.chance is None else np.array([1 / evidence.chance.min()])


@dataclass(frozen=True)
class _Alone:
    """The claimant of the verified rows alone, among n calibration rows."""

    n: int
    name: ClassVar[str] = "rectified"

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Split conformal prediction; with unequal chances weighted, and one row short."""
        if rule.evidence.weight is None:
            return (rule.judged.claim("truth", float(level), "split conformal prediction", "verified"),)
        promised = float(max(level - Fraction(1, self.n + 1), Fraction(0)))
        return (rule.judged.claim("truth", promised, "weighted split conformal prediction", "verified"),)
