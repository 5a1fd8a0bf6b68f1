"""`rectified` and `posterior`: what verified rows and posteriors are good for."""

import numpy as np
import pytest
from scipy.stats import binom

from setwise import Calibration, LabelSets, MisuseWarning, conformalize
from setwise.evidence.evidence import gather
from setwise.evidence.row_facts import RowFacts
from setwise.labels.vocabulary import MISSING
from setwise.probabilities.dense import DenseRows
from setwise.scores import LAC
from setwise.strategies import Posterior, Rectified
from setwise.strategies.posterior import posterior_steps
from setwise.strategies.rectified import rectified_steps
from tests.conftest import candidates_from, labels_from, printed, simplex

K = 5


def rows(rng, n=800):
    """Candidates as no assumption has them: what looks plausible, and sometimes the least plausible."""
    p = simplex(rng, n, K)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, K, 0.1) | (p > 0.15)
    return p, y, mask


def some(rng, y, m):
    """The truth of m rows drawn at random, None elsewhere."""
    checked = np.full(len(y), None, object)
    chosen = rng.choice(len(y), m, replace=False)
    checked[chosen] = y[chosen]
    return checked


def curve_at(steps, t):
    return np.where(steps.table <= t, steps.weigh(slice(None)), 0).sum(axis=1)


@pytest.mark.parametrize("slope", [0.0, 0.4, 1.0])
def test_the_rectified_mean_is_that_of_partial_rows_plus_the_error_on_verified_ones(slope, rng, monkeypatch):
    monkeypatch.setattr("setwise.strategies.rectified._regression", lambda *_: slope)
    p, y, mask = rows(rng, 60)
    codes = np.full(60, MISSING)
    codes[:12] = y[:12]
    evidence = gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), RowFacts(verified=codes), {"every", "share"})
    made = rectified_steps(evidence)
    inside = np.where(mask, p, 0)
    weights = inside / inside.sum(axis=1, keepdims=True)
    for t in (-0.9, -0.5, -0.2, 0.0):
        m = slope * (weights * (-p <= t)).sum(axis=1)
        truth = -p[np.arange(60), y] <= t
        assert np.isclose(curve_at(made, t).mean(), m.mean() + (truth[:12] - m[:12]).mean())


def test_a_new_row_counts_as_much_as_the_strangest_verified_ones(rng, monkeypatch):
    """Where the truth is no candidate it jumps by 1/π alone, else by λ·w at once and the rest by 1/π."""
    monkeypatch.setattr("setwise.strategies.rectified._regression", lambda *_: 0.4)
    p, y, mask = rows(rng, 60)
    mask[:6][np.arange(6), y[:6]] = False
    mask[:6, 0] |= ~mask[:6].any(axis=1)
    codes = np.full(60, MISSING)
    codes[:20] = y[:20]
    evidence = gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), RowFacts(verified=codes), {"every", "share"})
    inside = np.where(mask, p, 0)
    step = 0.4 * (inside / inside.sum(axis=1, keepdims=True))[np.arange(20), y[:20]]
    truth = -p[np.arange(20), y[:20]]
    strange = truth >= np.quantile(truth, 0.8)
    assert np.isclose(rectified_steps(evidence).new, (step + 3 * (1 - step))[strange].mean())


def test_looks_share_one_delta(rng):
    p, y, mask = rows(rng, 300)
    verified = some(rng, y, 120)
    first, second, only = (
        conformalize(p, mask, Rectified("finite", look=look), verified=verified).guarantee(0.7)
        for look in (1, 2, None)
    )
    assert first.delta == second.delta == only.delta == 0.05
    assert "at whichever look you stop" in printed(second)
    assert "look" not in printed(only)
    for look, margin in ((0, "finite"), (1.5, "finite"), (1, "none")):
        with pytest.raises(ValueError, match="look"):
            Rectified(margin, look=look)


def test_known_chances_of_being_verified_weigh_the_rows(rng):
    p, y, mask = rows(rng, 8000)
    p = p**4 / (p**4).sum(axis=1, keepdims=True)  # over-confident, so that much is to be repaired
    chance = np.where(p.max(axis=1) > 0.99, 0.02, 0.4)  # the hard rows are checked more often
    verified = np.where(rng.random(8000) < chance, y, None)
    told = conformalize(p, mask, "rectified", verified=verified, verified_probability=chance)
    with pytest.warns(MisuseWarning, match="not a random choice"):
        untold = conformalize(p, mask, "rectified", verified=verified)
    own = 1 - p[np.arange(8000), y]
    assert abs((own <= told.threshold(0.9)).mean() - 0.9) < 0.02
    assert (own <= untold.threshold(0.9)).mean() < 0.885
    assert "with the given probability" in printed(told.guarantee())


@pytest.mark.parametrize("verified_probability", [np.zeros(60), np.full(60, 2.0), np.ones(3)])
def test_chances_are_probabilities_one_a_row(verified_probability, rng):
    p, y, mask = rows(rng, 60)
    with pytest.raises(ValueError, match="verified_probability"):
        conformalize(p, mask, "rectified", verified=y, verified_probability=verified_probability)


def test_where_half_of_the_rows_are_verified_these_alone_count(rng):
    p, y, mask = rows(rng, 200)
    verified = some(rng, y, 120)
    made = conformalize(p, mask, "rectified", verified=verified)
    alone = np.array([v is not None for v in verified])
    plain = conformalize(p[alone], y[alone], "max")
    assert made.threshold(0.9) == plain.threshold(0.9)
    assert np.array_equal(made.predict_p(p), plain.predict_p(p))
    assert made.guarantee().promised == 0.9
    text = str(made.guarantee())
    assert "these 120 alone" in printed(text)
    assert "the 120 verified rows were drawn at random" in printed(text)
    assert "always a candidate" not in text


def test_too_few_verified_labels_give_every_label_and_say_how_many_are_needed(rng):
    p, y, mask = rows(rng, 200)
    made = conformalize(p, mask, "rectified", verified=some(rng, y, 8))
    with pytest.warns(UserWarning, match="needs at least 9 verified labels, and there are 8"):
        assert made.predict_set(p, 0.9).to_mask().all()
    assert (made.predict_p(p) >= 1 / 9).all()
    with pytest.raises(ValueError, match="needs verified labels"):
        conformalize(p, mask, "rectified")


def test_a_right_posterior_is_enough_and_a_wrong_one_is_repaired_by_verified_rows(rng):
    p = simplex(rng, 20_000, K)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, K, 0.3)
    oracle = conformalize(p, y, "max").threshold(0.9)
    assert abs(conformalize(p, mask, "posterior").threshold(0.9) - oracle) < 0.01
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)  # over-confident
    oracle = conformalize(sharp, y, "max").threshold(0.9)
    trusting = conformalize(sharp, mask, "posterior").threshold(0.9)
    repaired = conformalize(sharp, mask, "rectified", verified=some(rng, y, 2000)).threshold(0.9)
    assert abs(repaired - oracle) < abs(trusting - oracle)


def test_posterior_weights_of_a_row_sum_to_one_even_where_the_model_gives_the_candidates_nothing():
    p = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    mask = np.array([[0, 1, 1], [1, 1, 0]], bool)
    evidence = gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), needs={"every", "share"})
    assert np.allclose(evidence.share, [0.5, 0.5, 0.4, 0.6])
    assert np.allclose(posterior_steps(evidence).weigh(slice(None)).sum(axis=1), 1)


def test_saved_calibrations_answer_alike(rng, tmp_path):
    p, y, mask = rows(rng, 300)
    chance = rng.uniform(0.2, 0.9, 300)
    verified = np.where(rng.random(300) < chance, y, None)
    for strategy in (Rectified(), Posterior()):
        made = conformalize(p, mask, strategy, verified=verified, verified_probability=chance, random_state=5)
        made.save(tmp_path / "cal")
        read = Calibration.load(tmp_path / "cal")
        assert read.threshold(0.8) == made.threshold(0.8)
        assert str(read.guarantee(0.8)) == str(made.guarantee(0.8))


def test_margins_only_make_sets_larger(rng):
    p, y, mask = rows(rng, 3000)
    verified = some(rng, y, 1000)
    made = [conformalize(p, mask, Rectified(m), verified=verified).threshold(0.7) for m in ("none", "finite")]
    assert made == sorted(made)
    assert np.isfinite(made[1])
    assert conformalize(p, mask, Rectified("finite"), verified=verified).guarantee(0.7).promised == 0.7
    with pytest.raises(ValueError, match="margin: 'finite' is proved for rows verified with equal probability"):
        conformalize(p, mask, Rectified("finite"), verified=verified, verified_probability=np.full(3000, 1 / 3))


def test_the_finite_margin_is_the_exact_tolerance_rank_of_the_verified_rows(rng):
    p, y, mask = rows(rng, 900)
    for m, delta in ((29, 0.05), (100, 0.05), (300, 0.1)):
        verified = some(rng, y, m)
        checked = np.array([v is not None for v in verified])
        own = np.sort(1 - p[np.arange(900), y][checked])
        enough = [r for r in range(1, m + 1) if binom.cdf(r - 1, m, 0.9) >= 1 - delta]  # Beta ≥ 0.9: r − 1 below
        made = conformalize(p, mask, Rectified("finite", delta), verified=verified)
        assert np.isclose(made.threshold(0.9), own[enough[0] - 1])
        inside = made.predict_set(p, 0.9).to_mask()
        assert np.array_equal(made.predict_p(p) > 0.1, inside)
    few = conformalize(p, mask, Rectified("finite"), verified=some(rng, y, 28))
    with pytest.warns(UserWarning, match="justify no smaller set"):
        assert np.isinf(few.threshold(0.9))


def test_a_posterior_that_is_sure_still_counts_the_new_row(rng):
    """Precise labels, all λ·w are 1: split conformal prediction on all rows, the +1 included."""
    p = simplex(rng, 100, K)
    y = labels_from(rng, p)
    made = conformalize(p, y, "rectified", verified=some(rng, y, 20))
    assert made.rules[0].curve.steps.new >= 1
    assert made.threshold(0.9) >= conformalize(p, y, "max").threshold(0.9)


def test_posterior_refuses_a_miss_rate(rng):
    p, _, mask = rows(rng, 100)
    with pytest.raises(ValueError, match="takes the truth to be a candidate"):
        conformalize(p, mask, "posterior", miss_rate=0.1)
