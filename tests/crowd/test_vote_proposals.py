"""`weigh_votes`: the annotator model where it helps, counting where it follows copies."""

import numpy as np

from setwise import Votes
from setwise.crowd.annotator_model import fit_annotators
from setwise.crowd.vote_proposals import weigh_votes


def answers(rng, y, shares):
    """One column of answers per annotator, right with the given probability."""
    return np.column_stack([np.where(rng.random(len(y)) < p, y, rng.integers(0, 4, len(y))) for p in shares])


def right(probabilities, y):
    return (probabilities.argmax(axis=1) == y).mean()


def test_of_independent_annotators_the_good_ones_count_more(rng):
    y = rng.integers(0, 4, 1000)
    votes = Votes.from_matrix(answers(rng, y, [0.95, 0.5, 0.4, 0.3]), classes=range(4))
    found = weigh_votes(votes)
    assert right(found, y) > right(votes.counts, y) + 0.05
    assert np.allclose(found.sum(axis=1), 1)
    model = np.eye(4)[y] * 0.6 + 0.1
    assert np.array_equal(weigh_votes(votes, model), fit_annotators(votes, model).posterior)


def test_copies_of_a_poor_annotator_do_not_outvote_the_others(rng):
    """Three copies that know next to nothing, and six people who are often wrong: the model follows the copies."""
    y = rng.integers(0, 4, 1000)
    said = np.column_stack([np.repeat(answers(rng, y, [0.1]), 3, axis=1), answers(rng, y, [0.5] * 6)])
    votes = Votes.from_matrix(said, classes=range(4))
    assert right(fit_annotators(votes).posterior, y) < right(votes.counts, y) - 0.2
    assert np.array_equal(weigh_votes(votes), votes.counts / 9)


def test_rows_without_an_answer_have_the_shares_of_all(rng):
    y = rng.integers(0, 4, 200)
    votes = Votes.from_lists([[], *answers(rng, y, [0.9, 0.9]).tolist()], classes=range(4))
    found = weigh_votes(votes)
    assert np.isfinite(found).all()
    assert found[0].max() < 0.5
