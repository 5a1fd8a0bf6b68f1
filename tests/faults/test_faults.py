"""Commands that are killed, interrupted or disturbed at counted moments; `make faults` does it at many more."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.leftovers import contents, wrong_left

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills, limits and locks as Linux has them")
ROOT = Path(__file__).parents[2]


def faults(out, *options):
    command = [sys.executable, "-m", "tests.faults", "--out", str(out), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert out.exists(), done.stderr
    return json.loads(out.read_text())


def test_commands_that_are_killed_interrupted_or_disturbed_leave_nothing_wrong(tmp_path):
    """In one test, as all cases share what takes longest: the process that the commands are forked from."""
    counts = ["--kills", "10", "--interruptions", "10", "--step", "60", "--kind", "touch"]
    few = faults(tmp_path / "few.json", *counts)
    assert few["wrong"] == []
    assert few["cases"]["SIGKILL"] == few["cases"]["SIGINT"] == 10
    others = {"full disk", "read-only folder", "vanishing folder", "changing file", "two writers"}
    assert few["cases"].keys() == {"SIGKILL", "SIGINT", *others}


def test_whatever_else_is_left_would_be_seen(tmp_path):
    (tmp_path / "sets.csv").write_text("old")
    (tmp_path / "rows.csv").write_text("given")
    old = contents(tmp_path)
    new = old | {"sets.csv": hashlib.sha256(b"new").hexdigest()}
    assert list(wrong_left(tmp_path, old, new, swept=True)) == []
    (tmp_path / "sets.csv").write_text("ne")
    assert list(wrong_left(tmp_path, old, new, swept=True)) == ["sets.csv is neither the old nor the new one"]
    (tmp_path / "sets.csv").write_text("new")
    left = tmp_path / ".sets.csv.0123456789abcdef.setwise.tmp"
    left.write_text("ne")
    assert list(wrong_left(tmp_path, old, new, swept=False)) == []
    assert list(wrong_left(tmp_path, old, new, swept=True)) == [f"{left.name} is left"]
    left.unlink()
    (tmp_path / "other.csv").write_text("")
    assert list(wrong_left(tmp_path, old, new, swept=True)) == ["other.csv is left, which nobody knows"]
    (tmp_path / "other.csv").unlink()
    (tmp_path / "sets.csv").unlink()
    assert list(wrong_left(tmp_path, old, new, swept=True)) == ["sets.csv is gone"]
    pair = {"together": ("rows.csv", "sets.csv")}
    assert list(wrong_left(tmp_path, old, new, swept=False, **pair)) == []
    (tmp_path / "sets.csv").write_text("new")
    mixed = "rows.csv and sets.csv are an old one and a new one"
    assert list(wrong_left(tmp_path, old, new, swept=False, **pair)) == [mixed]
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "setwise.json").write_text("{")
    assert any("does not load" in told for told in wrong_left(tmp_path, {}, {}, swept=True))


@pytest.mark.long
def test_hundreds_of_kills_and_interruptions_at_every_kind_of_moment(tmp_path):
    many = faults(tmp_path / "many.json", "--kills", "120", "--interruptions", "120")
    assert many["cases"]["SIGKILL"] == many["cases"]["SIGINT"] == 120
    assert many["wrong"] == []
