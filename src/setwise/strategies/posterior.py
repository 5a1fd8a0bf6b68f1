"""`posterior`: candidates are weighted by the model's probabilities, which must be right.

With weights w_y ∝ f_y(x) over the candidates, Σ_{y∈S} w_y·1{s(x, y) ≤ t} has mean P(s(x, y) ≤ t) if the truth is
distributed over the candidates as the model says. `draws` samples labels from the weights instead (Monte Carlo
conformal prediction: Stutz, Roy, Matejovicova, Strachan, Cemgil and Doucet, TMLR 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from setwise._arrays import Floats
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.guarantees import Claim
from setwise.strategies.curves import Curve, CurveRule, WithMargin, not_filled, refuse_weights
from setwise.strategies.judgement import Setting
from setwise.strategies.step_function_sums import Steps
from setwise.strategies.threshold_rules import RankRule, Rule


@dataclass(frozen=True)
class Posterior(WithMargin):
    """Candidates weighted by the model's probabilities: valid as far as these are right.

    Parameters
    ----------
    margin, delta
        As for `Corrected`.
    draws
        None uses the weights themselves; a number draws so many labels per row from them.
    """

    draws: int | None = None
    name: ClassVar[str] = "posterior"
    columns: ClassVar[tuple[str, ...]] = ("every", "share")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws is None:
            return
        if not isinstance(self.draws, int) or self.draws < 1 or self.margin != "none":
            raise ValueError(f"draws: {self.draws!r}; a whole number from 1 on, and with margin='none'.")

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The curve of posterior-weighted coverage, or ranks among drawn labels."""
        refuse_weights(evidence, self.name)
        not_filled(setting, self.name)
        if setting.miss_rate:
            raise InputError(
                "strategy 'posterior' takes the truth to be a candidate",
                Remedy("miss_rate", 0.0),
                Remedy("strategy", "max", "with a miss rate"),
            )
        if self.draws is not None:
            scores = _draw_scores(evidence, self.draws, setting.seed)
            return RankRule(self, evidence, setting, scores, evidence.n)
        curve = Curve(posterior_steps(evidence), self.margin, self.delta)
        basis = "posterior-weighted calibration"
        needs = ("calibrated", "truth_is_candidate")
        return CurveRule(self.name, evidence, setting, curve, basis, needs, fewest=evidence.n)

    def claims(self, rule: RankRule, level: Fraction) -> tuple[Claim, ...]:
        """Of drawn labels: 1 − ε for one draw per row, 1 − 2ε for several."""
        promised = level if self.draws == 1 else max(2 * level - 1, Fraction(0))
        note = "" if self.draws == 1 else f"In practice it is near {float(level):.12g}"
        needs = ("calibrated", "truth_is_candidate")
        source = "Monte Carlo conformal prediction"
        return (rule.judged.claim("truth", float(promised), source, *needs, note=note),)


def posterior_steps(evidence: Evidence) -> Steps:
    """Σ_{y∈S, s_iy ≤ t} w_iy per row."""
    scores, weights = pad_scores(evidence)
    return Steps(scores, weights.__getitem__, np.ones(evidence.n), spread=1.0)


def pad_scores(evidence: Evidence) -> tuple[Floats, Floats]:
    """The candidates' scores and shares as (n, largest size) tables; what is missing weighs nothing, at the top.

    Where there are votes, all labels' scores and their posterior given the votes.
    """
    if evidence.table is not None and evidence.posterior is not None:
        return np.asarray(evidence.table), evidence.posterior
    if evidence.every is None or evidence.share is None:
        raise ValueError("this strategy needs evidence gathered with needs={'every', 'share'}.")
    inside = np.arange(int(evidence.sizes.max())) < evidence.sizes[:, None]
    scores = np.repeat(evidence.high[:, None], inside.shape[1], axis=1)
    weights = np.zeros(inside.shape)
    scores[inside], weights[inside] = evidence.every, evidence.share
    return scores, weights


def _draw_scores(evidence: Evidence, draws: int, seed: int) -> Floats:
    """Scores of `draws` labels per row, drawn from the row's weights."""
    scores, weights = pad_scores(evidence)
    edges = np.cumsum(weights, axis=1)[:, None, :]
    u = np.random.default_rng(seed).random((evidence.n, draws, 1))
    chosen = np.minimum((u >= edges).sum(axis=2), evidence.sizes[:, None] - 1)
    return np.take_along_axis(scores, chosen, axis=1).ravel()
