"""Inclusion probabilities estimated without truth, and matrices that cannot be inverted."""

import numpy as np
import pytest

from setwise import LabelSets, estimate_inclusion
from setwise.contamination.inclusion import check_separable
from setwise.datasets import ClassConditional, contaminate
from tests.statistical.sampling import draw

M = np.array([[1, 0.6, 0.1, 0.1], [0.1, 1, 0.3, 0.1], [0.5, 0.1, 1, 0.1], [0.1, 0.1, 0.1, 1]])


def test_precise_posteriors_give_the_weighted_shares():
    """The posterior knows the truth, so that each row counts for its class, beside one row of the average kind."""
    y = np.repeat([0, 1, 2], [10, 20, 5])
    S = np.arange(3) == y[:, None]
    S[:4, 1] = True
    found = estimate_inclusion(np.eye(3)[y], S)
    average = 4 / 35 / 2
    assert found[0, 1] == pytest.approx((4 + average) / 11)
    assert found[0, 2] == pytest.approx(average / 11)
    assert found[1, 0] == pytest.approx(average / 21)
    assert (np.diag(found) == 1).all()


@pytest.mark.parametrize("sharpness", [2.0, 8.0])
def test_a_calibrated_posterior_finds_the_matrix(sharpness):
    p, y = draw(np.random.default_rng(0), 20_000, 4, sharpness)
    S = contaminate(y, ClassConditional(M), random_state=1)
    assert np.abs(estimate_inclusion(p, S) - M).max() < 0.04


def test_the_diagonal_is_one_less_the_miss_rate():
    p, y = draw(np.random.default_rng(2), 20_000, 4, 4.0)
    S = contaminate(y, ClassConditional(M), miss_rate=0.1, random_state=3)
    found = estimate_inclusion(p, S, miss_rate=0.1)
    assert np.diag(found) == pytest.approx(0.9)
    assert np.abs(found - M + 0.1 * np.eye(4)).max() < 0.06


def test_a_class_nobody_meets_is_as_the_average_and_nothing_is_random():
    p, y = draw(np.random.default_rng(4), 500, 3)
    p = np.column_stack([p, np.zeros(len(p))])
    S = np.column_stack([np.arange(3) == y[:, None], np.zeros(len(p), bool)])
    S[::2, 1] = True
    found = estimate_inclusion(p, S)
    share = (S.sum(axis=1).mean() - 1) / 3
    assert found[3, :3] == pytest.approx(share)
    assert np.array_equal(found, estimate_inclusion(p, S))


def test_a_model_that_excludes_every_candidate_prefers_none():
    found = estimate_inclusion([[1.0, 0.0, 0.0]] * 4, [[1, 2]] * 4)
    assert found[1, 2] == found[2, 1] > 0.8
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"miss_rate": 1.0}, "miss_rate"), ({"classes": ["a"]}, "classes")],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        estimate_inclusion(np.full((2, 3), 1 / 3), [[0], [1]], **options)


def test_wrong_rows_are_named():
    with pytest.raises(ValueError, match="2 rows for 3"):
        estimate_inclusion(np.full((3, 3), 1 / 3), [[0], [1]])
    with pytest.raises(ValueError, match="row 1 is empty"):
        estimate_inclusion(np.full((2, 3), 1 / 3), [[0], []])


def test_labels_may_have_names():
    sets = LabelSets.from_lists([["cat", "dog"], ["dog"]], classes=["cat", "dog", "owl"])
    assert estimate_inclusion(np.full((2, 3), 1 / 3), sets).shape == (3, 3)


def test_matrices_pass_as_long_as_they_are_separable():
    check_separable(M)
    check_separable(np.full((10, 10), 0.9) + 0.1 * np.eye(10))
    with pytest.raises(ValueError, match="apart"):
        check_separable(np.full((10, 10), 0.995) + 0.005 * np.eye(10))


def test_coarse_labels_are_refused_by_name():
    coarse = np.kron(np.eye(2), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"\{cat, dog\}, \{owl, wren\}.*merge"):
        check_separable(coarse, ["cat", "dog", "owl", "wren"])


def test_only_the_inseparable_classes_are_named():
    three = np.eye(5)
    three[np.ix_([1, 2, 4], [1, 2, 4])] = 0.995
    np.fill_diagonal(three, 1)
    with pytest.raises(ValueError, match=r"apart: \{1, 2, 4\} "):
        check_separable(three)


def test_a_singular_matrix_without_equal_rows_names_all_that_take_part():
    mixed = np.array([[1, 0, 0.5, 0], [0, 1, 0.5, 0], [0.5, 0.5, 0.5, 0], [0, 0, 0, 1]])
    with pytest.raises(ValueError, match=r"apart: \{0, 1, 2\} "):
        check_separable(mixed)
