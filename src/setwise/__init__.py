"""Set-valued labels in, set-valued predictions out, with a statement of what may be claimed about them."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from setwise._lazy import lazy_names

if TYPE_CHECKING:
    from setwise import strategies as strategies
    from setwise._version import __version__ as __version__
    from setwise.calibration.base import SmallCalibrationWarning as SmallCalibrationWarning
    from setwise.conformal.calibration import Calibration as Calibration
    from setwise.conformal.conformalize import conformalize as conformalize
    from setwise.contamination.diagnose import AssumptionRefuted as AssumptionRefuted
    from setwise.contamination.diagnose import Diagnosis as Diagnosis
    from setwise.contamination.diagnose import diagnose as diagnose
    from setwise.contamination.inclusion import estimate_inclusion as estimate_inclusion
    from setwise.crowd.annotators import Annotators as Annotators
    from setwise.crowd.annotators import annotators as annotators
    from setwise.crowd.estimates import Estimates as Estimates
    from setwise.crowd.estimates import estimate as estimate
    from setwise.decisions.suspects import Suspects as Suspects
    from setwise.decisions.suspects import suspects as suspects
    from setwise.decisions.triage import Triage as Triage
    from setwise.decisions.triage import triage as triage
    from setwise.decisions.verification import suggest_verification as suggest_verification
    from setwise.drift.comparison import Comparison as Comparison
    from setwise.drift.monitor import Monitor as Monitor
    from setwise.errors import MisuseWarning as MisuseWarning
    from setwise.estimators.cross import CrossConformalClassifier as CrossConformalClassifier
    from setwise.estimators.loading import load as load
    from setwise.estimators.split import ConformalClassifier as ConformalClassifier
    from setwise.guarantees import Claim as Claim
    from setwise.guarantees import Guarantee as Guarantee
    from setwise.guarantees import Premise as Premise
    from setwise.labels.label_sets import LabelSets as LabelSets
    from setwise.labels.votes import Votes as Votes
    from setwise.learn import CoveringClassifier as CoveringClassifier
    from setwise.learn import EMClassifier as EMClassifier
    from setwise.learn import PartialLabelClassifier as PartialLabelClassifier
    from setwise.metrics import evaluate as evaluate
    from setwise.plots import plot_coverage as plot_coverage
    from setwise.plots import plot_coverage_by_class as plot_coverage_by_class
    from setwise.plots import plot_inclusion as plot_inclusion
    from setwise.plots import plot_sets as plot_sets
    from setwise.plots import plot_sizes as plot_sizes
    from setwise.probabilities.top_probabilities import TopK as TopK
    from setwise.scores import APS as APS
    from setwise.scores import LAC as LAC
    from setwise.scores import RAPS as RAPS
    from setwise.scores import RPS as RPS
    from setwise.scores import SAPS as SAPS
    from setwise.scores import Margin as Margin
    from setwise.scores import Nodes as Nodes
    from setwise.scores import RandomTies as RandomTies

_HOMES = {
    "": ("strategies",),
    "_version": ("__version__",),
    "calibration.base": ("SmallCalibrationWarning",),
    "conformal.calibration": ("Calibration",),
    "conformal.conformalize": ("conformalize",),
    "contamination.diagnose": ("AssumptionRefuted", "Diagnosis", "diagnose"),
    "contamination.inclusion": ("estimate_inclusion",),
    "crowd.annotators": ("Annotators", "annotators"),
    "crowd.estimates": ("Estimates", "estimate"),
    "drift.comparison": ("Comparison",),
    "drift.monitor": ("Monitor",),
    "decisions.suspects": ("Suspects", "suspects"),
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
    "metrics": ("evaluate",),
    "plots": ("plot_coverage", "plot_coverage_by_class", "plot_inclusion", "plot_sets", "plot_sizes"),
    "scores": ("APS", "LAC", "RAPS", "RPS", "SAPS", "Margin", "Nodes", "RandomTies"),
}
"""The names imported above for type checkers only. They load on first use: whatever begins with this package begins
at once, as the command line does, which is to hear Ctrl-C before anything slow is imported."""
__getattr__, __dir__, __all__ = lazy_names(__name__, _HOMES)
if find_spec("torch") is None:  # `from setwise import *` takes what works
    __all__ = [name for name in __all__ if name not in {"CoveringClassifier", "PartialLabelClassifier"}]
