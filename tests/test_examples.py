"""Every example runs as written, and its sets cover what they promise (or what their strategy usually reaches)."""

import importlib.util
from pathlib import Path

import pytest
from scipy.stats import binom

EXAMPLES = Path(__file__).parent.parent / "examples"
LEVELS = {
    "annotator_votes": 0.8,
    "boosted_trees": 0.8,
    "llm_candidates": 0.9,
    "outside_model": 0.9,
    "scikit_learn_probabilities": 0.97,
    "torch_loop": 0.9,
}


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(LEVELS)


@pytest.mark.parametrize("name", list(LEVELS))
def test_the_example_runs_and_covers(name, capsys):
    result = example(name).main()
    assert "coverage" in capsys.readouterr().out
    covered = round(result["coverage"] * result["n"])
    assert binom.cdf(covered, result["n"], LEVELS[name]) > 1e-3
    assert result["mean_size"] >= 0.9


@pytest.mark.parametrize(
    ("name", "needs"), [("boosted_trees", "XGBoost nor LightGBM"), ("outside_model", "onnxruntime")]
)
def test_an_example_whose_library_is_absent_says_that_something_stands_in(name, needs, capsys, monkeypatch):
    module = example(name)
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    module.main()
    said = capsys.readouterr().out
    assert needs in said
    assert "stand" in said
