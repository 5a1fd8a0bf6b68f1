"""Folds of one cross-conformal model, and folds that are not."""

import json

import pytest
from sklearn.linear_model import LogisticRegression

from setwise import CrossConformalClassifier
from tests.changed_files import (
    feature_rows,
)


def with_members(folder, change):
    head = json.loads((folder / "setwise.json").read_text())
    head["members"] = change(head["members"])
    (folder / "setwise.json").write_text(json.dumps(head))


@pytest.fixture(scope="module")
def crossed():
    return CrossConformalClassifier(LogisticRegression(), "mean", cv=4, random_state=0).fit(*feature_rows())


MEMBERS = {
    "one again and again": lambda members: members[:1] * 30,
    "one twice": lambda members: [*members, members[0]],
    "one left out": lambda members: members[1:],
}


@pytest.mark.parametrize("which", list(MEMBERS))
def test_every_fold_counts_once(which, crossed, tmp_path):
    crossed.save(tmp_path / "model")
    with_members(tmp_path / "model", MEMBERS[which])
    with pytest.raises(ValueError, match=f"{tmp_path / 'model'}: .*folds: every row"):
        CrossConformalClassifier.load(tmp_path / "model")


@pytest.mark.parametrize(("strategy", "score"), [("auto", "lac"), ("mixture", "aps")])
def test_folds_as_they_are_fitted_come_back(strategy, score, tmp_path):
    X, sets = feature_rows()
    model = CrossConformalClassifier(LogisticRegression(), strategy, score, cv=3, random_state=0, miss_rate=0.01)
    model.fit(X, sets).save(tmp_path / "model")
    loaded = CrossConformalClassifier.load(tmp_path / "model")
    assert str(loaded.guarantee()) == str(model.guarantee())
    assert loaded.predict_set(X) == model.predict_set(X)
