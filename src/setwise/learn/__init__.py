"""Probabilities from candidate sets: losses, networks, the trainer, and estimators around them.

Each name is loaded when it is first used; `EMClassifier` and `PartialLabelKNN` need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names

if TYPE_CHECKING:
    from setwise.learn.candidate_cleaning import ConformalCleaning, Purification
    from setwise.learn.classifier import PartialLabelClassifier
    from setwise.learn.covering_classifier import CoveringClassifier
    from setwise.learn.criteria import approximated_accuracy, covering_rate
    from setwise.learn.em import EMClassifier
    from setwise.learn.knn import PartialLabelKNN
    from setwise.learn.losses import (
        LOSSES,
        CandidateLoss,
        CAVLLoss,
        CCLoss,
        GCELoss,
        InclusionLoss,
        LWSLoss,
        MeritLoss,
        NaiveLoss,
        OSLLoss,
        ProdenLoss,
        RCLoss,
    )
    from setwise.learn.presets import PRESETS
    from setwise.learn.temperature import TemperatureError, fit_temperature
    from setwise.learn.trainer import DivergedError

_HOMES = {
    "classifier": ("PartialLabelClassifier",),
    "candidate_cleaning": ("ConformalCleaning", "Purification"),
    "covering_classifier": ("CoveringClassifier",),
    "criteria": ("approximated_accuracy", "covering_rate"),
    "em": ("EMClassifier",),
    "knn": ("PartialLabelKNN",),
    "losses": (
        "LOSSES",
        "CAVLLoss",
        "CCLoss",
        "CandidateLoss",
        "GCELoss",
        "InclusionLoss",
        "LWSLoss",
        "MeritLoss",
        "NaiveLoss",
        "OSLLoss",
        "ProdenLoss",
        "RCLoss",
    ),
    "presets": ("PRESETS",),
    "temperature": ("TemperatureError", "fit_temperature"),
    "trainer": ("DivergedError",),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, extra="setwise[learn]")

__all__ = [
    "LOSSES",
    "PRESETS",
    "CAVLLoss",
    "CCLoss",
    "CandidateLoss",
    "ConformalCleaning",
    "CoveringClassifier",
    "DivergedError",
    "EMClassifier",
    "GCELoss",
    "InclusionLoss",
    "LWSLoss",
    "MeritLoss",
    "NaiveLoss",
    "OSLLoss",
    "PartialLabelClassifier",
    "PartialLabelKNN",
    "ProdenLoss",
    "Purification",
    "RCLoss",
    "TemperatureError",
    "approximated_accuracy",
    "covering_rate",
    "fit_temperature",
]
