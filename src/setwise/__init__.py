"""Set-valued labels in, set-valued predictions out, with a statement of what may be claimed about them."""

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names
from setwise._version import __version__

if TYPE_CHECKING:
    from setwise import strategies
    from setwise.calibration.base import SmallCalibrationWarning
    from setwise.conformal.calibration import Calibration
    from setwise.conformal.conformalize import conformalize
    from setwise.contamination.diagnose import AssumptionRefuted, Diagnosis, diagnose
    from setwise.contamination.inclusion import estimate_inclusion
    from setwise.crowd.annotators import Annotators, annotators
    from setwise.decisions.triage import Triage, triage
    from setwise.decisions.verification import suggest_verification
    from setwise.drift.comparison import Comparison
    from setwise.drift.monitor import Monitor
    from setwise.errors import MisuseWarning
    from setwise.estimators.cross import CrossConformalClassifier
    from setwise.estimators.loading import load
    from setwise.estimators.split import ConformalClassifier
    from setwise.guarantees import Claim, Guarantee, Premise
    from setwise.labels.label_sets import LabelSets
    from setwise.labels.votes import Votes
    from setwise.learn import CoveringClassifier, EMClassifier, PartialLabelClassifier
    from setwise.metrics import SetSizeScorer, evaluate
    from setwise.plots import plot_coverage, plot_coverage_by_class, plot_inclusion, plot_sets, plot_sizes
    from setwise.probabilities.top_probabilities import TopK
    from setwise.scores import APS, LAC, RAPS, SAPS, Margin

_HOMES = {
    "": ("strategies",),
    "calibration.base": ("SmallCalibrationWarning",),
    "conformal.calibration": ("Calibration",),
    "conformal.conformalize": ("conformalize",),
    "contamination.diagnose": ("AssumptionRefuted", "Diagnosis", "diagnose"),
    "contamination.inclusion": ("estimate_inclusion",),
    "crowd.annotators": ("Annotators", "annotators"),
    "drift.comparison": ("Comparison",),
    "drift.monitor": ("Monitor",),
    "decisions.triage": ("Triage", "triage"),
    "decisions.verification": ("suggest_verification",),
    "errors": ("MisuseWarning",),
    "estimators.cross": ("CrossConformalClassifier",),
    "estimators.loading": ("load",),
    "estimators.split": ("ConformalClassifier",),
    "probabilities.top_probabilities": ("TopK",),
    "guarantees": ("Claim", "Guarantee", "Premise"),
    "labels.label_sets": ("LabelSets",),
    "labels.votes": ("Votes",),
    "learn": ("CoveringClassifier", "EMClassifier", "PartialLabelClassifier"),
    "metrics": ("SetSizeScorer", "evaluate"),
    "plots": ("plot_coverage", "plot_coverage_by_class", "plot_inclusion", "plot_sets", "plot_sizes"),
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
    "load",
    "plot_coverage",
    "plot_coverage_by_class",
    "plot_inclusion",
    "plot_sets",
    "plot_sizes",
    "strategies",
    "suggest_verification",
    "triage",
]
