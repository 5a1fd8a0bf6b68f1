"""Parts of a folder that are finished, and records of them that are odd."""

import json
import os

import pytest

from setwise.cli.app import run

RECORDS = {
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "sizes of nothing": lambda path: rewrite(path, {"rows": 6, "sizes": {"x": "y"}}),
    "rows fewer than none": lambda path: rewrite(path, {"rows": -6, "sizes": {"1": -6}}),
    "rows of other sizes": lambda path: rewrite(path, {"rows": 600, "sizes": {"1": 6}}),
    "lists in each other": lambda path: path.write_text("[" * 10**5),
}


def rewrite(path, found):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"found": found}))


@pytest.mark.parametrize("record", list(RECORDS))
def test_a_part_whose_record_is_odd_is_made_again(record, two_tables, capsys):
    folder, command = two_tables
    assert run(command) == 0
    before = json.loads(capsys.readouterr().out)
    RECORDS[record](folder / "out" / ".a.csv.done.json")
    assert run([*command, "--resume"]) == 0
    after = json.loads(capsys.readouterr().out)
    assert (after["rows"], after["mean_size"], after["files_kept"]) == (12, before["mean_size"], 1)
