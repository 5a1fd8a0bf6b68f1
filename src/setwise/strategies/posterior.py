"""`posterior`: candidates are weighted by the model's probabilities, which must be right.

With weights w_y ∝ f_y(x) over the candidates, Σ_{y∈S} w_y·1{s(x, y) ≤ t} has mean P(s(x, y) ≤ t) if the truth is
distributed over the candidates as the model says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from setwise._arrays import Floats
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.strategies.base import StrategyTraits
from setwise.strategies.curves import Curve, CurveRule, not_filled, refuse_weights
from setwise.strategies.judgement import Setting
from setwise.strategies.step_function_sums import Steps
from setwise.strategies.threshold_rules import Rule


@dataclass(frozen=True)
class Posterior(StrategyTraits):
    """Candidates weighted by the model's probabilities: valid as far as these are right."""

    name: ClassVar[str] = "posterior"
    columns: ClassVar[tuple[str, ...]] = ("every", "share")

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The curve of posterior-weighted coverage."""
        refuse_weights(evidence, self.name)
        not_filled(setting, self.name)
        if setting.miss_rate:
            raise InputError(
                "strategy 'posterior' takes the truth to be a candidate",
                Remedy("miss_rate", 0.0),
                Remedy("strategy", "max", "with a miss rate"),
            )
        curve = Curve(posterior_steps(evidence))
        basis = "posterior-weighted calibration"
        needs = ("calibrated", "truth_is_candidate")
        return CurveRule(self.name, evidence, setting, curve, basis, needs, fewest=evidence.n)


def posterior_steps(evidence: Evidence) -> Steps:
    """Σ_{y∈S, s_iy ≤ t} w_iy per row."""
    scores, weights = pad_scores(evidence)
    return Steps(scores, weights.__getitem__, np.ones(evidence.n))


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
