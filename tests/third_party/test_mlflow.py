"""Models of MLflow: what comes back in another process, or over HTTP, gives the same sets."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setwise import Calibration, ConformalClassifier, CrossConformalClassifier, LabelSets, conformalize
from tests.conftest import calls_in

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: run `make test-third-party`")
pytestmark = pytest.mark.filterwarnings("default")  # other libraries' warnings are theirs

from mlflow.exceptions import MlflowException  # noqa: E402 - needs MLflow

import setwise.mlflow as flavor  # noqa: E402 - needs MLflow

NAMES = np.array(["ant", "owl", "wren"])
BOOSTED = [
    "sklearn.ensemble._gb.GradientBoostingClassifier",
    "sklearn.tree._classes.DecisionTreeRegressor",
    "sklearn.tree._tree.Tree",
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    frame = pd.DataFrame(1.5 * np.eye(3)[y] + rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    return frame, NAMES[y]


@pytest.fixture(scope="module")
def models(rows):
    frame, y = rows
    split = ConformalClassifier(make_pipeline(StandardScaler(), LogisticRegression()), random_state=0)
    probabilities = pd.DataFrame(np.random.default_rng(1).dirichlet([1, 1, 1], 300), columns=NAMES)
    return {
        "split": (split.fit(frame, y), frame),
        "cross": (CrossConformalClassifier(LogisticRegression(), cv=3, random_state=0).fit(frame, y), frame),
        "calibration": (conformalize(probabilities, y, conformity_score="aps"), probabilities),
    }


def lists(frame):
    return [list(labels) for labels in frame["labels"]]


@pytest.fixture(scope="module")
def saved(models, tmp_path_factory):
    place = tmp_path_factory.mktemp("saved")
    for name, (model, X) in models.items():
        flavor.save_model(model, place / name, input_example=X[:2])
    return place


ELSEWHERE = """
import json, sys
import mlflow, pandas as pd
path, level, rows = sys.argv[1], float(sys.argv[2]), pd.read_csv(sys.argv[3], float_precision="round_trip")
found = mlflow.pyfunc.load_model(path).predict(rows, params={"confidence_level": level})
print(json.dumps([list(labels) for labels in found["labels"]]))
"""


@pytest.mark.parametrize("name", ["split", "cross", "calibration"])
def test_another_process_gives_the_same_sets_at_any_level(models, saved, tmp_path, name):
    model, X = models[name]
    X[:40].to_csv(tmp_path / "rows.csv", index=False)
    code = [sys.executable, "-c", ELSEWHERE, saved / name, "0.7", tmp_path / "rows.csv"]
    done = subprocess.run(code, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1]) == model.predict_set(X[:40], 0.7).to_lists()
    here = mlflow.pyfunc.load_model(str(saved / name))
    assert lists(here.predict(X[:40])) == model.predict_set(X[:40], 0.9).to_lists()


def test_the_frame_has_the_label_the_set_its_size_and_p_values_if_asked(models, saved):
    model, X = models["split"]
    served = mlflow.pyfunc.load_model(str(saved / "split"))
    found = served.predict(X[:20])
    assert list(found.columns) == ["label", "labels", "size"]
    assert (found["label"] == model.predict(X[:20])).all()
    assert (found["size"] == model.predict_set(X[:20]).sizes).all()
    found = served.predict(X[:20], params={"p_values": True})
    assert np.array_equal(found[[f"p:{name}" for name in NAMES]], model.predict_p(X[:20]))
    found = mlflow.pyfunc.load_model(str(saved / "calibration")).predict(in_another_order(models))
    assert lists(found) == models["calibration"][0].predict_set(models["calibration"][1]).to_lists()


@pytest.mark.parametrize("name", ["split", "cross"])
def test_a_request_asks_each_model_once_also_for_p_values(models, saved, name, monkeypatch):
    served, asked, once = flavor._load_pyfunc(saved / name / "data" / "model"), [], LogisticRegression.predict_proba
    monkeypatch.setattr(LogisticRegression, "predict_proba", lambda *given: asked.append(1) or once(*given))
    served.predict(models[name][1][:5], {"p_values": True})
    assert len(asked) == len(served.model.fitted_models)


def test_a_request_takes_less_than_twice_the_work_of_the_model(models, saved):
    served, row = flavor._load_pyfunc(saved / "split" / "data" / "model"), models["split"][1][:1]
    (model,) = served.model.fitted_models
    served.predict(row)
    assert calls_in(lambda: served.predict(row)) < 2 * calls_in(lambda: model.predict_proba(row))


def test_what_a_caller_does_to_one_answer_is_not_seen_in_the_next(models, saved):
    served, rows = flavor._load_pyfunc(saved / "split" / "data" / "model"), models["split"][1][:4]
    for asked in ({}, {"p_values": True}):
        first, kept = served.predict(rows, asked), served.predict(rows, asked)
        first.columns.name, first.index.name = "columns", "rows"
        first.loc[:, "size"], first.loc[0, "label"] = -1, "wren"
        pd.testing.assert_frame_equal(served.predict(rows, asked), kept)
        assert kept.columns.name is None
        assert (
            kept.dtypes[:3].tolist()
            == pd.DataFrame({"label": NAMES, "labels": [[], [], []], "size": 1}).dtypes.tolist()
        )


BAD = {
    "a gap": ({"a": [1.0, np.nan], "b": 2.0, "c": 0.5}, {}, "X: row 1 holds NaN in column 'a'"),
    "infinity": ({"a": 1.0, "b": [1.0, np.inf], "c": 0.5}, {}, "X: row 1 holds infinity (inf) in column 'b'"),
    "no rows": ({"a": [], "b": [], "c": []}, {}, "0 sample"),
    "a level": ({"a": [1.0], "b": 2.0, "c": 0.5}, {"confidence_level": 1.5}, "confidence_level: 1.5 is not"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_answered_is_refused_with_the_sentence_that_python_shows(saved, case):
    columns, params, sentence = BAD[case]
    served = mlflow.pyfunc.load_model(str(saved / "split"))
    with pytest.raises(MlflowException, match=re.escape(sentence)) as refused:
        served.predict(pd.DataFrame(columns, dtype=float), params=params)
    assert refused.value.error_code == "INVALID_PARAMETER_VALUE"
    assert "stack_trace" not in refused.value.serialize_as_json()


def test_columns_are_named_as_the_labels_unless_two_would_be_alike(tmp_path):
    P = np.random.default_rng(1).dirichlet([1, 1], 100)
    for labels in (["7", "owl"], ["a|b", " "]):
        model = conformalize(P, np.array(labels)[P.argmax(axis=1)], classes=labels)
        flavor.save_model(model, tmp_path / labels[0])
        served = mlflow.pyfunc.load_model(str(tmp_path / labels[0]))
        assert served.metadata.signature.inputs.input_names() == labels
        found = served.predict(pd.DataFrame(P[:3], columns=labels), params={"p_values": True})
        assert found.columns.tolist()[3:] == [f"p:{label}" for label in labels]


def in_another_order(models):
    return models["calibration"][1][["wren", "ant", "owl"]]


def test_signature_and_example_are_kept_and_nothing_is_pickled(saved):
    for name, columns in {"split": ["a", "b", "c"], "calibration": NAMES.tolist()}.items():
        described = mlflow.models.Model.load(str(saved / name))
        assert described.signature.inputs.input_names() == columns
        assert described.signature.outputs.input_names() == ["label", "labels", "size"]
        assert {one.name: one.default for one in described.signature.params} == {
            "confidence_level": 0.9,
            "p_values": False,
        }
        assert len(described.load_input_example(str(saved / name))) == 2
        needs = (saved / name / "requirements.txt").read_text()
        assert "setwise[mlflow]==" in needs
        assert ("skops==" in needs) == (name == "split")
    assert not [path for path in saved.rglob("*") if path.suffix in {".pkl", ".pickle", ".joblib"}]


def test_the_model_itself_comes_back_and_no_other(models, saved, tmp_path):
    model, _ = models["cross"]
    again = flavor.load_model(saved / "cross")
    assert isinstance(again, CrossConformalClassifier)
    assert str(again.guarantee()) == str(model.guarantee())
    assert isinstance(flavor.load_model(saved / "calibration"), Calibration)
    mlflow.pyfunc.save_model(str(tmp_path / "other"), loader_module="math", pip_requirements=[])
    with pytest.raises(ValueError, match="none of setwise"):
        flavor.load_model(tmp_path / "other")


def test_a_signature_is_made_from_the_rows_of_fit_where_no_example_is_given(rows, models, tmp_path):
    flavor.save_model(models["split"][0], tmp_path / "named")
    described = mlflow.models.Model.load(str(tmp_path / "named"))
    assert described.signature.inputs.input_names() == ["a", "b", "c"]
    assert described.saved_input_example_info is None
    X, y = rows[0].to_numpy(), rows[1]
    arrays = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y)
    flavor.save_model(arrays, tmp_path / "arrays")
    served = mlflow.pyfunc.load_model(str(tmp_path / "arrays"))
    assert lists(served.predict(X[:9])) == arrays.predict_set(X[:9]).to_lists()
    assert lists(served.predict(pd.DataFrame(X[:9]))) == arrays.predict_set(X[:9]).to_lists()


@pytest.mark.parametrize(("labels", "kind"), [([3, 4, 7], "long"), ([0.5, 1.0, 2.5], "double")])
def test_labels_need_not_be_text(tmp_path, labels, kind):
    P = np.random.default_rng(1).dirichlet([1, 1, 1], 100)
    sets = LabelSets.from_mask(P.max(axis=1, keepdims=True) == P, classes=labels)
    model = conformalize(P, sets)
    flavor.save_model(model, tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    columns = served.metadata.signature.inputs.input_names()
    found = served.predict(pd.DataFrame(P[:9], columns=columns)[columns[::-1]])
    assert lists(found) == model.predict_set(P[:9]).to_lists()
    assert found["label"].tolist() == [row[0] for row in sets[:9].to_lists()]
    assert served.metadata.signature.outputs.input_types()[0].name == kind


def test_a_model_of_the_command_line_reads_new_rows_as_its_table_was_read(rows, tmp_path):
    from setwise.cli.app import run

    frame, y = rows
    table = frame.assign(place=np.where(y == "owl", "wood", "sea"), answers=y)
    table.loc[::7, "a"] = np.nan
    table.to_csv(tmp_path / "table.csv", index=False)
    fit = f"fit {tmp_path}/table.csv --candidates answers --impute mean --one-hot --out {tmp_path}/model --quiet"
    assert run([*fit.split(), "--learner", "em"]) == 0
    assert run(f"predict {tmp_path}/model {tmp_path}/table.csv --out {tmp_path}/sets.jsonl --quiet".split()) == 0
    flavor.save_model(ConformalClassifier.load(tmp_path / "model"), tmp_path / "saved")
    found = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(table.drop(columns="answers"))
    assert lists(found) == [
        json.loads(line)["labels"] for line in (tmp_path / "sets.jsonl").read_text().splitlines()
    ]


def test_a_logged_model_is_found_by_its_address(models, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more than mlflow-skinny
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    mlflow.set_experiment("birds")
    model, X = models["split"]
    with mlflow.start_run():
        told = flavor.log_model(model, "birds", input_example=X[:2])
    assert flavor.load_model(told.model_uri).predict_set(X[:9]).to_lists() == model.predict_set(X[:9]).to_lists()
    assert "setwise" in told.flavors


def test_what_could_not_be_served_is_refused_when_it_is_saved(rows, tmp_path):
    frame, y = rows
    forest = ConformalClassifier(GradientBoostingClassifier(n_estimators=3), random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match=r"use trusted=\['sklearn.ensemble._gb.GradientBoostingClassifier', "):
        flavor.save_model(forest, tmp_path / "forest")
    flavor.save_model(forest, tmp_path / "forest", trusted=BOOSTED)
    served = mlflow.pyfunc.load_model(str(tmp_path / "forest"))
    assert lists(served.predict(frame[:9])) == forest.predict_set(frame[:9]).to_lists()

    class Foreign(LogisticRegression):
        pass

    foreign = ConformalClassifier(Foreign(), random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match=r"Foreign cannot be loaded without .*; save model.calibration_"):
        flavor.save_model(foreign, tmp_path / "foreign")
    hospital = np.where(np.arange(300) % 2, "north", "south")
    by = ConformalClassifier(LogisticRegression(), random_state=0).fit(frame, y, by=hospital)
    with pytest.raises(ValueError, match="needs by of new rows, which MLflow cannot pass on"):
        flavor.save_model(by, tmp_path / "by")
    with pytest.raises(ValueError, match="a LogisticRegression, which predicts no sets"):
        flavor.save_model(LogisticRegression(), tmp_path / "plain")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forest"]


def test_a_server_answers_over_http_as_the_model_here(models, saved):
    model, X = models["split"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = [sys.executable, "-m", "mlflow", "models", "serve", "-m", saved / "split", "-p", str(port)]
    environment = os.environ | {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}  # noqa: PTH120
    server = subprocess.Popen([*code, "--env-manager", "local"], env=environment, start_new_session=True)
    try:
        wait_for(server, f"http://127.0.0.1:{port}/ping")
        asked = {"dataframe_split": X[:20].to_dict(orient="split", index=False)}
        for params, level in (({}, 0.9), ({"params": {"confidence_level": 0.7}}, 0.7)):
            answers = post(f"http://127.0.0.1:{port}/invocations", asked | params)["predictions"]
            assert [row["labels"] for row in answers] == model.predict_set(X[:20], level).to_lists()
            assert [row["label"] for row in answers] == model.predict(X[:20]).tolist()
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(f"http://127.0.0.1:{port}/invocations", asked | {"params": {"confidence_level": 1.5}})
        answer = json.loads(refused.value.read())
        assert refused.value.code == 400
        assert answer["message"].endswith("Error: confidence_level: 1.5 is not between 0 and 1 (exclusive).")
        assert "stack_trace" not in answer
    finally:
        os.killpg(server.pid, 15)
        server.wait()


def post(address, body):
    asked = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(asked) as answer:  # noqa: S310
        return json.load(answer)


def wait_for(server, address):
    """Until the server answers; an error if it ends instead."""
    while server.poll() is None:
        try:
            with urllib.request.urlopen(address):  # noqa: S310
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise AssertionError(f"the server ended with status {server.returncode}")


def test_a_model_does_not_vouch_for_itself_and_lies_inside_its_directory(rows, saved, tmp_path):
    boosted = GradientBoostingClassifier(n_estimators=3, random_state=0)
    forest = ConformalClassifier(boosted, random_state=0).fit(*rows)
    flavor.save_model(forest, tmp_path / "forest", trusted=BOOSTED)
    with pytest.raises(ValueError, match="need your trust"):
        flavor.load_model(tmp_path / "forest")
    again = flavor.load_model(tmp_path / "forest", trusted=BOOSTED)
    assert again.predict_set(rows[0][:9]).to_lists() == forest.predict_set(rows[0][:9]).to_lists()
    described = tmp_path / "forest" / "MLmodel"
    inside, elsewhere = "data: data/model\n    setwise", f"data: {saved / 'split' / 'data' / 'model'}\n    setwise"
    described.write_text(described.read_text().replace(inside, elsewhere))
    with pytest.raises(ValueError, match="keeps its model elsewhere"):
        flavor.load_model(tmp_path / "forest", trusted=BOOSTED)
