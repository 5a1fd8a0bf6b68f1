"""What a third attack found on model directories: a test for each fault."""

import hashlib
import json

import numpy as np
import pytest
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets
from setwise.calibration.calibration_file import FORMAT, VERSION
from setwise.calibration.pooled import PooledCalibration
from setwise.container import read_container, write_container
from setwise.errors import InputError
from setwise.scale.saved_models import load_calibration
from tests.hardness.changed_files import NAMES, told
from tests.hardness.test_second_attack import read_again


def rows(n=120):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = 2 * np.eye(3)[y] + rng.normal(size=(n, 3))
    return X, LabelSets.from_mask(np.eye(3)[y] + (rng.random((n, 3)) < 0.3) > 0, NAMES)


def edited(folder, change, member=0):
    """Changes the calibration of one member of a model directory, and lists it with its new digest."""
    head = json.loads((folder / "setwise.json").read_text())
    name = head["members"][member]["calibration"]
    header, arrays = read_container(folder / name, FORMAT, VERSION)
    arrays = {key: array.copy() for key, array in arrays.items()}
    change(header, arrays)
    write_container(folder / name, header, arrays)
    content = (folder / name).read_bytes()
    head["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "setwise.json").write_text(json.dumps(head))


def with_members(folder, change):
    head = json.loads((folder / "setwise.json").read_text())
    head["members"] = change(head["members"])
    (folder / "setwise.json").write_text(json.dumps(head))


# ------------------------------------------------------------- scikit-learn's state, which it uses as it stands

NEIGHBOURS = [
    KNeighborsClassifier(algorithm="brute", metric="manhattan"),
    RadiusNeighborsClassifier(5.0, algorithm="brute", metric="manhattan"),
]
LABELS = {
    "fewer than rows (segmentation fault)": lambda y: y[:1],
    "none": lambda y: y[:0],
    "of a class far outside (segmentation fault)": lambda y: np.full_like(y, 2**40),
    "before the first class": lambda y: y - 1,
    "after the last class": lambda y: y + 1,
    "no positions": lambda y: np.full(y.shape, np.nan),
    "of several outputs": lambda y: y[:, None],
}


@pytest.mark.parametrize("labels", list(LABELS))
@pytest.mark.parametrize("neighbours", NEIGHBOURS, ids=lambda model: type(model).__name__)
def test_neighbours_whose_labels_are_not_those_of_their_rows_need_to_be_vouched_for(neighbours, labels, tmp_path):
    X, sets = rows()
    model = neighbours.fit(X, sets.to_mask().argmax(axis=1))
    assert np.array_equal(read_again(model, tmp_path).predict(X), model.predict(X))
    model._y = LABELS[labels](model._y)
    with pytest.raises(InputError, match=f"nobody vouched for: .*{type(model).__name__};"):
        read_again(model, tmp_path)


def test_neighbours_by_a_metric_with_a_matrix_need_to_be_vouched_for_as_scipy_believes_its_size(tmp_path):
    X, sets = rows()
    asked = {"algorithm": "brute", "metric": "mahalanobis", "metric_params": {"VI": np.eye(3)}}
    model = KNeighborsClassifier(**asked).fit(X, sets.to_mask().argmax(axis=1))
    with pytest.raises(InputError, match=r"nobody vouched for: .*KNeighborsClassifier;"):
        read_again(model, tmp_path)


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
def test_k_means_needs_to_be_vouched_for_as_it_believes_the_size_of_its_centres(kind, tmp_path):
    model = kind(3, n_init=1, random_state=0).fit(rows()[0])
    with pytest.raises(InputError, match=f"nobody vouched for: sklearn.cluster._kmeans.{kind.__name__};"):
        read_again(model, tmp_path)


# ------------------------------------------------------------------------------- folds that are not of one model


@pytest.fixture(scope="module")
def crossed():
    return CrossConformalClassifier(LogisticRegression(), "mean", cv=4, random_state=0).fit(*rows())


def scored_by(name):
    def change(header, _):
        header["conformity_score"] = {"name": name}
        header["setting"]["conformity_score"] = name

    return change


def by_category(header, arrays):
    header["categories"], arrays["category"] = ["a", "b"], np.arange(len(arrays["evidence.low"])) % 2
    header["setting"]["scope"] = " of each category"


def verified(header, arrays):
    """All rows checked: no candidate is the true label."""
    n = header["setting"]["checked"] = len(arrays["evidence.low"])
    arrays["evidence.truth"] = arrays["evidence.high"] + 0.1
    arrays["evidence.label"], arrays["evidence.held"] = arrays["evidence.predicted"], np.zeros(n, dtype=bool)


def row_facts(name, value):
    return lambda _, arrays: arrays.update({f"evidence.{name}": np.full(len(arrays["evidence.low"]), value)})


ONE_FOLD = {
    "another strategy": lambda header, _: header.update(strategy={"name": "min"}),
    "another score": scored_by("margin"),
    "rows that were learned from": told(seen="it learned from 30 of 30 rows"),
    "rows that differ": told(differs="these are of another year"),
    "another miss rate": told(miss_rate="1/2"),
    "another seed": told(seed=5),
    "another precision": told(precision="float32"),
    "positions of other rows": lambda _, arrays: arrays.update({"evidence.position": np.arange(30)}),
}
EVERY_FOLD = {
    "categories": by_category,
    "weights": row_facts("weight", 1.0),
    "groups": row_facts("group", 0),
    "verified rows": verified,
    "an assumption": told(assume={"kind": "uniform", "estimated": False}),
    "a strategy that cannot be pooled": lambda header, _: header.update(strategy={"name": "all"}),
    "no positions": lambda _, arrays: arrays.pop("evidence.position"),
}


@pytest.mark.parametrize("odd", [*ONE_FOLD, *EVERY_FOLD])
def test_folds_that_are_not_of_one_cross_conformal_model_are_refused(odd, crossed, tmp_path):
    crossed.save(tmp_path / "model")
    for member in [1] if odd in ONE_FOLD else range(4):
        edited(tmp_path / "model", (ONE_FOLD | EVERY_FOLD)[odd], member)
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}: .*folds: "):
        CrossConformalClassifier.load(tmp_path / "model")


MEMBERS = {
    "one again and again": lambda members: members[:1] * 30,
    "one twice": lambda members: [*members, members[0]],
    "one left out": lambda members: members[1:],
    "one alone": lambda members: members[:1],
}


@pytest.mark.parametrize("which", list(MEMBERS))
def test_every_fold_counts_once(which, crossed, tmp_path):
    crossed.save(tmp_path / "model")
    with_members(tmp_path / "model", MEMBERS[which])
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}: .*(folds: not every row|members make no)"):
        CrossConformalClassifier.load(tmp_path / "model")


def test_a_split_conformal_model_has_one_member(tmp_path):
    ConformalClassifier(LogisticRegression(), random_state=0).fit(*rows()).save(tmp_path / "model")
    with_members(tmp_path / "model", lambda members: members * 2)
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}: 2 members make no ConformalClassifier"):
        ConformalClassifier.load(tmp_path / "model")


def test_folds_that_differ_are_refused_in_python_as_well(crossed):
    first, *others = crossed.calibration_.parts
    with pytest.raises(ValueError, match="folds: they differ"):
        PooledCalibration((first.differing("in one fold"), *others))


def test_the_fold_of_each_row_is_known(crossed):
    fold = crossed.calibration_.fold
    for number, part in enumerate(crossed.calibration_.parts):
        assert np.flatnonzero(fold == number).tolist() == part.evidence.position.tolist()


@pytest.mark.parametrize(("strategy", "score"), [("auto", "lac"), ("mixture", "aps")])
def test_folds_as_they_are_fitted_come_back(strategy, score, tmp_path):
    X, sets = rows()
    model = CrossConformalClassifier(LogisticRegression(), strategy, score, cv=3, random_state=0, miss_rate=0.01)
    model.fit(X, sets).save(tmp_path / "model")
    loaded = CrossConformalClassifier.load(tmp_path / "model")
    assert str(loaded.guarantee()) == str(model.guarantee())
    assert loaded.predict_set(X) == model.predict_set(X)


# --------------------------------------------------------------------------------- rows that were learned from


def silenced(model, folder):
    model.save(folder)
    for member in range(len(model.fitted_models)):
        edited(folder, told(seen=""), member)
    return folder


@pytest.mark.filterwarnings("ignore:X. .* were learned from")
@pytest.mark.filterwarnings("ignore:X. .* are copies")
@pytest.mark.parametrize("how", ["copies", "folds", "the same rows"])
def test_a_calibration_cannot_keep_silent_of_rows_that_the_directory_shows_to_be_learned_from(how, tmp_path):
    X, sets = rows()
    twice = np.concatenate([X, X]), LabelSets.concatenate([sets, sets])
    kind = CrossConformalClassifier if how == "folds" else ConformalClassifier
    model = kind(LogisticRegression(), random_state=0).fit(*(rows() if how == "the same rows" else twice))
    if how == "the same rows":
        model.conformalize(X, sets)
    assert model.guarantee().promised is None
    folder = silenced(model, tmp_path / "model")
    loaded = kind.load(folder)
    assert loaded.guarantee().promised is None
    assert "learned from" in loaded.calibration_.parts[0].setting.seen
    if how != "folds":
        assert load_calibration(folder).guarantee().promised is None


@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
def test_equal_rows_of_discrete_features_keep_their_promise(kind, tmp_path):
    X, sets = rows(400)
    model = kind(LogisticRegression(), random_state=0).fit(np.round(X), sets)
    model.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    assert loaded.guarantee().promised == model.guarantee().promised is not None
