"""The generated part of docs/trust.md is what the kept results say."""

import importlib
import json
import re
import sys

import pytest

from tests.first_use.__main__ import counts

from .conftest import DOCS, ROOT

FAULTS = {
    "cases": {"SIGKILL": 120, "SIGINT": 120, "full disk": 31},
    "commands": ["fit", "predict"],
    "wrong": [{"command": "fit", "what": "SIGKILL", "moment": "touch 3", "wrong": ["half a model"]}],
    "seed": 0,
    "python": "3.11.7",
}
FUZZ = {
    "executions": 1_200_000,
    "findings": 1,
    "targets": {
        "npz": {"executions": 1_000_000, "accepted": 9, "seconds": 600.0, "findings": [], "guided": True},
        "idx": {
            "executions": 200_000,
            "accepted": 8,
            "seconds": 300.0,
            "findings": ["MemoryError in idx.py"],
            "guided": True,
        },
    },
    "versions": {"3.11.7": {"numpy": "2.4.6"}},
}
SUITE = {
    "date": "2026-11-16",
    "setwise": "0.2.0",
    "skipped": 3,
    "failed": 1,
    "error": 1,
    "versions": {"numpy": "2.0.0"},
}
VERSIONS = {
    "3.12": SUITE | {"python": "3.12.1", "passed": 4001, "without": ["mlflow"]},
    "lowest": SUITE | {"python": "3.11.7", "passed": 4000, "without": []},
}


@pytest.fixture
def trust(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))  # as where it is run as a script
    return importlib.import_module("trust")


@pytest.fixture
def kept(trust, monkeypatch, tmp_path):
    """Writes results that are kept, and gives what the page says of them, by its headings."""
    monkeypatch.setattr(sys.modules["summary"], "RESULTS", tmp_path)

    def write(**results):
        for name, result in results.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(result))
        text = "\n".join(trust.sections())
        return dict(part.split("\n", 1) for part in text.split("\n## ")[1:])

    return write


def test_the_page_is_what_the_kept_results_say(trust):
    assert (DOCS / "trust.md").read_text("utf-8") == trust.page(), "run `python benchmarks/trust.py`"


def test_results_that_are_missing_are_named_with_the_command_that_makes_them(trust, kept):
    said = kept()
    assert len(said) == len(trust.SECTIONS)
    for name, (title, command, _) in trust.SECTIONS.items():
        assert f"`{command}`\n\nThere are no kept results (`benchmarks/results/{name}.json`)." in said[title]


def test_every_command_of_the_page_exists(trust):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for _, command, _ in trust.SECTIONS.values():
        first, *rest = command.split()
        if first == "make":
            assert {word for word in rest if "=" not in word} <= set(targets)
        else:
            assert command == "python -m tests.first_use"


def test_kills_inputs_and_versions_are_counted_and_faults_are_not_hidden(kept):
    said = kept(faults=FAULTS, fuzz=FUZZ, versions=VERSIONS)
    assert "| killed | 120 |\n| interrupted by Ctrl-C | 120 |\n| full disk | 31 |" in said["Commands cut short"]
    assert "270 of 271 left nothing behind that should not be there:" in said["Commands cut short"]
    assert "- fit, SIGKILL at touch 3: half a model" in said["Commands cut short"]
    assert "1,200,000 inputs (guided by coverage), 1 findings (Python 3.11.7, numpy 2.4.6)" in said["Broken files"]
    assert "| idx | 200,000 | 8 | 5.0 | 1 |" in said["Broken files"]
    assert "- idx: MemoryError in idx.py" in said["Broken files"]
    lowest, other = (line for line in said["Other versions"].splitlines() if "2026-11-16" in line)
    assert lowest == "| lowest | 3.11.7 | 4,000 | 3 | 2 | – | 2026-11-16 |"
    assert other == "| `constraints.txt` | 3.12.1 | 4,001 | 3 | 2 | mlflow | 2026-11-16 |"
    assert "The lowest versions: numpy 2.0.0." in said["Other versions"]


def test_a_change_that_no_test_noticed_stands_there_with_its_reason(kept):
    told = {"path": "src/setwise/ranks.py", "line": 3, "before": "a | b", "after": "a & b", "reason": ""}
    shares = {"share_killed": 0.5, "share_killed_of_not_equivalent": 1.0}
    result = {"mutants": 2, "seed": 1, "killed": 1, "outcomes": {"killed": 1, "survived": 1}, "survivors": [told]}
    said = kept(mutation=result | shares | {"rooms": {"ranks": {"killed": 1, "survived": 1}}})[
        "Do the tests notice?"
    ]
    assert "noticed 1 of 2 seeded changes" in said
    assert "50.0%. Among the changes that affect results they noticed 100.0%." in said
    assert "| `ranks` | 2 | 1 | 1 |" in said
    assert "| ranks.py:3 | `` a \\| b `` | `` a & b `` | not looked at |" in said


def test_the_page_counts_no_bad_input_that_is_not_in_the_table():
    kept = json.loads((ROOT / "benchmarks" / "results" / "bad_inputs.json").read_text())
    now = counts()
    for name, ends in kept.items():
        for kind, number in ends.items():
            assert number <= now[name][kind], "run `python -m tests.first_use` and `python benchmarks/trust.py`"
