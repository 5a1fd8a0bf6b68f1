"""Probabilities from candidate sets: losses, networks, the trainer, and estimators around them.

Each name is loaded when it is first used; `EMClassifier` needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names

if TYPE_CHECKING:
    from setwise.learn.classifier import PartialLabelClassifier as PartialLabelClassifier
    from setwise.learn.covering_classifier import CoveringClassifier as CoveringClassifier
    from setwise.learn.criteria import approximated_accuracy as approximated_accuracy
    from setwise.learn.criteria import covering_rate as covering_rate
    from setwise.learn.em import EMClassifier as EMClassifier
    from setwise.learn.losses import LOSSES as LOSSES
    from setwise.learn.losses import CandidateLoss as CandidateLoss
    from setwise.learn.losses import CAVLLoss as CAVLLoss
    from setwise.learn.losses import CCLoss as CCLoss
    from setwise.learn.losses import GCELoss as GCELoss
    from setwise.learn.losses import InclusionLoss as InclusionLoss
    from setwise.learn.losses import LWSLoss as LWSLoss
    from setwise.learn.losses import MeritLoss as MeritLoss
    from setwise.learn.losses import NaiveLoss as NaiveLoss
    from setwise.learn.losses import OSLLoss as OSLLoss
    from setwise.learn.losses import ProdenLoss as ProdenLoss
    from setwise.learn.losses import RCLoss as RCLoss
    from setwise.learn.trainer import DivergedError as DivergedError

_HOMES = {
    "classifier": ("PartialLabelClassifier",),
    "covering_classifier": ("CoveringClassifier",),
    "criteria": ("approximated_accuracy", "covering_rate"),
    "em": ("EMClassifier",),
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
    "trainer": ("DivergedError",),
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _HOMES, extra="setwise[learn]")
