"""`setwise.load` gives back whatever was saved, and a model takes the columns of a table as they are."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pyarrow import csv
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.cli.app import run
from setwise.errors import InputError
from setwise.streams import model_inputs as saved_models
from setwise.tables import read_sets
from setwise.tables.table_files import table_files
from tests.toy_data import sample_rows

COLOURS = ["red", "green", "blue"]


def table(n=300, seed=0):
    """Rows with gaps, a missing category, and one category that a single row has."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {"size": 2 * y + rng.normal(size=n), "colour": np.array(COLOURS)[y], "age": rng.normal(size=n)}
    )
    noisy = rng.random(n) < 0.3
    frame.loc[noisy, "colour"] = rng.choice(COLOURS, noisy.sum())
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame.assign(answers=np.array(["ant", "bee", "cat"])[y])


LEARNERS = {
    "em": ["--learner", "em"],
    "network": ["--learner", "network", "--network", "linear", "--epochs", "3"],
    "covering": ["--learner", "covering", "--epochs", "2"],
    "folds": ["--learner", "em", "--cross", "3"],
}


@pytest.fixture(scope="module", params=LEARNERS)
def fitted(request, tmp_path_factory):
    """A folder with a model of the command line, a table of new rows, and the command's sets of them."""
    folder = tmp_path_factory.mktemp("fitted")
    table().to_csv(folder / "old.csv", index=False)
    table(50, seed=1).drop(columns="answers").assign(id=range(50)).to_csv(folder / "new.csv", index=False)
    options = ["--candidates", "answers", "--impute", "median", "--one-hot", *LEARNERS[request.param], "-q"]
    assert run(["fit", str(folder / "old.csv"), *options, "--out", str(folder / "model")]) == 0
    assert (
        run(["predict", *map(str, (folder / "model", folder / "new.csv")), "--out", str(folder / "s.csv"), "-q"])
        == 0
    )
    return folder


READERS = {"pandas": pd.read_csv, "polars": pl.read_csv, "pyarrow": csv.read_csv}


@pytest.mark.parametrize("reader", READERS)
def test_a_loaded_model_gives_the_frame_the_sets_that_the_command_gives_the_file(fitted, reader):
    model = setwise.load(fitted / "model")
    rows = READERS[reader](fitted / "new.csv")
    frame = rows.drop_columns("id") if reader == "pyarrow" else rows[["size", "colour", "age"]]
    assert model.predict_set(frame) == read_sets(fitted / "s.csv", classes=model.classes_)
    assert reader == "pyarrow" or not model.compare(frame).refuted


def test_a_category_never_seen_is_the_same_error_in_python_and_on_the_command_line(fitted, capsys):
    frame = pd.read_csv(fitted / "new.csv")
    frame.loc[7, "colour"] = "pink"
    said = "column 'colour': row 7 is 'pink', which is not a known category (blue, green, red); write one of these"
    with pytest.raises(InputError) as caught:
        setwise.load(fitted / "model").predict_set(frame[["size", "colour", "age"]])
    assert str(caught.value).startswith(f"X, {said}")
    frame.to_csv(fitted / "pink.csv", index=False)
    assert run(["predict", *map(str, (fitted / "model", fitted / "pink.csv")), "--out", str(fitted / "p.csv")]) == 2
    assert f"pink.csv, {said}" in " ".join(capsys.readouterr().err.split())


def test_rows_of_the_fit_are_noticed_in_a_frame_and_in_a_file(fitted, capsys):
    model = setwise.load(fitted / "model")
    with pytest.warns(setwise.MisuseWarning, match="learned from"):
        model.evaluate(pd.read_csv(fitted / "old.csv")[["size", "colour", "age"]], table()["answers"].tolist())
    arguments = [*map(str, (fitted / "model", fitted / "old.csv")), "--out", str(fitted / "again.csv"), "--force"]
    assert run(["predict", *arguments]) == 0
    assert "learned from" in " ".join(capsys.readouterr().err.split())


def test_a_model_of_a_table_is_saved_and_loaded_again(fitted, tmp_path):
    model = setwise.load(fitted / "model")
    model.save(tmp_path / "again")
    frame = pd.read_csv(fitted / "new.csv")[["size", "colour", "age"]]
    assert setwise.load(tmp_path / "again").predict_set(frame) == model.predict_set(frame)


def test_a_table_is_known_to_be_the_one_that_was_fitted(fitted):
    model = setwise.load(fitted / "model")
    old = saved_models.all_features(table_files(fitted / "old.csv"), model, None)
    assert saved_models.is_training_data(model, old)
    assert not saved_models.is_training_data(
        model, saved_models.all_features(table_files(fitted / "new.csv"), model, None)
    )
    model.summary_["data"]["X"] = None
    assert not saved_models.is_training_data(model, [[1], [2, 3]])  # neither has a digest


def test_means_and_categories_are_learned_from_the_rows_to_learn_from_alone(tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", str(tmp_path / "t.csv"), "--candidates", "answers", "--impute", "mean", "--one-hot"]
    assert run([*fit, "--learner", "em", "--out", str(tmp_path / "a"), "-q"]) == 0
    model = setwise.load(tmp_path / "a")
    held = model.calibration_.evidence.position
    learned = np.setdiff1d(np.arange(len(frame)), held)
    encoder = model.estimator_.steps[0][1]
    assert encoder.fillings_["size"] == pytest.approx(frame["size"][learned].mean())
    assert encoder.fillings_["size"] != pytest.approx(frame["size"].mean())
    frame.loc[held[0], "colour"] = "grey"  # a row kept for calibration has it, and no other
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run([*fit, "--learner", "em", "--out", str(tmp_path / "b"), "-q"]) == 0
    model = setwise.load(tmp_path / "b")
    assert model.estimator_.steps[0][1].categories_["colour"] == ("blue", "green", "red")
    grey, none = frame[["size", "colour", "age"]][:1].assign(colour="grey"), frame[["size", "colour", "age"]][:1]
    none = none.assign(colour=None)
    assert model.predict_proba(grey).tolist() == model.predict_proba(none).tolist()


def test_a_network_behind_an_encoder_is_loaded_without_skops(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", str(tmp_path / "t.csv"), "--candidates", "answers", "--impute", "0", "--one-hot", "--learner"]
    assert run([*fit, "network", "--network", "linear", "--epochs", "1", "--out", str(tmp_path / "m"), "-q"]) == 0
    code = "import setwise, sys; setwise.load(sys.argv[1]); print('skops' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]


KINDS = {
    "split": lambda: setwise.ConformalClassifier(LogisticRegression(), random_state=0),
    "cross": lambda: setwise.CrossConformalClassifier(LogisticRegression(), cv=3, random_state=0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_class_that_was_saved_comes_back(kind, tmp_path):
    X, _, _, y = sample_rows()
    model = KINDS[kind]().fit(X, y)
    model.save(tmp_path / "model")
    again = setwise.load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.predict_set(X) == model.predict_set(X)
    assert json.loads((tmp_path / "model" / "setwise.json").read_text())["cross"] == (kind == "cross")


def test_a_calibration_comes_back_and_takes_no_estimator(tmp_path):
    X, _, _, y = sample_rows()
    calibration = KINDS["split"]().fit(X, y).calibration_
    calibration.save(tmp_path / "a.cal")
    again = setwise.load(tmp_path / "a.cal")
    assert isinstance(again, setwise.Calibration)
    assert again.threshold() == calibration.threshold()
    with pytest.raises(InputError, match="a.cal is a calibration file, which needs no model"):
        setwise.load(tmp_path / "a.cal", LogisticRegression())


def test_a_model_that_could_not_be_kept_is_brought_and_types_are_trusted(tmp_path):
    X, _, _, y = sample_rows()
    boosted = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X[:100], y[:100])
    model = setwise.ConformalClassifier(FrozenEstimator(boosted)).fit(X[100:], y[100:])
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="need your trust"):
        setwise.load(tmp_path / "model")
    assert setwise.load(tmp_path / "model", estimator=boosted).predict_set(X) == model.predict_set(X)
    trusted = ["sklearn.ensemble._gb.GradientBoostingClassifier", "sklearn.tree._tree.Tree"]
    trusted += ["sklearn.tree._classes.DecisionTreeRegressor"]
    assert setwise.load(tmp_path / "model", trusted=trusted).predict_set(X) == model.predict_set(X)


def test_what_is_not_there_or_of_another_kind_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such model directory, and no such calibration file"):
        setwise.load(tmp_path / "nothing")
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match="not a model directory"):
        setwise.load(tmp_path / "other")
    X, _, _, y = sample_rows()
    KINDS["split"]().fit(X, y).monitor().save(tmp_path / "state")
    with pytest.raises(ValueError, match="a setwise-monitor file, not a setwise-calibration file"):
        setwise.load(tmp_path / "state")
