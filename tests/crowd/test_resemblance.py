"""How alike annotators answer: near-copies, families, and how many votes that leaves."""

import numpy as np
import pytest

from setwise import Votes
from setwise.crowd.resemblance import find_resemblance
from tests.conftest import calls_in


def noisy(rng, base, share, k=3):
    return np.where(rng.random(len(base)) < share, base, rng.integers(0, k, len(base)))


def panel(said, k=3):
    return Votes.from_matrix(np.column_stack(said), classes=range(k))


def test_independent_annotators_count_as_many_as_they_are(rng):
    y = rng.integers(0, 3, 1500)
    votes = panel([noisy(rng, y, 0.8) for _ in range(10)])
    for truth in (None, y):
        found = find_resemblance(votes, truth)
        assert 8 < found.effective_votes <= 10
        assert (found.weights == 1).all()
    assert len(np.unique(find_resemblance(votes).families)) == 10


@pytest.mark.parametrize("verified", [200, 1500])
def test_verified_rows_show_copies_even_where_they_are_the_majority(rng, verified):
    y = rng.integers(0, 3, 1500)
    root = noisy(rng, y, 0.7)
    votes = panel([noisy(rng, root, 0.97) for _ in range(8)] + [noisy(rng, y, 0.75) for _ in range(2)])
    truth = np.where(rng.permutation(1500) < verified, y, -1)
    found = find_resemblance(votes, truth)
    assert len(np.unique(found.copies[:8])) == 1
    assert len(np.unique(found.copies)) == 3
    assert found.effective_votes < 3
    assert find_resemblance(votes).effective_votes > 6  # nobody can tell without the truth


def test_a_minority_of_copies_is_found_without_the_truth(rng):
    y = rng.integers(0, 3, 1500)
    root = noisy(rng, y, 0.5)
    votes = panel([noisy(rng, root, 0.95) for _ in range(4)] + [noisy(rng, y, 0.75) for _ in range(7)])
    found = find_resemblance(votes)
    assert np.bincount(found.copies).max() == 4
    assert np.allclose(found.weights[:4], 1 / 4)
    assert len(np.unique(found.families)) == 8
    assert found.effective_votes < 7


def test_good_annotators_beside_guessers_are_no_copies(rng):
    y = rng.integers(0, 2, 1500)
    votes = panel([noisy(rng, y, 0.95, 2) for _ in range(6)] + [noisy(rng, y, 0.0, 2) for _ in range(3)], 2)
    assert (find_resemblance(votes).weights == 1).all()


def test_a_common_error_or_two_of_good_annotators_make_no_copies():
    accused = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 5, 500)
        votes = panel([noisy(rng, y, 0.96, 5) for _ in range(10)], 5)
        accused += (find_resemblance(votes, np.where(np.arange(500) < 30, y, -1)).weights < 1).any()
    assert accused <= 1


def test_of_few_annotators_or_common_rows_nothing_is_said(rng):
    y = rng.integers(0, 3, 400)
    assert np.isnan(find_resemblance(panel([noisy(rng, y, 0.8) for _ in range(5)])).effective_votes)
    assert np.isnan(find_resemblance(panel([noisy(rng, y[:40], 0.8) for _ in range(8)])).effective_votes)


def test_votes_count_by_those_who_answer_a_row(rng):
    y = rng.integers(0, 3, 3000)
    said = np.column_stack([noisy(rng, y, 0.8) for _ in range(16)]).astype(object)
    said[rng.permuted(np.tile(np.arange(16), (3000, 1)), axis=1) >= 8] = None
    found = find_resemblance(Votes.from_matrix(said, classes=range(3)))
    assert found.per_row == 8
    assert 5 < found.effective_votes <= 8


def test_every_pair_has_the_figures_of_its_common_rows(rng):
    y = rng.integers(0, 3, 900)
    said = np.column_stack([noisy(rng, y, 0.6) for _ in range(9)]).astype(object)
    said[rng.random(said.shape) < 0.3] = None
    found = find_resemblance(Votes.from_matrix(said, classes=range(3)), y)
    assert len(found.first) == 36
    for i, j, *figures in zip(found.first, found.second, found.common, found.agree, found.together, strict=True):
        a, b, truth = said[:, i], said[:, j], y
        a, b, truth = (part[(said[:, i] != None) & (said[:, j] != None)] for part in (a, b, truth))  # noqa: E711
        expected = len(a), np.mean(a == b), np.corrcoef(a != truth, b != truth)[0, 1]
        np.testing.assert_allclose(figures, expected, atol=1e-12)


def test_without_the_truth_the_others_judge_a_pair_and_copies_count_once(rng):
    y = rng.integers(0, 2, 400)
    said = np.array([noisy(rng, y, 0.4, 2) for _ in range(9)])  # so that sums of the others never tie
    said[2] = said[3] = said[1]
    found = find_resemblance(panel(said, 2))
    assert found.weights.round(3).tolist() == [1, 0.333, 0.333, 0.333, 1, 1, 1, 1, 1]
    for i, j, together in zip(found.first, found.second, found.together, strict=True):
        others = np.setdiff1d(range(9), [i, j])
        truth = found.weights[others] @ (2 * said[others] - 1) > 0
        np.testing.assert_allclose(together, np.corrcoef(said[i] != truth, said[j] != truth)[0, 1], atol=1e-12)


def test_no_python_code_runs_for_each_pair(rng):
    y = rng.integers(0, 2, 60)
    few, many = (panel([noisy(rng, y, 0.7, 2) for _ in range(people)], 2) for people in (8, 40))
    assert calls_in(lambda: find_resemblance(many)) < 1.5 * calls_in(lambda: find_resemblance(few))
