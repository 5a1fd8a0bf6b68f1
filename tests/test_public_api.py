"""What users may rely on: the names, and that importing them is cheap."""

import inspect
import subprocess
import sys

import setwise


def test_the_public_names_are_these_and_no_others():
    assert set(setwise.__all__) == {
        "APS", "LAC", "RAPS", "RPS", "SAPS", "Annotators", "AssumptionRefuted", "Calibration", "Claim",
        "Comparison", "ConformalClassifier", "CoveringClassifier", "CrossConformalClassifier", "Diagnosis",
        "EMClassifier", "Estimates", "Guarantee", "LabelSets", "Margin", "MisuseWarning", "Monitor", "Nodes",
        "PartialLabelClassifier", "Premise", "RandomTies", "SmallCalibrationWarning", "Suspects",
        "TopK", "Triage", "Votes", "__version__", "annotators", "conformalize", "diagnose", "estimate",
        "estimate_inclusion", "evaluate", "load", "plot_coverage", "plot_coverage_by_class", "plot_inclusion",
        "plot_sets", "plot_sizes", "strategies", "suggest_verification", "suspects", "triage",
    }  # fmt: skip
    assert all(hasattr(setwise, name) for name in setwise.__all__)


def test_signatures_are_stable():
    assert list(inspect.signature(setwise.conformalize).parameters) == [
        "probabilities", "candidates", "strategy", "conformity_score", "classes", "by", "verified", "miss_rate",
        "assume", "sample_weight", "groups", "row_ids", "random_state", "missing", "verified_probability",
        "truth", "empty", "others",
    ]  # fmt: skip
    assert list(inspect.signature(setwise.Calibration.predict_set).parameters) == [
        "self", "probabilities", "confidence_level", "by", "candidates", "sample_weight", "row_ids", "allow_empty",
        "others",
    ]  # fmt: skip
    assert list(inspect.signature(setwise.load).parameters) == ["path", "estimator", "trusted"]


def test_every_public_thing_is_documented():
    for name in setwise.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(setwise, name))


def test_importing_loads_nothing_heavy():
    code = (
        "import setwise, sys; heavy = {'torch', 'ray', 'pyarrow', 'pandas', 'polars', 'matplotlib', 'scipy.stats'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
