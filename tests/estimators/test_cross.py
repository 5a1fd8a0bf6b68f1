"""Folds of one cross-conformal model, and folds that are not."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier, CrossConformalClassifier
from setwise.conformal.calibration import PooledCalibration
from setwise.findings import Finding
from tests.changed_files import (
    edited,
    feature_rows,
    with_setting,
)


def with_members(folder, change):
    head = json.loads((folder / "setwise.json").read_text())
    head["members"] = change(head["members"])
    (folder / "setwise.json").write_text(json.dumps(head))


# ------------------------------------------------------------------------------- folds that are not of one model


@pytest.fixture(scope="module")
def crossed():
    return CrossConformalClassifier(LogisticRegression(), "mean", cv=4, random_state=0).fit(*feature_rows())


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
    "rows that were learned from": with_setting(
        seen={"p_value": None, "sentence": "it learned from 30 of 30 rows", "size": 30}
    ),
    "rows that differ": with_setting(
        differs={"p_value": 0.001, "sentence": "these are of another year", "size": 0}
    ),
    "another miss rate": with_setting(miss_rate="1/2"),
    "another seed": with_setting(seed=5),
    "another precision": with_setting(precision="float32"),
    "positions of other rows": lambda _, arrays: arrays.update({"evidence.position": np.arange(30)}),
}


EVERY_FOLD = {
    "categories": by_category,
    "weights": row_facts("weight", 1.0),
    "groups": row_facts("group", 0),
    "verified rows": verified,
    "an assumption": with_setting(assume={"kind": "uniform", "estimated": False}),
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
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}: .*(folds: every row|members cannot)"):
        CrossConformalClassifier.load(tmp_path / "model")


def test_a_split_conformal_model_has_one_member(tmp_path):
    ConformalClassifier(LogisticRegression(), random_state=0).fit(*feature_rows()).save(tmp_path / "model")
    with_members(tmp_path / "model", lambda members: members * 2)
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}: 2 members cannot make a ConformalClassifier"):
        ConformalClassifier.load(tmp_path / "model")


def test_folds_that_differ_are_refused_in_python_as_well(crossed):
    first, *others = crossed.calibration_.parts
    with pytest.raises(ValueError, match="folds: they differ"):
        PooledCalibration((first.withdraw(Finding(None, "in one fold")), *others))


def test_the_fold_of_each_row_is_known(crossed):
    fold = crossed.calibration_.fold
    for number, part in enumerate(crossed.calibration_.parts):
        assert np.flatnonzero(fold == number).tolist() == part.evidence.position.tolist()


@pytest.mark.parametrize(("strategy", "score"), [("auto", "lac"), ("mixture", "aps")])
def test_folds_as_they_are_fitted_come_back(strategy, score, tmp_path):
    X, sets = feature_rows()
    model = CrossConformalClassifier(LogisticRegression(), strategy, score, cv=3, random_state=0, miss_rate=0.01)
    model.fit(X, sets).save(tmp_path / "model")
    loaded = CrossConformalClassifier.load(tmp_path / "model")
    assert str(loaded.guarantee()) == str(model.guarantee())
    assert loaded.predict_set(X) == model.predict_set(X)
