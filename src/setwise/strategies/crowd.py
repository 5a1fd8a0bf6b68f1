"""`crowd`: every label counts as much as it is probable given all answers of its row, by the annotator model.

With R_ik the posterior of label k (`crowd.annotator_model`), Σ_k R_ik·1{s_ik ≤ t} has mean P(s(x, y) ≤ t)
if the model is right: annotators err independently given the truth, and the classifier's probabilities are right
once they are recalibrated. No true label is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from setwise.evidence.evidence import Evidence
from setwise.evidence.score_table import check_unchanged
from setwise.guarantees import REMEDIES, Premise
from setwise.strategies.base import StrategyTraits
from setwise.strategies.curves import Curve, CurveRule, not_filled, refuse_weights
from setwise.strategies.judgement import Setting, judgement
from setwise.strategies.random_answer import check_votes
from setwise.strategies.step_function_sums import Steps


@dataclass(frozen=True)
class Crowd(StrategyTraits):
    """Coverage estimated from votes through a model of the annotators, who err independently (``assume=``).

    Who answers a row must have nothing to do with its label either. Where the data refute independence, nothing is
    guaranteed and the sets are still given; verified rows then give a guarantee.
    """

    name: ClassVar[str] = "crowd"
    columns: ClassVar[tuple[str, ...]] = ("table", "posterior")
    models_annotators: ClassVar[bool] = True

    def calibrate(self, evidence: Evidence, setting: Setting) -> CurveRule:
        """The curve of posterior-weighted coverage."""
        check_votes(setting, self.name)
        refuse_weights(evidence, self.name)
        not_filled(setting, self.name)
        if evidence.table is None or evidence.posterior is None:
            raise ValueError("strategy 'crowd' needs evidence gathered with needs={'table', 'posterior'}.")
        weigh = evidence.posterior.__getitem__
        made = Steps(check_unchanged(evidence.table), weigh, np.ones(evidence.n))
        curve = Curve(made)
        who = Premise("who_answers", "stated by you" if setting.assume.kind == "independent" else "assumed")
        needs = (judgement(evidence, setting).independence, who, "recalibrated")
        advice, model = f"{REMEDIES['independent']}.", "annotator model"
        return CurveRule(
            self.name, evidence, setting, curve, model, needs, evidence.n, fitted=model, remarks=(advice,)
        )
