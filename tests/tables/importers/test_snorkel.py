"""Label matrices of weak supervision."""

import numpy as np
import pytest

from setwise.errors import DataError
from setwise.tables import (
    from_snorkel,
)


def test_a_label_far_beyond_all_others_is_a_gap():
    with pytest.raises(DataError, match=r"matrix: the label 100000000 would make 100,000,001 classes.*−1"):
        from_snorkel([[0, 1], [1, 100_000_000]])


def test_rows_that_may_be_anything_among_the_labels_seen_cannot_be_widened():
    found = from_snorkel([[0, 1, -1], [-1, -1, -1]]).candidates
    with pytest.raises(ValueError, match="some sets mean 'every label'"):
        found.with_classes([0, 1, 2])
    assert from_snorkel([[0], [-1]], classes=["ham", "spam"]).candidates.sizes.tolist() == [1, 2]


def test_snorkel_abstentions_are_no_votes_and_silence_means_anything():
    votes = np.array([[0, 2, -1], [-1, -1, -1], [1, 1, 1]])
    found = from_snorkel(votes, ids=["a", "b", "c"])
    assert found.candidates.to_lists() == [[0, 2], [0, 1, 2], [1]]
    assert found.ids.tolist() == ["a", "b", "c"]
    with pytest.raises(DataError, match="row 0, function 1: 2 is outside −1..1"):
        from_snorkel(votes, classes=["ham", "spam"])
    with pytest.raises(DataError, match="row 1 has no labels"):
        from_snorkel(votes, missing="error")


def test_snorkel_functions_may_vote_for_what_a_row_is_not():
    found = from_snorkel([[0, 2], [-1, 2], [1, -1]], functions=["says", "denies"], against=["denies"])
    assert found.candidates.to_lists() == [[0], [0, 1], [1]]
    assert found.votes.against.tolist() == [False, True, True, False]
    assert found.votes.annotators[found.votes.annotator].tolist() == ["says", "denies", "denies", "says"]
    with pytest.raises(DataError, match="against: there is no function 'x'"):
        from_snorkel([[0, 1]], against=["x"])
    with pytest.raises(DataError, match="functions: 1 names for 2 columns"):
        from_snorkel([[0, 1]], functions=["a"])


def test_identifiers_must_be_one_per_row():
    with pytest.raises(ValueError, match=r"ids: shape \(1,\) for 2 rows"):
        from_snorkel([[1, 0], [1, 1]], ids=["r1"])
