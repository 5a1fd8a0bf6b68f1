"""What was saved is what is loaded; what cannot be trusted or understood is refused in one line."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import setwise
from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets
from setwise.errors import InputError
from setwise.learn import EMClassifier, PartialLabelClassifier
from tests.conftest import refused
from tests.saved_files import head_of, skops_file, with_head, with_part
from tests.toy_data import sample_rows

NAMES = ["wren", "owl", "ant"]  # not in alphabetical order


def sample(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = 2 * np.eye(3)[y] + rng.normal(size=(n, 3))
    return X, LabelSets.from_mask((np.eye(3)[y] + (rng.random((n, 3)) < 0.15)) > 0, NAMES)


def quick(**settings):
    return PartialLabelClassifier(**{"network": "linear", "epochs": 3, "scale": "standard", **settings})


class Foreign(LogisticRegression):
    """An estimator of nobody we know."""


ESTIMATORS = {
    "linear": quick,
    "ensemble": lambda: quick(network="mlp", hidden_sizes=(8, 8), ensemble=2, scale="rows"),
    "plain mlp": lambda: quick(network="mlp", hidden_sizes=(8,), batch_norm=False),
    "pipeline": lambda: make_pipeline(StandardScaler(), quick(scale=None)),
    "em": lambda: EMClassifier(LogisticRegression()),
    "pipeline with em": lambda: make_pipeline(StandardScaler(), EMClassifier(LogisticRegression())),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    X, sets = sample()
    models = {}
    for name, make in ESTIMATORS.items():
        models[name] = ConformalClassifier(make(), conformity_score="aps", random_state=0).fit(X, sets)
        models[name].save(folder / name)
    return folder, models


@pytest.fixture
def one(saved, tmp_path):
    """A copy of one saved model to damage."""
    folder, _ = saved
    target = tmp_path / "model"
    target.mkdir()
    for part in (folder / "linear").iterdir():
        (target / part.name).write_bytes(part.read_bytes())
    return target


def test_sets_and_p_values_are_the_same_bit_for_bit_in_a_fresh_process(saved, tmp_path):
    folder, models = saved
    X, _ = sample(seed=1)
    np.save(tmp_path / "X.npy", X)
    program = """
        import sys, numpy as np
        from setwise import ConformalClassifier
        folder, here, *names = sys.argv[1:]
        X = np.load(f"{here}/X.npy")
        for name in names:
            model = ConformalClassifier.load(f"{folder}/{name}")
            np.savez(f"{here}/{name}.npz", p=model.predict_p(X), sets=model.predict_set(X).to_mask(),
                     classes=model.classes_)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(folder), str(tmp_path), *models]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONWARNINGS": "error"})
    for name, model in models.items():
        found = np.load(tmp_path / f"{name}.npz")
        assert found["classes"].tolist() == NAMES
        np.testing.assert_array_equal(found["p"], model.predict_p(X), err_msg=name)
        np.testing.assert_array_equal(found["sets"], model.predict_set(X).to_mask(), err_msg=name)


def test_a_loaded_model_says_what_the_saved_one_said(saved):
    folder, models = saved
    loaded = ConformalClassifier.load(folder / "linear")
    assert loaded.get_params()["conformity_score"] == "aps"
    assert str(loaded.guarantee()) == str(models["linear"].guarantee())
    loaded.conformalize(*sample(seed=2))
    assert loaded.calibration_.evidence.n == 240


def test_the_description_is_for_people(saved):
    folder, _ = saved
    head = json.loads((folder / "linear" / "setwise.json").read_text())
    assert (head["format"], head["version"], head["classes"]) == ("setwise-model", 3, NAMES)
    assert (head["class_type"], head["conformity_score"]) == ("text", "aps")
    assert head["strategy"] == {"asked": "auto", "used": "max"}
    assert (head["training"]["rows"], head["training"]["calibrated_on"]) == (240, 48)
    assert len(head["training"]["data"]["X"]) == 64
    assert not list(folder.rglob("*.pkl"))


def test_saving_again_replaces_the_old_model_and_leaves_nothing_behind(saved, tmp_path):
    _, models = saved
    models["linear"].save(tmp_path / "model")
    models["em"].save(tmp_path / "model")
    assert sorted(part.suffix for part in (tmp_path / "model").iterdir()) == [
        ".json",
        ".npz",
        ".npz",
        ".npz",
        ".npz",
        ".skops",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert "EM" in type(ConformalClassifier.load(tmp_path / "model").estimator_).__name__


def test_a_loaded_model_can_be_saved_again(saved, tmp_path):
    folder, models = saved
    ConformalClassifier.load(folder / "pipeline").save(tmp_path / "copy")
    X, _ = sample(seed=3)
    copy = ConformalClassifier.load(tmp_path / "copy")
    np.testing.assert_array_equal(copy.predict_p(X), models["pipeline"].predict_p(X))


def test_a_directory_with_other_things_is_never_touched(saved, tmp_path):
    _, models = saved
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="holds other files and no model"):
        models["linear"].save(tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        models["linear"].save(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="not fitted"):
        ConformalClassifier().save(tmp_path / "model")


def weights(folder, suffix=".safetensors"):
    return next(part for part in folder.iterdir() if part.suffix == suffix)


def edited(folder, **changes):
    head = json.loads((folder / "setwise.json").read_text()) | changes
    (folder / "setwise.json").write_text(json.dumps({k: v for k, v in head.items() if v is not None}))


def truncate(folder):
    weights(folder).write_bytes(weights(folder).read_bytes()[:-7])


def tamper(folder):
    content = bytearray(weights(folder).read_bytes())
    content[-5] ^= 1
    weights(folder).write_bytes(content)


DAMAGES = {
    "newer": (
        lambda folder: edited(folder, version=99, setwise="9.9"),
        "format 99, written by setwise 9.9.*update",
    ),
    "truncated": (truncate, "truncated"),
    "tampered": (tamper, "changed or damaged"),
    "missing weights": (lambda folder: weights(folder).unlink(), "part model-.* is missing"),
    "missing calibration": (lambda folder: weights(folder, ".npz").unlink(), "is missing"),
    "no description": (lambda folder: (folder / "setwise.json").unlink(), "not a model directory"),
    "no JSON": (lambda folder: (folder / "setwise.json").write_text("{"), "cannot be read"),
    "another format": (lambda folder: edited(folder, format="onnx"), "holds 'onnx'"),
    "another class": (
        lambda folder: edited(folder, kind="CrossConformalClassifier"),
        "CrossConformalClassifier.load",
    ),
    "no classes": (lambda folder: edited(folder, classes=None), "broken or missing part"),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damage_is_one_clear_error(one, damage):
    ConformalClassifier.load(one)
    spoil, message = DAMAGES[damage]
    spoil(one)
    with pytest.raises(ValueError, match=message) as error:
        ConformalClassifier.load(one)
    assert "\n" not in str(error.value)


def test_what_is_not_there_cannot_be_loaded(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such model directory"):
        ConformalClassifier.load(tmp_path / "nowhere")


def test_a_forest_needs_no_trust_and_a_damaged_one_is_refused_in_a_sentence(tmp_path):
    X, sets = sample()
    model = ConformalClassifier(RandomForestClassifier(5), random_state=0).fit(X, sets)
    model.save(tmp_path / "forest")
    loaded = ConformalClassifier.load(tmp_path / "forest")
    np.testing.assert_array_equal(loaded.predict_p(X), model.predict_p(X))
    vars(model.estimator_.estimator_)["n_features_in_"] = 2
    with_part(tmp_path / "forest", next((tmp_path / "forest").glob("*.skops")), skops_file(model.estimator_))
    with pytest.raises(ValueError, match=r"model-\w+.skops: .* a RandomForestClassifier with a state") as error:
        ConformalClassifier.load(tmp_path / "forest")
    assert "\n" not in str(error.value)


OTHERS = {"scikit-learn": "1.2.3", "numpy": "2.0.1"}


def saved_by_others(folder, **versions):
    head = head_of(folder)
    assert head["versions"].keys() == {"scikit-learn", "numpy", "skops"}
    head["versions"] |= versions
    with_head(folder, head)


def fitted(folder):
    X, sets = sample()
    ConformalClassifier(GaussianNB(), random_state=0).fit(X, sets.to_mask().argmax(axis=1)).save(folder)
    return folder


def test_a_model_that_another_scikit_learn_saved_is_loaded_in_silence_where_its_answers_are_the_same(
    tmp_path, monkeypatch
):
    saved_by_others(fitted(tmp_path / "model"), **OTHERS)
    monkeypatch.setattr("sklearn.base.__version__", "99.0")  # so that scikit-learn warns of its own file
    assert ConformalClassifier.load(tmp_path / "model").classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("attribute", ["var_", "theta_"])
def test_a_model_that_does_not_work_here_names_the_versions_that_saved_it(attribute, tmp_path):
    saved_by_others(fitted(tmp_path / "model"), **OTHERS)
    model = ConformalClassifier.load(tmp_path / "model").estimator_
    if attribute == "var_":
        del model.var_
    else:
        model.theta_ = model.theta_ + 1
    with_part(tmp_path / "model", next((tmp_path / "model").glob("*.skops")), skops_file(model))
    here = f"this is scikit-learn {version('scikit-learn')} and numpy {version('numpy')}"
    with pytest.raises(ValueError, match=rf"saved with scikit-learn 1.2.3 and numpy 2.0.1, and {here}\. Install"):
        ConformalClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("wrong", ["1.0; run this", ["1"], None, "\x1b[31m"])
def test_a_version_is_a_number_where_an_error_repeats_it(wrong, tmp_path):
    saved_by_others(fitted(tmp_path / "model"), numpy=wrong)
    next((tmp_path / "model").glob("probe-*")).unlink()
    with pytest.raises(ValueError, match="is missing; copy the whole directory, or save it again.$"):
        ConformalClassifier.load(tmp_path / "model")


def test_an_answer_of_another_version_that_cannot_be_compared_is_warned_of(tmp_path):
    saved_by_others(fitted(tmp_path / "model"), **OTHERS)
    head = head_of(tmp_path / "model")
    del head["members"][0]["probe"]
    with_head(tmp_path / "model", head)
    with pytest.warns(UserWarning, match="no rows were stored to compare its answers. It was saved with scikit-l"):
        ConformalClassifier.load(tmp_path / "model")


def test_a_directory_does_not_vouch_for_itself(tmp_path):
    X, sets = sample()
    name = "sklearn.neighbors._classification.KNeighborsClassifier"
    model = ConformalClassifier(KNeighborsClassifier(algorithm="brute"), random_state=0)
    model.fit(X, sets.to_mask().argmax(axis=1)).save(tmp_path / "model")
    head = head_of(tmp_path / "model")
    head |= {"trusted": [name], "needs_trust": []}
    head["members"][0]["trusted"] = [name]
    head["members"][0]["model"] |= {"trusted": [name], "needs_trust": []}
    with_head(tmp_path / "model", head)
    with pytest.raises(InputError, match=f"types that need your trust: {name};"):
        ConformalClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(setwise.load(tmp_path / "model", trusted=[name]).predict_p(X), model.predict_p(X))


def module():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 3))


def foreign(seed=0):
    X, sets = sample(seed=seed)
    return Foreign().fit(X, sets.to_mask().argmax(axis=1))


OUTSIDE = {
    "a torch module": (module(), module(), torch.nn.Linear(3, 3)),
    "a foreign class": (FrozenEstimator(foreign()), foreign(), foreign(seed=5)),
}


@pytest.mark.parametrize("kind", list(OUTSIDE))
def test_a_model_that_cannot_be_kept_is_asked_for_and_recognised(kind, tmp_path):
    model, same, other = OUTSIDE[kind]
    X, sets = sample()
    candidates = sets.to_mask()
    made = ConformalClassifier(model, random_state=0).fit(X, candidates)
    made.save(tmp_path / "model")
    assert {part.suffix for part in (tmp_path / "model").iterdir()} == {".json", ".npz"}
    with pytest.raises(ValueError, match="to pass the model"):
        ConformalClassifier.load(tmp_path / "model")
    with pytest.raises(ValueError, match="not the model that was calibrated"):
        ConformalClassifier.load(tmp_path / "model", estimator=other)
    loaded = ConformalClassifier.load(tmp_path / "model", estimator=same)
    np.testing.assert_array_equal(loaded.predict_p(X), made.predict_p(X))


def test_a_network_made_by_a_callable_is_asked_for(tmp_path):
    X, sets = sample()
    made = ConformalClassifier(PartialLabelClassifier(module, epochs=2), random_state=0).fit(X, sets)
    made.save(tmp_path / "model")
    with pytest.raises(ValueError, match="PartialLabelClassifier cannot be loaded without"):
        ConformalClassifier.load(tmp_path / "model")
    loaded = ConformalClassifier.load(tmp_path / "model", estimator=made.estimator_)
    np.testing.assert_array_equal(loaded.predict_p(X), made.predict_p(X))


def test_all_models_of_a_cross_conformal_classifier_are_kept(tmp_path):
    X, sets = sample()
    made = CrossConformalClassifier(quick(), cv=3, random_state=0).fit(X, sets)
    made.save(tmp_path / "model")
    loaded = CrossConformalClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_p(X), made.predict_p(X))
    assert str(loaded.guarantee()) == str(made.guarantee())
    with pytest.raises(ValueError, match="use CrossConformalClassifier.load"):
        ConformalClassifier.load(tmp_path / "model")


def test_the_models_of_a_cross_conformal_classifier_are_recognised_one_by_one(tmp_path):
    X, sets = sample()
    labels = np.array(NAMES)[sets.to_mask().argmax(axis=1)]
    made = CrossConformalClassifier(Foreign(), cv=3, random_state=0).fit(X, labels)
    made.save(tmp_path / "model")
    with pytest.raises(ValueError, match="to pass the model"):
        CrossConformalClassifier.load(tmp_path / "model")
    loaded = CrossConformalClassifier.load(tmp_path / "model", estimator=made.estimators_)
    np.testing.assert_array_equal(loaded.predict_p(X), made.predict_p(X))
    with pytest.raises(ValueError, match="it is not the model that was calibrated"):
        CrossConformalClassifier.load(tmp_path / "model", estimator=made.estimators_[::-1])  # another fold's
    with pytest.raises(ValueError, match="1 models for 3 folds"):
        CrossConformalClassifier.load(tmp_path / "model", estimator=made.estimators_[0])
    assert json.loads((tmp_path / "model" / "setwise.json").read_text())["training"]["learned_from"] == 240


def test_what_was_assumed_and_the_categories_come_back(tmp_path):
    X, sets = sample()
    kind, rates = np.where(X[:, 0] > 0, "x", "y"), np.full((3, 3), 0.15) + 0.85 * np.eye(3)
    for assume in ("uniform", "class", rates):
        made = ConformalClassifier(quick(), assume=assume, random_state=0).fit(X, sets, by=kind)
        made.save(tmp_path / "model")
        loaded = ConformalClassifier.load(tmp_path / "model")
        assert loaded.predict_set(X, by=kind) == made.predict_set(X, by=kind)
        assert str(loaded.guarantee()) == str(made.guarantee())
        assert set(loaded.guarantee().by_category) == {"x", "y"}
        again = loaded.set_params(estimator=quick()).fit(X, sets, by=kind)
        assert again.predict_set(X, by=kind) == made.predict_set(X, by=kind)


def test_feature_names_and_their_order_are_checked_after_loading(tmp_path):
    X, sets = sample()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    made = ConformalClassifier(quick(), random_state=0).fit(frame, sets)
    made.save(tmp_path / "model")
    loaded = ConformalClassifier.load(tmp_path / "model")
    assert loaded.predict_set(frame) == made.predict_set(frame)
    with pytest.raises(ValueError, match="order"):
        loaded.predict_set(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="unseen"):
        loaded.predict_set(frame.rename(columns={"c": "weight"}))


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from setwise import ConformalClassifier
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 80)
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(rng.normal(size=(80, 2)) + y[:, None], y)
    def deadly(name):
        plain = getattr(Path, name)
        def step(self, *others, **options):
            global left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(self, *others, **options)
        setattr(Path, name, step)
    model.save(f"{sys.argv[1]}-whole")  # loads what saving needs, once for all
    for name in ("replace", "rename", "unlink"):
        deadly(name)
    for steps in sys.argv[2:]:
        if (child := os.fork()) == 0:
            left = int(steps)
            model.save(f"{sys.argv[1]}-{steps}")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in {0, -signal.SIGKILL}
"""


def test_a_kill_in_the_middle_of_saving_leaves_the_old_model_or_the_new_one(one):
    X, _ = sample(seed=4)
    before = ConformalClassifier.load(one).predict_p(X)
    steps = [2, 6, 14, 15, 16, 17, 18, 24]
    for number in steps:
        shutil.copytree(one, f"{one}-{number}")
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(one), *map(str, steps)]
    subprocess.run(command, check=True)
    olds = []
    for number in steps:
        left = ConformalClassifier.load(f"{one}-{number}")
        olds.append(left.classes_.tolist() == NAMES)
        if olds[-1]:
            np.testing.assert_array_equal(left.predict_p(X), before)
        else:
            assert left.predict_p(X[:, :2]).shape == (240, 2)
    assert olds == sorted(olds, reverse=True)  # one step, the one that replaces setwise.json, makes the model new
    assert olds[0]
    assert not olds[-1]


def test_a_pipeline_over_columns_is_loaded_without_a_word_of_trust(tmp_path):
    X, y = sample(seed=4)
    frame = pd.DataFrame(X).assign(kind=np.where(X[:, 0] > 0, "a", "b"))
    frame.columns = frame.columns.astype(str)
    columns = ColumnTransformer([("kind", OneHotEncoder(), ["kind"])], remainder="passthrough")
    model = ConformalClassifier(make_pipeline(columns, LogisticRegression()), random_state=0).fit(frame, y)
    model.save(tmp_path / "m")
    assert ConformalClassifier.load(tmp_path / "m").predict_set(frame[:50]) == model.predict_set(frame[:50])


def test_parts_of_a_process_that_was_killed_go_when_a_model_is_saved_again(one):
    content = b"moved in before setwise.json was"
    left = one / f"probe-{hashlib.sha256(content).hexdigest()[:8]}.npz"
    left.write_bytes(content)
    other = one / "probe-01234567.npz"
    other.write_bytes(content)
    ConformalClassifier.load(one).save(one)
    listed = json.loads((one / "setwise.json").read_text())["files"]
    assert {path.name for path in one.iterdir()} == {*listed, "setwise.json", other.name}


def test_a_model_takes_its_place_where_another_process_was_first(one, tmp_path, monkeypatch):
    model, place = ConformalClassifier.load(one), tmp_path / "new"
    rename = Path.rename

    def late(self, target):
        shutil.copytree(one, place, dirs_exist_ok=True)
        return rename(self, target)

    monkeypatch.setattr(
        Path, "rename", lambda self, target: (late if Path(target) == place else rename)(self, target)
    )
    model.save(place)
    assert ConformalClassifier.load(place).classes_.tolist() == model.classes_.tolist()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_load_begins_again_where_another_model_took_the_place(saved_models, saved_network, monkeypatch):
    from setwise.estimators import model_directory

    other, first, replaced = saved_models / "skops", model_directory.read_head, []

    def while_replaced(folder):
        head = first(folder)
        if not replaced:  # the moment after the head was read
            replaced.append(head)
            for part in head["files"]:
                (folder / part).unlink()
            shutil.copytree(other, folder, dirs_exist_ok=True)
        return head

    monkeypatch.setattr(model_directory, "read_head", while_replaced)
    assert "EMClassifier" in repr(ConformalClassifier.load(saved_network).estimator_)


def test_a_part_that_is_missing_is_an_error_where_nothing_was_replaced(saved_network):
    next(saved_network.glob("calibration-*")).unlink()
    assert "is missing" in refused(ConformalClassifier.load, saved_network)


def test_others_may_read_the_parts_of_a_model(saved_network):
    before = os.umask(0o022)
    try:
        ConformalClassifier.load(saved_network).save(saved_network.parent / "again")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(part.stat().st_mode) for part in (saved_network.parent / "again").iterdir()} == {0o644}


WRONG = {
    "a list for classes": lambda h: h.update(classes={"a": 1}),
    "members of nothing": lambda h: h.update(members=[None]),
    "no members": lambda h: h.update(members=[]),
    "a model that is none": lambda h: h["members"][0].update(model=[]),
    "an unknown kind of model": lambda h: h["members"][0]["model"].update(kind="pickle"),
    "layers in each other": lambda h: h["members"][0].update(
        model=json.loads('{"kind":"frozen","model":' * 900 + "1" + "}" * 900)
    ),
    "files without digests": lambda h: h.update(files=dict.fromkeys(h["files"], 1)),
    "a version that is text": lambda h: h.update(version="1"),
    "parameters of another class": lambda h: h.update(parameters={"moon": 1}),
}


@pytest.mark.parametrize("wrong", list(WRONG))
def test_a_description_that_cannot_be_is_one_error_that_names_the_model(wrong, saved_network):
    head = head_of(saved_network)
    WRONG[wrong](head)
    with_head(saved_network, head)
    refused(ConformalClassifier.load, saved_network)


@pytest.mark.parametrize(
    "name", ["../secret.npz", "/etc/hostname", "not-listed.npz", ".", "sub/part.npz", ".hidden"]
)
@pytest.mark.parametrize("listed", [True, False])
def test_only_listed_parts_inside_the_directory_are_read(name, listed, saved_network):
    part = next(saved_network.glob("used-rows-*"))
    content = part.read_bytes()
    if not name.startswith("/"):
        place = saved_network / name
        place.parent.mkdir(exist_ok=True)
        if not place.is_dir():
            place.write_bytes(content)
    head = head_of(saved_network)
    if listed and name != "not-listed.npz":
        head["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    head["used_rows"] = name
    with_head(saved_network, head)
    assert "part" in refused(ConformalClassifier.load, saved_network)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_a_part_that_is_no_file_is_refused_at_once(kind, saved_network):
    part = next(saved_network.glob("calibration-*"))
    elsewhere = saved_network.parent / "elsewhere"
    part.rename(elsewhere)
    if kind == "pipe":
        os.mkfifo(part)
    elif kind == "link":
        part.symlink_to(elsewhere)
    else:
        part.mkdir()
    said = refused(ConformalClassifier.load, saved_network)
    assert "regular file" in said or "symbolic link" in said


def test_saving_again_deletes_nothing_but_parts_of_its_own(saved_network):
    keep = {"thesis.tex": b"years", "model-notes.txt": b"more", "model-12345678.npz": b"a name like ours"}
    for name, content in keep.items():
        (saved_network / name).write_bytes(content)
    (saved_network.parent / "outside-12345678.npz").write_bytes(b"outside")
    head = head_of(saved_network)
    for name, content in keep.items():
        head["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    head["files"]["../outside-12345678.npz"] = {"sha256": "12345678", "bytes": 7}
    old = set(head_of(saved_network)["files"])
    loaded = ConformalClassifier.load(saved_network)
    with_head(saved_network, head)
    X, _, sets, _ = sample_rows(seed=5)
    loaded.conformalize(X, sets).save(saved_network)
    assert set(keep) <= {part.name for part in saved_network.iterdir()}
    assert (saved_network.parent / "outside-12345678.npz").exists()
    assert not {name for name in old if name.startswith("calibration")} & {
        part.name for part in saved_network.iterdir()
    }
    ConformalClassifier.load(saved_network)
