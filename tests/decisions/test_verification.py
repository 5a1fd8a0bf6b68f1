"""`suggest_verification`: draws with the chances it states, and tells what checking would be worth."""

import numpy as np
import pytest

from setwise import conformalize, suggest_verification
from setwise.decisions.verification import _chances, _systematic
from tests.conftest import candidates_from, labels_from, simplex


class Model:
    """Its features are its probabilities."""

    classes_ = np.arange(5)

    def predict_proba(self, X):
        return X


@pytest.fixture
def rows(rng):
    p = simplex(rng, 500, 5)
    y = labels_from(rng, p)
    return p, y, candidates_from(rng, y, 5)


@pytest.mark.parametrize("prefer", ["none", "uncertain"])
def test_it_draws_as_many_rows_as_can_be_checked_and_predicts_the_size_that_follows(prefer, rows):
    p, y, mask = rows
    made = suggest_verification(Model(), p, mask, 60, prefer=prefer, random_state=1)
    assert len(set(made.rows.tolist())) == 60
    assert np.isclose(made.probability.sum(), 60)
    assert made.size_now == conformalize(p, mask, "max").predict_set(p).sizes.mean()
    verified = np.full(500, None, object)
    verified[made.rows] = y[made.rows]
    then = conformalize(p, mask, "rectified", verified=verified, verified_probability=made.probability)
    assert abs(then.predict_set(p).sizes.mean() - made.size_then) < 0.5
    assert "60 rows" in str(made)
    again = suggest_verification(Model(), p, mask, 60, prefer=prefer, random_state=1)
    assert np.array_equal(made.rows, again.rows)


def test_uncertain_rows_are_preferred_and_none_is_left_without_a_chance(rows):
    p, _, mask = rows
    chance = suggest_verification(Model(), p, mask, 60, prefer="uncertain", random_state=1).probability
    assert chance.min() > 0
    assert chance[p.max(axis=1) < 0.6].mean() > 1.5 * chance[p.max(axis=1) > 0.95].mean()


def test_every_row_is_drawn_as_often_as_its_chance_says(rng):
    chance = _chances(rng.random(40) ** 3, 15)
    assert chance.max() <= 1
    assert np.isclose(chance.sum(), 15)
    hits = np.zeros(40)
    for _ in range(4000):
        hits[_systematic(chance, 15, rng)] += 1
    assert np.abs(hits / 4000 - chance).max() < 0.04


def test_budgets_that_cannot_serve_are_refused(rows):
    p, _, mask = rows
    with pytest.raises(ValueError, match="budget: 8 of 500 rows; confidence 0.9 needs at least 9"):
        suggest_verification(Model(), p, mask, 8)
    with pytest.raises(ValueError, match="budget: 501"):
        suggest_verification(Model(), p, mask, 501)
    with pytest.raises(ValueError, match="prefer: 'easy'"):
        suggest_verification(Model(), p, mask, 50, prefer="easy")
    with pytest.raises(ValueError, match="candidates: 10 rows for 500"):
        suggest_verification(Model(), p, mask[:10], 50)
