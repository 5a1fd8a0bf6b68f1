"""`auto`: what is chosen when, and what verified rows promise at every level."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise import Calibration, MisuseWarning, Votes, conformalize
from setwise.calibration.base import SmallCalibrationWarning
from tests.conftest import candidates_from, labels_from, printed, simplex
from tests.strategies.test_rectified import rows, some

K = 5


def alone(p, y, verified):
    """Split conformal prediction on the verified rows."""
    checked = np.array([v is not None for v in verified])
    return conformalize(p[checked], y[checked], "max")


def test_auto_takes_verified_rows_where_they_suffice_then_what_is_declared_then_max(rng):
    p = simplex(rng, 600, K)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, K, 0.3)
    forty, five = some(rng, y, 40), some(rng, y, 5)
    named = {
        "auto": {"verified": forty, "assume": "uniform"},
        "corrected": {"verified": five, "assume": "uniform"},
        "max": {"verified": five},
    }
    for name, told in named.items():
        made = conformalize(p, mask, **told)
        assert made.guarantee().strategy == name
        if name != "auto":
            assert made.threshold(0.9) == conformalize(p, mask, name, **told).threshold(0.9)
            assert "needs at least 9 verified labels, and there are 5" in printed(made.guarantee())
    told = conformalize(p, mask, verified=forty)
    assert "40 of them verified" in printed(told.guarantee())
    assert told.guarantee().promised == 0.9
    assert told.guarantee(0.99).strategy == "max"
    assert conformalize(p, mask, sample_weight=np.ones(600), verified=forty).guarantee().strategy == "max"


def test_auto_takes_the_larger_threshold_and_at_most_that_of_max(rng):
    seen = set()
    for _ in range(30):
        p, y, mask = rows(rng, 300)
        verified = some(rng, y, 25)
        one = alone(p, y, verified).threshold(0.9)
        other = conformalize(p, mask, "rectified", verified=verified).threshold(Fraction(9, 10) - Fraction(1, 52))
        most = conformalize(p, mask, "max").threshold(0.9)
        assert conformalize(p, mask, verified=verified).threshold(0.9) == max(one, min(other, most))
        seen.add("alone" if one > min(other, most) else "rectified" if other <= most else "max")
    assert seen >= {"alone", "rectified"}


@pytest.mark.filterwarnings("ignore:verified.*not a random choice:setwise.MisuseWarning")  # one in a hundred is odd
def test_where_the_model_knows_nothing_the_sets_are_nearly_those_of_the_verified_rows_alone(rng):
    sizes = []
    for _ in range(40):
        p, y = rng.dirichlet(np.full(10, 0.3), size=600), rng.integers(0, 10, 600)
        mask, verified = candidates_from(rng, y, 10, 0.3), some(rng, y, 50)
        made = conformalize(p, mask, verified=verified), alone(p, y, verified)
        sizes.append([each.predict_set(p, 0.9).sizes.mean() for each in made])
    auto, least = np.mean(sizes, axis=0)
    assert least <= auto <= 1.005 * least


def test_any_number_of_verified_rows_that_the_level_allows_is_enough(rng):
    p, y, mask = rows(rng, 300)
    verified = some(rng, y, 2)
    made = conformalize(p, mask, verified=verified)
    assert made.guarantee(0.6).strategy == "auto"
    assert made.guarantee(Fraction(2, 3)).strategy == "auto"
    assert made.guarantee(0.67).strategy == "max"
    assert made.threshold(Fraction(2, 3)) >= alone(p, y, verified).threshold(Fraction(2, 3))


def test_where_checks_refute_the_candidates_and_do_not_suffice_every_label_is_in_the_set(rng):
    p, y, mask = rows(rng, 300)
    verified = some(rng, y, 30)
    wrong = next(i for i, v in enumerate(verified) if v is not None)
    mask[wrong, y[wrong]] = False
    mask[wrong, (y[wrong] + 1) % K] = True
    made = conformalize(p, mask, verified=verified)
    other = conformalize(p, mask, "rectified", verified=verified)
    assert made.threshold(0.9) == max(alone(p, y, verified).threshold(0.9), other.threshold(0.9))
    assert made.guarantee(0.9).promised == 0.9
    with pytest.warns(UserWarning, match="needs at least 99 verified labels, and there are 30, and these refute"):
        assert made.predict_set(p, 0.99).to_mask().all()
    assert made.guarantee(0.99).claims[0].source == "every label"
    assert made.guarantee(0.99).promised == 0.99
    allowed = conformalize(p, mask, verified=verified, miss_rate=0.05)  # one of 30 does not refute 0.05
    assert allowed.guarantee(0.98).strategy == "max"


def test_unequal_chances_weigh_the_verified_rows_and_cost_one_row_of_the_promise(rng):
    p, y, mask = rows(rng, 400)
    chance = np.where(p.max(axis=1) > 0.6, 0.1, 0.5)
    verified = np.where(rng.random(400) < chance, y, None)
    made = conformalize(p, mask, verified=verified, verified_probability=chance)
    checked = np.array([v is not None for v in verified])
    own, w = (1 - p[np.arange(400), y])[checked], 1 / chance[checked]
    heavy = 1 / chance.min()
    right = [t for t in np.sort(own) if w[own > t].sum() + heavy <= 0.1 * (w.sum() + heavy) + 1e-9]
    other = conformalize(p, mask, "rectified", verified=verified, verified_probability=chance).threshold(0.9)
    most = conformalize(p, mask, "max").threshold(0.9)
    assert np.isclose(made.threshold(0.9), max(right[0], min(other, most)))
    assert np.isclose(made.guarantee(0.9).promised, 0.9 - 1 / 401)
    assert "with the given probability" in printed(made.guarantee(0.9))
    same = conformalize(p, mask, verified=verified, verified_probability=np.full(400, 0.25))
    with pytest.warns(MisuseWarning, match="not a random choice of the rows"):
        plain = conformalize(p, mask, verified=verified)
    assert plain.guarantee(0.9).promised is None
    assert "verified_at_random" in {premise.name for premise in plain.guarantee(0.9).claims[0].refuted}
    levels = [0.5, 0.8, 0.9, 0.95]
    assert np.allclose(same.threshold(levels), plain.threshold(levels))


def test_a_heavy_row_that_nobody_checked_counts_too(rng):
    """The new row may weigh as much as any calibration row, verified or not."""
    p, y, mask = rows(rng, 200)
    chance, verified = np.full(200, 0.3), some(rng, y, 60)
    unchecked = next(i for i, v in enumerate(verified) if v is None)
    chance[unchecked] = 0.005  # weighs 200: as much as sixty of the others
    made = conformalize(p, mask, verified=verified, verified_probability=chance)
    assert math.isinf(made.rules[0].threshold(Fraction(9, 10)))
    assert math.isfinite(made.rules[0].threshold(Fraction(3, 10)))


@pytest.mark.parametrize("other", ["sample_weight", "groups"])
def test_unequal_chances_are_refused_with_weights_and_groups(other, rng):
    p, y, mask = rows(rng, 60)
    with pytest.raises(ValueError, match="verified_probability: not together with sample_weight or groups"):
        conformalize(
            p, mask, verified=some(rng, y, 20), verified_probability=np.full(60, 0.3), **{other: np.ones(60)}
        )


def test_auto_falls_back_to_max_and_says_why_where_the_data_refute_the_declaration(rng):
    p, _, mask = rows(rng, 2000)
    made = conformalize(p, mask, assume="uniform")
    assert made.threshold(0.9) == conformalize(p, mask, "max").threshold(0.9)
    text = str(made.guarantee())
    assert "auto chose max" in text
    assert "refuted" in text


def test_a_category_of_one_row_does_not_stop_auto(rng):
    p = simplex(rng, 301, K)
    mask = candidates_from(rng, labels_from(rng, p), K, 0.3)
    by = np.array(["common"] * 300 + ["rare"])
    made = conformalize(p, mask, assume="uniform", by=by)
    assert np.isinf(made.rules[1].threshold(Fraction(9, 10)))
    named = conformalize(p, mask, "corrected", assume="uniform", by=by)
    assert np.isinf(named.rules[1].threshold(Fraction(9, 10)))


@st.composite
def calibrations(draw):
    """Verified rows in any number, with and without chances, misses, a declaration; scores with ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 60))
    p, y, mask = rows(rng, n)
    if draw(st.booleans()):
        p = np.maximum(p.round(1), 0.01)
        p /= p.sum(axis=1, keepdims=True)
    if draw(st.booleans()):
        mask[np.arange(n), y] &= rng.random(n) < 0.9
        mask[~mask.any(axis=1), 0] = True
    chance = rng.uniform(0.1, 1, n) if draw(st.booleans()) else None
    told = {} if chance is None else {"verified_probability": chance}
    if draw(st.booleans()):
        told["miss_rate"] = 0.05
    if draw(st.booleans()):
        told["assume"] = "uniform"
    verified = np.where(rng.random(n) < (draw(st.floats(0.05, 1)) if chance is None else chance), y, None)
    verified[0] = y[0]
    return p, conformalize(p, mask, verified=verified, **told)


LEVELS = sorted({*(i / 40 for i in range(1, 40)), 0.98, 0.99, 0.999, *(Fraction(m, m + 1) for m in range(1, 30))})


@pytest.mark.filterwarnings("ignore::setwise.calibration.base.SmallCalibrationWarning")
@pytest.mark.filterwarnings("ignore:verified.*not a random choice:setwise.MisuseWarning")  # one in a hundred is odd
@settings(max_examples=150, deadline=None)
@given(calibrations())
def test_sets_grow_with_the_level_and_p_values_say_the_same(made):
    p, calibration = made
    thresholds = np.array(calibration.threshold(LEVELS))
    assert thresholds.tolist() == sorted(thresholds.tolist())
    values = calibration.predict_p(p)
    decimals = [level for level in LEVELS if not isinstance(level, Fraction)]
    for level, sets in zip(decimals, calibration.predict_set(p, decimals), strict=True):
        assert np.array_equal(values > float(1 - Fraction(str(level))), sets.to_mask())


def test_with_unequal_chances_there_is_one_rule(rng):
    p, y, mask = rows(rng, 200)
    chance = rng.uniform(0.1, 0.9, 200)
    verified = np.where(rng.random(200) < chance, y, None)
    made = conformalize(p, mask, verified=verified, verified_probability=chance)
    for level in (0.9, 0.99, 0.999):
        assert made.guarantee(level).strategy == "auto"
        assert made.guarantee(level).promised == pytest.approx(level - 1 / 201)
    few = np.where(np.arange(200) < 5, y, None)
    short = conformalize(p, mask, verified=few, verified_probability=chance / 20)
    with pytest.warns(SmallCalibrationWarning, match="the 5 verified rows weigh too little for confidence 0.9"):
        assert math.isinf(short.threshold(0.9))
    with pytest.raises(ValueError, match="verified_probability: no row is verified"):
        conformalize(p, mask, verified_probability=chance)


def test_saved_calibrations_answer_alike(rng, tmp_path):
    p, y, mask = rows(rng, 300)
    chance = rng.uniform(0.1, 0.4, 300)
    for told in ({}, {"verified_probability": chance}):
        made = conformalize(p, mask, verified=np.where(rng.random(300) < chance, y, None), **told)
        made.save(tmp_path / "cal")
        read = Calibration.load(tmp_path / "cal")
        for level in (0.8, 0.9):
            assert read.threshold(level) == made.threshold(level) < math.inf
            assert str(read.guarantee(level)) == str(made.guarantee(level))
        assert np.array_equal(read.predict_p(p), made.predict_p(p))


def test_auto_rests_on_verified_rows_in_each_category(rng):
    p, y, mask = rows(rng, 400)
    by = np.where(np.arange(400) < 300, "a", "b")
    verified = some(rng, y, 60)
    verified[300:] = None
    made = conformalize(p, mask, verified=verified, by=by)
    assert made.rules[0].claim(Fraction(9, 10)).strategy == "auto"
    assert made.rules[1].claim(Fraction(9, 10)).strategy == "max"


@pytest.mark.parametrize("option", [{"sample_weight": np.ones(200)}, {"groups": np.arange(200) // 2}])
def test_it_says_that_verified_rows_are_not_calibrated_on_with_weights_or_groups(rng, option):
    p = simplex(rng, 200, 4)
    y = labels_from(rng, p)
    half = np.where(np.arange(200) % 2, y, np.nan)
    made = conformalize(p, candidates_from(rng, y, 4), verified=half, **option).guarantee()
    assert made.remarks[0].startswith(f"With {next(iter(option))} auto cannot use the 100 verified rows")


def test_verified_groups_give_a_guarantee_that_names_and_counts_them(rng):
    p = simplex(rng, 400, 4)
    y, group = labels_from(rng, p), np.arange(400) // 8
    verified = np.where(np.isin(group, rng.choice(50, 20, replace=False)), y, np.nan)
    cal = conformalize(p, np.ones((400, 4), bool), verified=verified, groups=group)
    made = cal.guarantee()
    assert (made.promised, made.unit, made.n, made.verified) == (0.9, "groups", 50, 20)
    printed = " ".join(str(made).split())
    assert "You state: the 20 verified groups were drawn at random; the verified labels are right." in printed
    assert (
        "the set of a row of a random new group contains its true label with probability at least 0.90" in printed
    )
    again = conformalize(p, np.ones((400, 4), bool), "rectified", verified=verified, groups=group)
    assert again.threshold(0.9) == cal.threshold(0.9)
    few = conformalize(p, np.ones((400, 4), bool), verified=np.where(group < 5, y, np.nan), groups=group)
    assert "confidence 0.9 needs at least 9 verified groups, and there are 5" in " ".join(
        str(few.guarantee()).split()
    )
    np.testing.assert_array_equal(cal.predict_p(p) > 0.1 + 1e-12, cal.predict_set(p, 0.9).to_mask())


def test_one_answer_per_row_does_not_support_the_annotator_model(rng):
    p = rng.dirichlet([0.5] * 3, size=300)
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    answers = np.full((300, 5), None, dtype=object)
    who = rng.integers(5, size=300)
    answers[np.arange(300), who] = np.where(rng.random(300) < 0.8, y, rng.integers(3, size=300))
    votes = Votes.from_matrix(answers, classes=range(3))
    guarantee = conformalize(p, votes, assume="independent").guarantee()
    assert "too few rows have two answers" in str(guarantee)
    assert guarantee.promised is None
