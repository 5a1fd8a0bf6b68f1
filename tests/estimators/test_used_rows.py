"""Rows that a model has seen are known again."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets
from setwise.estimators.used_rows import read_probe, write_probe
from tests.changed_files import feature_rows

# --------------------------------------------------------------------------------- rows that were learned from


@pytest.mark.filterwarnings("ignore:X. .* equal a training row")
@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
def test_equal_rows_across_the_own_split_are_stated_to_be_different_events(kind, tmp_path):
    X, sets = feature_rows()
    model = kind(LogisticRegression(), random_state=0).fit(
        np.concatenate([X, X]), LabelSets.concatenate([sets, sets])
    )
    model.save(tmp_path / "model")
    for each in (model, kind.load(tmp_path / "model")):
        assert each.guarantee().promised is not None
        assert "they are different events" in " ".join(str(each.guarantee()).split())


@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
def test_equal_rows_of_discrete_features_keep_their_promise(kind, tmp_path):
    X, sets = feature_rows(400)
    model = kind(LogisticRegression(), random_state=0).fit(np.round(X), sets)
    model.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    assert loaded.guarantee().promised == model.guarantee().promised is not None


@pytest.mark.parametrize("labels", [["red", "blue"], [7, 11]])
def test_stored_rows_keep_their_columns_of_categories(labels, tmp_path):
    frame = pd.DataFrame({"x": [0.5, 1.5], "k": pd.Categorical(labels)})
    assert write_probe(tmp_path / "probe.npz", frame, np.eye(2))
    rows, _ = read_probe(tmp_path / "probe.npz")
    assert rows.equals(frame)
