"""Folds trained together are the folds trained alone."""

import numpy as np
import pytest

from setwise import CrossConformalClassifier, LabelSets
from setwise.learn import PartialLabelClassifier


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    X = (np.eye(3)[y] @ rng.normal(size=(3, 6)) + 0.4 * rng.normal(size=(240, 6))) * np.arange(1, 7)
    return X, LabelSets.from_mask(np.eye(3)[y] + (rng.random((240, 3)) < 0.3) > 0, classes=["u", "v", "w"]), y


@pytest.mark.parametrize(
    "options",
    [
        {"network": "linear", "scale": "standard"},
        {"network": "mlp", "scale": "rows", "hidden_sizes": (16,)},
        {"network": "auto", "scale": "auto", "hidden_sizes": (16,)},
        {"network": "linear", "ensemble": 2},
    ],
    ids=str,
)
def test_each_fold_is_as_if_fitted_alone(options, rows):
    X, sets, _ = rows
    parts = [np.delete(np.arange(240), np.arange(i, 240, 4)) for i in range(4)]
    model = PartialLabelClassifier(epochs=6, random_state=1, **options)
    for fitted, part in zip(model.fit_many(X, sets, parts), parts, strict=True):
        alone = PartialLabelClassifier(epochs=6, random_state=1, **options).fit(X[part], sets[part])
        assert fitted.classes_.tolist() == ["u", "v", "w"]
        assert fitted.n_iter_ == alone.n_iter_
        np.testing.assert_allclose(fitted.predict_proba(X), alone.predict_proba(X), atol=2e-3)
        assert [p.shape for p in fitted.network_.parameters()] == [p.shape for p in alone.network_.parameters()]


def test_parts_that_differ_by_a_row_are_cut(rows):
    X, sets, _ = rows
    parts = [np.arange(150), np.arange(40, 189)]
    _, second = PartialLabelClassifier("linear", epochs=2, random_state=0).fit_many(X, sets, parts)
    assert second.n_features_in_ == 6


def test_cross_conformal_sets_with_our_learner_cover(rows):
    X, sets, y = rows
    model = CrossConformalClassifier(PartialLabelClassifier("linear", epochs=10), cv=4, random_state=0)
    model.fit(X[:200], sets[:200])
    assert model.evaluate(X[200:], np.array(["u", "v", "w"])[y[200:]])["coverage"] >= 0.8
