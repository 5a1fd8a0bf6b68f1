"""`setwise predict`."""

import contextlib
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from setwise.cli.app import run
from setwise.tables import read_table
from tests.toy_data import sample_rows


def test_lists_and_objects_are_carried_into_csv(saved_models, tmp_path):
    X, *_ = sample_rows(6)
    rows = [{"f0": a, "f1": b, "f2": c, "tags": [1, 2], "seen": ["a|b", "c"], "more": {"k": 1}} for a, b, c in X]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = [word for name in ("f0", "f1", "f2") for word in ("--features", name)]
    with contextlib.chdir(tmp_path):
        assert run(["predict", str(saved_models / "skops"), "new.jsonl", "--out", "x.csv", "-q", *options]) == 0
    carried = read_table(tmp_path / "x.csv", candidates="seen", features=[], carry=["tags", "more"])
    assert carried.carried["tags"].tolist() == ["[1, 2]"] * 6
    assert json.loads(carried.carried["more"][0]) == {"k": 1}
    assert carried.candidates.to_lists()[0] == ["a|b", "c"]


def test_a_table_on_standard_output_is_utf_8(saved_models, tmp_path, monkeypatch):
    pq.write_table(pa.table({name: [1.0, 0.0] for name in ("p:cat", "p:dog", "p:owl")}), tmp_path / "p.parquet")
    monkeypatch.chdir(tmp_path)
    table = pa.table({"p:cat": [1.0], "p:dog": [0.0], "p:owl": [0.0], "id": ["ü→猫"]})
    pq.write_table(table, tmp_path / "p.parquet")
    out = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(out, encoding="ascii")) as stream:
        assert run(["predict", str(saved_models / "max.cal"), "--probabilities", "p.parquet", "--out", "-"]) == 0
        stream.flush()
        assert "ü→猫" in out.getvalue().decode()
