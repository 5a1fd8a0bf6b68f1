"""Probabilities from candidate sets: losses, networks, the trainer, and estimators around them."""

from setwise.learn.classifier import PartialLabelClassifier
from setwise.learn.cleaning import ConformalCleaning, Purification
from setwise.learn.em import EMClassifier
from setwise.learn.knn import PartialLabelKNN
from setwise.learn.losses import (
    LOSSES,
    CandidateLoss,
    CAVLLoss,
    CCLoss,
    GCELoss,
    LWSLoss,
    MeritLoss,
    NaiveLoss,
    OSLLoss,
    ProdenLoss,
    RCLoss,
)
from setwise.learn.networks import build_network
from setwise.learn.presets import PRESETS
from setwise.learn.scaling import fit_scaling
from setwise.learn.selection import approximated_accuracy, covering_rate
from setwise.learn.sources import Resident, Streamed
from setwise.learn.temperature import TemperatureError, fit_temperature
from setwise.learn.trainer import DivergedError, Plan, Trainer

__all__ = [
    "LOSSES",
    "PRESETS",
    "CAVLLoss",
    "CCLoss",
    "CandidateLoss",
    "ConformalCleaning",
    "DivergedError",
    "EMClassifier",
    "GCELoss",
    "LWSLoss",
    "MeritLoss",
    "NaiveLoss",
    "OSLLoss",
    "PartialLabelClassifier",
    "PartialLabelKNN",
    "Plan",
    "ProdenLoss",
    "Purification",
    "RCLoss",
    "Resident",
    "Streamed",
    "TemperatureError",
    "Trainer",
    "approximated_accuracy",
    "build_network",
    "covering_rate",
    "fit_scaling",
    "fit_temperature",
]
