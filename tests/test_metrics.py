"""evaluate, against numbers worked out by hand."""

import numpy as np
import pytest

from setwise import LabelSets, MisuseWarning, evaluate
from setwise.ranks import clopper_pearson

SETS = LabelSets.from_lists([["a"], ["a", "b"], [], ["c"], ["a", "b", "c"]], classes=["a", "b", "c"])
Y = ["a", "b", "c", "a", "c"]


def test_coverage_and_sizes():
    result = evaluate(SETS, Y)
    assert result["n"] == 5
    assert result["coverage"] == 0.6
    assert result["coverage_interval"] == clopper_pearson(3, 5, 0.05)
    assert (result["mean_size"], result["median_size"]) == (7 / 5, 1)
    assert (result["empty_rate"], result["singleton_rate"]) == (0.2, 0.4)


def test_finer_coverage():
    result = evaluate(SETS, Y, by=["x", "x", "x", "y", "y"])
    assert result["by_size"]["1"] == {"n": 2, "coverage": 0.5, "mean_size": 1.0}
    assert result["by_size"]["2-3"]["coverage"] == 1.0
    assert result["worst_size_coverage"] == 0.0
    assert result["by_class"]["c"] == {"n": 2, "coverage": 0.5, "mean_size": 1.5}
    assert result["worst_class"]["label"] in {"a", "c"}
    assert result["by_category"]["y"] == {"n": 2, "coverage": 0.5, "mean_size": 2.0}


def test_truth_outside_the_vocabulary_is_missed_and_reported():
    result = evaluate(SETS, ["a", "b", "zebra", "c", "c"])
    assert result["coverage"] == 0.8
    assert result["unknown_labels"] == 1
    with pytest.warns(MisuseWarning, match="y: none of its labels, such as 'zebra', is a class of the sets"):
        assert evaluate(SETS, ["zebra"] * 5)["worst_class"] is None


def test_rows_without_truth_are_left_out():
    result = evaluate(SETS, ["a", None, None, "a", None])
    assert (result["n"], result["n_truth"], result["coverage"]) == (5, 2, 0.5)


def test_candidates_in_place_of_truth():
    candidates = [["a", "b"], ["a"], ["c"], ["b", "c"], ["a", "c"]]
    result = evaluate(SETS, candidates=candidates)
    assert "coverage" not in result
    assert (result["all_candidates_rate"], result["any_candidate_rate"]) == (0.4, 0.8)
    assert result["coverage_bracket"] == (clopper_pearson(2, 5, 0.05)[0], clopper_pearson(4, 5, 0.05)[1])


def test_a_mask_will_do():
    assert evaluate(np.eye(3, dtype=bool), [0, 1, 0])["coverage"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give y"),
        ({"y": ["a"]}, "y: 1 labels for 5"),
        ({"y": [None] * 5}, "no row has a true label"),
        ({"candidates": [["a"]]}, "candidates: 1 rows for 5"),
        ({"candidates": [["a"], [], ["a"], ["a"], ["a"]]}, "candidates: row 1 is empty"),
        ({"y": Y, "by": ["x"]}, "by: 1 entries"),
        ({"y": Y, "delta": 2}, "delta"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(SETS, **arguments)


def test_truth_may_come_as_label_sets_of_singletons():
    assert evaluate(SETS, LabelSets.from_labels(Y))["coverage"] == 0.6
    with pytest.raises(ValueError, match="not a label vector"):
        evaluate(SETS, SETS)


def test_candidates_are_evaluated_by_category_too():
    result = evaluate(SETS, candidates=[["a"], ["a"], ["c"], ["b"], ["a"]], by=["x", "x", "x", "y", "y"])
    assert result["candidates_by_category"]["y"]["all_candidates_rate"] == 0.5


def test_nothing_to_evaluate_is_an_error():
    with pytest.raises(ValueError, match="no rows"):
        evaluate(SETS[:0], [])
