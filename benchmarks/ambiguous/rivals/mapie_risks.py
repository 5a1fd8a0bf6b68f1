"""MAPIE's risk control: a threshold for "this label is right" at which few accepted labels are wrong.

Its binary controller gets the confidence as the probability that the label is right, and thresholds at twenty
quantiles of it; the defaults (hundredths) find less where confidences crowd near one.
"""

from __future__ import annotations

import numpy as np

from ambiguous.registry import OF_ACCEPTED, OF_ALL, answers
from ambiguous.rivals.proposals import SOURCES

DELTA = 0.05
SIZES = 20


def accept(task, source, risk, target):
    from mapie.risk_control import BinaryClassificationController

    label, confidence = source(task)
    confidence, looked = np.clip(np.asarray(confidence, dtype=float), 0, 1), task.looked
    thresholds = np.unique(np.quantile(confidence, 1 - np.arange(1, SIZES + 1) / SIZES))
    controller = BinaryClassificationController(
        lambda X: np.column_stack([1 - X[:, 0], X[:, 0]]),
        risk,
        target,
        confidence_level=1 - DELTA,
        best_predict_param_choice="recall",
        list_predict_params=thresholds,
    )
    controller.calibrate(confidence[looked, None], (task.verified == label)[looked].astype(int))
    if controller.best_predict_param is None:
        return label, np.zeros(task.n, dtype=bool)
    return label, controller.predict(confidence[:, None]).astype(bool)


def register(name, source, needs):
    options = {"needs": needs, "package": "mapie"}

    @answers("keep", f"MAPIE, precision, {name}", guarantee=OF_ACCEPTED, **options)
    def precise(task):
        return accept(task, source, "precision", 1 - task.max_error) if task.mode == "accepted" else None

    @answers("keep", f"MAPIE, accepted and wrong, {name}", guarantee=OF_ALL, **options)
    def overall(task):
        if task.mode != "overall":
            return None
        from mapie.risk_control import BinaryRisk

        wrong = BinaryRisk(
            risk_occurrence=lambda right, accepted: (accepted == 1) & (right == 0),
            risk_condition=lambda right, _accepted: np.ones(np.shape(right), dtype=bool),
            higher_is_better=False,
        )
        return accept(task, source, wrong, task.max_error)


for _name, (_source, _needs, _) in SOURCES.items():
    register(_name, _source, _needs)
