"""The generated part of docs/trust.md is what the kept results say."""

import importlib
import json
import re
import subprocess
import sys

import pytest

from tests.first_use.__main__ import counts

from .conftest import DOCS, ROOT

FAULTS = {
    "cases": {"SIGKILL": 120, "SIGINT": 120, "full disk": 31},
    "commands": ["fit", "predict"],
    "wrong": [{"command": "fit", "what": "SIGKILL", "moment": "touch 3", "wrong": ["half a model"]}],
    "seed": 0,
    "machine": {"date": "2026-11-20T08:00:00+00:00", "commit": "c0ffee", "python": "3.11.7"},
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
    kept = json.loads((ROOT / "benchmarks" / "results" / "bad_inputs.json").read_text())["ends"]
    now = counts()
    for name, ends in kept.items():
        for kind, number in ends.items():
            assert number <= now[name][kind], "run `python -m tests.first_use` and `python benchmarks/trust.py`"


def test_the_page_says_when_and_at_which_commits_a_result_was_measured(kept):
    npz, idx = FUZZ["targets"].values()
    parts = {
        "npz": npz | {"commit": "a1", "date": "2026-11-19"},
        "idx": idx | {"commit": "b2", "date": "2026-11-20"},
    }
    said = kept(faults=FAULTS, fuzz=FUZZ | {"targets": parts})
    assert "`make faults`, measured on 2026-11-20 at commit c0ffee\n" in said["Commands cut short"]
    assert ", measured on 2026-11-19 at commit a1, 2026-11-20 at commit b2\n" in said["Broken files"]


def test_what_each_result_measures_is_listed_and_is_there(trust):
    assert trust.MEASURED.keys() == trust.SECTIONS.keys()
    for path in {path for paths in trust.MEASURED.values() for path in paths}:
        assert list(ROOT.glob(path.removeprefix(":!"))), path


@pytest.fixture
def checkout(trust, monkeypatch, tmp_path):
    """A checkout with one commit, and its name."""

    def git(*command):
        author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(("git", *author, *command), cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    for name in ("summary", "freshness"):
        monkeypatch.setattr(sys.modules[name], "ROOT", tmp_path)
    monkeypatch.delenv("SETWISE_COMMIT", raising=False)
    git("init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "ranks.py").write_text('"""Ranks."""\n\ndef rank(n):\n    """One."""\n    return n + 1\n')
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["numpy>=2.0"]\n[tool.ruff]\nline-length = 9\n'
    )
    git("add", ".")
    git("commit", "-qm", "one")
    return tmp_path, git("rev-parse", "HEAD")


def test_comments_docstrings_and_lines_do_not_make_a_result_stale_and_code_does(trust, checkout):
    folder, commit = checkout
    file = folder / "src" / "ranks.py"
    file.write_text('"""Other words."""\ndef rank(n):\n    # a comment\n    return (n +\n 1)\n')
    assert trust.changed(commit, ["src"]) == []
    file.write_text(file.read_text().replace("1)", "2)"))
    assert trust.changed(commit, ["src"]) == ["src/ranks.py"]
    assert trust.changed(commit, ["src", ":!src/ranks.py"]) == []
    file.unlink()
    assert trust.changed(commit, ["src"]) == ["src/ranks.py"]


def test_other_versions_make_a_result_stale_and_other_settings_of_tools_do_not(trust, checkout):
    folder, commit = checkout
    file = folder / "pyproject.toml"
    file.write_text(file.read_text().replace("9", "10"))
    assert trust.changed(commit, ["pyproject.toml"]) == []
    file.write_text(file.read_text().replace("2.0", "2.1"))
    assert trust.changed(commit, ["pyproject.toml"]) == ["pyproject.toml"]


def test_a_stale_result_is_named_with_the_command_to_run_again(trust, checkout, monkeypatch):
    folder, commit = checkout
    (folder / "src" / "ranks.py").write_text("")
    monkeypatch.setattr(trust, "MEASURED", {"faults": ["src"], "fuzz": ["src"], "honest": ["src"]})
    results = {"faults": {"machine": {"commit": commit, "date": "2026-11-20"}}, "honest": {"machine": {}}}
    monkeypatch.setattr(trust, "load", lambda name: results.get(name, {"commit": "0" * 40, "date": ""}))
    assert list(trust.stale()) == [
        f"faults: run `make faults` again: since {commit} src/ranks.py changed",
        f"fuzz: run `make fuzz FUZZ=--keep` again: commit {'0' * 40} is not known here",
        "honest: run `make honest` again: its commit was not noted",
    ]


def test_results_note_the_commit_and_whether_sources_differ_from_it(trust, checkout, monkeypatch):
    folder, commit = checkout
    noted = sys.modules["summary"].commit
    assert noted() == commit[:12]
    (folder / "pyproject.toml").write_text("")
    assert noted() == commit[:12]
    (folder / "src" / "new.py").write_text("")
    assert noted() == f"{commit[:12]}+changes"
    monkeypatch.setenv("SETWISE_COMMIT", "c0ffee")
    assert noted() == "c0ffee"


def test_without_git_the_commit_is_unknown_and_nothing_is_compared(trust, checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert sys.modules["summary"].commit() == "unknown"
    assert not trust.history()


# The switch: once all results are measured anew, this test passes, which strict=True reports; delete the mark then.
@pytest.mark.xfail(strict=True, reason="the results are not measured anew yet")
def test_no_figure_on_the_page_is_older_than_what_it_measures(trust):
    if not trust.history():
        pytest.skip("git has no history here")
    assert not list(trust.stale())
