"""Cross-conformal sets keep at least their promise of 1 − 2ε less a term, and in practice about 1 − ε."""

import numpy as np
from sklearn.naive_bayes import GaussianNB

from setwise import CrossConformalClassifier
from tests.statistical.sampling import NEW, inside, mean_at_least, shares


def test_cross_conformal_sets_cover_as_promised():
    n, level = 60, 0.8
    promised = []

    def trial(rng):
        y = rng.integers(0, 3, n + NEW)
        X = np.eye(3)[y] + 0.7 * rng.normal(size=(len(y), 3))
        model = CrossConformalClassifier(GaussianNB(), cv=4, random_state=int(rng.integers(2**31)))
        model.fit(X[:n], y[:n])
        promised.append(model.guarantee(level).promised)
        return inside(model.predict_set(X[n:], level).to_mask(), y)

    found = shares(trial, 80)
    assert mean_at_least(found, promised[0])
    assert mean_at_least(found, 0.75)  # near 1 − ε, well above the promise
    assert np.isclose(promised[0], 0.6 - min(2 * 0.75 / 16, (1 - 4 / 60) / 5))
