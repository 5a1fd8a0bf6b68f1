"""Few verified labels: `auto` covers whatever the candidates are, and not without the verified rows alone."""

import numpy as np
import pytest
from scipy.stats import binomtest

from setwise import conformalize
from setwise.evidence.evidence import Evidence
from setwise.ranks import as_level
from setwise.strategies import Min, Rectified, Setting
from setwise.strategies import auto as auto_rule
from tests.statistical.sampling import (
    LEVEL,
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

K, ROWS, VERIFIED = 4, 30, N

pytestmark = pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # 1 of 100 random choices differs


@pytest.fixture
def gullible(monkeypatch):
    """In the place of `rectified` stands a strategy that takes the most plausible candidate for the truth."""
    monkeypatch.setattr(auto_rule, "Rectified", Min)


def confusing(rng, n, new=1):
    """Candidates: what the model finds most probable, and the truth, which the model finds improbable too often."""
    p, y = draw(rng, n, K, 1.5, new)
    return p, y, one_hot(y, K) | one_hot(p.argmax(axis=1), K)


def trial(rng):
    p, y, mask = confusing(rng, ROWS, NEW)
    verified = np.full(ROWS, None, object)
    verified[:VERIFIED] = y[:VERIFIED]
    calibration = conformalize(p[:ROWS], mask[:ROWS], verified=verified)
    assert calibration.guarantee(LEVEL).promised in {LEVEL, None}  # None: 1 of 100 random choices looks chosen
    return inside(calibration.predict_set(p[ROWS:], LEVEL).to_mask(), y)


def test_auto_covers_with_few_checks():
    assert mean_at_least(shares(trial), LEVEL)


@pytest.mark.usefixtures("gullible")
def test_the_verified_rows_alone_carry_the_promise(monkeypatch):
    assert_valid_and_sharp(monkeypatch, trial)
    monkeypatch.setattr(auto_rule.VerifiedRule, "_alone", lambda *_: -1e9)
    assert not mean_at_least(shares(trial, 60), LEVEL)


@pytest.mark.usefixtures("gullible")
@pytest.mark.parametrize("prefers", ["hard", "easy"])
def test_rows_checked_with_unequal_chances_carry_the_promise(prefers):
    n, both = 300, 300 + NEW

    def unequal(rng, *, told=True):
        hard = rng.random(both) < 0.3
        own = np.where(hard, rng.uniform(0.05, 0.3, both), rng.uniform(0.5, 1.0, both))
        y = rng.integers(0, K, both)
        top = one_hot((y + 1) % K, K)  # the model's choice in hard rows, and a candidate in all
        p = np.where(one_hot(y, K), own[:, None], np.where(top, 0.9, 0.1 / (K - 2)) * (1 - own)[:, None])
        mask = one_hot(y, K) | top
        chance = np.where(hard == (prefers == "hard"), 0.5, 0.1)[:n]
        options = {"verified": np.where(rng.random(n) < chance, y[:n], None)}
        options |= {"verified_probability": chance} if told else {}
        return inside(predicted(p, mask, "auto", n=n, **options), y)

    promised = LEVEL - 1 / (n + 1)
    assert mean_at_least(shares(unequal), promised)
    if prefers == "easy":
        assert not mean_at_least(shares(lambda rng: unequal(rng, told=False)), promised)


def test_the_promise_with_unequal_chances_is_one_row_short():
    rng = np.random.default_rng(0)
    p, y, mask = confusing(rng, 80)
    chance = np.full(81, 0.5)
    verified = np.where(rng.random(81) < chance, y, None)
    made = conformalize(p, mask, verified=verified, verified_probability=chance)
    assert np.isclose(made.guarantee(LEVEL).promised, LEVEL - 1 / 82)


def test_the_finite_margin_holds_in_95_of_100_samples_and_not_at_a_smaller_rank():
    p, y, _ = confusing(np.random.default_rng(99), 200_000)
    own = np.sort(1 - p[np.arange(len(y)), y])

    samples = 400

    def covering(delta):
        """In how many samples the set covers as often as promised."""
        rng, hits = np.random.default_rng(0), 0
        for _ in range(samples):
            q, z, mask = confusing(rng, 199)
            verified = np.full(200, None, object)
            verified[:60] = z[:60]
            threshold = conformalize(q, mask, Rectified("finite", delta), verified=verified).threshold(0.8)
            hits += np.searchsorted(own, threshold, side="right") / len(own) >= 0.8
        return hits

    assert at_least(covering(0.05), 0.95, samples)
    assert not at_least(covering(0.15), 0.95, samples)


def test_whoever_looks_again_and_again_and_stops_at_the_smallest_sets_is_covered(rng):
    looks, repetitions, level = 15, 200, as_level(LEVEL)

    def fails(*, told):
        """How often the coverage is below the level at the look with the smallest threshold."""
        failed = 0
        for _ in range(repetitions):
            score = rng.random(20 * looks)  # uniform: the threshold is the coverage
            found = []
            for look in range(1, looks + 1):
                truth = np.where(np.arange(len(score)) < 20 * look, score, np.nan)
                evidence = Evidence(score, score, np.ones(len(score), int), truth=truth, held=~np.isnan(truth))
                strategy = Rectified(margin="finite", look=look if told else None)
                found.append(strategy.calibrate(evidence, Setting("lac", 2)).threshold(level))
            failed += min(found) < LEVEL
        return failed

    assert binomtest(fails(told=True), repetitions, 0.05, "greater").pvalue > 1e-4
    assert binomtest(fails(told=False), repetitions, 0.05, "greater").pvalue < 1e-4
    with pytest.raises(ValueError, match="look: 1; a whole number from 1 on, and with margin='finite'"):
        Rectified(look=1)
    score = np.linspace(0, 1, 200)
    seen = Evidence(score, score, np.ones(200, int), truth=score, held=np.ones(200, bool))
    claim = Rectified(margin="finite", look=2).calibrate(seen, Setting("lac", 2)).claim(level).claims[0]
    assert (claim.delta, claim.note) == (0.05, "This holds at whichever look you stop")
