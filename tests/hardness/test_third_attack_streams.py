"""What a third attack found, on tables in streams and folders: a test for each fault."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import Calibration, ConformalClassifier, CrossConformalClassifier, MisuseWarning, conformalize
from setwise.cli.app import run
from setwise.data.arrow_tables import column_names, has_column, located_batches
from setwise.errors import DataError
from setwise.scale.plain_counts import as_plain, from_plain
from tests.scale import conftest
from tests.scale.conftest import CLASSES, done, failed, rows, table, write

parts, no_lines_about_time = conftest.parts, conftest.no_lines_about_time  # fixtures


# ------------------------------------------------------------------------------------------ JSON lines


def json_lines(path, every, n=120):
    """Rows whose field `verified` some of them have: those at each place of `every` three."""
    P, y, candidates = rows(n, 0)
    with path.open("w") as file:
        for i in range(n):
            row = {"id": f"r{i}", **{f"p:{c}": float(P[i, k]) for k, c in enumerate(CLASSES)}}
            row["answers"] = candidates[i]
            file.write(json.dumps(row | ({"verified": y[i]} if i % 3 == every else {})) + "\n")
    return y


@pytest.mark.parametrize("every", [0, 1])
def test_verified_labels_count_wherever_the_first_line_that_has_one_stands(every, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = json_lines(tmp_path / "rows.jsonl", every)
    checked = [i for i in range(120) if i % 3 == 2][::2]
    (tmp_path / "checks.csv").write_text("id,verified\n" + "".join(f"r{i},{y[i]}\n" for i in checked))
    asked = ["conformalize", "--probabilities", "rows.jsonl", "--candidates", "answers", "--verified", "verified"]
    for more, known in ([], 40), (["--checks", "checks.csv", "--key", "id"], 40 + len(checked)):
        arguments = [*asked, "--ignore", "id", *more, "--out", "m.cal", "--force", "--quiet"]
        assert run(arguments) == 0
        assert (Calibration.load("m.cal").evidence.label >= 0).sum() == known


def test_a_field_that_only_late_lines_have_is_an_error_and_not_left_out(tmp_path):
    path = tmp_path / "long.jsonl"
    lines = [json.dumps({"id": i, "note": "x" * 1000}) for i in range(2000)]
    path.write_text("\n".join([*lines, json.dumps({"id": 2000, "verified": "owl"})]))
    assert column_names(path) == ["id", "note"]
    with pytest.raises(DataError, match=r"a line after line 2,000 has the field 'verified', which the first lines"):
        list(located_batches(path, 500))
    with pytest.raises(DataError, match="give it to the first line"):
        has_column(path, "verified")
    path.write_text("\n".join([json.dumps({"id": 0, "verified": None}), *lines]))
    assert has_column(path, "verified")
    assert {tuple(batch.column_names) for *_, batch in located_batches(path, 500)} == {("id", "verified", "note")}


def test_fit_takes_the_verified_labels_beside_candidates_and_those_in_a_file_of_checks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, y, candidates = rows(120, 0)
    X = np.eye(4)[[CLASSES.tolist().index(label) for label in y]] + np.random.default_rng(0).normal(size=(120, 4))
    ids = [f"r{i}" for i in range(120)]
    known = [label if i % 3 == 0 else None for i, label in enumerate(y.tolist())]
    pq.write_table(pa.table({"id": ids, **{f"x{k}": X[:, k] for k in range(4)}}), "rows.parquet")
    pq.write_table(pa.table({"id": ids, "answers": candidates, "verified": known}), "labels.parquet")
    pq.write_table(pa.table({"id": ids[1::3], "verified": y[1::3].tolist()}), "checks.parquet")
    told = ["--labels", "labels.parquet", "--candidates", "answers", "--key", "id", "--checks", "checks.parquet"]
    more = ["--learner", "em", "--calibration-size", "0.9", "--quiet", "--out", "model"]
    assert run(["fit", "rows.parquet", *told, "--verified", "verified", *more]) == 0
    assert (ConformalClassifier.load("model").calibration_.evidence.label >= 0).sum() > 40


def test_a_column_of_verified_labels_that_neither_file_has_is_an_error(parts, tmp_path, capsys):
    parts(".csv")
    task = {"id": 1, "data": {"id": 5}, "annotations": [{"result": []}]}
    (tmp_path / "checks.json").write_text(json.dumps([task]))
    asked = ["conformalize", "--probabilities", "in/0.csv", "--candidates", "answers", "--key", "id"]
    told = [*asked, "--ignore", "truth", "--checks", "checks.json", "--verified", "truht", "--out", "new.cal"]
    line = failed(capsys, *told)
    assert "there is no column 'truht', and checks.json is an export, which has none; leave out --verified" in line


# ------------------------------------------------------------------------------------------ folders

PREDICT = ("predict", "m.cal", "--probabilities", "in", "--out", "out")


def sharper(path):
    """A part of rows of which the model is surer than of the calibration rows."""
    P, y, candidates = rows(300, 5)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(table((P**4 / (P**4).sum(axis=1, keepdims=True)).astype(np.float32), y, candidates), path)


def test_a_resumed_run_compares_the_rows_of_finished_files_as_one_at_once_does(parts, capsys):
    parts(".csv")
    sharper(Path("in/0.csv"))
    good = Path("in/2.csv").read_text()
    Path("in/2.csv").write_text(good + "900,0.9,0.9,0.9,0.9,owl,owl\n")
    assert "in/2.csv: row 100 sums to 3.6" in failed(capsys, *PREDICT)
    Path("in/2.csv").write_text(good)
    resumed = done(capsys, *PREDICT, "--resume")
    at_once = done(capsys, *PREDICT[:-1], "other")
    assert (resumed["files_kept"], resumed["promised"]) == (2, None)
    assert resumed["comparison"] == at_once["comparison"]
    assert Path("out.differs.json").read_text() == Path("other.differs.json").read_text()


BROKEN = {
    "nothing": lambda found: found.pop("compared"),
    "no array": lambda found: found.update(
        compared=json.loads(json.dumps(found["compared"]).replace("eAF", "eAE"))
    ),
    "less": lambda found: found["compared"].pop(),
    "text": lambda found: found.update(compared="x"),
}


@pytest.mark.parametrize("broken", list(BROKEN))
def test_a_finished_file_whose_comparison_cannot_be_read_is_made_again(broken, parts, capsys):
    parts()
    sharper(Path("in/0.parquet"))
    found = done(capsys, *PREDICT)
    record = Path("out/.0.parquet.done.json")
    held = json.loads(record.read_text())
    BROKEN[broken](held["found"])
    record.write_text(json.dumps(held))
    again = done(capsys, *PREDICT, "--resume")
    assert (again["files_kept"], again["promised"], again["comparison"]) == (2, None, found["comparison"])


COUNTS = {
    "another length": (np.arange(3), np.arange(4)),
    "below zero": (np.array([-1, 2]), np.arange(2)),
    "no count": ({"a": -1}, {}),
    "no key": ({1.5: 1}, {}),
    "other keys": ({"a": 1}, {"b": 1}),
    "another type": (1.0, 1),
    "no number": (float("nan"), 1.0),
    "more": ([1, 2], [1]),
    "no text": ([1], []),
}


@pytest.mark.parametrize("counts", list(COUNTS))
def test_counts_that_are_not_built_alike_are_refused(counts):
    held, like = COUNTS[counts]
    with pytest.raises((TypeError, ValueError)):
        from_plain(as_plain(held), like)


def test_the_note_that_rows_differ_is_found_of_parts_in_folders_inside(parts, capsys):
    parts()
    for inside in ("a", "b"):
        sharper(Path("in") / inside / "x.parquet")
    assert done(capsys, *PREDICT)["promised"] is None
    for sets in ("out", "out/a", "out/b/x.parquet"):
        assert done(capsys, "evaluate", sets, "--truth", "truth")["comparison"]["refuted"]
    assert "comparison" not in done(capsys, "evaluate", write_elsewhere(), "--truth", "truth")


def write_elsewhere():
    """A copy of a table of sets for which there is no note."""
    Path("copy.parquet").write_bytes(Path("out/0.parquet").read_bytes())
    return "copy.parquet"


# ------------------------------------------------------------------------------------------ rows that were used


BOUNDS = re.compile(r'"bound": ?"([^"]*)"')  # at each level of the slider


@pytest.mark.parametrize(
    ("kind", "options"),
    [(ConformalClassifier, {}), (ConformalClassifier, {"by": "predicted"}), (CrossConformalClassifier, {})],
)
def test_a_report_on_rows_that_the_model_knows_promises_nothing(kind, options, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    X = 2 * np.eye(3)[y] + rng.normal(size=(240, 3))
    model = kind(LogisticRegression(), random_state=0).fit(X, y, **options)
    with pytest.warns(MisuseWarning, match="were learned from or calibrated on"):
        page = model.report(tmp_path / "r.html", X, y).read_text(encoding="utf-8")
    assert {*BOUNDS.findall(page)} == {"nothing"}
    assert "were learned from or calibrated on" in page
    new = 2 * np.eye(3)[y] + rng.normal(size=(240, 3))
    assert {*BOUNDS.findall(model.report(tmp_path / "n.html", new, y).read_text(encoding="utf-8"))} != {"nothing"}


def test_the_note_beside_sets_says_that_rows_were_learned_from(tmp_path, capsys, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = pd.DataFrame(2 * np.eye(3)[y] + rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y).save("model")
    X.assign(truth=y).to_parquet("x.parquet")
    assert done(capsys, "predict", "model", "x.parquet", "--out", "s.parquet")["promised"] is None
    found = done(capsys, "evaluate", "s.parquet", "--truth", "truth")["comparison"]
    assert found["refuted"]
    assert "were learned from or calibrated on, and nothing is promised for these rows" in found["text"]
    done(capsys, "report", "s.parquet", "--truth", "truth", "--out", "r.html")
    assert "were learned from or calibrated on" in Path("r.html").read_text(encoding="utf-8")


def test_triage_into_folders_refuses_the_rows_of_the_calibration_of_which_some_were_checked(parts, capsys):
    parts()
    told = ["conformalize", "--probabilities", "in", "--candidates", "answers", "--ignore", "id"]
    done(capsys, *told, "--verified", "truth", "--out", "own.cal")
    for more in ([], ["--candidates", "answers"]):
        asked = ["triage", "own.cal", "--probabilities", "in", *more, "--out", "yes", "--review", "no"]
        line = failed(capsys, *asked)
        assert "own.cal: was calibrated on these rows, and folders take new ones; use --out … for a file" in line
        assert not [path for folder in ("yes", "no") for path in Path(folder).rglob("*.parquet")]
    assert done(capsys, *asked[:-4], "--out", "yes.parquet", "--review", "no.parquet")["checked"] == 300
    assert done(capsys, *asked[:1], "m.cal", *asked[2:], "--force")["rows"] == 300


# ------------------------------------------------------------------------------------------ keys


def id_column(ids, kind):
    return pa.array(map(str, ids)) if kind == "string" else pa.array(ids, kind)


KEYS = [
    (("int64", 2**60), ("uint64", 2**60 + 150)),
    (("int64", 2**60), ("uint64", 2**63)),
    (("uint64", 2**63), ("int64", 2**60)),
    (("int64", 2**60), ("string", 2**60 + 150)),
]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("theirs", ["uint64", "string"])
def test_keys_of_two_types_in_two_files_are_not_rounded(keys, theirs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(300, 0)
    made = table(P, y, candidates).drop_columns(["id", "truth", "answers"])
    Path("in").mkdir()
    ids = []
    for n, (kind, first) in enumerate(keys):
        ids += range(first, first + 150)
        column = id_column(ids[-150:], kind)
        pq.write_table(made.slice(150 * n, 150).append_column("id", column), f"in/{n}.parquet")
    order = np.random.default_rng(3).permutation(300)
    labels = {"id": id_column([ids[i] for i in order], theirs), "candidates": [candidates[i] for i in order]}
    pq.write_table(pa.table(labels), "labels.parquet")
    told = ["conformalize", "--probabilities", "in", "--labels", "labels.parquet", "--key", "id"]
    done(capsys, *told, "--out", "m.cal")
    alone = conformalize(P, candidates, classes=CLASSES, random_state=0)
    assert Calibration.load("m.cal").threshold(0.9) == alone.threshold(0.9)


def test_a_report_on_the_rows_of_a_calibration_promises_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(200, 0)
    conformalize(P, candidates, classes=CLASSES).save("m.cal")
    held = {f"p:{name}": P[:, k] for k, name in enumerate(CLASSES)} | {"truth": list(y)}
    for order, promised in ((slice(None), False), (slice(None, None, -1), True)):
        pq.write_table(pa.table({name: values[order] for name, values in held.items()}), "p.parquet")
        done(
            capsys,
            "report",
            "m.cal",
            "--probabilities",
            "p.parquet",
            "--truth",
            "truth",
            "--out",
            "r.html",
            "--force",
        )
        page = Path("r.html").read_text(encoding="utf-8")
        assert ("these are the rows that it was calibrated on" in page) is not promised
        assert ({*BOUNDS.findall(page)} != {"nothing"}) is promised
