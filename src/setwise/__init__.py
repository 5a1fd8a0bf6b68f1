"""Set-valued labels in, set-valued predictions out, with a statement of what may be claimed about them."""

from importlib import import_module
from typing import Any

from setwise import strategies
from setwise._version import __version__
from setwise.calibration import Calibration, SmallCalibrationWarning, conformalize
from setwise.guarantees import Claim, Guarantee, Premise
from setwise.labels import LabelSets
from setwise.metrics import evaluate
from setwise.scores import APS, LAC, RAPS, SAPS, Margin

_LAZY = {
    "ConformalClassifier": "setwise.conformal",
    "CrossConformalClassifier": "setwise.cross",
    "EMClassifier": "setwise.learn",
    "PartialLabelClassifier": "setwise.learn",
}
"""Names whose modules are heavier, and load on first use."""

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "SAPS",
    "Calibration",
    "Claim",
    "ConformalClassifier",
    "CrossConformalClassifier",
    "EMClassifier",
    "Guarantee",
    "LabelSets",
    "Margin",
    "PartialLabelClassifier",
    "Premise",
    "SmallCalibrationWarning",
    "__version__",
    "conformalize",
    "evaluate",
    "strategies",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'setwise' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
