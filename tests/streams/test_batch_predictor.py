"""`BatchPredictor` in a process of several threads, and the models that it asks."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setwise import ConformalClassifier, CrossConformalClassifier, load
from setwise.cli.app import run
from setwise.streams import BatchPredictor

LINEAR = LogisticRegression()
ESTIMATORS = {
    "linear": (ConformalClassifier, LINEAR),
    "pipeline": (ConformalClassifier, make_pipeline(StandardScaler(), LINEAR)),
    "folds": (CrossConformalClassifier, LINEAR),
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = pd.DataFrame(1.5 * np.eye(3)[y] + rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    return X, np.array(["ant", "cat", "owl"])[y]


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def model(request, frame, tmp_path_factory):
    """A model that learned from a frame, and where it was saved."""
    kind, estimator = ESTIMATORS[request.param]
    model, path = kind(estimator, random_state=0).fit(*frame), tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    return model, path


@pytest.fixture
def no_pandas(monkeypatch):
    """What makes the rest of a test run as if pandas were not installed."""

    class Absent:
        def find_spec(self, name, *_):
            if name.partition(".")[0] == "pandas":
                raise ModuleNotFoundError(name=name)

    def start():
        monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
        monkeypatch.delitem(sys.modules, "pandas")

    return start


@pytest.fixture
def filters_left_alone(monkeypatch):
    """Threads take turns often, and no module of setwise changes the filters of warnings, as other libraries do."""
    usual, enter, modules = sys.getswitchinterval(), warnings.catch_warnings.__enter__, set()

    def watched(context):
        modules.add(sys._getframe(1).f_globals["__name__"])
        return enter(context)

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", watched)
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)
    assert not [name for name in modules if name.startswith("setwise")]


@pytest.mark.parametrize("by_path", [True, False], ids=["path", "object"])
@pytest.mark.usefixtures("filters_left_alone")
def test_threads_leave_the_filters_of_warnings_alone_and_need_none(frame, model, by_path):
    X, (model, path) = frame[0], model
    tables = [pa.Table.from_pandas(X[i : i + 5], preserve_index=False) for i in range(0, 300, 5)]
    predictor = BatchPredictor(path if by_path else model)
    with ThreadPoolExecutor(8) as pool:  # warnings are errors here
        found = list(pool.map(predictor, tables))
    assert [row for table in found for row in table["labels"].to_pylist()] == model.predict_set(X).to_lists()


@pytest.mark.usefixtures("filters_left_alone")
def test_threads_that_load_models_leave_the_filters_of_warnings_alone(frame, model):
    X, (model, path) = frame[0], model
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(load, [path] * 16))
    assert all(one.predict_set(X) == model.predict_set(X) for one in loaded)


def test_a_model_may_choose_its_columns_by_name(frame, tmp_path):
    X, y = frame
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), remainder="passthrough")
    model = ConformalClassifier(make_pipeline(columns, LINEAR), random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    table, expected = pa.Table.from_pandas(X, preserve_index=False), model.predict_set(X).to_lists()
    for asked in (model, tmp_path / "model"):
        assert BatchPredictor(asked)(table)["labels"].to_pylist() == expected


@pytest.mark.parametrize("learner", ["network", "em"])
def test_a_model_of_the_command_line_is_asked_as_it_learned_without_pandas(frame, learner, tmp_path, no_pandas):
    X, y = frame
    X.assign(answers=y).to_csv(tmp_path / "t.csv", index=False)
    given = f"--candidates answers --learner {learner} --out {tmp_path}/model --quiet"
    assert (
        run(["fit", f"{tmp_path}/t.csv", *given.split(), *(["--epochs", "1"] if learner == "network" else [])]) == 0
    )
    table, model = pa.Table.from_pandas(X, preserve_index=False), load(tmp_path / "model")
    expected = model.predict_set(X).to_lists()
    assert BatchPredictor(model)(table)["labels"].to_pylist() == expected
    no_pandas()
    assert BatchPredictor(tmp_path / "model")(table)["labels"].to_pylist() == expected


def test_a_model_of_polars_frames_needs_no_pandas(frame, no_pandas):
    X, y = frame
    model = ConformalClassifier(make_pipeline(StandardScaler(), LINEAR), random_state=0).fit(pl.from_pandas(X), y)
    table, expected = pa.Table.from_pandas(X, preserve_index=False), model.predict_set(pl.from_pandas(X)).to_lists()
    no_pandas()
    assert BatchPredictor(model)(table)["labels"].to_pylist() == expected
