"""Sets beside which a note says how their rows differ, and notes at odds with themselves."""

import json

import pytest

from setwise.cli.app import run
from tests.changed_files import (
    FLAT,
)

# ---------------------------------------------------------------------------- notes beside tables of sets


@pytest.fixture
def noted(calibrations, tmp_path):
    """A table of sets, and a note of the comparison in which its rows differ."""
    (tmp_path / "sets.csv").write_text("y,labels,size\n" + "cat,cat|dog,2\ndog,dog,1\n" * 30)
    note = tmp_path / "sets.csv.differs.json"
    note.write_text(json.dumps(calibrations["max"].compare(FLAT).to_dict()))
    return note, ["evaluate", str(tmp_path / "sets.csv"), "--truth", "y"]


def rewritten(**entries):
    return lambda text: json.dumps(json.loads(text) | entries)


NOTES = {
    "silent in its p-value": rewritten(p_value=0.9),
    "silent in a word": rewritten(refuted=False),
    "another finding": rewritten(findings=[{"p_value": 1e-9, "sentence": "the largest probability differs"}]),
    "an entry twice": lambda text: text.replace('{"p_value"', '{"p_value": 0.9, "p_value"', 1),
    "lists in each other": lambda _: "[" * 10**5,
}


@pytest.mark.parametrize("odd", list(NOTES))
def test_note_at_odds_with_itself(odd, noted, capsys):
    note, command = noted
    assert run(command) == 0
    assert "differ from the 200 calibration rows" in "".join(capsys.readouterr())
    note.write_text(NOTES[odd](note.read_text()))
    assert run(command) == 2
    assert "sets.csv.differs.json: is not what `setwise predict` wrote" in capsys.readouterr().err
