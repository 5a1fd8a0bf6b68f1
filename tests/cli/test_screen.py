"""What commands show is fit for every terminal."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise.cli.app import run
from setwise.progress_lines import visible
from tests.toy_data import sample_rows


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_every_encoding_of_standard_output_will_do(encoding, tmp_path, monkeypatch):
    _, P, _, y = sample_rows()
    pq.write_table(pa.table(dict(zip(("p:cat", "p:dog", "p:ü→猫"), P.T, strict=True))), tmp_path / "p.parquet")
    truth = np.array(["cat", "dog", "ü→猫"])[y].tolist()
    pq.write_table(pa.table({"candidates": [[label] for label in truth]}), tmp_path / "s.parquet")
    monkeypatch.chdir(tmp_path)
    for extra in ([], ["--json"]):
        out = io.BytesIO()
        with contextlib.redirect_stdout(io.TextIOWrapper(out, encoding=encoding)) as stream:
            files = ["--probabilities", "p.parquet", "--labels", "s.parquet", "--out", "m.cal", "--force"]
            assert run(["conformalize", *files, *extra]) == 0
            stream.flush()
            said = out.getvalue().decode(encoding)
        assert json.loads(said)["classes"][2] == "ü→猫" if extra else "auto \\u2192 max" in said


def test_labels_do_not_steer_the_terminal(tmp_path, capsys):
    assert visible("a\x1b[31m\x07\u202e\x9b") == "a\\x1b[31m\\x07\\u202e\\x9b"
    assert visible("\tline\nü→猫👩‍⚕️") == "\\tline\\nü→猫👩‍⚕️"
    (tmp_path / "t.csv").write_text("x,s\n" + "1,[red]\x1b[2Jcat|dog\n2,dog\n" * 10)
    assert run(["inspect", str(tmp_path / "t.csv"), "--candidates", "s"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "[red]\\x1b[2Jcat" in said


EVIL = "x\nwarning: FORGED\x1b]0;own\x07\u202e\u200f\x9b2J[/old][red]"


def on_a_terminal(*arguments, folder):
    """The exit status of a command on a pseudo-terminal, and all that it sends there."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "setwise", *arguments]
    done = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    parts = []
    with contextlib.suppress(OSError):  # the terminal's end
        while part := os.read(ours, 65536):
            parts.append(part)
    os.close(ours)
    return done.wait(), b"".join(parts).decode()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder with a table whose name, columns, labels and categories are hostile, and sets from it."""
    folder = tmp_path_factory.mktemp("hostile")
    name = EVIL.replace("/", "") + ".parquet"
    columns = {"labels": [[EVIL + "a"], [EVIL + "b", EVIL + "a"]] * 30, EVIL: [EVIL + "b", EVIL + "a"] * 30}
    pq.write_table(pa.table(columns), folder / name)
    (folder / "d[").mkdir()
    pq.write_table(pa.table(columns), folder / "d[" / "old].parquet")
    return folder, name


@pytest.mark.parametrize(
    "command", ["inspect", "evaluate", "evaluate --json", "evaluate without", "inspect --traceback"]
)
def test_no_name_of_a_file_column_label_or_category_steers_a_terminal_or_forges_a_line(hostile, command):
    folder, name = hostile
    arguments = {
        "inspect": ["inspect", name, "--candidates", "labels", "--truth", EVIL],
        "inspect --traceback": ["--traceback", "inspect", name, "--candidates", EVIL + "no column"],
        "evaluate": ["evaluate", name, "--truth", EVIL, "--by", EVIL],
        "evaluate --json": ["evaluate", name, "--truth", EVIL, "--by", EVIL, "--json"],
        "evaluate without": ["evaluate", name, "--truth", EVIL + "no column"],
    }[command]
    status, sent = on_a_terminal(*arguments, folder=folder)
    assert status == (2 if "no column" in arguments[-1] else 0), sent
    assert "FORGED" in sent
    assert not re.search(r"\x1b\]|[\x07\u202e\u200f\x9b]|^\W*warning: FORGED", sent, re.MULTILINE)
    if "--json" in arguments:
        assert EVIL + "a" in json.loads(sent[sent.index("{") :])["by_class"]


def test_marks_of_rich_in_the_name_of_a_file_are_a_part_of_the_name(hostile):
    status, sent = on_a_terminal("inspect", "d[/old].parquet", "--candidates", "labels", folder=hostile[0])
    assert status == 0, sent
    assert "reading d[/old].parquet" in sent
