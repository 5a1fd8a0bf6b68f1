"""`python -m reproduction` as people call it: a kill half-way, resuming, and what it says."""

import json
import subprocess
import sys

import pytest
from reproduction.__main__ import run
from reproduction.results import load


@pytest.fixture
def two_sets(benchmarks, tmp_path, monkeypatch):
    """A data folder that holds Lost and MSRCv2 alone."""
    folder = tmp_path / "data" / "pll"
    folder.mkdir(parents=True)
    for name in ("lost.mat", "MSRCv2.mat"):
        (folder / name).symlink_to(benchmarks / "pll" / name)
    monkeypatch.setenv("SETWISE_DATA", str(folder.parent))
    monkeypatch.setenv("SETWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def command(out, *more):
    return ["--table", "5", "--quick", "--seeds", "2", "--device", "cpu", "--out", str(out), *more]


def measured(out):
    return {result.key: result.to_dict()["measured"] for result in load(out)}


def test_a_killed_run_resumes_and_ends_as_if_it_had_not_been_killed(two_sets, monkeypatch):
    monkeypatch.setattr("reproduction.result_plots.can_plot", bool)
    out = two_sets / "killed"
    program = (
        "import os, signal\n"
        "from reproduction import runner\n"
        "save = runner.save\n"
        "runner.save = lambda *a: (save(*a), os.kill(os.getpid(), signal.SIGKILL))\n"
        "from reproduction.__main__ import run\n"
        f"run({command(out)!r})\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr
    kept = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in (out / "cells").glob("*.json")}
    assert len(kept) == 1
    assert run(command(out, "--quiet")) == 0
    assert len(list((out / "cells").glob("*.json"))) == 4
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in kept} == kept
    assert run(command(two_sets / "whole", "--quiet")) == 0
    assert measured(out) == measured(two_sets / "whole")


def test_it_says_what_is_there_what_is_not_and_what_it_found(two_sets, monkeypatch, capsys):
    monkeypatch.setattr("reproduction.result_plots.can_plot", bool)
    out, docs = two_sets / "out", two_sets / "docs" / "reproduction.md"
    assert run([*command(out, "--docs", str(docs)), "--seeds", "1"]) == 0
    said = capsys.readouterr()
    assert "Soccer Player: data not present (setwise datasets fetch soccer_player)" in said.out
    assert "0 cells are there, 2 to compute on cpu" in said.out
    assert "lost: 1 models, epoch 20/20" in said.err
    assert " s left" in said.err
    assert "no pictures: they need matplotlib" in said.out
    page = docs.read_text()
    assert "data not present" in page
    assert "quick: a quick run" in page
    assert run([*command(out, "--json"), "--seeds", "1"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["cells"] == 0
    assert answer["finished"] == 2


def test_the_page_can_be_written_without_computing_anything(two_sets, monkeypatch, capsys):
    monkeypatch.setattr("reproduction.result_plots.can_plot", bool)
    out, docs = two_sets / "out", two_sets / "page.md"
    assert run(["--out", str(out), "--write-only", "--docs", str(docs)]) == 2
    assert "holds no finished cell yet" in capsys.readouterr().err
    assert run([*command(out, "--quiet"), "--seeds", "1"]) == 0
    assert run(["--out", str(out), "--write-only", "--docs", str(docs), "--quiet"]) == 0
    assert docs.read_text().startswith("# The paper, reproduced")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--table", "7"], "table: 7 is not one of the paper's"),
        (["--seeds", "0"], "--seeds: 0 is not a positive number"),
        (["--protocol", "random"], "--protocol: 'random' is not known; use official, resplit or both"),
        (["--variant", "ours"], "--variant: 'ours' is not known"),
    ],
)
def test_mistakes_are_one_line(arguments, message, tmp_path, capsys):
    assert run(["--out", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
