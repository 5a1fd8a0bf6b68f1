"""`benchmarks/broken_guarantees.py` runs, and its verdicts can fail; the observatory tests the guarantees.

The pages that `benchmarks/summary.py` and `benchmarks/scale_page.py` write are those of the documentation.
"""

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).parent.parent / "benchmarks" / "broken_guarantees.py"
ANSWERS = {
    "unequal_chances": {
        "mean": "no guarantee",
        "min": "no guarantee: ρ is how often",
        "mixture(μ=0.5)": "no guarantee: ρ is how often",
        "auto": "holds",
    },
    "long_tail": {"0.3 of labels from the tail": "holds"},
    "every_label_seen": {
        "read_table": "refused: candidates: some sets mean 'every label', and know only 3 of the 4 labels",
        "LabelSets.from_strings": "refused: candidates: some sets mean 'every label'",
        "ConformalClassifier": "refused: y: some rows stand for every label",
        "setwise fit --missing full": "refused: error: y: some rows stand for every label",
        "read_table with classes": "holds",
    },
    "by_size": {
        "other annotators, size 2": "no guarantee: only if candidates arise",
        "the same annotators, size 2": "holds",
    },
    "informative_groups": {"max, a row of a random new group": "holds"},
    "truth_is_no_candidate": {"max": "holds", "auto": "holds"},
    "bracket": {"rectified": "holds"},
    "blank_rows": {"corrected, finite margin": "refused: strategy 'corrected' weighs candidates", "max": "holds"},
    "float32": {"lac, float32 → float64": "holds"},
    "law": {"tenths, n = 9, level 0.9": "holds"},
    "theorem_2_selected": {
        "all; the model errs in 0.1, n = 19": "no guarantee: only if you use max",
        "all, and max otherwise; the model errs in 0.1, n = 19": "holds",
    },
}
"""What the first row of a case says about each of the eleven."""


@pytest.fixture(scope="module")
def guarantees():
    sys.path.insert(0, str(FILE.parent))  # as where it is run as a script
    yield importlib.import_module(FILE.stem)
    sys.path.remove(str(FILE.parent))


@pytest.mark.usefixtures("guarantees")
def test_the_costs_on_the_page_are_those_that_were_kept():
    page = importlib.import_module("scale_page")
    assert page.PAGE.read_text(encoding="utf-8").endswith("\n".join(page.section()) + "\n")


@pytest.fixture(scope="module")
def table(guarantees):
    """The rows of every scenario, from a few samples."""
    return {name: list(guarantees.rows_of(name, share=0.01)) for name in guarantees.SCENARIOS}


def test_every_scenario_has_rows_with_verdicts(table):
    kinds = re.compile("(holds|broken|open: .+|no guarantee: .+|refused: .+)")
    assert all(table.values())
    assert [row for rows in table.values() for row in rows if not kinds.match(row.verdict)] == []


@pytest.mark.parametrize("name", ANSWERS)
def test_the_eleven_are_answered(table, name):
    found = {row.case: row.verdict for row in reversed(table[name])}
    wrong = {case: found[case] for case, start in ANSWERS[name].items() if not found[case].startswith(start)}
    assert wrong == {}


def verdict(guarantees, covered, **printed):
    said = [guarantees.Statement("", share, **printed) for share in covered]
    return guarantees.judge(("", ""), said, len(said), []).verdict


def test_an_average_below_the_guarantee_is_broken(guarantees):
    rng = np.random.default_rng(0)
    assert verdict(guarantees, rng.normal(0.9, 0.02, 200), promised=0.9) == "holds"
    assert verdict(guarantees, rng.normal(0.89, 0.02, 200), promised=0.9) == "broken"


def test_a_guarantee_for_19_of_20_draws_is_broken_by_more_failures(guarantees):
    for failures, expected in ((10, "holds"), (25, "broken")):
        covered = [0.8] * failures + [0.99] * (200 - failures)
        assert verdict(guarantees, covered, promised=0.9, delta=0.05) == expected
        assert verdict(guarantees, 1 - np.array(covered), promised=0.0, delta=0.05, most=0.1) == expected


def test_a_single_sample_decides_nothing(guarantees):
    assert verdict(guarantees, [0.5], promised=0.9) == "open: too few draws"


def test_the_command_prints_a_table_and_keeps_it(guarantees, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(guarantees, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(sys, "argv", ["", "--only", "by_size", "--share", "0.02", "--keep"])
    assert guarantees.main() == 0
    assert "| by_size: other annotators, size 1 | — |" in capsys.readouterr().out
    kept = json.loads((tmp_path / "results.json").read_text())
    assert len(kept["rows"]) == 4
    assert kept["broken"] == 0


def test_pages_of_results_are_what_the_summary_writes(monkeypatch):
    monkeypatch.syspath_prepend(str(FILE.parent))
    summary = importlib.import_module("summary")
    for name, text in summary.pages().items():
        assert text == (summary.ROOT / "docs" / name).read_text(), f"run benchmarks/summary.py for docs/{name}"


def test_every_step_of_the_first_hour_is_shown_with_its_limit(monkeypatch):
    monkeypatch.syspath_prepend(str(FILE.parent))
    steps = importlib.import_module("first_hour").STEPS
    page = (FILE.parent.parent / "docs" / "benchmarks.md").read_text()
    for step, limit in steps.items():
        assert re.search(rf"^\| {re.escape(step.replace(' x ', ' × '))} \| .*\| {limit:g} ", page, re.MULTILINE), (
            step
        )


def test_intervals_of_ordered_classes_cover_and_rps_gives_the_shortest_that_the_guide_names():
    rows = json.loads((FILE.parent / "results" / "ordered.json").read_text())["rows"]
    page = (FILE.parent.parent / "docs" / "guide" / "own-probabilities.md").read_text(encoding="utf-8")
    others = ("ordered APS", "LAC, filled")
    for setting in {row["setting"] for row in rows}:
        found = {row["method"]: row for row in rows if (row["setting"], row["level"]) == (setting, 0.9)}
        assert found["RPS"]["filled"] == 0
        assert all(
            row["splits"] >= 50 and row["coverage"] > 0.9 - 3 * row["coverage_error"] for row in found.values()
        )
        assert all(found["RPS"]["mean_size"] < found[method]["mean_size"] for method in others)
        if "regression, candidate" not in setting:
            assert all(f" {found[method]['mean_size']:.3g} " in page for method in ("RPS", *others))
