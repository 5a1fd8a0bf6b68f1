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


def accept(task, source, risk, target, **options):
    from mapie.risk_control import BinaryClassificationController

    label, confidence = source(task)
    noise = 1e-9 * np.random.default_rng((task.seed, 1)).random(task.n)  # breaks ties
    confidence, looked = np.clip(np.asarray(confidence, dtype=float) - noise, 0, 1), task.looked
    thresholds = np.unique(np.quantile(confidence, 1 - np.arange(1, SIZES + 1) / SIZES))[::-1]
    controller = BinaryClassificationController(
        lambda X: np.column_stack([1 - X[:, 0], X[:, 0]]),
        risk,
        target,
        confidence_level=1 - DELTA,
        best_predict_param_choice="recall",
        list_predict_params=thresholds,
        **options,
    )
    controller.calibrate(confidence[looked, None], (task.verified == label)[looked].astype(int))
    if controller.best_predict_param is None:
        return label, np.zeros(task.n, dtype=bool)
    return label, controller.predict(confidence[:, None]).astype(bool)


def register(name, source, needs, fwer):
    options = {"needs": needs, "package": "mapie"}
    name = f"{name}, one after the other" if fwer == "fixed_sequence" else name

    @answers("keep", f"MAPIE, precision, {name}", guarantee=OF_ACCEPTED, **options)
    def precise(task):
        if task.mode != "accepted":
            return None
        return accept(task, source, "precision", 1 - task.max_error, fwer_method=fwer)

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
        return accept(task, source, wrong, task.max_error, fwer_method=fwer)


for _name, (_source, _needs, _) in SOURCES.items():
    for _fwer in ("bonferroni_holm", "fixed_sequence"):
        register(_name, _source, _needs, _fwer)
