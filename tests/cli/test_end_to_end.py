"""The command line driven as a person would, and compared with Python to the last label."""

import json
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest

import setwise as library
from setwise import ConformalClassifier, LabelSets
from setwise.cli.app import run
from setwise.data import read_sets, read_table
from setwise.learn import CoveringClassifier, PartialLabelClassifier

from .conftest import NAMES, setwise, write


@cache
def in_python(folder, suffix):
    """The same model and sets without the command line."""
    names = {"candidates": "answers", "carry": ["id", "truth"]}
    votes, new = (read_table(folder / f"{part}{suffix}", **names) for part in ("votes", "new"))
    estimator = CoveringClassifier(PartialLabelClassifier("linear", epochs=5))
    model = ConformalClassifier(estimator, random_state=0).fit(votes.X, votes.candidates)
    return model, new


def test_inspect_describes_the_candidates(trained, monkeypatch, capsys):
    folder, suffix, _ = trained
    done = setwise("inspect", f"votes{suffix}", "--candidates", "answers", "--truth", "truth", folder=folder)
    assert "400 rows, 4 classes" in done.stdout
    assert "the truth is a candidate in 100.00% of the 400 rows" in done.stdout
    monkeypatch.chdir(folder)
    assert run(["inspect", f"votes{suffix}", "--candidates", "answers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 400


def test_fit_says_what_it_read_learned_and_may_claim(trained):
    _, suffix, said = trained
    assert f"read votes{suffix}: 400 rows, 4 features, 4 classes, 1.3 candidates per row" in said
    assert "learned (covering, weight " in said
    assert "; proden, linear)" in said
    assert "conformalized on 80 rows with strategy auto → max" in said
    assert "Promise: the set of a new example contains the true label with probability at least 0.90" in said
    assert f"try:  setwise predict model new{suffix} --out sets{suffix}" in said


def test_predict_and_evaluate_agree_with_python_to_the_last_label(trained):
    folder, suffix, _ = trained
    sets = f"sets{suffix}"
    setwise("predict", "model", f"new{suffix}", "--out", sets, "--confidence", "0.8", "--force", folder=folder)
    model, new = in_python(folder, suffix)
    expected = model.predict_set(new.X, 0.8)
    written = read_table(
        folder / sets,
        candidates="labels",
        truth="truth",
        features=["size"],
        carry=["id", "answers"],
        missing="empty",
        classes=expected.classes,
    )
    assert written.candidates == expected
    assert written.carried["id"].tolist() == new.carried["id"].tolist()
    assert 1 < expected.sizes.mean() < 4
    done = setwise("evaluate", sets, "--truth", "truth", "--json", folder=folder)
    found, own = json.loads(done.stdout), library.evaluate(expected, new.carried["truth"])
    assert (found["coverage"], found["mean_size"]) == (own["coverage"], own["mean_size"])


def test_p_values_and_other_formats_are_written_on_request(trained, monkeypatch):
    folder, suffix, _ = trained
    monkeypatch.chdir(folder)
    assert run(["predict", "model", f"new{suffix}", "--out", "p.parquet", "--p-values", "--force", "--quiet"]) == 0
    model, new = in_python(folder, suffix)
    columns = pq.read_table(folder / "p.parquet").to_pydict()
    p = np.column_stack([columns[f"p:{label}"] for label in model.classes_])
    np.testing.assert_array_equal(p, model.predict_p(new.X))
    assert read_sets(folder / "p.parquet") == model.predict_set(new.X)


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Probabilities of a model of somebody's own, with candidates in another file in another order."""
    folder, rng = tmp_path_factory.mktemp("outside"), np.random.default_rng(5)
    parts = {}
    for part, n in {"calibration": 300, "new": 120}.items():
        y = rng.integers(0, 4, n)
        P = 0.5 * rng.dirichlet(np.ones(4), n) + 0.5 * np.eye(4)[y]
        mask = (np.eye(4)[y] + (rng.random((n, 4)) < 0.1)) > 0
        parts[part] = P, LabelSets.from_mask(mask, NAMES), np.array(NAMES)[y]
    P, candidates, _ = parts["calibration"]
    order = rng.permutation(300)
    write(folder / "scores.csv", {"key": np.arange(300), **dict(zip(NAMES, P.T, strict=True))})
    write(folder / "answers.parquet", {"key": order, "candidates": candidates[order].to_lists()})
    P, _, truth = parts["new"]
    mixed = {name: P[:, NAMES.index(name)] for name in ("cat", "wren", "ant", "owl")}
    write(folder / "new.parquet", {"note": truth, **mixed})
    return folder, parts


def test_probabilities_from_outside_meet_candidates_by_name(outside):
    folder, parts = outside
    files = ["--probabilities", "scores.csv", "--labels", "answers.parquet", "--key", "key"]
    done = setwise(
        "conformalize", *files, "--out", "model.cal", "--conformity-score", "aps", "--json", folder=folder
    )
    assert json.loads(done.stdout)["classes"] == NAMES
    setwise("predict", "model.cal", "--probabilities", "new.parquet", "--out", "sets.csv", folder=folder)
    (P, candidates, _), (P_new, _, truth) = parts["calibration"], parts["new"]
    expected = library.conformalize(P, candidates, conformity_score="aps", random_state=0).predict_set(P_new)
    written = read_table(folder / "sets.csv", candidates="labels", truth="note", features=["size"], classes=NAMES)
    assert written.candidates == expected
    assert written.truth.tolist() == truth.tolist()
    done = setwise("evaluate", "sets.csv", "--truth", "note", "--json", folder=folder)
    assert json.loads(done.stdout)["coverage"] == library.evaluate(expected, truth)["coverage"]


def test_a_calibration_refuses_probabilities_without_one_of_its_classes(outside):
    folder, _ = outside
    P = np.full((3, 3), 1 / 3)
    write(folder / "few.csv", dict(zip(["wren", "owl", "ant"], P.T, strict=True)))
    library.conformalize(np.full((30, 4), 0.25), [["owl"]] * 30, classes=NAMES).save(folder / "small.cal")
    done = setwise(
        "predict", "small.cal", "--probabilities", "few.csv", "--out", "no.csv", folder=folder, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'error: few.csv has no column "cat", which is one of the 4 classes.\n'
    assert not (folder / "no.csv").exists()
