"""`classwise`: one threshold a class, through singletons or through a declared contamination."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from setwise import AssumptionRefuted, Calibration, _arrays, conformalize
from setwise.ranks import upper_bound
from setwise.strategies import Classwise, classwise
from setwise.strategies.classwise import _upper
from setwise.strategies.corrected import label_weights, settings_between
from setwise.strategies.curves import Curve
from setwise.strategies.step_function_sums import Steps
from tests.conftest import candidates_from, labels_from, printed, simplex

K = 4


def rows(rng, n=4000, share=0.15):
    p = simplex(rng, n, K)
    y = labels_from(rng, p)
    return p, y, candidates_from(rng, y, K, share)


def test_the_threshold_of_a_class_is_the_one_its_two_exact_bounds_allow(rng):
    p, _, mask = rows(rng)
    n = len(p)
    found = conformalize(p, mask, Classwise(delta=0.1)).threshold(0.8)
    for k in range(K):
        alone = int((mask[:, k] & (mask.sum(axis=1) == 1)).sum())
        floor = beta.ppf(0.05, alone, n - alone + 1)
        counts = np.arange(n)
        allowed = counts[beta.ppf(0.95, counts + 1, n - counts) <= 0.2 * floor]
        own = np.sort(1 - p[mask[:, k], k])[::-1]
        assert np.isclose(found[k], own[len(allowed) - 1])
        assert (own > found[k]).sum() == len(allowed) - 1


@pytest.fixture
def small_blocks(monkeypatch):
    """Some rows and some classes at a time, also of these few."""
    monkeypatch.setattr(_arrays, "_BLOCK_BYTES", 2**12)
    monkeypatch.setattr(classwise, "_GROUP_BYTES", 0)
    monkeypatch.setattr(classwise, "_PASSES", 3)  # of two classes each, and of one


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize("assume", ["uniform", "class"])
@pytest.mark.parametrize("margin", ["none", "normal", "finite"])
def test_levels_of_a_class_are_those_of_its_column_of_a_whole_table(rng, assume, margin, score):
    p = simplex(rng, 1500, 5).astype(np.float32)
    mask = candidates_from(rng, labels_from(rng, p), 5, 0.15)
    made = conformalize(p, mask, Classwise(margin), score, assume=assume, miss_rate=0.001, random_state=0)
    (rule,) = made.rules
    table, q = np.asarray(made.evidence.table), np.sort(np.asarray(made.evidence.table), axis=0)[::100]
    limits, values, errors = [], [], []
    for told in settings_between(rule.setting):
        weights, _, spread, new = label_weights(made.evidence, told)
        columns = [Steps(table[:, [k]], weights[:, [k]].__getitem__, weights[:, k], spread, new) for k in range(5)]
        curves = [Curve(column, margin, 0.05) for column in columns]
        limits.append([curve.certified.threshold(Fraction(4, 5)) for curve in curves])
        values.append(np.stack([curve.certified.p_values(q[:, k]) for k, curve in enumerate(curves)], axis=1))
        errors.append(max(curve.standard_error(Fraction(4, 5)) for curve in curves))
    np.testing.assert_allclose(rule.threshold(Fraction(4, 5))[0], np.max(limits, axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rule.p_values(q), np.max(values, axis=0), rtol=0, atol=1e-12)
    assert rule.standard_error(Fraction(4, 5)) == pytest.approx(errors[0], abs=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_scores_of_the_rows_that_name_a_class_are_collected_from_blocks(rng):
    p, _, mask = rows(rng, 700)
    mask[:, 3] &= mask.sum(axis=1) == 1  # a class that few rows name
    (rule,) = conformalize(p, mask, "classwise").rules
    for k in range(K):
        assert np.array_equal(rule._ascending[k], np.sort(-p[mask[:, k], k]))


def test_bounds_on_all_counts_are_those_of_one():
    assert np.allclose(_upper(np.arange(8), 7, 0.05), [upper_bound(count, 7, 0.05) for count in range(8)])


@pytest.mark.parametrize("assume", ["nothing", "uniform", "class"])
def test_every_class_is_covered(assume, rng):
    p, _, mask = rows(rng, 8000)
    q = simplex(rng, 20_000, K)
    y = labels_from(rng, q)
    inside = conformalize(p, mask, "classwise", assume=assume).predict_set(q, 0.9)
    for k in range(K):
        assert inside[y == k].contains(y[y == k]).mean() > 0.88


def test_a_declared_contamination_makes_the_sets_smaller(rng):
    p, _, mask = rows(rng, 8000)
    blind, told = (conformalize(p, mask, "classwise", assume=a).predict_set(p) for a in ("nothing", "uniform"))
    assert told.sizes.mean() < blind.sizes.mean()


@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize("assume", ["nothing", "uniform"])
def test_p_values_and_sets_tell_the_same_story(assume, score, rng):
    p, _, mask = rows(rng)
    q = simplex(rng, 300, K)
    made = conformalize(p, mask, "classwise", assume=assume, conformity_score=score, random_state=0)
    values = made.predict_p(q)
    for level in (0.7, 0.8, 0.9):
        assert np.array_equal(made.predict_set(q, level).to_mask(), values > 1 - level + 1e-12)


def test_a_class_without_singletons_is_in_every_set_and_the_guarantee_says_so(rng):
    p, _, mask = rows(rng)
    mask[mask[:, 2], 3] = True  # label 2 never comes alone
    made = conformalize(p, mask, "classwise")
    assert np.isinf(made.threshold(0.9)[2])
    assert made.predict_set(p, 0.9).to_mask()[:, 2].all()
    assert "1 of 4 classes" in printed(made.guarantee(0.9))


def test_its_claim_speaks_of_each_class_and_survives_saving(rng, tmp_path):
    p, _, mask = rows(rng)
    made = conformalize(p, mask, "classwise")
    assert made.guarantee(0.8).promised == 0.8
    assert "of any one true class" in printed(made.guarantee(0.8))
    made.save(tmp_path / "cal")
    assert np.array_equal(Calibration.load(tmp_path / "cal").threshold(0.8), made.threshold(0.8))
    with pytest.raises(ValueError, match="bracket"):
        made.bracket()


def test_a_miss_rate_is_paid_on_both_sides(rng):
    p, _, mask = rows(rng)
    without, with_rate = (conformalize(p, mask, "classwise", miss_rate=rate).threshold(0.8) for rate in (0, 0.005))
    assert all(with_rate[k] >= without[k] for k in range(K))
    assert any(with_rate[k] > without[k] for k in range(K))


def test_a_refuted_declaration_stops_it(rng):
    p, _, mask = rows(rng)
    with pytest.raises(AssumptionRefuted):
        conformalize(p, mask | (p > 0.1), "classwise", assume="uniform")


def test_categories_and_classes_go_together(rng):
    p, _, mask = rows(rng)
    by = np.where(np.arange(len(p)) % 2, "odd", "even")
    made = conformalize(p, mask, "classwise", by=by)
    parts = {name: conformalize(p[by == name], mask[by == name], "classwise") for name in ("odd", "even")}
    sets = made.predict_set(p, 0.8, by=by)
    for name, part in parts.items():
        assert np.array_equal(made.threshold(0.8, by=name), part.threshold(0.8))
        assert sets[by == name] == part.predict_set(p[by == name], 0.8)


def test_rows_can_be_sorted_by_what_is_predicted_or_by_how_many_candidates_they_have(rng, tmp_path):
    p, _, mask = rows(rng, 600)
    by = p.argmax(axis=1)
    automatic, given = conformalize(p, mask, by="predicted"), conformalize(p, mask, by=by)
    for k in range(K):
        assert automatic.threshold(by=k) == given.threshold(by=k)
    with pytest.raises(ValueError, match="by: calibrated by category; name one of them: 0, 1"):
        automatic.threshold()
    assert automatic.predict_set(p) == given.predict_set(p, by=by)
    automatic.save(tmp_path / "cal")
    assert Calibration.load(tmp_path / "cal").predict_set(p) == automatic.predict_set(p)
    sized = conformalize(p, mask, by="size")
    new = sized.predict_set(p, 0.5, candidates=mask)
    plain = conformalize(p, mask, by=mask.sum(axis=1)).predict_set(p, 0.5, by=mask.sum(axis=1), candidates=mask)
    assert new == plain
    with pytest.raises(ValueError, match="number of candidates, so new rows need theirs"):
        sized.predict_set(p)
    with pytest.raises(ValueError, match="by: 'colour' is not known"):
        conformalize(p, mask, by="colour")
