"""Models come back from their parts; what a file says of itself is not believed."""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version

import numpy as np
import pytest
import skops
from scipy.special import cbrt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from setwise import ConformalClassifier
from setwise.learn import CoveringClassifier, PartialLabelClassifier
from tests.conftest import refused
from tests.saved_files import head_of, with_head
from tests.toy_data import NAMES


def test_an_old_skops_is_not_used_even_where_it_is_installed(saved_models, monkeypatch):
    monkeypatch.setattr(skops, "__version__", "0.11.0")
    with pytest.raises(ValueError, match="skops 0.11.0 trusts too much in files"):
        ConformalClassifier.load(saved_models / "skops")


def test_universal_functions_need_no_trust(tmp_path):
    y = np.arange(120) % 3
    X = 3 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(120, 3))
    by_functions = make_pipeline(FunctionTransformer(np.arcsinh), FunctionTransformer(cbrt), LogisticRegression())
    model = ConformalClassifier(by_functions, random_state=0).fit(X, np.eye(3)[y] > 0)
    model.save(tmp_path / "model")
    loaded = ConformalClassifier.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_networks_are_loaded_without_skops(saved_models):
    code = (
        "import sys\n"
        "from setwise import ConformalClassifier\n"
        f"ConformalClassifier.load({str(saved_models / 'network')!r})\n"
        "print('skops' in sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def test_nodes_that_pose_as_our_own_class_run_nothing(saved_models, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(saved_models / "skops", folder)
    part = next(folder.glob("model-*.skops"))
    schema = {
        "__class__": "EMClassifier",
        "__module__": "setwise.learn.em",
        "__loader__": "ReduceNode",
        "__id__": 1,
        "content": {
            "__class__": "tuple",
            "__module__": "builtins",
            "__loader__": "TupleNode",
            "__id__": 2,
            "content": [],
        },
        "constructor": {"__class__": "system", "__module__": "os", "__loader__": "TypeNode", "__id__": 3},
        "protocol": 2,
        "_skops_version": version("skops"),
    }
    with zipfile.ZipFile(part, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    head = head_of(folder)
    content = part.read_bytes()
    head["files"][part.name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    with_head(folder, head)
    refused(ConformalClassifier.load, folder)


SIZES = {"hidden_sizes": [10**9], "ensemble": 10**9, "shape": [10**9], "classes": NAMES * 2}


@pytest.mark.parametrize("entry", list(SIZES))
def test_a_network_is_no_larger_than_its_weights(entry, saved_network):
    head = head_of(saved_network)
    head["members"][0]["model"][entry] = SIZES[entry]
    with_head(saved_network, head)
    refused(ConformalClassifier.load, saved_network)


# --------------------------------------------------------------------------------- what a model's head says


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = (2 * np.eye(3)[y] + rng.normal(size=(90, 3))).astype(np.float32)
    inner = PartialLabelClassifier("mlp", hidden_sizes=(4,), epochs=1, device="cpu", random_state=0)
    parts = CoveringClassifier(inner, inner, device="cpu", random_state=0)
    folder = tmp_path_factory.mktemp("models") / "covering"
    ConformalClassifier(parts, random_state=0).fit(X, np.eye(3)[y] + (rng.random((90, 3)) < 0.3) > 0).save(folder)
    return folder


def with_changed_head(folder, place, change):
    shutil.copytree(folder, place)
    head = json.loads((place / "setwise.json").read_text())
    change(head)
    (place / "setwise.json").write_text(json.dumps(head))
    return place


def test_a_file_names_no_device(network, tmp_path):
    def name(head):
        described = head["members"][0]["model"]
        for part in (described, described["posterior"]):
            part["parameters"] |= {"device": "cuda:7", "verbose": 1}

    loaded = ConformalClassifier.load(with_changed_head(network, tmp_path / "model", name)).estimator_
    assert (loaded.device, loaded.verbose) == ("auto", 0)
    assert loaded.posterior_.device == "auto"


def test_an_entry_that_a_head_has_twice_is_refused(network, tmp_path):
    place = with_changed_head(network, tmp_path / "model", lambda _: None)
    text = (place / "setwise.json").read_text()
    (place / "setwise.json").write_text(text.replace('"classes":', '"classes": ["a", "b", "c"], "classes":', 1))
    with pytest.raises(ValueError, match="setwise.json: cannot be read .*twice"):
        ConformalClassifier.load(place)


HEADS = {
    "weight": (lambda head: head["members"][0]["model"].update(weight=float("nan")), "do not belong together"),
    "classes": (
        lambda head: head["members"][0]["model"]["inclusion"].update(classes=[2, 1, 0]),
        "do not belong together",
    ),
}


@pytest.mark.parametrize("entry", list(HEADS))
def test_every_entry_of_a_head_that_is_used_later_is_looked_at(entry, network, tmp_path):
    change, message = HEADS[entry]
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}.*{message}"):
        ConformalClassifier.load(with_changed_head(network, tmp_path / "model", change))


def test_equal_models_have_equal_files(tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 3))
    for place in ("one", "other"):
        model = make_pipeline(FunctionTransformer(np.arcsinh), LogisticRegression())
        ConformalClassifier(model, random_state=0).fit(X, X[:, 0] > 0).save(tmp_path / place)
    one, other = ({part.name: part.read_bytes() for part in (tmp_path / at).iterdir()} for at in ("one", "other"))
    assert one == other
