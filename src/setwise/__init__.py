"""Set-valued labels in, set-valued predictions out, with a statement of what may be claimed about them."""

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names
from setwise._version import __version__

if TYPE_CHECKING:
    from setwise import strategies
    from setwise.calibration.calibration import Calibration, SmallCalibrationWarning
    from setwise.calibration.conformalize import conformalize
    from setwise.contamination.diagnose import AssumptionRefuted, Diagnosis, diagnose
    from setwise.contamination.inclusion import estimate_inclusion
    from setwise.contamination.people import Annotators, annotators
    from setwise.decisions.comparison import Comparison
    from setwise.decisions.monitor import Monitor
    from setwise.decisions.triage import Triage, triage
    from setwise.decisions.verification import suggest_verification
    from setwise.errors import MisuseWarning
    from setwise.estimators.cross import CrossConformalClassifier
    from setwise.estimators.split import ConformalClassifier
    from setwise.evidence.top_probabilities import TopK
    from setwise.guarantees import Claim, Guarantee, Premise
    from setwise.labels.label_sets import LabelSets
    from setwise.labels.votes import Votes
    from setwise.learn import CoveringClassifier, EMClassifier, PartialLabelClassifier
    from setwise.metrics import SetSizeScorer, evaluate
    from setwise.plots import plot_coverage, plot_inclusion, plot_sets, plot_sizes
    from setwise.scores import APS, LAC, RAPS, SAPS, Margin

_HOMES = {
    "": ("strategies",),
    "calibration.calibration": ("Calibration", "SmallCalibrationWarning"),
    "calibration.conformalize": ("conformalize",),
    "contamination.diagnose": ("AssumptionRefuted", "Diagnosis", "diagnose"),
    "contamination.inclusion": ("estimate_inclusion",),
    "contamination.people": ("Annotators", "annotators"),
    "decisions.comparison": ("Comparison",),
    "decisions.monitor": ("Monitor",),
    "decisions.triage": ("Triage", "triage"),
    "decisions.verification": ("suggest_verification",),
    "errors": ("MisuseWarning",),
    "estimators.cross": ("CrossConformalClassifier",),
    "estimators.split": ("ConformalClassifier",),
    "evidence.top_probabilities": ("TopK",),
    "guarantees": ("Claim", "Guarantee", "Premise"),
    "labels.label_sets": ("LabelSets",),
    "labels.votes": ("Votes",),
    "learn": ("CoveringClassifier", "EMClassifier", "PartialLabelClassifier"),
    "metrics": ("SetSizeScorer", "evaluate"),
    "plots": ("plot_coverage", "plot_inclusion", "plot_sets", "plot_sizes"),
    "scores": ("APS", "LAC", "RAPS", "SAPS", "Margin"),
}
"""The names imported above for type checkers only. They load on first use: whatever begins with this package begins
at once, as the command line does, which is to hear Ctrl-C before anything slow is imported."""
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "SAPS",
    "Annotators",
    "AssumptionRefuted",
    "Calibration",
    "Claim",
    "Comparison",
    "ConformalClassifier",
    "CoveringClassifier",
    "CrossConformalClassifier",
    "Diagnosis",
    "EMClassifier",
    "Guarantee",
    "LabelSets",
    "Margin",
    "MisuseWarning",
    "Monitor",
    "PartialLabelClassifier",
    "Premise",
    "SetSizeScorer",
    "SmallCalibrationWarning",
    "TopK",
    "Triage",
    "Votes",
    "__version__",
    "annotators",
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
    "triage",
]
