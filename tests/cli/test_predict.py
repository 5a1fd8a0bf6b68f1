"""`setwise predict`."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from setwise import LabelSets
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
    json_of(capsys, "report", "sets.csv", "--truth", "truth", "--groups", "patient", "--out", "page.html")
    assert f"{low:.1%} to {high:.1%}" in Path("page.html").read_text("utf-8")
    Path("few.csv").write_text("\n".join(["labels,truth,patient", *rows[:60]]) + "\n")
    assert run(["evaluate", "few.csv", "--truth", "truth", "--groups", "patient"]) == 0
    assert "no interval from fewer than 20 groups" in capsys.readouterr().out


def json_of(capsys, *arguments):
    """What a command says as JSON."""
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def scores_and_tree(folder):
    """Tables of probabilities of five animals with their truth, and a tree over these."""
    rng = np.random.default_rng(0)
    names = ["crow", "lion", "owl", "tabby", "wren"]
    for file, column in {"old.parquet": "truth", "new.parquet": "id"}.items():
        p = rng.dirichlet(np.ones(5), 300)
        truth = [names[k] for k in (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)]
        values = {f"p:{name}": p[:, k] for k, name in enumerate(names)}
        pq.write_table(pa.table(values | {column: truth if column == "truth" else range(300)}), folder / file)
    pairs = {"bird": ["crow", "owl", "wren"], "cat": ["lion", "tabby"], "animal": ["bird", "cat"]}
    (folder / "tree.json").write_text(json.dumps(pairs))
    return pairs


def test_sets_are_named_by_nodes_of_a_tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = scores_and_tree(tmp_path)
    calibrate = ["conformalize", "--probabilities", "old.parquet", "--candidates", "truth", "-q"]
    predict = ["predict", "a.cal", "--probabilities", "new.parquet", "-q", "--nodes", "tree.json"]
    for more, at_most in (([], 1), (["--at-most", "2"], 2)):
        assert run([*calibrate, "--nodes", "tree.json", *more, "--out", "a.cal", "--force"]) == 0
        for out in ("sets.csv", "sets.jsonl", "sets.parquet"):
            assert run([*predict, *more, "--out", out, "--force"]) == 0
            sets = read_table(out, candidates="labels", features=[], missing="empty").candidates
            nodes = read_table(out, candidates="nodes", features=[], missing="empty").candidates
            assert nodes.sizes.max() == at_most
            assert LabelSets.from_hierarchy(nodes, tree).to_lists() == sets.to_lists()  # calibrated to be nodes
    assert run([*calibrate, "--out", "a.cal", "--force"]) == 0
    assert run([*predict, "--out", "parts/"]) == 0
    sets, nodes = (
        read_table("parts/new.parquet", candidates=name, features=[], missing="empty").candidates
        for name in ("labels", "nodes")
    )
    wider = LabelSets.from_hierarchy(nodes, tree, sets.classes)
    assert sets.issubset(wider).all()
    assert (wider.sizes > sets.sizes).any()
    assert run([*predict, "--at-most", "2", "--out", "parts/", "--resume"]) == 0  # another question: not kept
    again = read_table("parts/new.parquet", candidates="nodes", features=[], missing="empty").candidates
    assert (nodes.sizes.max(), again.sizes.max()) == (1, 2)


def test_a_tree_that_cannot_be_used_ends_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scores_and_tree(tmp_path)
    calibrate = ["conformalize", "--probabilities", "old.parquet", "--candidates", "truth", "--out", "a.cal"]
    for more, says in {
        ("--at-most", "2"): "--at-most: this is a number of nodes; name their tree with --nodes.",
        ("--nodes", "tree.json", "--at-most", "0"): "--at-most': ",
        ("--nodes", "tree.json", "--conformity-score", "aps"): "--conformity-score: sets that are nodes",
        ("--nodes", "two.json"): "2 roots, and a set may hold leaves of all; use --at-most 2, or put one node",
    }.items():
        (tmp_path / "two.json").write_text('{"bird": ["crow", "owl", "wren"], "cat": ["lion", "tabby"]}')
        assert run([*calibrate, *more]) == 2
        assert says in " ".join(capsys.readouterr().err.split())
    assert run([*calibrate, "-q"]) == 0
    table = pq.read_table("new.parquet")
    pq.write_table(table.rename_columns([*table.column_names[:5], "nodes"]), "new.parquet")
    assert (
        run(["predict", "a.cal", "--probabilities", "new.parquet", "--nodes", "tree.json", "--out", "x.csv"]) == 2
    )
    assert "there is a column 'nodes' already" in capsys.readouterr().err
    assert not Path("x.csv").exists()
