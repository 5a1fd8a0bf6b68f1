"""Commands that are killed, interrupted or disturbed at counted moments; `make faults` does it at many more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills, limits and locks as Linux has them")
ROOT = Path(__file__).parents[2]


def faults(out, *options):
    command = [sys.executable, "-m", "tests.faults", "--out", str(out), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert out.exists(), done.stderr
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    counts = ["--kills", "10", "--interruptions", "10", "--step", "30", "--kind", "touch"]
    return faults(tmp_path_factory.mktemp("faults") / "few.json", *counts)


def test_ten_kills_leave_the_old_or_the_new_and_the_next_run_clears_up(few):
    assert few["cases"]["SIGKILL"] == 10
    assert [case for case in few["wrong"] if case["what"] == "SIGKILL"] == []


def test_ten_interruptions_leave_one_sentence_and_nothing_else(few):
    assert few["cases"]["SIGINT"] == 10
    assert [case for case in few["wrong"] if case["what"] == "SIGINT"] == []


@pytest.mark.parametrize(
    "what", ["full disk", "read-only folder", "vanishing folder", "changing file", "two writers"]
)
def test_what_happens_around_a_command_ends_in_all_rows_or_one_sentence(few, what):
    assert few["cases"][what] > 2
    assert [case for case in few["wrong"] if case["what"] == what] == []


@pytest.mark.long
def test_hundreds_of_kills_and_interruptions_at_every_kind_of_moment(tmp_path):
    many = faults(tmp_path / "many.json", "--kills", "120", "--interruptions", "120", "--pictures")
    assert many["cases"]["SIGKILL"] == many["cases"]["SIGINT"] == 120
    assert many["wrong"] == []
