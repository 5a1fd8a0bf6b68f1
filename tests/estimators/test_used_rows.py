"""Rows that a model has seen are known again."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets
from setwise.streams.model_inputs import load_calibration
from tests.changed_files import edited, feature_rows, with_setting

# --------------------------------------------------------------------------------- rows that were learned from


def silenced(model, folder):
    model.save(folder)
    for member in range(len(model.fitted_models)):
        edited(folder, with_setting(seen=None), member)
    return folder


@pytest.mark.filterwarnings("ignore:X. .* were learned from")
@pytest.mark.filterwarnings("ignore:X. .* are copies")
@pytest.mark.parametrize("how", ["copies", "folds", "the same rows"])
def test_a_calibration_cannot_keep_silent_of_rows_that_the_directory_shows_to_be_learned_from(how, tmp_path):
    X, sets = feature_rows()
    twice = np.concatenate([X, X]), LabelSets.concatenate([sets, sets])
    kind = CrossConformalClassifier if how == "folds" else ConformalClassifier
    model = kind(LogisticRegression(), random_state=0).fit(*(feature_rows() if how == "the same rows" else twice))
    if how == "the same rows":
        model.conformalize(X, sets)
    assert model.guarantee().promised is None
    folder = silenced(model, tmp_path / "model")
    loaded = kind.load(folder)
    assert loaded.guarantee().promised is None
    assert "learned from" in str(loaded.calibration_.parts[0].setting.seen)
    if how != "folds":
        assert load_calibration(folder).guarantee().promised is None


@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
def test_equal_rows_of_discrete_features_keep_their_promise(kind, tmp_path):
    X, sets = feature_rows(400)
    model = kind(LogisticRegression(), random_state=0).fit(np.round(X), sets)
    model.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    assert loaded.guarantee().promised == model.guarantee().promised is not None
