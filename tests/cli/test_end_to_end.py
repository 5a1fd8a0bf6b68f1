"""The command line driven as a person would, and compared with Python to the last label."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import setwise as library
from setwise import ConformalClassifier, LabelSets
from setwise.learn import CoveringClassifier, PartialLabelClassifier
from setwise.tables import read_sets, read_table

from .conftest import NAMES, rows, setwise, setwise_process, write


@pytest.fixture(scope="module")
def in_python():
    """The same model without the command line, and the features and labels of the new rows."""
    (X, lists, _), (X_new, _, truth) = rows(200, 0), rows(150, 1)
    estimator = CoveringClassifier(PartialLabelClassifier("linear", epochs=5))
    return ConformalClassifier(estimator, random_state=0).fit(X, lists), X_new, truth


def test_inspect_describes_the_candidates(trained):
    folder, suffix, _ = trained
    inspect = ("inspect", f"votes{suffix}", "--candidates", "answers")
    said = setwise(*inspect, "--truth", "truth", folder=folder)
    assert "200 rows, 4 classes" in said
    assert "the truth is a candidate in 100.00% of the 200 rows" in said
    assert json.loads(setwise(*inspect, "--json", folder=folder))["rows"] == 200


def test_fit_says_what_it_read_learned_and_may_claim(trained):
    _, suffix, said = trained
    assert f"read votes{suffix}: 200 rows, 4 features, 4 classes, 1.4 candidates per row" in said
    assert "learned (covering, weight " in said
    assert "; proden, linear)" in said
    assert "conformalized on 40 rows with strategy auto → max" in said
    assert "a new row's set contains its true label with probability at least 0.90" in " ".join(said.split())
    assert f"try:  setwise predict model new{suffix} --out sets{suffix}" in said


def test_predict_and_evaluate_agree_with_python_to_the_last_label(trained, in_python):
    folder, suffix, _ = trained
    sets = f"sets{suffix}"
    setwise("predict", "model", f"new{suffix}", "--out", sets, "--confidence", "0.8", "--force", folder=folder)
    model, X, truth = in_python
    expected = model.predict_set(X, 0.8)
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
    assert written.carried["id"].tolist() == [f"{i:04d}" for i in range(150)]
    assert 1 < expected.sizes.mean() < 4
    found = json.loads(setwise("evaluate", sets, "--truth", "truth", "--json", folder=folder))
    own = library.evaluate(expected, truth)
    assert (found["coverage"], found["mean_size"]) == (own["coverage"], own["mean_size"])


def test_p_values_and_other_formats_are_written_on_request(trained, in_python):
    folder, suffix, _ = trained
    setwise("predict", "model", f"new{suffix}", "--out", "p.parquet", "--p-values", "--force", folder=folder)
    model, X, _ = in_python
    columns = pq.read_table(folder / "p.parquet").to_pydict()
    p = np.column_stack([columns[f"p:{label}"] for label in model.classes_])
    np.testing.assert_array_equal(p, model.predict_p(X))
    assert read_sets(folder / "p.parquet") == model.predict_set(X)


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
    options = ("--out", "model.cal", "--conformity-score", "aps", "--json")
    assert json.loads(setwise("conformalize", *files, *options, folder=folder))["classes"] == NAMES
    setwise("predict", "model.cal", "--probabilities", "new.parquet", "--out", "sets.csv", folder=folder)
    (P, candidates, _), (P_new, _, truth) = parts["calibration"], parts["new"]
    expected = library.conformalize(P, candidates, conformity_score="aps", random_state=0).predict_set(P_new)
    written = read_table(folder / "sets.csv", candidates="labels", truth="note", features=["size"], classes=NAMES)
    assert written.candidates == expected
    assert written.truth.tolist() == truth.tolist()
    found = json.loads(setwise("evaluate", "sets.csv", "--truth", "note", "--json", folder=folder))
    assert found["coverage"] == library.evaluate(expected, truth)["coverage"]


def test_as_a_process_it_does_the_same_and_a_refusal_is_its_exit_status(outside, tmp_path):
    folder, _ = outside
    files = ("--probabilities", folder / "scores.csv", "--labels", folder / "answers.parquet", "--key", "key")
    conformalize = ("conformalize", *files, "--out", "model.cal", "--json", "--quiet")
    done = setwise_process(*conformalize, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == setwise(*conformalize, "--force", folder=tmp_path)
    write(tmp_path / "few.csv", dict(zip(["wren", "owl", "ant"], np.full((3, 3), 1 / 3), strict=True)))
    done = setwise_process("predict", "model.cal", "--probabilities", "few.csv", "--out", "no.csv", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    absent = "there is no column 'cat', which is one of the 4 classes; it has wren, owl, ant"
    assert done.stderr == f"error: few.csv: {absent}.\n"
    assert not (tmp_path / "no.csv").exists()
