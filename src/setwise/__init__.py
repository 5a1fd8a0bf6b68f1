"""Set-valued labels in, set-valued predictions out, with a statement of what may be claimed about them."""

from importlib import import_module
from typing import Any

from setwise import strategies
from setwise._version import __version__
from setwise.calibration.calibration import Calibration, SmallCalibrationWarning
from setwise.calibration.conformalize import conformalize
from setwise.contamination.diagnose import AssumptionRefuted, Diagnosis, diagnose
from setwise.guarantees import Claim, Guarantee, Premise
from setwise.labels.label_sets import LabelSets
from setwise.metrics import SetSizeScorer, evaluate
from setwise.scores import APS, LAC, RAPS, SAPS, Margin

_LAZY = {
    "ConformalClassifier": "setwise.estimators.split",
    "CoveringClassifier": "setwise.learn",
    "CrossConformalClassifier": "setwise.estimators.cross",
    "EMClassifier": "setwise.learn",
    "PartialLabelClassifier": "setwise.learn",
    "estimate_inclusion": "setwise.contamination.inclusion",
    "plot_coverage": "setwise.plots",
    "plot_inclusion": "setwise.plots",
    "plot_sets": "setwise.plots",
    "plot_sizes": "setwise.plots",
    "suggest_verification": "setwise.decisions.verification",
}
"""Names whose modules are heavier, and load on first use."""

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "SAPS",
    "AssumptionRefuted",
    "Calibration",
    "Claim",
    "ConformalClassifier",
    "CoveringClassifier",
    "CrossConformalClassifier",
    "Diagnosis",
    "EMClassifier",
    "Guarantee",
    "LabelSets",
    "Margin",
    "PartialLabelClassifier",
    "Premise",
    "SetSizeScorer",
    "SmallCalibrationWarning",
    "__version__",
    "conformalize",
    "diagnose",
    "estimate_inclusion",
    "evaluate",
    "plot_coverage",
    "plot_inclusion",
    "plot_sets",
    "plot_sizes",
    "strategies",
    "suggest_verification",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'setwise' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
