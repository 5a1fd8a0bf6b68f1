"""Which learner is used where none is passed."""

import pytest

from setwise.estimators.default_learner import covers_whole_sets


@pytest.mark.parametrize("strategy", ["max", "auto", "mean", "min", "rectified", "votes"])
def test_whole_candidate_sets_are_learned_to_be_covered_where_the_strategy_covers_them(strategy):
    assert covers_whole_sets(strategy, "lac", "nothing", 0) == (strategy in {"max", "auto"})
    assert covers_whole_sets(strategy, "lac", "nothing", 50) == (strategy == "max")
    assert not covers_whole_sets(strategy, "aps", "nothing", 0)
