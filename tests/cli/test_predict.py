"""`setwise predict`."""

import contextlib
import io
import json
from pathlib import Path

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


def test_groups_widen_the_interval_of_coverage_in_evaluate_and_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'cat' if i % 60 < 50 else 'dog'},cat,p{i // 10}" for i in range(240)]  # whole patients are missed
    Path("sets.csv").write_text("\n".join(["labels,truth,patient", *rows]) + "\n")
    alone = json_of(capsys, "evaluate", "sets.csv", "--truth", "truth")["coverage_interval"]
    options = ("evaluate", "sets.csv", "--truth", "truth", "--groups", "patient")
    low, high = json_of(capsys, *options)["coverage_interval"]
    assert low < alone[0] < alone[1] < high
    assert json_of(capsys, *options, "--report", "one.html")["coverage_interval"] == [low, high]
    json_of(capsys, "report", "sets.csv", "--truth", "truth", "--groups", "patient", "--out", "two.html")
    for page in ("one.html", "two.html"):
        assert f"{low:.1%} to {high:.1%}" in Path(page).read_text("utf-8")
    Path("few.csv").write_text("\n".join(["labels,truth,patient", *rows[:60]]) + "\n")
    assert run(["evaluate", "few.csv", "--truth", "truth", "--groups", "patient"]) == 0
    assert "no interval from fewer than 20 groups" in capsys.readouterr().out


def json_of(capsys, *arguments):
    """What a command says as JSON."""
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)
