"""Parts of a prediction that is taken up again, and the notes beside them."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier
from tests.streams import conftest
from tests.streams.conftest import done, failed, rows, table, write

parts, no_lines_about_time = conftest.parts, conftest.no_lines_about_time  # fixtures


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
    "another length": lambda found: found["compared"]["tallies"][0]["cells"].pop(),
    "less": lambda found: found["compared"]["tallies"][0].pop("m"),
    "labels of another model": lambda found: found["compared"]["tallies"][0]["labels"].append([99, 1]),
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
    assert "were learned from or calibrated on. Guaranteed: nothing for these rows" in found["text"]
    done(capsys, "report", "s.parquet", "--truth", "truth", "--out", "r.html")
    assert "were learned from or calibrated on" in Path("r.html").read_text(encoding="utf-8")
