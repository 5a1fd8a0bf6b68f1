"""Beyond the paper: every promise holds over repeated samples, and is broken when its correction is taken away."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from setwise import ConformalClassifier, LabelSets, conformalize
from setwise.contamination.assumption import as_assumption
from setwise.datasets import ClassConditional, Random, contaminate
from setwise.evidence.evidence import gather
from setwise.probabilities.dense import DenseRows
from setwise.scores import LAC
from setwise.strategies import Corrected, Setting, corrected, curves, rectified
from setwise.strategies.posterior import posterior_steps
from tests.statistical.sampling import (
    LEVEL,
    MUTATIONS,
    NEW,
    N,
    assert_valid_and_sharp,
    at_least,
    draw,
    inside,
    mean_at_least,
    one_hot,
    predicted,
    shares,
)

K = 5
DRAWS, FEWER = 100, 40  # with the correction, and without it, where the difference is large
MATRIX = np.random.default_rng(5).uniform(0.05, 0.45, (K, K))
np.fill_diagonal(MATRIX, 1)

pytestmark = pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # 1 of 100 random choices differs


def sample(rng, n, sharpness=2.0):
    p, y = draw(rng, n - 1, K, sharpness)
    return p, y


@cache
def true_scores():
    """So many that the error of their distribution does not matter."""
    p, y = sample(np.random.default_rng(99), 400_000)
    return np.sort(-p[np.arange(len(y)), y])


def coverage(t):
    """P(s(x, y) ≤ t)."""
    return np.searchsorted(true_scores(), t, side="right") / len(true_scores())


def coverages(strategy, n, generator, draws=DRAWS, **options):
    """The true coverage of each of many calibrations."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(draws):
        p, y = sample(rng, n)
        candidates = contaminate(y, generator, n_classes=K, random_state=rng)
        calibration = conformalize(p, candidates, strategy, **options)
        found.append(coverage(calibration.threshold(LEVEL) - 1))
    return np.array(found)


def assert_mean(found, level=LEVEL):
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - level) < 4 * error + 0.001


CASES = {
    "few false labels": (Random(p=0.1), "uniform"),
    "many false labels": (Random(p=0.6), "uniform"),
    "a known matrix": (ClassConditional(MATRIX), MATRIX),
}


@pytest.mark.parametrize("case", CASES)
def test_corrected_covers_on_average_and_not_without_the_mean_zero_property(case, monkeypatch):
    generator, assume = CASES[case]
    strategy = Corrected(if_refuted="continue")
    assert_mean(coverages(strategy, 1000, generator, assume=assume))
    honest = corrected.label_weights

    def biased(evidence, setting):  # the control variate is no longer centred
        weights, d, spread, new = honest(evidence, setting)
        return weights + 0.05 * (evidence.sizes[:, None] > 1), d, spread, new

    monkeypatch.setattr(corrected, "label_weights", biased)
    with pytest.raises(AssertionError):
        assert_mean(coverages(strategy, 1000, generator, FEWER, assume=assume))


@pytest.mark.parametrize("case", ["few false labels", "a known matrix"])
def test_the_finite_margin_holds_in_95_of_100_samples_and_not_without_it(case, monkeypatch):
    generator, assume = CASES[case]
    strategy = Corrected(margin="finite", if_refuted="continue")
    found = coverages(strategy, 4000, generator, draws=100, assume=assume)
    assert at_least(int((found >= LEVEL).sum()), 0.95, 100)
    assert np.isfinite(found).all()
    monkeypatch.setattr(curves, "_factors", lambda *_: (0.0, 0.0))
    found = coverages(strategy, 4000, generator, draws=60, assume=assume)
    assert not at_least(int((found >= LEVEL).sum()), 0.95, 60)


def uniform_coverages(n, k, share, draws, sharpness):
    """The true coverage of each of many corrected thresholds at 0.9, under uniform contamination."""
    rng = np.random.default_rng([n, k])
    p, y = draw(rng, 100_000, k, sharpness)
    own, found = np.sort(-p[np.arange(len(y)), y]), []
    for _ in range(draws):
        p, y = draw(rng, n - 1, k, sharpness)
        mask = one_hot(y, k) | (rng.random(p.shape) < share)
        evidence = gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), needs={"table"})
        setting = Setting("lac", k, assume=as_assumption("uniform", k))
        curve = curves.Curve(corrected.corrected_steps(evidence, setting))
        found.append(np.searchsorted(own, curve.certified.threshold(Fraction(9, 10)), side="right") / len(own))
    return np.array(found)


def test_thresholds_are_not_too_small_on_average_as_the_first_that_reach_the_level_are(monkeypatch):
    """The first crossing covered 0.88 to 0.89 here."""
    cases = [(200, 20, 0.3), (500, 10, 0.3), (500, 20, 0.5), (200, 10, 0.8)]
    assert np.mean([uniform_coverages(*case, 100, 1.0).mean() for case in cases]) > LEVEL - 0.004

    def first_crossing(steps):
        thresholds, (total,) = curves.step_sums(steps)
        return thresholds, np.maximum.accumulate(total / (steps.d.sum() + 1))

    monkeypatch.setattr(curves, "_on_average", first_crossing)
    assert np.mean([uniform_coverages(*case, 100, 1.0).mean() for case in cases]) < LEVEL - 0.008


def test_the_spread_of_coverage_is_what_the_variance_formula_says():
    """Var H ≈ G(1 − G) + p/(1 − p)·E[false labels below t], which the control variate may only improve."""
    n, generator = 500, Random(p=0.6)
    found = coverages(Corrected(if_refuted="continue"), n, generator, assume="uniform")
    p, y = sample(np.random.default_rng(3), 50_000)
    candidates = contaminate(y, generator, n_classes=K, random_state=0)
    share = (candidates.sizes.mean() - 1) / (K - 1)
    t = np.quantile(-p[np.arange(len(y)), y], LEVEL)
    false_below = ((-p <= t) & ~one_hot(y, K)).sum(axis=1).mean()
    predicted_sd = np.sqrt((LEVEL * (1 - LEVEL) + share / (1 - share) * false_below) / n)
    assert found.std() < 1.1 * predicted_sd


def rectified_coverages(n, m, draws=DRAWS):
    """Of `rectified` and of the verified rows alone; candidates are the truth and whatever looks likely."""
    rng = np.random.default_rng(17)
    found, alone = [], []
    for _ in range(draws):
        p, y = sample(rng, n)
        verified = np.full(n, None, object)
        verified[:m] = y[:m]
        mask = one_hot(y, K) | (p > 0.2) & (rng.random(p.shape) < 0.5)
        found.append(coverage(conformalize(p, mask, "rectified", verified=verified).threshold(LEVEL) - 1))
        alone.append(coverage(conformalize(p[:m], y[:m], "max").threshold(LEVEL) - 1))
    return np.array(found), np.array(alone)


def test_rectified_covers_on_average_and_spreads_less_than_the_verified_rows_alone(monkeypatch):
    found, alone = rectified_coverages(1000, 60)
    assert_mean(found)
    assert found.std() < alone.std()
    monkeypatch.setattr(rectified, "rectified_steps", lambda evidence, **_: posterior_steps(evidence))
    with pytest.raises(AssertionError):  # the posterior alone, without the verified rows
        assert_mean(rectified_coverages(1000, 60, FEWER)[0])


def test_by_label_holds_in_classes_of_5_to_500_rows_and_not_pooled_or_without_the_plus_one(monkeypatch):
    """The rarer a class, the less the model believes in it: a threshold for all rows serves the frequent ones."""
    counts, level = np.array([500, 100, 20, 5]), 0.8
    y, new = np.repeat(np.arange(4), counts), np.repeat(np.arange(4), 50)

    def sample(rng, truth):
        logits = rng.normal(size=(len(truth), 4)) + np.log(counts)
        logits[np.arange(len(truth)), truth] += 1
        p = np.exp(logits)
        return p / p.sum(axis=1, keepdims=True)

    def by_class(by):
        rng = np.random.default_rng(0)
        found = []
        for _ in range(150):
            made = conformalize(sample(rng, y), y, by=by)
            hit = inside(made.predict_set(sample(rng, new), level).to_mask(), new)
            found.append(hit.reshape(4, 50).mean(axis=1))
        return np.transpose(found)

    assert all(mean_at_least(one, level) for one in by_class("label"))
    pooled = [mean_at_least(one, level) for one in by_class(None)]
    assert pooled[0]
    assert not any(pooled[2:])
    monkeypatch.setattr("setwise.strategies.threshold_rules.rank", MUTATIONS["without the +1"])
    assert not mean_at_least(by_class("label")[3], level)


def test_where_annotators_share_the_models_confusions_auto_with_nothing_declared_covers():
    """The wrong top label is always a candidate, the rest uniform: `corrected` fails here, `auto` does not."""

    def rows(rng, n):
        p, y = sample(rng, n, 1.2)
        top = p.argmax(axis=1)
        mask = one_hot(y, K) | (rng.random(p.shape) < 0.5) | one_hot(top, K)
        return p, y, mask

    def trial(rng):
        p, y, mask = rows(rng, 39 + NEW)
        return inside(predicted(p, mask, "auto", n=39), y)

    assert mean_at_least(shares(trial), LEVEL)
    rng = np.random.default_rng(0)
    p, y, mask = rows(rng, 20_000)
    blind = conformalize(p, mask, Corrected(if_refuted="continue"), assume="uniform")
    assert blind.predict_set(p, LEVEL).contains(y).mean() < 0.85


def test_labels_the_model_has_never_seen_leave_the_guarantee_for_rows_of_the_known_classes(monkeypatch):
    """Such labels have the largest score in calibration rows and new rows alike: the rank counts them."""
    share = 1 / np.arange(1, 6)
    centres = np.random.default_rng(3).normal(size=(5, 2)) * 2
    novel = []

    def trial(rng):
        y = rng.choice(5, 20 + N + NEW, p=share / share.sum())
        X = centres[y] + rng.normal(size=(len(y), 2))
        model = ConformalClassifier(
            GaussianNB(var_smoothing=0.1), calibration_size=N, random_state=rng.integers(99)
        )
        model.fit(X[:-NEW], y[:-NEW])
        assert model.guarantee(LEVEL).promised == LEVEL
        novel.append(model.guarantee(LEVEL).caution != "")
        known = np.isin(y[-NEW:], model.classes_)
        return model.predict_set(X[-NEW:], LEVEL).contains(y[-NEW:]) | ~known

    assert_valid_and_sharp(monkeypatch, trial)
    assert np.mean(novel) > 0.2
