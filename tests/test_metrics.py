"""evaluate, against numbers worked out by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier, LabelSets, MisuseWarning, evaluate
from setwise.metrics import SetCounts
from setwise.ranks import clopper_pearson, share_interval

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
    low, high = clopper_pearson(1, 2, 0.05)
    assert result["by_class"]["c"] == {
        "n": 2,
        "coverage": 0.5,
        "mean_size": 1.5,
        "coverage_interval": (low, high),
    }
    assert result["worst_class"]["label"] in {"a", "c"}
    shares = [(cell["coverage"], -cell["n"]) for cell in result["by_class"].values()]
    assert shares == sorted(shares)  # the worst class first, of equals the larger one
    assert evaluate(SETS, Y, groups=[0, 0, 1, 1, 2])["by_class"]["c"]["coverage_interval"] is None
    assert result["by_category"]["y"] == {"n": 2, "coverage": 0.5, "mean_size": 2.0}


def test_truth_outside_the_vocabulary_is_missed_and_reported():
    with pytest.warns(MisuseWarning, match=r"in no set .* the first is 'zebra ' \(row 2\); write .* \('a'\)"):
        result = evaluate(SETS, ["a", "b", "zebra ", "c", "c"])
    assert result["coverage"] == 0.8
    assert result["unknown_labels"] == 1
    with pytest.warns(MisuseWarning, match=r"in no set at all, and count as missed \(5 of them\)"):
        assert evaluate(SETS, ["zebra"] * 5)["worst_class"] is None


def test_the_first_unknown_label_keeps_its_row_among_batches():
    counts = [SetCounts() for _ in range(3)]
    for one, y in zip(counts, (["a", None, "b", "c", "c"], [None, "a", "c", "x", "y"], ["z"] * 5), strict=True):
        one.add(SETS, y)
    counts[0].include(counts[1])
    counts[0].include(counts[2])
    counts[0].add(SETS, ["w"] * 5)
    with pytest.warns(MisuseWarning, match=r"\(12 of them\); the first is 'x' \(row 8\)"):
        counts[0].result()


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
        ({"y": [["a", None]] * 5, "truth": "all"}, "y: row 0: a label is missing"),
        ({"y": [None, None, ["a"], ["a", float("nan")], "a"], "truth": "one"}, "y: row 3: a label is missing"),
        ({"y": Y, "truth": 0}, "truth: 0 is not known"),
        ({"candidates": [["a"]] * 5, "truth": "all"}, "truth: counts right labels, and no row has any"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(SETS, **arguments)


def test_truth_may_come_as_label_sets_of_singletons():
    assert evaluate(SETS, LabelSets.from_labels(Y))["coverage"] == 0.6
    with pytest.raises(ValueError, match=r"y: row 1 is .*, not one label; use truth='all'"):
        evaluate(SETS, SETS)


def test_candidates_are_evaluated_by_category_too():
    result = evaluate(SETS, candidates=[["a"], ["a"], ["c"], ["b"], ["a"]], by=["x", "x", "x", "y", "y"])
    assert result["candidates_by_category"]["y"]["all_candidates_rate"] == 0.5


def test_nothing_to_evaluate_is_an_error():
    with pytest.raises(ValueError, match="no rows"):
        evaluate(SETS[:0], [])


@pytest.mark.parametrize("parts", [1, 3])
def test_groups_widen_intervals_and_batches_count_them_together(rng, parts):
    group = np.repeat(np.arange(24), 10)
    y = np.zeros(240, dtype=int)
    hit = (rng.random(24) < 0.8)[group]  # groups are covered as a whole, or not at all
    sets, half = LabelSets.from_mask(np.stack([hit, ~hit], axis=1)), np.where(np.arange(240) % 2, "odd", "even")
    counts, options = SetCounts(), {"y": y, "by": half, "groups": group, "candidates": y}
    for rows in np.array_split(np.arange(240), parts):
        some = SetCounts()
        some.add(sets[rows], **{name: value[rows] for name, value in options.items()})
        counts.include(some)
    found = counts.result()
    assert found == evaluate(sets, **options)
    assert found["coverage_interval"] == share_interval(np.bincount(group, hit).astype(int), np.full(24, 10))
    assert found["coverage_bracket"] == found["coverage_interval"]
    low, high = found["candidates_by_category"]["odd"]["coverage_bracket"]
    assert (
        low
        < clopper_pearson(120 * hit.mean(), 120, 0.05)[0]
        < clopper_pearson(120 * hit.mean(), 120, 0.05)[1]
        < high
    )
    few = evaluate(sets, y, candidates=y, groups=group // 3)
    assert (few["coverage_interval"], few["coverage_bracket"]) == (None, None)


def test_a_model_calibrated_with_groups_gives_no_interval_of_rows_alone(rng):
    group = np.repeat(np.arange(80), 5)
    y = rng.integers(0, 3, 400)
    X = 2 * np.eye(3)[y] + rng.normal(size=(400, 3)) + rng.normal(size=(80, 3))[group]
    model = ConformalClassifier(LogisticRegression(), calibration_size=0.5, random_state=0).fit(
        X[:200], y[:200], groups=group[:200]
    )
    assert model.evaluate(X[200:], y[200:])["coverage_interval"] is None
    alone = ConformalClassifier(LogisticRegression(), random_state=0).fit(X[:200:2], y[:200:2])
    assert alone.evaluate(X[200:], y[200:])["coverage_interval"] is not None
    assert alone.evaluate(X[200:], y[200:], groups=group[200:])["coverage_interval"] is not None
    low, high = model.evaluate(X[200:], y[200:], groups=group[200:])["coverage_interval"]
    assert 0 < low < high <= 1


STARS = ["poor", "fair", "good", "great"]


def test_ordered_classes_have_distances_and_gaps():
    sets = LabelSets.from_lists([["poor", "great"], ["fair"], ["good", "great"], [], ["poor", "good"]], STARS)
    with pytest.warns(MisuseWarning, match="'zebra'"):
        result = evaluate(sets, ["good", "great", "good", "fair", "zebra"], ordered=True)
    assert result["distance"] == pytest.approx((1 + 2 + 0) / 3)  # neither the empty set nor the zebra has one
    assert result["distance_missed"] == pytest.approx((1 + 2) / 2)
    assert result["gap_rate"] == 2 / 5
    assert {"distance", "gap_rate"}.isdisjoint(evaluate(sets, ["good"] * 5))
    right = evaluate(sets[:1], ["poor"], ordered=True)
    assert (right["distance"], right["distance_missed"]) == (0, None)
    assert evaluate(sets[3:4], ["poor"], ordered=True)["distance"] is None


def test_distances_between_numbers_are_in_their_unit():
    sets = LabelSets.from_lists([[0.5, 4.0], [4.0]], [0.5, 1.0, 4.0])
    assert evaluate(sets, [1.0, 0.5], ordered=True)["distance"] == (0.5 + 3.5) / 2
    reversed_classes = LabelSets.from_lists([[4, 0], [4]], [4, 1, 0])  # not ascending: steps
    assert evaluate(reversed_classes, [1, 0], ordered=True)["distance"] == (1 + 2) / 2


def test_distances_and_gaps_are_those_of_a_search_over_all_labels(rng):
    mask = rng.random((300, 6)) < 0.3
    y, places = rng.integers(0, 6, 300), np.arange(6)
    near = np.where(mask, np.abs(places - y[:, None]), np.inf).min(axis=1)
    held = np.isfinite(near)
    gaps = [row.any() and not row[row.argmax() : 6 - row[::-1].argmax()].all() for row in mask]
    result = evaluate(mask, y, ordered=True)
    assert result["distance"] == near[held].mean()
    assert result["distance_missed"] == near[held & (near > 0)].mean()
    assert result["gap_rate"] == np.mean(gaps)
    parts = SetCounts(ordered=True)
    for some in np.array_split(np.arange(300), 4):
        part = SetCounts(ordered=True)
        part.add(mask[some], y[some])
        parts.include(part)
    assert parts.result() == result


def test_ordered_text_needs_its_classes():
    with pytest.raises(ValueError, match="'fair' to 'poor' is alphabetical; use classes=…"):
        evaluate(LabelSets.from_lists([["poor"], ["fair"]]), ["poor", "poor"], ordered=True)


def test_a_model_with_rps_evaluates_distances(rng):
    y = rng.integers(0, 4, 400)
    X = y[:, None] + rng.normal(size=(400, 2))
    model = ConformalClassifier(LogisticRegression(), conformity_score="rps", random_state=0).fit(X[:300], y[:300])
    result = model.evaluate(X[300:], y[300:])
    assert result["gap_rate"] == 0
    assert result["distance"] < result["distance_missed"]
