"""`suggest_verification`: draws with the chances it states, and tells what checking would be worth."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from setwise import ConformalClassifier, Votes, conformalize, suggest_verification
from setwise.decisions.verification import draw_to_verify
from setwise.errors import InputError
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


def test_it_draws_as_many_rows_as_can_be_checked_and_predicts_the_size_that_follows(rows):
    p, y, mask = rows
    made = suggest_verification(Model(), p, mask, 60, random_state=1)
    assert len(set(made.rows.tolist())) == 60
    assert made.size_now == conformalize(p, mask, "max").predict_set(p).sizes.mean()
    verified = np.full(500, None, object)
    verified[made.rows] = y[made.rows]
    then = conformalize(p, mask, "rectified", verified=verified)
    assert abs(then.predict_set(p).sizes.mean() - made.size_then) < 0.5
    assert "60 rows" in str(made)
    again = suggest_verification(Model(), p, mask, 60, random_state=1)
    assert np.array_equal(made.rows, again.rows)


def test_other_numbers_are_those_that_are_enough_and_that_are_left(rows):
    p, y, mask = rows
    assert list(suggest_verification(Model(), p, mask, 50).curve) == [10, 20, 100, 200, 500]
    verified = np.where(np.arange(500) < 50, y, None)
    assert list(suggest_verification(Model(), p, mask, 20, verified=verified).curve) == [10, 50, 100, 200]
    assert list(suggest_verification(Model(), p, mask, 50, confidence_level=0.96).curve) == [100, 200, 500]
    twice = suggest_verification(Model(), np.vstack([p, p]), np.vstack([mask, mask]), 500)
    assert list(twice.curve) == [10, 20, 50, 100, 200, 1000]


def test_budgets_that_cannot_serve_are_refused(rows):
    p, _, mask = rows
    with pytest.raises(ValueError, match="budget: 8 of 500 rows; confidence 0.9 needs at least 9"):
        suggest_verification(Model(), p, mask, 8)
    with pytest.raises(ValueError, match="budget: 501"):
        suggest_verification(Model(), p, mask, 501)
    with pytest.raises(ValueError, match="candidates: 10 rows for 500"):
        suggest_verification(Model(), p, mask[:10], 50)


def test_budgets_from_the_fewest_that_serve_to_every_row_are_drawn(rows):
    p, _, mask = rows
    assert len(set(suggest_verification(Model(), p, mask, 9).rows.tolist())) == 9
    assert sorted(suggest_verification(Model(), p, mask, 500).rows) == list(range(500))


def test_rows_verified_before_are_not_drawn_again_and_count(rows):
    p, y, mask = rows
    verified = np.full(500, None, object)
    verified[:40] = y[:40]
    made = suggest_verification(Model(), p, mask, 60, verified=verified, random_state=1)
    assert made.rows.min() >= 40
    assert made.size_now == conformalize(p, mask, verified=verified).predict_set(p).sizes.mean()
    assert "if the model is right. Ask again once 20 rows are verified" not in str(made)
    assert "if the model is right. Ask again once 20 rows are verified" in str(
        suggest_verification(Model(), p, mask, 60)
    )
    assert len(suggest_verification(Model(), p, mask, 1, verified=verified, random_state=1).rows) == 1
    with pytest.raises(ValueError, match="budget: 461 of 500 rows, 40 of which are verified"):
        suggest_verification(Model(), p, mask, 461, verified=verified)


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # 1 of 100 random choices differs
def test_the_size_to_expect_is_that_which_follows_on_average(rng):
    p = simplex(rng, 4000, 5)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, 5)
    made = suggest_verification(Model(), p, mask, 30, random_state=0)
    for budget, expected in ((30, made.size_then), (200, made.curve[200])):
        sizes = []
        for _ in range(60):
            verified = np.full(4000, None, object)
            drawn = rng.choice(4000, budget, replace=False)
            verified[drawn] = y[drawn]
            sizes.append(conformalize(p, mask, verified=verified).predict_set(p).sizes.mean())
        assert abs(np.mean(sizes) - expected) < 0.06 * expected
    assert "With other numbers of rows to verify: 10 rows: " in str(made)


def test_votes_are_weighed_by_the_annotator_model(rng):
    p = simplex(rng, 600, 4)
    y = labels_from(rng, p)
    answers = np.where(rng.random((600, 5)) < 0.7, y[:, None], rng.integers(0, 4, (600, 5)))
    votes = Votes.from_matrix(answers, classes=range(4))
    model = Model()
    model.classes_ = np.arange(4)
    made = suggest_verification(model, p, votes, 50, random_state=0)
    truth = conformalize(p, y).predict_set(p).sizes.mean()
    assert made.size_then < 1.15 * truth
    assert made.size_now > made.size_then


def test_rows_that_were_learned_from_may_be_drawn_and_do_not_count_in_the_estimate(rng):
    y = rng.integers(0, 3, 600)
    X = np.eye(3)[y] + rng.normal(0, 0.6, (600, 3))
    mask = candidates_from(rng, y, 3)
    memory = DecisionTreeClassifier()  # knows the rows it learned from by heart
    model = ConformalClassifier(memory, random_state=0).fit(X, mask)
    made = model.suggest(X, mask, 60, random_state=0)
    held = model.calibration_rows_
    same = suggest_verification(model, X[held], mask[held], 60, random_state=0)
    assert (made.size_now, made.size_then) == (same.size_now, same.size_then)
    assert 2 < np.isin(made.rows, held).sum() < 30
    with pytest.raises(ValueError, match="learned: the model was trained on all of these rows"):
        suggest_verification(model, X, mask, 60, learned=np.ones(600, bool))


def test_a_draw_without_a_model_is_random_repeats_and_continues():
    first = draw_to_verify(600, 20, random_state=0)
    assert draw_to_verify(600, 50, random_state=0)[:20].tolist() == first.tolist()
    verified = np.full(600, None)
    verified[first] = "owl"
    assert (
        draw_to_verify(600, 30, verified=verified, random_state=0).tolist()
        == draw_to_verify(600, 50, random_state=0)[20:].tolist()
    )
    drawn = np.bincount(np.concatenate([draw_to_verify(10, 3, random_state=seed) for seed in range(2000)]))
    assert abs(drawn - 600).max() < 5 * np.sqrt(2000 * 0.3 * 0.7)
    with pytest.raises(InputError, match="budget: 590 of 600 rows, 20 of which are verified; draw 1 to 580 rows"):
        draw_to_verify(600, 590, verified=verified)
