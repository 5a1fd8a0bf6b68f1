"""Set-valued labels in, set-valued predictions out, with a statement of what may be claimed about them."""

from setwise import strategies
from setwise._version import __version__
from setwise.calibration import Calibration, SmallCalibrationWarning, conformalize
from setwise.guarantees import Claim, Guarantee, Premise
from setwise.labels import LabelSets
from setwise.metrics import evaluate
from setwise.scores import APS, LAC, RAPS, SAPS, Margin

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "SAPS",
    "Calibration",
    "Claim",
    "Guarantee",
    "LabelSets",
    "Margin",
    "Premise",
    "SmallCalibrationWarning",
    "__version__",
    "conformalize",
    "evaluate",
    "strategies",
]
