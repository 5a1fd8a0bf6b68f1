"""Sizes and coverage at every level of the slider are those of the sets that the library predicts."""

import warnings

import numpy as np
import pytest

import setwise
from setwise.ranks import as_level
from setwise.report.label_entry_levels import Given, Scored, Valued, grid, sweep
from setwise.strategies import STRATEGIES
from tests.conftest import candidates_from, labels_from, simplex

LEVELS = [as_level(level) for level in (0.5, 0.505, 0.8, 0.9, 0.95, 0.995)]


def rows(rng, n=260, k=6):
    P = simplex(rng, n, k)
    y = labels_from(rng, P)
    return P, y, candidates_from(rng, y, k)


def check(calibration, swept, P, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", setwise.SmallCalibrationWarning)
        predicted = calibration.predict_set(P, [float(level) for level in swept.levels], **options)
    hits, known = swept.hits()
    assert known == len(y)
    for i, sets in enumerate(predicted):
        assert swept.sizes[:, i].tolist() == sets.sizes.tolist()
        assert hits[i] == sets.contains(y).sum()


@pytest.mark.parametrize("score", ["lac", "aps", "raps", "saps", "margin", "rps"])
def test_for_every_score(rng, score):
    P, y, S = rows(rng)
    calibration = setwise.conformalize(P[:130], S[:130], conformity_score=score, random_state=3)
    check(calibration, sweep(Scored(calibration, P[130:], LEVELS), y[130:]), P[130:], y[130:])


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_for_every_strategy(rng, strategy):
    P, y, S = rows(rng, 400)
    verified = [int(label) if i < 60 else None for i, label in enumerate(y[:200])]
    given = {"rectified": {"verified": verified}, "corrected": {"assume": "uniform"}}.get(strategy, {})
    told = setwise.Votes.from_counts(S[:200]) if strategy in {"votes", "crowd"} else S[:200]
    calibration = setwise.conformalize(P[:200], told, strategy, random_state=0, **given)
    check(calibration, sweep(Scored(calibration, P[200:], LEVELS), y[200:]), P[200:], y[200:])


def test_a_label_whose_score_is_the_threshold_is_in_the_set(rng):
    P, y, S = rows(rng, 199)  # p-values are multiples of 1/200, and so are one minus the levels
    calibration = setwise.conformalize(P, S)  # of its own rows some lie exactly there
    check(calibration, sweep(Scored(calibration, P, LEVELS), y), P, y)
    swept = sweep(Valued(calibration.predict_p(P), LEVELS), y)
    check(calibration, swept, P, y)


def test_for_single_precision(rng):
    P, y, S = rows(rng)
    P = P.astype(np.float32)
    calibration = setwise.conformalize(P[:130], S[:130])
    check(calibration, sweep(Scored(calibration, P[130:], LEVELS), y[130:]), P[130:], y[130:])


def test_by_category_with_one_that_calibration_never_saw(rng):
    P, y, S = rows(rng)
    by = np.array(["a", "b", "c"])[rng.integers(0, 3, 260)]
    seen = np.flatnonzero(by[:130] != "c")
    calibration = setwise.conformalize(P[seen], S[seen], by=by[seen])
    codes = calibration.categories.encode(by[130:])
    swept = sweep(Scored(calibration, P[130:], LEVELS, by[130:], codes), y[130:])
    check(calibration, swept, P[130:], y[130:], by=by[130:])


def test_with_weights(rng):
    P, y, S = rows(rng)
    weight = rng.random(260) + 0.5
    calibration = setwise.conformalize(P[:130], S[:130], sample_weight=weight[:130])
    swept = sweep(Scored(calibration, P[130:], LEVELS, weight=weight[130:]), y[130:])
    check(calibration, swept, P[130:], y[130:], sample_weight=weight[130:])


def test_with_row_ids(rng):
    P, y, S = rows(rng)
    ids = np.arange(260)
    calibration = setwise.conformalize(P[:130], S[:130], conformity_score="aps", row_ids=ids[:130], random_state=1)
    swept = sweep(Scored(calibration, P[130:], LEVELS, row_ids=ids[130:]), y[130:])
    check(calibration, swept, P[130:], y[130:], row_ids=ids[130:])


def test_p_values_say_the_same(rng):
    P, y, S = rows(rng)
    calibration = setwise.conformalize(P[:130], S[:130])
    swept = sweep(Valued(calibration.predict_p(P[130:]), grid(0.9)), y[130:])
    check(calibration, swept, P[130:], y[130:])


def test_sets_that_are_there_have_one_level():
    swept = sweep(Given(np.array([[True, False], [True, True]]), LEVELS[:1]), np.array([1, 0]))
    assert swept.sizes.tolist() == [[1], [2]]
    assert swept.hits()[0].tolist() == [1]


def test_labels_outside_the_vocabulary_are_missed_and_unknown_truth_is_left_out(rng):
    P, _, S = rows(rng)
    calibration = setwise.conformalize(P[:130], S[:130])
    swept = sweep(Scored(calibration, P[130:134], grid(0.9)), np.array([-1, -2, -2, -1]))
    hits, known = swept.hits()
    assert known == 2
    assert not hits.any()


def test_the_grid_holds_the_level_asked_for():
    assert len(grid(0.9)) == 100
    assert as_level(0.9321) in grid(0.9321)
    assert {as_level(0.95), as_level(0.995), as_level(0.5)} <= set(grid(0.9))
