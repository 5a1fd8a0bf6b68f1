"""Neighbours vote on candidate sets."""

import numpy as np

from setwise.learn import (
    PartialLabelKNN,
)
from tests.toy_data import some_rows


def test_neighbours_vote_as_defined():
    X = np.array([[0.0], [1.0], [3.0]])
    model = PartialLabelKNN(n_neighbors=2).fit(X, [["a", "b"], ["b"], ["c"]])
    p = model.predict_proba([[0.25]])[0]  # distances 0.25 and 0.75: weights 0.75 and 0.25
    np.testing.assert_allclose(p, np.array([0.75, 1.0, 0.0]) / 1.75)


def test_neighbours_learn():
    X, candidates, y = some_rows(600)
    model = PartialLabelKNN().fit(X[:400], candidates[:400])
    assert (model.predict(X[400:]) == y[400:]).mean() > 0.9
