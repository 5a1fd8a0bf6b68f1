"""Probabilities from candidate sets: losses, networks, the trainer, and estimators around them.

Names load on first use; `EMClassifier` and `PartialLabelKNN` need no torch.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "classifier": ["PartialLabelClassifier"],
    "cleaning": ["ConformalCleaning", "Purification"],
    "covering": ["CoveringClassifier"],
    "em": ["EMClassifier"],
    "knn": ["PartialLabelKNN"],
    "losses": [
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
    ],
    "networks": ["build_network"],
    "presets": ["PRESETS"],
    "scaling": ["fit_scaling"],
    "selection": ["approximated_accuracy", "covering_rate"],
    "sources": ["Resident", "Streamed"],
    "temperature": ["TemperatureError", "fit_temperature"],
    "trainer": ["DivergedError", "Plan", "Trainer"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - the table above is the list


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'setwise.learn' has no attribute {name!r}")
    try:
        return getattr(import_module(f"setwise.learn.{_HOME_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"setwise.learn.{name} needs torch: pip install 'setwise[learn]' (EMClassifier needs none).",
            name="torch",
        ) from error


def __dir__() -> list[str]:
    return list(__all__)
