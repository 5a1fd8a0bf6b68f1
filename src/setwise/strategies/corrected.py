"""`corrected`: the coverage itself, estimated from candidates whose contamination does not depend on the example.

If a false label l is a candidate with probability p, whatever x and y, and the truth with probability 1−η, then
with r_i = (|S_i| − 1 + η)/(K − 1), A_i(t) the candidates and B_i(t) the labels with score at most t,

    E[A_i(t) − r_i·B_i(t)] = (1 − η − p)·P(s(x, y) ≤ t)   and   E[1 − η − r_i] = 1 − η − p,

because r_i has mean p given x. So the ratio of the means is the coverage at t: p need not be known, and the
variation of |S_i|, which would dominate the noise at large p, cancels row by row.

If it is a candidate with probability M_kl = P(l ∈ S | y = k), then with W = M⁻¹, ω = W·1 and any z with Σ_l z_l = 1

    a_il = Σ_{y∈S_i} W_yl − z_l·(Σ_{y∈S_i} ω_y − 1)    has mean 1{l = y_i} given (x_i, y_i),

and Σ_l a_il = 1 exactly. z is the regression of the first term on the second under independent inclusions.
Only first-order inclusion probabilities matter: how candidates depend on each other does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from setwise._arrays import Array, Floats
from setwise.contamination.diagnose import AssumptionRefuted
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.strategies.curves import Curve, CurveRule, Steps, WithMargin, not_filled, steps, unweighted
from setwise.strategies.premises import Setting, judgement


@dataclass(frozen=True)
class Corrected(WithMargin):
    """Estimates the coverage through a contamination that you declare (``assume=``) and the data do not refute.

    Parameters
    ----------
    margin
        ``"none"`` promises the level for large samples, on average; ``"normal"`` adds the bound of the central
        limit theorem and holds in about a share 1−`delta` of samples, with every label in the set where fewer than
        ten misses are expected; ``"finite"`` adds a bound with a proof for this many rows.
    delta
        How often a margin may fail.
    if_refuted
        ``"raise"`` stops with `AssumptionRefuted` where the data refute the assumption; ``"continue"``
        goes on, with a void claim.
    """

    if_refuted: Literal["raise", "continue"] = "raise"
    name: ClassVar[str] = "corrected"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.if_refuted not in {"raise", "continue"}:
            raise ValueError(f"if_refuted: {self.if_refuted!r} is neither 'raise' nor 'continue'.")

    def needs(self, setting: Setting) -> tuple[str, ...]:  # noqa: ARG002 - whatever the setting
        """The scores of all labels."""
        return ("table",)

    def calibrate(self, evidence: Evidence, setting: Setting) -> CurveRule:
        """The curve of estimated coverage, if the data do not refute what was declared."""
        unweighted(evidence, self.name)
        not_filled(setting, self.name)
        check_declared(setting, self.name)
        judged = judgement(evidence, setting)
        if judged.diagnosis.refuted and self.if_refuted == "raise":
            raise AssumptionRefuted(judged.diagnosis)
        curve, *also = (
            Curve(corrected_steps(evidence, told), self.margin, self.delta) for told in settings_between(setting)
        )
        basis, n = "corrected for contamination", evidence.n
        return CurveRule(
            self.name,
            evidence,
            setting,
            curve,
            basis,
            contamination_needs(setting),
            n,
            also=also[0] if also else None,
        )


def check_declared(setting: Setting, name: str) -> None:
    """Refuses where no contamination was declared; that annotators err independently is none."""
    if setting.assume.kind in {"nothing", "independent"}:
        raise InputError(
            f"strategy {name!r} needs to know how false labels become candidates",
            Remedy("assume", "uniform"),
            Remedy("assume", "class"),
            Remedy("strategy", "max", "to declare nothing"),
        )


def settings_between(setting: Setting) -> tuple[Setting, ...]:
    """With the miss rate as declared, and with none: what both certify holds for every rate between.

    For a fixed level, N − L·d is linear in the rate and its standard deviation convex, so that the mean less its
    margin is concave: not below zero at both ends, it is not below zero between.
    """
    if setting.assume.matrix is not None or not setting.miss_rate:
        return (setting,)
    return setting, replace(setting, miss_rate=Fraction(0))


def contamination_needs(setting: Setting) -> tuple[str, ...]:
    """The premises of a correction: the declared contamination; that the truth is a candidate, unless M says it."""
    needs = ["contamination"]
    if setting.assume.estimated:
        needs.append("inclusion")
    if setting.assume.estimated or setting.assume.matrix is None:
        needs.append("truth_is_candidate")
        needs += ["misses_at_random"] if setting.miss_rate else []
    return tuple(needs)


def _labels(evidence: Evidence) -> tuple[Floats, Array]:
    if evidence.table is None or evidence.named is None:
        raise ValueError("strategy 'corrected' needs evidence gathered with needs={'table'}.")
    return evidence.table, evidence.named


def corrected_steps(evidence: Evidence, setting: Setting) -> Steps:
    """Σ_{l: s_il ≤ t} weight_il per row, whose mean over that of d is the coverage at t."""
    table, _ = _labels(evidence)
    weights, d, spread, new = label_weights(evidence, setting)
    return steps(table, weights, d, spread, new)


def label_weights(evidence: Evidence, setting: Setting) -> tuple[Floats, Floats, float, float]:
    """Weights (n, K) with mean c·1{l = y} and d (n,) with mean c; the spread of their sums; d where truths step."""
    _, named = _labels(evidence)
    if setting.assume.matrix is None:
        rate = float(setting.miss_rate)
        r = (evidence.sizes - 1 + rate) / (named.shape[1] - 1)
        d = 1 - rate - r
        new = float(d @ d / d.sum()) if d.sum() > 0 else 1 - rate  # a truth steps by about d
        return named - r[:, None], d, _uniform_spread(named.shape[1], rate), new
    inverse, z = _inverse(setting.assume.matrix)
    centred = inverse - np.outer(inverse.sum(axis=1), z)
    return named @ centred + z, np.ones(evidence.n), _spread(centred, z), 1.0


def _inverse(matrix: Floats) -> tuple[Floats, Floats]:
    """W = M⁻¹ and the weights z of the control variate, which sum to one."""
    inverse = np.linalg.inv(matrix)
    omega = inverse.sum(axis=1)
    noise = (matrix * (1 - matrix)).mean(axis=0) * omega
    total = float(noise @ omega)
    k = len(matrix)
    return inverse, (noise @ inverse) / total if total > 0 else np.full(k, 1 / k)


def _uniform_spread(k: int, rate: float) -> float:
    """The length of the interval of A − r·B − L·(1 − η − r) over all set sizes and label counts, L in [0, 1]."""
    size = np.arange(1, k + 1)[:, None]
    below = np.hstack(
        [0 * size, size, k - size, 0 * size + k]
    )  # where these functions of it, lines, have their ends
    r = (size - 1 + rate) / (k - 1)
    most, least = np.minimum(size, below) - r * below, np.maximum(0, size + below - k) - r * below
    d = 1 - rate - r
    return max(float((most - L * d).max() - (least - L * d).min()) for L in (0, 1))  # convex in L


def _spread(centred: Floats, z: Floats) -> float:
    """The same for Σ_{l∈T} (z_l + Σ_{y∈S} V_yl) over all sets S and T, where the rows of V sum to zero.

    With signs σ, τ for membership, Σ_{S×T} V = ¼(1ᵀVτ + σᵀVτ), and |σᵀVτ| ≤ K·‖V‖₂.
    """
    reach = (np.abs(centred.sum(axis=0)).sum() + len(z) * np.linalg.norm(centred, 2)) / 4
    return float(2 * reach + np.abs(z).sum())
