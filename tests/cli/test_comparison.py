"""Rows that are not like the calibration rows, on the command line: predict, evaluate and report say so."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from setwise import ConformalClassifier, CrossConformalClassifier, EMClassifier, LabelSets, conformalize
from setwise.cli.app import run
from setwise.estimators.model_directory import save_model

from .conftest import NAMES, rows, setwise, write

DATA = Path(os.environ.get("SETWISE_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data")
SAID = "new rows differ from the"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, a calibration, and tables of rows like theirs (near) and unlike (far)."""
    place = tmp_path_factory.mktemp("compared")
    (X, lists, _), (new, _, truth) = rows(600, 0), rows(300, 1)
    sets = LabelSets.from_lists(lists, classes=NAMES)
    ConformalClassifier(LogisticRegression(), random_state=0).fit(X, sets).save(place / "model")
    CrossConformalClassifier(LogisticRegression(), cv=3, random_state=0).fit(X, sets).save(place / "folds")
    P = np.random.default_rng(0).dirichlet(np.ones(4), size=900)
    cubed = P[600:] ** 3 / (P[600:] ** 3).sum(axis=1, keepdims=True)
    conformalize(P[:600], sets).save(place / "model.cal")
    for name, features, scores in (("near", new, P[600:]), ("far", new + np.array([2, 0, 0, 0]), cubed)):
        write(place / f"{name}.csv", dict(zip("wxyz", features.T, strict=True)) | {"truth": truth})
        write(place / f"{name}-scores.csv", dict(zip(NAMES, scores.T, strict=True)) | {"truth": truth})
    return place


CASES = {
    "model": ("model", "{}.csv", "--features", "w", "--features", "x", "--features", "y", "--features", "z"),
    "folds": ("folds", "{}.csv", "--features", "w", "--features", "x", "--features", "y", "--features", "z"),
    "calibration": ("model.cal", "--probabilities", "{}-scores.csv"),
}


@pytest.mark.parametrize("case", CASES)
def test_predict_says_so_and_promises_nothing(folder, monkeypatch, capsys, case):
    monkeypatch.chdir(folder)
    for name, refuted in (("near", False), ("far", True)):
        arguments = [word.format(name) for word in CASES[case]]
        assert run(["predict", *arguments, "--out", "s.csv", "--force", "--json"]) == 0
        said = capsys.readouterr()
        found = json.loads(said.out)
        assert found["comparison"]["refuted"] == refuted == (found["promised"] is None)
        assert (SAID in said.err) == refuted
        assert (folder / "s.csv.differs.json").exists() == refuted
    assert run(["predict", *arguments, "--out", "s.csv", "--force"]) == 0
    assert "nothing about the true label.\nContradicted: " in capsys.readouterr().out


def test_sets_of_rows_that_differ_are_never_there_without_the_note(folder, monkeypatch):
    monkeypatch.chdir(folder)
    renamed, rename = [], Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, to: (renamed.append(Path(to).name), rename(path, to)))
    arguments = [word.format("far") for word in CASES["calibration"]]
    assert run(["predict", *arguments, "--out", "noted.csv", "-q"]) == 0
    assert renamed.index("noted.csv.differs.json") < renamed.index("noted.csv")


def test_evaluate_and_report_know_what_predict_found(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for name, refuted in (("far", True), ("near", False)):
        arguments = [word.format(name) for word in CASES["model"]]
        run(["predict", *arguments, "--out", "e.csv", "--force"])
        capsys.readouterr()
        assert run(["evaluate", "e.csv", "--truth", "truth", "--json"]) == 0
        said = capsys.readouterr()
        assert ("comparison" in json.loads(said.out)) == refuted == (SAID in said.err)
        assert run(["report", "e.csv", "--truth", "truth", "--out", f"{name}.html", "--force"]) == 0
        assert (SAID in (folder / f"{name}.html").read_text(encoding="utf-8")) == refuted
    (folder / "e.csv.differs.json").write_text("{}")
    assert run(["evaluate", "e.csv", "--truth", "truth"]) == 2
    assert "e.csv.differs.json: is not what `setwise predict` wrote" in capsys.readouterr().err
    (folder / "e.csv.differs.json").unlink()


@pytest.mark.parametrize("case", CASES)
def test_the_report_compares_and_promises_nothing_where_rows_differ(folder, case):
    for name, refuted in (("near", False), ("far", True)):
        arguments = [word.format(name) for word in CASES[case]]
        setwise("report", *arguments, "--truth", "truth", "--out", f"{case}-{name}.html", "--force", folder=folder)
        page = (folder / f"{case}-{name}.html").read_text(encoding="utf-8")
        assert '<h2 id="comparison">' in page
        assert ("These rows differ from the calibration rows" in page) == refuted
        assert ("Contradicted" in page) == refuted


def test_predict_notices_the_rows_of_a_calibration_file(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    P = np.random.default_rng(0).dirichlet(np.ones(4), size=900)
    for name, used in (("own", True), ("new", False)):
        write(folder / f"{name}-rows.csv", dict(zip(NAMES, (P[:600] if used else P[600:]).T, strict=True)))
        assert (
            run(["predict", "model.cal", "--probabilities", f"{name}-rows.csv", "--out", "own.csv", "--force"]) == 0
        )
        said = capsys.readouterr()
        assert ("600 rows (100%, the first is row 0) were learned from or calibrated on" in said.err) == used
        assert ("nothing about the true label" in said.out) == used


def test_birdsong_is_not_the_same_from_its_first_to_its_last_row(tmp_path, monkeypatch, capsys):
    if not (DATA / "pll" / "BirdSong.mat").exists():
        pytest.skip(f"NOT TESTED: {DATA} holds no pll/BirdSong.mat; set SETWISE_DATA to a folder that does")
    monkeypatch.chdir(tmp_path)
    content = scipy.io.loadmat(DATA / "pll" / "BirdSong.mat")
    X, partial = content["data"], np.asarray(content["partial_target"].todense()).T > 0
    names = [f"x{i}" for i in range(X.shape[1])]
    model = ConformalClassifier(EMClassifier(GaussianNB(), max_iter=3), random_state=0).fit(
        X[:4000], partial[:4000]
    )
    save_model(model, tmp_path / "model", feature_names=names)
    write(tmp_path / "new.parquet", dict(zip(names, X[4000:].T, strict=True)))
    assert run(["predict", "model", "new.parquet", "--out", "s.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["comparison"]["p_value"] < 1e-6
    assert found["promised"] is None
    assert run(["report", "model", "new.parquet", "--out", "r.html"]) == 0
    assert "These rows differ from the calibration rows" in (tmp_path / "r.html").read_text(encoding="utf-8")
