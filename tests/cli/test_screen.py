"""What commands show is fit for every terminal."""

import contextlib
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise.cli.app import run
from setwise.cli.screen import visible
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
    assert visible("tab\tline\nü→猫👩‍⚕️") == "tab\tline\nü→猫👩‍⚕️"
    (tmp_path / "t.csv").write_text("x,s\n" + "1,[red]\x1b[2Jcat|dog\n2,dog\n" * 10)
    assert run(["inspect", str(tmp_path / "t.csv"), "--candidates", "s"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "[red]\\x1b[2Jcat" in said
