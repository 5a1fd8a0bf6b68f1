"""conformalize and Calibration: inputs, levels, categories, weights, candidates of new rows, files."""

import copy
import json
import warnings
import zipfile
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise import APS, LAC, RAPS, Calibration, LabelSets, SmallCalibrationWarning, conformalize
from setwise.storage.container import read_container, write_container
from setwise.strategies import Mixture
from tests.conftest import candidates_from, labels_from, printed, simplex
from tests.evidence.test_evidence import Cube
from tests.strategies.test_rank_strategies import STRATEGIES
from tests.test_scores import ALL_SCORES


@pytest.fixture
def rows(rng):
    p = simplex(rng, 300, 4)
    return p, candidates_from(rng, labels_from(rng, p), 4), simplex(rng, 80, 4)


# -------------------------------------------------------------------------------- sets and p-values


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_sets_are_exactly_the_labels_whose_p_value_exceeds_epsilon(score, strategy, rows):
    p, mask, q = rows
    calibration = conformalize(p, mask, strategy, score, random_state=0)
    values = calibration.predict_p(q)
    pooled = len(calibration.rules[0].scores)
    for percent in (50, 75, 90, 97):
        level = Fraction(percent, 100)
        sets = calibration.predict_set(q, percent / 100).to_mask()
        counts = np.rint(values * (pooled + 1)).astype(int)  # p-values are whole multiples of 1/(m+1)
        exact = np.array([[Fraction(int(c), pooled + 1) > 1 - level for c in row] for row in counts])
        assert np.array_equal(sets, exact | (values > float(1 - level) + 1e-9))


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 99), st.integers(0, 2**32 - 1), st.sampled_from(["max", "min", "mean"]))
def test_sets_agree_with_a_slow_reference_at_every_size(n, percent, seed, strategy):
    """Label y is in the set iff fewer than ⌈(n+1)·level⌉ calibration scores lie strictly below its own."""
    rng = np.random.default_rng(seed)
    p, q = np.round(64 * simplex(rng, n, 3)), simplex(rng, 5, 3)  # with ties
    p /= p.sum(axis=1, keepdims=True)
    mask = candidates_from(rng, labels_from(rng, p), 3)
    reduce = {"max": lambda row: -row.min(), "min": lambda row: -row.max(), "mean": lambda row: -row.mean()}
    e = [reduce[strategy](p[i][mask[i]]) for i in range(n)]
    need = -(-(n + 1) * percent // 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallCalibrationWarning)
        made = conformalize(p, mask, strategy).predict_set(q, percent / 100).to_mask()
    for i in range(5):
        for y in range(3):
            assert made[i, y] == (sum(v < -q[i, y] for v in e) < need)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_a_batch_of_one_is_a_batch_of_many_in_any_order(score, rows, rng):
    p, mask, q = rows
    calibration = conformalize(p, mask, "mean", score, random_state=1)
    whole = calibration.predict_set(q).to_mask()
    assert np.array_equal(
        np.concatenate([calibration.predict_set(q[i : i + 1]).to_mask() for i in range(80)]), whole
    )
    order = rng.permutation(80)
    assert np.array_equal(calibration.predict_set(q[order]).to_mask(), whole[order])
    again = conformalize(p[::-1], mask[::-1], "mean", score, random_state=1)
    assert np.array_equal(again.predict_set(q).to_mask(), whole)


def test_containers_types_and_layouts_give_the_same_sets(rows):
    p, mask, q = rows
    expected = conformalize(p, mask).predict_set(q)
    sets = LabelSets.from_mask(mask)
    for form in (p.tolist(), np.asfortranarray(p), pd.DataFrame(p)):
        assert conformalize(form, sets).predict_set(q) == expected
    for form in (mask.tolist(), sets.to_lists(), pd.Series(sets.to_lists()), sets):
        assert conformalize(p, form).predict_set(q) == expected
    p32, q32 = p.astype(np.float32), q.astype(np.float32)
    assert conformalize(p32, mask).predict_set(q32) == conformalize(p32.astype(float), mask).predict_set(q32)


def test_inputs_are_never_modified(rows):
    p, mask, q = (a.copy() for a in rows)
    before = [a.copy() for a in (p, mask, q)]
    for array in (p, mask, q):
        array.flags.writeable = False
    for score in ALL_SCORES:
        calibration = conformalize(p, mask, "all", score)
        calibration.predict_set(q, candidates=mask[:80], allow_empty=False)
        calibration.predict_p(q)
    assert all(np.array_equal(a, b) for a, b in zip((p, mask, q), before, strict=True))


def test_a_list_of_levels_gives_a_list_of_answers(rows):
    p, mask, q = rows
    calibration = conformalize(p, mask)
    for ask in (
        calibration.threshold,
        calibration.bracket,
        lambda level: calibration.predict_set(q, level),
        calibration.guarantee,
    ):
        many = ask([0.5, 0.9])
        assert isinstance(many, list)
        assert [str(each) for each in many] == [str(ask(level)) for level in (0.5, 0.9)]
    assert calibration.predict_set(q, (0.5, 0.9))[1] == calibration.predict_set(q, 0.9)


@pytest.mark.parametrize("by", [None, "predicted", "label"])
def test_a_threshold_is_found_once_however_often_a_level_is_asked_for(rows, by, monkeypatch):
    p, _, q = rows
    calibration, asked = conformalize(p, p.argmax(axis=1), by=by), []
    kind = type(calibration.rules[0])
    monkeypatch.setattr(
        kind, "threshold", lambda *given, once=kind.threshold: asked.append(given[1]) or once(*given)
    )
    for level in (0.7, 0.8, 0.7, 0.8):
        calibration.predict_set(q[:1], level)
    per_rule = len(calibration.rules)
    assert asked == [Fraction(7, 10)] * per_rule + [Fraction(8, 10)] * per_rule


def test_thresholds_that_are_kept_are_those_of_their_level_and_few(rows):
    p, mask, q = rows
    calibration, levels = conformalize(p, mask, "max"), np.linspace(0.3, 0.7, 150)
    there = calibration.predict_set(q, levels)
    back = [calibration.predict_set(q, level) for level in levels[::-1]][::-1]
    assert there == back
    assert there == [conformalize(p, mask, "max").predict_set(q, level) for level in levels]
    assert len(calibration._known) <= 64
    assert copy.deepcopy(calibration).predict_set(q, levels) == there


def test_two_classes_missing_classes_and_more_classes_than_rows_work(rng):
    p = simplex(rng, 50, 2)
    assert conformalize(p, labels_from(rng, p)).predict_set(p).shape == (50, 2)
    p = simplex(rng, 50, 6)
    assert conformalize(p, np.zeros(50, int)).predict_set(p).n_classes == 6
    p = simplex(rng, 12, 200)
    assert np.isfinite(conformalize(p, p.argmax(axis=1), "all").threshold(0.9))


def test_tiny_probabilities_stay_apart():
    p = np.tile([1.0, 1e-20, 1e-30], (20, 1))
    calibration = conformalize(p, np.tile([True, True, False], (20, 1)), "max")
    assert calibration.predict_set(p[:1]).to_lists() == [[0, 1]]


# -------------------------------------------------------------------------------- small samples


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_too_few_examples_give_all_labels_and_one_warning_with_the_number_needed(score, strategy, rows):
    p, mask, q = rows
    calibration = conformalize(p[:8], mask[:8], strategy, score)
    with pytest.warns(SmallCalibrationWarning, match="needs at least 9 calibration rows, and there are 8") as w:
        assert calibration.predict_set(q, 0.9).to_mask().all()
    assert len(w) == 1
    with pytest.warns(SmallCalibrationWarning):
        assert calibration.threshold(0.9) == np.inf
    assert "needs at least 9" in printed(calibration.guarantee(0.9))
    assert calibration.bracket(0.9) == (1.0, 1.0)
    assert np.isfinite(conformalize(p[:9], mask[:9], strategy, score).threshold(0.9))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=25)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.sampled_from([None, "weights", "categories", "miss rate"]))
def test_p_values_agree_with_a_slow_reference_whatever_the_blocks(dtype, n, seed, what):
    """The weight of the calibration scores that are not below a label's own, with that of the new row, over all."""
    rng = np.random.default_rng(seed)
    p, q = (np.round(64 * simplex(rng, rows, 3)) + 1 for rows in (n, 30))  # with ties, within and between
    p, q = ((one / one.sum(axis=1, keepdims=True)).astype(dtype) for one in (p, q))
    mask = candidates_from(rng, labels_from(rng, p), 3)
    e = np.where(mask, -p, -np.inf).max(axis=1)
    w, new = (rng.integers(1, 9, rows) / 4 if what == "weights" else np.ones(rows) for rows in (n, 30))
    by, of = (rng.integers(0, 2, rows) if what == "categories" else np.zeros(rows, int) for rows in (n, 30))
    told = {"weights": {"sample_weight": w}, "categories": {"by": by}, "miss rate": {"miss_rate": 0.125}}.get(
        what, {}
    )
    asked = {"weights": {"sample_weight": new}, "categories": {"by": of}}.get(what, {})
    expected = np.ones(q.shape)
    for i in range(30):
        for k in range(3):
            part = by == of[i]
            if part.any():
                at_least = w[part & (e >= -q[i, k])].sum() + new[i]
                expected[i, k] = min(at_least / (w[part].sum() + new[i]) + told.get("miss_rate", 0), 1)
    calibration = conformalize(p, mask, "max", **told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setwise._arrays._BLOCK_BYTES", 4 * 24 * 7)  # seven rows of three p-values
        values = calibration.predict_p(q, **asked)
    assert np.array_equal(values, calibration.predict_p(q, **asked))
    assert np.allclose(values, expected, rtol=0, atol=1e-15)


# -------------------------------------------------------------------------------- categories


def test_categories_are_calibrated_for_themselves(rows, rng):
    p, mask, q = rows
    by, new = rng.choice(["north", "south"], 300), rng.choice(["north", "south"], 80)
    calibration = conformalize(p, mask, by=by)
    sets = calibration.predict_set(q, by=new).to_mask()
    values = calibration.predict_p(q, by=new)
    for name in ("north", "south"):
        alone = conformalize(p[by == name], mask[by == name])
        assert calibration.threshold(by=name) == alone.threshold()
        assert np.array_equal(sets[new == name], alone.predict_set(q[new == name]).to_mask())
        assert np.array_equal(values[new == name], alone.predict_p(q[new == name]))
        assert calibration.guarantee().by_category[name].n == (by == name).sum()
        assert calibration.bracket(by=name) == alone.bracket()
    assert "in category 'north'" in printed(calibration.guarantee().by_category["north"])


def test_an_error_in_a_category_names_it(rows):
    p, mask, _ = rows
    verified = [0] * 20 + [None] * 280
    with pytest.raises(ValueError, match="verified labels") as caught:
        conformalize(p, mask, "rectified", verified=verified, by=["a"] * 100 + ["b"] * 200)
    assert caught.value.__notes__ == ["This is category 'b' of by."]
    with pytest.raises(ValueError, match="verified labels") as caught:
        conformalize(p, mask, "rectified")
    assert not hasattr(caught.value, "__notes__")


def test_an_unseen_category_gets_all_labels_and_a_warning(rows):
    p, mask, q = rows
    calibration = conformalize(p, mask, by=["a"] * 300)
    with pytest.warns(SmallCalibrationWarning, match="80 rows of categories without"):
        assert calibration.predict_set(q, by=["b"] * 80).to_mask().all()
    assert (calibration.predict_p(q, by=["b"] * 80) == 1).all()


def test_a_category_of_few_rows_is_named_as_short_by_the_rows_that_are_in_it(rows):
    p, mask, q = rows
    calibration = conformalize(p, mask, by=["a"] * 295 + ["b"] * 5)
    with pytest.warns(SmallCalibrationWarning, match="in 1 of 2 categories.*needs at least 9.*there are 5"):
        assert calibration.predict_set(q, by=["b"] * 80).to_mask().all()
    assert not calibration.predict_set(q, by=["a"] * 80).to_mask().all()


def test_categories_must_be_given_on_both_sides(rows):
    p, mask, q = rows
    with pytest.raises(ValueError, match="by: calibrated by category"):
        conformalize(p, mask, by=["a"] * 300).predict_set(q)
    with pytest.raises(ValueError, match="by: calibrated without"):
        conformalize(p, mask).predict_p(q, by=["a"] * 80)
    with pytest.raises(ValueError, match="by: row 2 has none"):
        conformalize(p, mask, by=["a", "b", None] * 100)


# -------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("strategy", ["max", "mean", "min", Mixture(mu=0.3)], ids=str)
def test_equal_weights_change_nothing(strategy, rows):
    p, mask, q = rows
    plain = conformalize(p, mask, strategy)
    for weight in (1.0, 4.0, 0.1, 0.3, 1 / 3):
        weighted = conformalize(p, mask, strategy, sample_weight=np.full(300, weight))
        for level in (0.3, 0.5, 0.57, 0.7, 0.8, 0.9, 0.99):
            assert weighted.threshold(level, sample_weight=weight) == plain.threshold(level)
        new = np.full(80, weight)
        assert weighted.predict_set(q, sample_weight=new) == plain.predict_set(q)
        assert np.allclose(weighted.predict_p(q, sample_weight=new), plain.predict_p(q))


def test_the_weighted_threshold_is_the_smallest_t_with_enough_weight(rows, rng):
    p, mask, _ = rows
    w, new = rng.integers(1, 9, 300) / 4, rng.integers(1, 9, 20) / 4
    e = np.where(mask, 1 - p, -1).max(axis=1)
    found = conformalize(p, mask, sample_weight=w).threshold(0.9, sample_weight=new)
    for t, own in zip(found, new, strict=True):
        reached = [v for v in np.sort(e) if w[e <= v].sum() >= 0.9 * (w.sum() + own) - 1e-12]
        assert np.isclose(t, min(reached, default=np.inf))


@pytest.mark.parametrize(("n", "rate", "level"), [(9, 0.2, 0.7), (19, 0.1, 0.7), (49, 0.1, 0.7), (99, 0.03, 0.9)])
def test_p_values_and_sets_agree_with_a_miss_rate_and_with_weights(n, rate, level, rng):
    p, q = simplex(rng, n, 3), simplex(rng, 300, 3)
    mask = candidates_from(rng, labels_from(rng, p), 3)
    epsilon = float(1 - Fraction(str(level)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallCalibrationWarning)
        calibration = conformalize(p, mask, "max", miss_rate=rate)
        assert np.array_equal(calibration.predict_set(q, level).to_mask(), calibration.predict_p(q) > epsilon)
        weighted, new = conformalize(p, mask, sample_weight=np.full(n, 0.1)), {"sample_weight": np.full(300, 0.1)}
        sets = weighted.predict_set(q, level, **new).to_mask()
        assert np.array_equal(sets, weighted.predict_p(q, **new) > epsilon)


def test_a_heavy_new_row_gets_all_labels(rows):
    p, mask, q = rows
    calibration = conformalize(p, mask, sample_weight=np.ones(300))
    assert calibration.threshold(0.9, sample_weight=40.0) == np.inf
    assert calibration.predict_set(q, sample_weight=np.full(80, 40.0)).to_mask().all()
    assert (calibration.predict_p(q, sample_weight=np.full(80, 40.0)) > 0.1).all()


def test_weighted_calibration_says_what_it_cannot_answer(rows):
    p, mask, q = rows
    calibration = conformalize(p, mask, sample_weight=np.ones(300))
    with pytest.raises(ValueError, match="depends on the weight of the new row"):
        calibration.threshold(0.9)
    with pytest.raises(ValueError, match="new rows need theirs"):
        calibration.predict_set(q)
    with pytest.raises(ValueError, match="bracket"):
        calibration.bracket()
    for ask in (
        lambda c: c.predict_set(q, sample_weight=np.ones(80)),
        lambda c: c.threshold(0.9, sample_weight=1.0),
    ):
        with pytest.raises(ValueError, match="calibrated without weights"):
            ask(conformalize(p, mask))
    few = conformalize(p[:5], mask[:5], sample_weight=np.ones(5))
    with pytest.warns(SmallCalibrationWarning, match="the 5 calibration rows weigh too little"):
        assert few.predict_set(q, sample_weight=np.ones(80)).to_mask().all()
    assert "weigh too little for confidence 0.9" in printed(few.guarantee())
    assert "as the weights say" in printed(calibration.guarantee())


def test_weights_and_categories_together(rows, rng):
    p, mask, q = rows
    by, w = rng.choice([0, 1], 300), rng.uniform(0.5, 2, 300)
    calibration = conformalize(p, mask, by=by, sample_weight=w)
    alone = conformalize(p[by == 1], mask[by == 1], sample_weight=w[by == 1])
    new = np.full(80, 1.3)
    together = calibration.predict_set(q, by=np.ones(80, int), sample_weight=new)
    assert together == alone.predict_set(q, sample_weight=new)


# -------------------------------------------------------------------------------- groups


def test_groups_of_one_row_change_nothing(rows):
    p, mask, q = rows
    for strategy in ("max", "mean", "min", Mixture(mu=0.3)):
        plain, grouped = conformalize(p, mask, strategy), conformalize(p, mask, strategy, groups=np.arange(300))
        for level in (0.3, 0.57, 0.7, 0.9, 0.99):
            assert grouped.threshold(level) == plain.threshold(level)
            assert grouped.predict_set(q, level) == plain.predict_set(q, level)
        assert np.allclose(grouped.predict_p(q), plain.predict_p(q))


def test_what_every_claim_rests_on_are_examples_weights_or_groups(rows):
    p, mask, _ = rows
    known = {"same_source", "weights", "same_groups"}
    n = len(p)
    for options, needed in (
        ({}, "same_source"),
        ({"sample_weight": np.linspace(1, 2, n)}, "weights"),
        ({"groups": np.arange(n) // 2}, "same_groups"),
    ):
        made = conformalize(p, mask, **options).guarantee(0.8)
        assert bool(made.given_calibration) == (not options)  # the Beta law is of rows that count alike
        for claim in made.claims:
            assert {premise.name for premise in claim.premises} & known == {needed}
            assert ("a row of a random new group" in claim.subject) == ("groups" in options)


def test_rows_of_a_group_share_one_unit_of_weight(rows, rng):
    p, mask, q = rows
    groups = rng.integers(0, 25, 300)
    e, sizes = np.where(mask, 1 - p, -1).max(axis=1), np.bincount(groups)
    reached = [t for t in np.sort(e) if (1 / sizes[groups])[e <= t].sum() >= 0.9 * 26 - 1e-9]
    calibration = conformalize(p, mask, groups=[f"film {g}" for g in groups])
    assert np.isclose(calibration.threshold(0.9), reached[0])
    assert calibration.guarantee().n == 25
    assert "25 calibration groups" in printed(calibration.guarantee())
    assert "new groups and their rows" in printed(calibration.guarantee())
    sets = calibration.predict_set(q).to_mask()
    assert np.array_equal(sets, calibration.predict_p(q) > 0.1)


def test_too_few_groups_give_all_labels_however_many_rows(rows, tmp_path):
    p, mask, q = rows
    calibration = conformalize(p, mask, groups=np.arange(300) % 8)
    with pytest.warns(SmallCalibrationWarning, match="needs at least 9 calibration groups, and there are 8"):
        assert calibration.predict_set(q).to_mask().all()
    enough = conformalize(p, mask, groups=np.arange(300) % 9, by=np.arange(300) // 150)
    enough.save(tmp_path / "cal")
    new = {"by": np.zeros(80, int)}
    assert Calibration.load(tmp_path / "cal").predict_set(q, **new) == enough.predict_set(q, **new)
    assert np.isfinite(enough.threshold(by=0))


def test_what_groups_cannot_be_combined_with_is_said(rows):
    p, mask, _ = rows
    groups = np.arange(300) % 20
    for options, message in (
        ({"sample_weight": np.ones(300)}, "groups: not together"),
        ({"strategy": "all"}, "not defined for weighted or grouped"),
    ):
        with pytest.raises(ValueError, match=message):
            conformalize(p, mask, groups=groups, **options)
    with pytest.raises(ValueError, match="bracket"):
        conformalize(p, mask, groups=groups).bracket()


# -------------------------------------------------------------------------------- new rows with candidates, empties


def test_candidates_of_new_rows_cut_the_set(rows, rng):
    p, mask, q = rows
    own = candidates_from(rng, q.argmax(axis=1), 4)
    calibration = conformalize(p, mask)
    plain = calibration.predict_set(q).to_mask()
    assert np.array_equal(calibration.predict_set(q, candidates=own).to_mask(), plain & own)
    unknown = [None, *LabelSets.from_mask(own[1:]).to_lists()]
    assert np.array_equal(calibration.predict_set(q, candidates=unknown).to_mask()[0], plain[0])
    with pytest.raises(ValueError, match="candidates: 3 rows for 80"):
        calibration.predict_set(q, candidates=own[:3])


def test_empty_sets_are_filled_with_the_most_probable_label_when_asked(rows):
    p, mask, q = rows
    calibration = conformalize(p, mask, "min")
    sets = calibration.predict_set(q, 0.2)
    assert (sets.sizes == 0).any()
    filled = calibration.predict_set(q, 0.2, allow_empty=False)
    empty = sets.sizes == 0
    assert (filled.sizes >= 1).all()
    assert filled.contains(q.argmax(axis=1))[empty].all()
    assert np.array_equal(filled.to_mask()[~empty], sets.to_mask()[~empty])
    only_last = np.tile([False, False, False, True], (80, 1))
    assert calibration.predict_set(q, 0.2, candidates=only_last, allow_empty=False).to_lists() == [[3]] * 80
    sure = np.tile([1.0, 0.0, 0.0, 0.0], (80, 1))  # that no candidate is likely does not let others in
    assert calibration.predict_set(sure, 0.2, candidates=only_last, allow_empty=False).to_lists() == [[3]] * 80


# -------------------------------------------------------------------------------- missing candidates


def test_rows_without_candidates_follow_the_rule_asked_for(rows):
    p, mask, q = rows
    gaps = mask.copy()
    gaps[[3, 7]] = False
    with pytest.raises(ValueError, match=r"candidates: row 3 is empty \(2 such rows\); use missing='full'"):
        conformalize(p, gaps)
    full = mask.copy()
    full[[3, 7]] = True
    assert conformalize(p, gaps, missing="full").threshold() == conformalize(p, full).threshold()
    kept = np.delete(np.arange(300), [3, 7])
    by, w, v = np.arange(300) % 2, np.linspace(1, 2, 300), [int(mask[0].argmax()), *[None] * 299]
    dropped = conformalize(
        p, gaps, "mean", "aps", missing="drop", by=by, sample_weight=w, verified=v, random_state=0
    )
    alone = conformalize(p[kept], mask[kept], "mean", "aps", by=by[kept], sample_weight=w[kept], random_state=0)
    new = {"by": np.zeros(80, int), "sample_weight": np.ones(80)}
    assert dropped.predict_set(q, **new) == alone.predict_set(q, **new)
    assert "its label (2 dropped)" in printed(dropped.guarantee().by_category[0])
    with pytest.raises(ValueError, match="every row is empty"):
        conformalize(p, np.zeros_like(mask), missing="drop")
    with pytest.raises(ValueError, match="missing: 'ignore'"):
        conformalize(p, gaps, missing="ignore")


# -------------------------------------------------------------------------------- vocabulary and declarations


def test_names_go_through_from_candidates_to_sets(rows):
    p, mask, q = rows
    names = ["d", "b", "c", "a"]
    sets = LabelSets.from_mask(mask, classes=names)
    calibration = conformalize(p, sets.to_lists(), classes=names)
    made = calibration.predict_set(q)
    assert made.classes.tolist() == names
    assert np.array_equal(made.to_mask(), conformalize(p, mask).predict_set(q).to_mask())
    assert (
        calibration.predict_set(q, candidates=[["a", "d"]] * 80)
        .issubset(LabelSets.from_lists([["a", "d"]] * 80, names))
        .all()
    )


def test_verified_labels_are_read_by_name(rows):
    p, mask, _ = rows
    names = ["w", "x", "y", "z"]
    verified = [names[row.argmax()] if i % 3 == 0 else None for i, row in enumerate(mask)]
    calibration = conformalize(p, LabelSets.from_mask(mask, names), "mean", verified=verified)
    assert calibration.evidence.verified.sum() == 100
    assert "of 100 verified rows" in printed(calibration.guarantee())
    with pytest.raises(ValueError, match="verified: row 1 holds 'q'"):
        conformalize(p, LabelSets.from_mask(mask, names), verified=[None, "q", *[None] * 298])
    with pytest.raises(ValueError, match="verified: 3 entries for 300 rows"):
        conformalize(p, mask, verified=[None] * 3)


@pytest.mark.parametrize("assume", ["uniform", np.full((4, 4), 0.5) + np.eye(4) / 2])
def test_an_assumption_is_kept_and_max_makes_no_use_of_it(assume, rows, tmp_path):
    p, mask, _ = rows
    calibration = conformalize(p, mask, "max", assume=assume)
    plain = conformalize(p, mask, "max")
    assert calibration.threshold() == plain.threshold()
    assert calibration.guarantee().claims == plain.guarantee().claims
    calibration.save(tmp_path / "cal")
    kept = Calibration.load(tmp_path / "cal").setting.assume
    assert kept.kind == ("uniform" if isinstance(assume, str) else "class")
    assert isinstance(assume, str) or np.array_equal(kept.matrix, assume)


def test_frames_go_by_the_names_of_their_columns(rows):
    p, mask, q = rows
    names = ["d", "b", "c", "a"]
    sets = LabelSets.from_mask(mask, classes=names)
    expected = conformalize(p, sets).predict_set(q)
    frame, new = pd.DataFrame(p, columns=names), pd.DataFrame(q, columns=names)[["a", "b", "c", "d"]]
    for candidates in (sets, sets.to_lists(), pd.DataFrame(mask, columns=names)[["b", "a", "d", "c"]]):
        calibration = conformalize(frame, candidates)
        assert calibration.predict_set(new) == expected
        assert calibration.predict_set(q if calibration.classes.tolist() == names else new) == expected
    assert conformalize(frame[["a", "b", "c", "d"]], sets).predict_set(pl.DataFrame(new)) == expected
    with pytest.raises(ValueError, match="'z' is not one"):
        conformalize(frame, sets).predict_set(new.rename(columns={"a": "z"}))
    assert conformalize(frame, mask).predict_set(q).to_mask().tolist() == expected.to_mask().tolist()
    positions = [np.flatnonzero(row).tolist() for row in mask]
    assert conformalize(frame, positions).predict_set(q).to_mask().tolist() == expected.to_mask().tolist()
    rates = pd.DataFrame(np.eye(4) * 0.9 + 0.1, columns=names, index=names)
    asked = conformalize(frame, sets, assume=rates[["a", "b", "c", "d"]].loc[["a", "b", "c", "d"]])
    assert np.array_equal(asked.setting.assume.matrix, rates)
    with pytest.raises(ValueError, match="assume"):
        conformalize(frame, sets, assume=rates.assign(e=0.1))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"candidates": None}, TypeError, "candidates: expected one set of labels per row"),
        ({"candidates": 5}, TypeError, "candidates"),
        ({"candidates": np.ones((300, 4, 1), bool)}, ValueError, "candidates: .*shape"),
        ({"candidates": [[0, 7]] * 300}, ValueError, "candidates: row 0: 7 is not among"),
        ({"by": 5}, TypeError, "by: expected one label per row"),
        ({"verified": 3}, TypeError, "verified: expected one label per row"),
        ({"verified": [[0]] * 300}, ValueError, r"verified: row 0 is \[0\], not one label"),
        ({"classes": 3}, TypeError, "classes: expected the labels in order"),
        ({"classes": "abcd"}, TypeError, "classes: expected the labels in order"),
        ({"classes": [[0], [1], [2], [3]]}, TypeError, "classes: labels must be hashable"),
        ({"sample_weight": ["a"] * 300}, TypeError, "sample_weight"),
        ({"assume": [["a"]]}, TypeError, "assume"),
        ({"row_ids": [1]}, ValueError, "row_ids"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(change, error, message, rows):
    p, mask, _ = rows
    with pytest.raises(error, match=message):
        conformalize(**{"probabilities": p, "candidates": mask} | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": np.empty((0, 4))}, "no rows"),
        ({"candidates": np.ones((3, 4), bool)}, "3 rows for 300"),
        ({"miss_rate": 1.0}, "miss_rate"),
        ({"miss_rate": -0.1}, "miss_rate"),
        ({"assume": "magic"}, "assume"),
        ({"assume": np.ones((2, 2))}, "assume"),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
        ({"sample_weight": np.r_[np.ones(5), -1, np.ones(294)]}, "sample_weight: row 5 has -1"),
        ({"by": [1, 2]}, "by: 2 entries for 300"),
        ({"row_ids": [1]}, "row_ids"),
    ],
)
def test_bad_arguments_are_named(change, message, rows):
    p, mask, _ = rows
    arguments = {"probabilities": p, "candidates": mask, "conformity_score": "aps"} | change
    with pytest.raises(ValueError, match=message):
        conformalize(**arguments)


# -------------------------------------------------------------------------------- noise


def test_row_ids_tie_the_noise_to_the_row(rows):
    p, mask, q = rows
    ids = [f"id{i}" for i in range(300)]
    one = conformalize(p, mask, "max", "aps", row_ids=ids, random_state=0)
    two = conformalize(p[::-1], mask[::-1], "max", "aps", row_ids=ids[::-1], random_state=0)
    new = list(range(80))
    assert one.predict_set(q, row_ids=new) == two.predict_set(q, row_ids=new)
    assert one.predict_set(q, row_ids=new) != one.predict_set(q, row_ids=new[::-1])


def test_sets_are_not_cut_down_to_candidates_that_may_miss_the_truth(rows):
    p, mask, q = rows
    made = conformalize(p, mask, "min", miss_rate=0.05)
    with pytest.raises(ValueError, match="candidates: with a miss rate of 0.05 those of new rows may lack"):
        made.predict_set(q, candidates=mask[:80])
    conformalize(p, mask, "max", miss_rate=0.05).predict_set(q, candidates=mask[:80])  # these hold the candidates


def test_ids_are_given_to_calibration_and_new_rows_alike(rows):
    p, mask, q = rows
    ids = np.arange(300)
    with pytest.raises(ValueError, match="row_ids: calibrated with ids"):
        conformalize(p, mask, "max", "aps", row_ids=ids).predict_set(q)
    with pytest.raises(ValueError, match="row_ids: calibrated without ids"):
        conformalize(p, mask, "max", "aps").predict_p(q, row_ids=ids[:80])
    with pytest.raises(ValueError, match="row_ids: rows 1 and 4 have the same id"):
        conformalize(p, mask, "max", "aps", row_ids=[0, 1, 2, 3, 1, *range(5, 300)])


def test_a_seed_is_drawn_once_and_kept(rows, tmp_path):
    p, mask, q = rows
    calibration = conformalize(p, mask, "max", "aps")
    assert calibration.predict_set(q, 0.5) == calibration.predict_set(q, 0.5)
    calibration.save(tmp_path / "cal")
    assert Calibration.load(tmp_path / "cal").predict_set(q, 0.5) == calibration.predict_set(q, 0.5)


# -------------------------------------------------------------------------------- bracket


def test_the_bracket_is_the_distribution_of_the_extremes_with_a_band(rows):
    p, mask, _ = rows
    calibration = conformalize(p, mask, "mean", miss_rate=0.01)
    t = calibration.threshold(0.8)
    high, low = np.where(mask, 1 - p, -1).max(axis=1), np.where(mask, 1 - p, 2).min(axis=1)
    band = np.sqrt(np.log(2 / 0.1) / 600) + 0.01
    expected = ((high <= t + 1e-12).mean() - band, min((low <= t + 1e-12).mean() + band, 1))
    assert np.allclose(calibration.bracket(0.8, delta=0.1), expected)
    with pytest.raises(ValueError, match="delta"):
        calibration.bracket(0.8, delta=0)


# -------------------------------------------------------------------------------- files


@pytest.mark.parametrize("strategy", [*STRATEGIES, Mixture(mu=0.3)], ids=str)
@pytest.mark.parametrize("score", [LAC(), LAC(domain="unit"), APS(), RAPS(penalty=0.2, free_ranks=1)], ids=repr)
def test_a_file_gives_back_the_same_calibration(strategy, score, rows, tmp_path):
    p, mask, q = rows
    names = ["ä", "b", "c", "d"]
    verified = [names[row.argmax()] if i < 150 else None for i, row in enumerate(mask)]
    calibration = conformalize(
        p,
        LabelSets.from_mask(mask, names),
        strategy,
        score,
        verified=verified,
        miss_rate=0.02,
        random_state=4,
    )
    path = tmp_path / "calibration.setwise"
    calibration.save(path)
    again = Calibration.load(path)
    for level in (0.6, 0.9):
        assert again.threshold(level) == calibration.threshold(level)
        assert again.predict_set(q, level) == calibration.predict_set(q, level)
        assert str(again.guarantee(level)) == str(calibration.guarantee(level))
    assert np.array_equal(again.predict_p(q), calibration.predict_p(q))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_categories_and_weights_are_saved(rows, tmp_path):
    p, mask, q = rows
    calibration = conformalize(p, mask, by=np.arange(300) % 3, sample_weight=np.linspace(1, 2, 300))
    calibration.save(tmp_path / "cal")
    new = {"by": np.arange(80) % 3, "sample_weight": np.ones(80)}
    assert Calibration.load(tmp_path / "cal").predict_set(q, **new) == calibration.predict_set(q, **new)


def test_parameters_of_any_numeric_type_are_saved_and_others_may_read_the_file(rows, tmp_path):
    p, mask, _ = rows
    for strategy, score in (
        (Mixture(mu=np.float32(0.3)), RAPS(penalty=np.float32(0.1))),
        (Mixture(mu=Fraction(1, 3)), "lac"),
    ):
        calibration = conformalize(p, mask, strategy, score, random_state=0)
        calibration.save(tmp_path / "cal")
        assert Calibration.load(tmp_path / "cal").threshold() == pytest.approx(calibration.threshold())
    (tmp_path / "plain").touch()
    assert (tmp_path / "cal").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_file_holds_no_pickle_and_says_what_it_is(rows, tmp_path):
    p, mask, _ = rows
    conformalize(p, mask).save(tmp_path / "cal")
    with zipfile.ZipFile(tmp_path / "cal") as file:
        columns = ("low", "high", "sizes", "predicted", "confidence")
        assert {"header.npy", "digest.npy", *(f"evidence.{name}.npy" for name in columns)} == set(file.namelist())
    with np.load(tmp_path / "cal", allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
    assert (header["format"], header["version"]) == ("setwise-calibration", 6)
    assert header["conformity_score"]["name"] == "lac"


def test_foreign_broken_and_newer_files_are_refused_by_name(rows, tmp_path):
    p, mask, _ = rows
    conformalize(p, mask).save(tmp_path / "cal")
    whole = (tmp_path / "cal").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text").write_text("hello")
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    np.savez(tmp_path / "pickled.npz", header=np.array([{}], dtype=object))
    for name in ("half", "text", "foreign.npz", "pickled.npz"):
        with pytest.raises(ValueError, match=f"{name}: not a setwise-calibration file"):
            Calibration.load(tmp_path / name)
    for field, value, message in (
        ("version", 99, "format 99.*update setwise"),
        ("version", 2, "format 2, written by setwise .* reads format 6: make the file again"),
        ("format", "other", "a other file"),
    ):
        with np.load(tmp_path / "cal") as file:
            header = json.loads(file["header"].tobytes()) | {field: value}
        np.savez(tmp_path / "changed.npz", header=np.frombuffer(json.dumps(header).encode(), np.uint8))
        with pytest.raises(ValueError, match=message):
            Calibration.load(tmp_path / "changed.npz")
    header, arrays = read_container(tmp_path / "cal", "setwise-calibration", 6)
    del arrays["evidence.low"]
    write_container(tmp_path / "lacking.npz", header, arrays)
    with pytest.raises(ValueError, match="lacking.npz: .* broken or missing part .*low"):
        Calibration.load(tmp_path / "lacking.npz")
    with pytest.raises(FileNotFoundError):
        Calibration.load(tmp_path / "nowhere")


def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(rows, tmp_path):
    p, mask, _ = rows
    with pytest.raises(ValueError, match="not part of setwise"):
        conformalize(p, mask, conformity_score=Cube()).save(tmp_path / "cal")
    mixed = LabelSets.from_mask(mask, classes=["a", 1, ("t", 2), None])
    with pytest.raises(ValueError, match="save: labels"):
        conformalize(p, mixed).save(tmp_path / "cal")
    assert list(tmp_path.iterdir()) == []


def test_repr_is_one_line_and_html_is_the_guarantee(rows):
    p, mask, _ = rows
    calibration = conformalize(p, mask, by=np.arange(300) % 3 > 0)  # of unequal numbers of rows
    assert (
        repr(calibration)
        == "Calibration(strategy='auto', conformity_score='lac', 300 rows, 4 classes, 2 categories)"
    )
    assert calibration._repr_html_().count("Guaranteed:") == 2


def test_a_score_of_ones_own_works_throughout(rows):
    p, mask, q = rows
    calibration = conformalize(p, mask, "mean", Cube())
    assert calibration.predict_set(q).shape == (80, 4)
    assert calibration.predict_p(q).shape == (80, 4)
