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
from functools import lru_cache, partial
from typing import ClassVar, Literal

import numpy as np

from setwise._arrays import Array, Floats
from setwise.contamination.assumption import Assumption
from setwise.contamination.diagnose import AssumptionRefuted
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.evidence.score_table import check_unchanged
from setwise.strategies.curves import Curve, CurveRule, WithMargin, not_filled, refuse_weights
from setwise.strategies.judgement import Setting, judgement
from setwise.strategies.step_function_sums import Steps


@dataclass(frozen=True)
class Corrected(WithMargin):
    """Estimates the coverage through a contamination that you declare (``assume=``) and the data do not refute.

    Parameters
    ----------
    margin
        ``"none"`` promises the level for large samples, on average; ``"finite"`` adds a bound with a proof for this
        many rows, which holds in a share 1−`delta` of samples.
    delta
        How often a margin may fail.
    if_refuted
        ``"raise"`` stops with `AssumptionRefuted` where the data refute the assumption; ``"continue"``
        goes on, with a void claim.
    """

    if_refuted: Literal["raise", "continue"] = "raise"
    name: ClassVar[str] = "corrected"
    columns: ClassVar[tuple[str, ...]] = ("table",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.if_refuted not in {"raise", "continue"}:
            raise ValueError(f"if_refuted: {self.if_refuted!r} is neither 'raise' nor 'continue'.")

    def calibrate(self, evidence: Evidence, setting: Setting) -> CurveRule:
        """The curve of estimated coverage, if the data do not refute what was declared."""
        refuse_weights(evidence, self.name)
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


def corrected_steps(evidence: Evidence, setting: Setting) -> Steps:
    """Σ_{l: s_il ≤ t} weight_il per row, whose mean over that of d is the coverage at t."""
    if evidence.table is None or evidence.named is None:
        raise ValueError("strategy 'corrected' needs evidence gathered with needs={'table'}.")
    weigh = partial(_weights_of, evidence, setting)
    return Steps(check_unchanged(evidence.table), weigh, *_of_rows(evidence, setting))


def label_weights(evidence: Evidence, setting: Setting) -> tuple[Floats, Floats, float, float]:
    """Weights (n, K) with mean c·1{l = y} and d (n,) with mean c; d where truths step; the spread of their sums."""
    named: Array = evidence.named  # type: ignore[assignment]
    if setting.assume.matrix is None:
        return named - _share(evidence, setting)[:, None], *_of_rows(evidence, setting)
    centred, z, _ = _centre(setting.assume)
    return named @ centred + z, *_of_rows(evidence, setting)


def _weights_of(evidence: Evidence, setting: Setting, rows: slice) -> Floats:
    """The weights of a block of rows."""
    assert evidence.named is not None  # noqa: S101 - as of the table
    held = (evidence.low[rows], evidence.high[rows], evidence.sizes[rows])
    return label_weights(Evidence(*held, named=evidence.named[rows]), setting)[0]


def _of_rows(evidence: Evidence, setting: Setting) -> tuple[Floats, float, float]:
    """The d of rows, d where truths step, and the spread."""
    if setting.assume.matrix is not None:
        return np.ones(evidence.n), 1.0, _centre(setting.assume)[2]
    rate = float(setting.miss_rate)
    d = 1 - rate - _share(evidence, setting)
    new = float(d @ d / d.sum()) if d.sum() > 0 else 1 - rate  # a truth steps by about d
    return d, new, _uniform_spread(setting.n_classes, rate)


def _share(evidence: Evidence, setting: Setting) -> Floats:
    """r_i of each row."""
    return (evidence.sizes - 1 + float(setting.miss_rate)) / (setting.n_classes - 1)


@lru_cache(maxsize=8)
def _centre(assume: Assumption) -> tuple[Floats, Floats, float]:
    """V = W − ω·zᵀ with W = M⁻¹, the weights z of the control variate, which sum to one, and the spread."""
    matrix: Floats = assume.matrix  # type: ignore[assignment]
    inverse = np.linalg.inv(matrix)
    omega = inverse.sum(axis=1)
    noise = (matrix * (1 - matrix)).mean(axis=0) * omega
    total = float(noise @ omega)
    z = (noise @ inverse) / total if total > 0 else np.full(len(matrix), 1 / len(matrix))
    centred = inverse - np.outer(omega, z)
    return centred, z, _spread(centred, z)


@lru_cache(maxsize=8)
def _uniform_spread(k: int, rate: float) -> float:
    """The length of the interval of A − r·B − L·(1 − η − r) over all set sizes and label counts, L in [0, 1].

    It is linear in the count but where that is the size of the set or of what is outside.
    """
    size = np.arange(1, k + 1)
    below = np.stack([np.zeros_like(size), size, k - size, np.full_like(size, k)])
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
