"""Cross-conformal sets keep at least their promise of 1 − 2ε less a term, and in practice about 1 − ε."""

import numpy as np
from sklearn.naive_bayes import GaussianNB

from setwise import CrossConformalClassifier
from tests.statistical.sampling import at_least, count


def test_cross_conformal_sets_cover_as_promised():
    n, level, repetitions = 60, 0.8, 300
    promised = []

    def trial(rng):
        y = rng.integers(0, 3, n + 1)
        X = np.eye(3)[y] + 0.7 * rng.normal(size=(n + 1, 3))
        model = CrossConformalClassifier(GaussianNB(), cv=4, random_state=int(rng.integers(2**31)))
        model.fit(X[:n], y[:n])
        promised.append(model.guarantee(level).promised)
        return model.predict_set(X[n:], level).to_mask()[0, y[n]]

    hits = count(trial, repetitions)
    assert at_least(hits, promised[0], repetitions)
    assert at_least(hits, 0.75, repetitions)  # near 1 − ε, well above the promise
    assert np.isclose(promised[0], 0.6 - min(2 * 0.75 / 16, (1 - 4 / 60) / 5))
