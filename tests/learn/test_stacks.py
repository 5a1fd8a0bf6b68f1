"""Our learner in the folds of a cross-conformal classifier."""

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


def test_cross_conformal_sets_with_our_learner_cover(rows):
    X, sets, y = rows
    model = CrossConformalClassifier(PartialLabelClassifier("linear", epochs=10), cv=4, random_state=0)
    model.fit(X[:200], sets[:200])
    assert model.evaluate(X[200:], np.array(["u", "v", "w"])[y[200:]])["coverage"] >= 0.8
