"""Krippendorff's alpha against his examples and against sums over all pairs."""

from itertools import permutations

import numpy as np
import pytest

from setwise import Votes
from setwise.crowd.alpha import krippendorff_alpha
from setwise.errors import InputError

CODERS = [
    [None, None, None, None, None, 3, 4, 1, 2, 1, 1, 3, 3, None, 3],
    [1, None, 2, 1, 3, 3, 4, 3, None, None, None, None, None, None, None],
    [None, None, 2, 1, 3, 4, 4, None, 2, 1, 1, 3, 3, None, 4],
]


def test_alpha_is_that_of_krippendorffs_example():
    """Three coders, with gaps: nominal 0.691, interval 0.811 (Krippendorff, 2011)."""
    votes = Votes.from_matrix(np.array(CODERS, dtype=object).T)
    assert krippendorff_alpha(votes) == pytest.approx(0.691, abs=5e-4)
    assert krippendorff_alpha(votes, ordered=True) == pytest.approx(0.811, abs=5e-4)


@pytest.mark.parametrize("ordered", [False, True])
def test_alpha_is_the_ratio_of_sums_over_all_pairs(rng, ordered):
    rows = [rng.choice([0.5, 1, 4], size=m).tolist() for m in rng.integers(1, 6, 40)]
    shares = [(1 / (len(row) - 1), row) for row in rows if len(row) > 1]
    answers = [answer for _, row in shares for answer in row]

    def far(a, b):
        return (a - b) ** 2 if ordered else float(a != b)

    seen = sum(share * far(a, b) for share, row in shares for a, b in permutations(row, 2))
    chance = sum(far(a, b) for a, b in permutations(answers, 2)) / (len(answers) - 1)
    found = krippendorff_alpha(Votes.from_lists(rows), ordered=ordered)
    assert found == pytest.approx(1 - seen / chance, abs=1e-12)


def test_neighbours_agree_more_than_strangers_where_classes_are_ordered(rng):
    y = rng.integers(0, 5, 400)
    near = np.clip(y + rng.integers(-1, 2, 400), 0, 4)
    votes = Votes.from_matrix(np.column_stack([y, near]))
    assert krippendorff_alpha(votes) < 0.4
    assert krippendorff_alpha(votes, ordered=True) > 0.8


def test_alpha_at_its_ends():
    for ordered in (False, True):
        assert krippendorff_alpha(Votes.from_lists([[0.1, 0.1, 0.1], [0.1] * 3]), ordered=ordered) == 1
        assert krippendorff_alpha(Votes.from_lists([[0.1, 0.1, 0.1], [0.7] * 3]), ordered=ordered) == 1
        assert np.isnan(krippendorff_alpha(Votes.from_lists([[1], [2]]), ordered=ordered))


def test_the_order_of_text_must_be_declared():
    rows = [["bad", "fair"], ["good", "good"], ["bad", "bad"]]
    with pytest.raises(InputError, match=r"alphabetical; use classes=… to list them from lowest to highest"):
        krippendorff_alpha(Votes.from_lists(rows), ordered=True)
    declared = Votes.from_lists(rows, classes=["bad", "fair", "good"])
    numbers = Votes.from_lists([[0, 1], [2, 2], [0, 0]])
    assert krippendorff_alpha(declared, ordered=True) == krippendorff_alpha(numbers, ordered=True)


def test_annotators_who_repeat_themselves_do_not_agree_with_themselves():
    cells = [[0, 1, 1], [1, 1, 2], [2, 0, 0]]
    twice = [[[label, label] for label in row] for row in cells]
    assert krippendorff_alpha(Votes.from_matrix(twice)) == krippendorff_alpha(Votes.from_matrix(cells))
    assert np.isnan(krippendorff_alpha(Votes.from_proposals([[{"a": 1}, {"a": 1}], {"b": 0.6, "a": 0.4}])))
