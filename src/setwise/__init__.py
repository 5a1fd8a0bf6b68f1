"""Set-valued labels in, set-valued predictions out, with a statement of what may be claimed about them."""

from typing import TYPE_CHECKING

from setwise import strategies
from setwise._lazy import lazy_names
from setwise._version import __version__
from setwise.calibration.calibration import Calibration, SmallCalibrationWarning
from setwise.calibration.conformalize import conformalize
from setwise.contamination.diagnose import AssumptionRefuted, Diagnosis, diagnose
from setwise.decisions.comparison import Comparison
from setwise.decisions.monitor import Monitor
from setwise.decisions.triage import Triage, triage
from setwise.errors import MisuseWarning
from setwise.evidence.top_probabilities import TopK
from setwise.guarantees import Claim, Guarantee, Premise
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes
from setwise.metrics import SetSizeScorer, evaluate
from setwise.scores import APS, LAC, RAPS, SAPS, Margin

if TYPE_CHECKING:
    from setwise.contamination.inclusion import estimate_inclusion
    from setwise.contamination.people import Annotators, annotators
    from setwise.decisions.verification import suggest_verification
    from setwise.estimators.cross import CrossConformalClassifier
    from setwise.estimators.split import ConformalClassifier
    from setwise.learn import CoveringClassifier, EMClassifier, PartialLabelClassifier
    from setwise.plots import plot_coverage, plot_inclusion, plot_sets, plot_sizes

_HOMES = {
    "contamination.inclusion": ("estimate_inclusion",),
    "contamination.people": ("Annotators", "annotators"),
    "decisions.verification": ("suggest_verification",),
    "estimators.cross": ("CrossConformalClassifier",),
    "estimators.split": ("ConformalClassifier",),
    "learn": ("CoveringClassifier", "EMClassifier", "PartialLabelClassifier"),
    "plots": ("plot_coverage", "plot_inclusion", "plot_sets", "plot_sizes"),
}
"""The names imported above for type checkers only: their modules are heavier, and load on first use."""
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
