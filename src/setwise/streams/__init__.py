"""More rows than fit into memory, or into one machine: streams, parts of tables, engines."""

from typing import TYPE_CHECKING

from setwise._lazy import lazy_names

if TYPE_CHECKING:
    from setwise.streams.batch_predictor import BatchPredictor as BatchPredictor
    from setwise.streams.calibration_rows import CalibrationRows as CalibrationRows

_HOMES = {"batch_predictor": ("BatchPredictor",), "calibration_rows": ("CalibrationRows",)}
"""The names imported above for type checkers only: Arrow is loaded on first use."""
__getattr__, __dir__, __all__ = lazy_names(__name__, _HOMES, extra="setwise[data]")
