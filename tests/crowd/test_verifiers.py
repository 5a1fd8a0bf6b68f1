"""Who verified rows may stand among the annotators, and is left out where rows would confirm themselves."""

import numpy as np
import pytest

from setwise import MisuseWarning, Votes, conformalize, triage
from setwise.crowd.verifiers import leave_out_verifiers
from setwise.labels.vocabulary import MISSING
from tests.conftest import labels_from, simplex

N, M, K = 600, 60, 4


@pytest.fixture
def crowd(rng):
    """The truth, answers of five people, and which rows are verified."""
    y = rng.integers(0, K, N)
    answers = np.where(rng.random((N, 5)) < 0.7, y[:, None], rng.integers(0, K, (N, 5)))
    cells = np.where(rng.random((N, 5)) < 0.6, answers, -1)
    cells[:, 0] = answers[:, 0]  # nobody is without an answer
    return y, cells, rng.choice(N, M, replace=False)


def with_expert(cells, y, rows):
    expert = np.full((len(y), 1), -1)
    expert[rows, 0] = y[rows]
    return Votes.from_matrix(np.hstack([cells, expert]), classes=range(K), missing=-1)


def codes(y, rows):
    found = np.full(len(y), MISSING)
    found[rows] = y[rows]
    return found


def test_an_annotator_whose_answers_are_the_verified_labels_is_left_out(crowd):
    y, cells, rows = crowd
    plain = Votes.from_matrix(cells, classes=range(K), missing=-1)
    with pytest.warns(MisuseWarning, match="the answers of annotator 5 are the verified labels. They are left out"):
        left = leave_out_verifiers(with_expert(cells, y, rows), codes(y, rows))
    assert left == plain
    assert leave_out_verifiers(plain, codes(y, rows)) is plain


def test_two_who_share_the_work_and_answer_a_few_rows_besides_are_left_out(crowd, rng):
    y, cells, rows = crowd
    votes = with_expert(cells, y, rows[:30])
    other = np.full((N, 1), -1)
    other[[*rows[30:], *np.setdiff1d(np.arange(N), rows)[:2]], 0] = 1
    other[rows[30:], 0] = y[rows[30:]]
    both = Votes.from_matrix(np.hstack([votes_matrix(votes), other]), classes=range(K), missing=-1)
    with pytest.warns(MisuseWarning, match="annotator 5, 6 are the verified labels"):
        assert leave_out_verifiers(both, codes(y, rows)).annotators.tolist() == [0, 1, 2, 3, 4]


def votes_matrix(votes):
    cells = np.full((len(votes), len(votes.annotators)), -1)
    cells[votes.row, votes.annotator] = votes.label
    return cells


def test_an_expert_who_answers_other_rows_too_or_disagrees_is_an_annotator(crowd, rng):
    y, cells, rows = crowd
    everywhere = with_expert(cells, y, np.arange(N))
    assert leave_out_verifiers(everywhere, codes(y, rows)) is everywhere
    random = with_expert(cells, y, rng.choice(N, M, replace=False))
    assert leave_out_verifiers(random, codes(y, rows)) is random
    wrong = y.copy()
    wrong[rows[0]] = (y[rows[0]] + 1) % K
    disagrees = with_expert(cells, wrong, rows)
    assert leave_out_verifiers(disagrees, codes(y, rows)) is disagrees


def test_triage_with_the_verifier_among_the_annotators_is_triage_without(crowd):
    y, cells, rows = crowd
    verified = np.full(N, None)
    verified[rows] = y[rows]
    options = {"max_error": 0.1, "random_state": 0}
    wanted = triage(Votes.from_matrix(cells, classes=range(K), missing=-1), verified, **options)
    with pytest.warns(MisuseWarning, match="no row may confirm its own proposal"):
        found = triage(with_expert(cells, y, rows), verified, **options)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_array_equal(found.accepted, wanted.accepted)
    assert found.guarantee == wanted.guarantee


def test_sets_with_the_verifier_among_the_annotators_are_sets_without(rng, crowd):
    _, _, rows = crowd
    p = simplex(rng, N, K)
    y = labels_from(rng, p)
    cells = np.where(rng.random((N, 3)) < 0.7, y[:, None], rng.integers(0, K, (N, 3)))
    verified = np.full(N, None)
    verified[rows] = y[rows]
    wanted = conformalize(p, Votes.from_matrix(cells, classes=range(K)), verified=verified, random_state=0)
    with pytest.warns(MisuseWarning, match="the answers of annotator 3 are the verified labels"):
        found = conformalize(p, with_expert(cells, y, rows), verified=verified, random_state=0)
    assert found.threshold(0.9) == wanted.threshold(0.9)
    assert found.guarantee().promised == 0.9


def test_votes_without_a_class_are_refused():
    with pytest.raises(ValueError, match="there is no answer"):
        triage(Votes.from_lists([]), [], max_error=0.1)
