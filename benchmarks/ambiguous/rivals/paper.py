"""The five rules of Conformal Prediction with Partially Labeled Data (Javanmardi and others, COPA 2023), from its formulas.

Of votes the candidates are all labels that somebody gave. The mixture is that of equal parts.
"""

from __future__ import annotations

import numpy as np

from ambiguous.registry import CANDIDATES, NONE, answers
from ambiguous.split import critical

RULES = {"max": CANDIDATES, "all": NONE, "mean": NONE, "min": NONE, "mixture": NONE}


def calibration_scores(probabilities, mask, rule):
    """The set E of the paper, with the score −f."""
    scores = np.where(mask, -probabilities, np.nan)
    if rule == "all":
        return scores[mask]
    if rule == "mixture":
        return (np.nanmin(scores, axis=1) + np.nanmax(scores, axis=1)) / 2
    return getattr(np, f"nan{rule}")(scores, axis=1)


def register(rule):
    @answers("sets", f"paper, {rule}", guarantee=RULES[rule], needs=["unverified"])
    def sets(task):
        known = task.candidates if task.votes is None else task.votes.candidates()
        scores = calibration_scores(task.probabilities, known.to_mask(), rule)
        return -task.new <= critical(scores, task.level, len(task.probabilities))


for rule in RULES:
    register(rule)
