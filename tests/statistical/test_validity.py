"""The theory as a test: every promise holds, and is broken when a part of its correction is taken away."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom, kstest

from setwise import LabelSets, MisuseWarning, Nodes, conformalize
from setwise.ranks import rank
from setwise.scores import as_score
from setwise.strategies import Mixture
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
    mean_at_most,
    one_hot,
    predicted,
    shares,
)

SCORES = ["lac", "ties", "aps", "raps", "saps", "margin", "rps"]

pytestmark = pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # 1 of 100 random choices differs


def test_either_part_of_the_rank_counts_where_it_is_sampled():
    assert rank(N, Fraction(9, 10)) == N
    assert {mutant(N, Fraction(9, 10)) for mutant in MUTATIONS.values()} == {N - 1}


@pytest.mark.parametrize("score", SCORES)
def test_split_conformal_prediction_covers_with_precise_labels(monkeypatch, score):
    def trial(rng):
        p, y = draw(rng, N, 4, new=NEW)
        return inside(predicted(p, one_hot(y, 4), "max", score, random_state=rng), y)

    assert_valid_and_sharp(monkeypatch, trial)


@pytest.mark.parametrize("at_most", [1, 2])
def test_sets_that_are_nodes_cover_and_are_no_larger_than_they_must(monkeypatch, at_most):
    tree = {"low": [0, 1, 2], "high": [3, 4, 5], "all": ["low", "high"]}

    def trial(rng):
        p, y = draw(rng, N, 6, new=NEW)
        sets = predicted(p, one_hot(y, 6), "max", Nodes(tree, at_most), random_state=rng)
        assert LabelSets.from_mask(sets).to_nodes(tree, at_most).sizes.max() <= at_most
        return inside(sets, y)

    assert_valid_and_sharp(monkeypatch, trial)


@pytest.mark.parametrize("at_most", [1, 2])
def test_nodes_that_hold_sets_cover_at_least_as_often(at_most):
    tree = {"low": [0, 1, 2], "high": [3, 4, 5], "all": ["low", "high"]}

    def trial(rng):
        p, y = draw(rng, N, 6, new=NEW)
        nodes = LabelSets.from_mask(predicted(p, one_hot(y, 6), "max")).to_nodes(tree, at_most)
        return LabelSets.from_hierarchy(nodes, tree, range(6)).contains(y[N:])

    assert mean_at_least(shares(trial), LEVEL)


def test_coverage_given_the_calibration_set_follows_the_beta_law():
    """Two classes, truth always first: scores are uniform, so the coverage given the rows is q itself."""
    n, rng = 49, np.random.default_rng(1)
    f = rng.random((500, n))
    q = [conformalize(np.stack([row, 1 - row], 1), np.zeros(n, int), "max").threshold(LEVEL) for row in f]
    assert kstest(q, beta(45, 5).cdf).pvalue > 1e-3
    assert kstest(q, beta(44, 6).cdf).pvalue < 1e-6  # one rank lower is told apart


def test_coverage_of_a_batch_follows_the_beta_binomial_law():
    n, m, samples, rng = 49, 40, 600, np.random.default_rng(2)
    hits = []
    for _ in range(samples):
        f = rng.random((n + m, 1))
        p = np.hstack([f, 1 - f])
        sets = conformalize(p[:n], np.zeros(n, int), "max").predict_set(p[n:], LEVEL)
        hits.append(sets.contains(np.zeros(m, int)).sum())
    law = betabinom(m, 45, 5)
    edges = np.arange(28, m + 1)
    observed = np.array([(np.array(hits) <= edge).sum() for edge in edges])
    for edge, seen in zip(edges, observed, strict=True):
        expected = law.cdf(edge)
        assert binom.cdf(seen, samples, expected) > 1e-5
        assert binom.sf(seen - 1, samples, expected) > 1e-5


@pytest.mark.parametrize("score", SCORES)
def test_an_adversary_who_sees_all_rows_changes_no_set_of_max(score):
    """Every label less strange than the truth may be added without changing the largest score; the adversary
    does so in the rows that look hardest among all of them, and leaves the others precise. The sets are then
    those of the precise labels, which cover.
    """
    rng = np.random.default_rng(0)
    for seed in range(60):
        p, y = draw(rng, N, 4)
        strange = -p if as_score(score).monotone else as_score(score).score(p)
        own = strange[np.arange(N + 1), y]
        hard = own >= np.median(own[:N])
        added = hard[:, None] & (strange < own[:, None])
        precise = predicted(p, one_hot(y, 4), "max", score, random_state=seed)
        assert (predicted(p, one_hot(y, 4) | added, "max", score, random_state=seed) == precise).all()


def test_max_covers_all_candidates_under_an_adversary_who_sees_one_row(monkeypatch):
    def trial(rng):
        p, y = draw(rng, N, 4, new=NEW)
        worst = one_hot(p.argmin(axis=1), 4) & (p.max(axis=1) > 0.6)[:, None]
        candidates = one_hot(y, 4) | worst
        return (candidates[N:] <= predicted(p, candidates, "max")).all(axis=1)

    assert_valid_and_sharp(monkeypatch, trial)


def test_the_two_claims_of_max_are_different():
    """Precise calibration rows and full new candidates: the truth is covered, the candidates are not."""

    def trial(rng):
        p, y = draw(rng, N, 4, new=NEW)
        return predicted(p, one_hot(y, 4), "max").all(axis=1)

    assert not mean_at_least(shares(trial), LEVEL)


def test_min_overlaps_the_candidates(monkeypatch):
    def trial(rng):
        p, y = draw(rng, N, 4, new=NEW)
        candidates = one_hot(y, 4) | (rng.random(p.shape) < 0.3)
        return (candidates[N:] & predicted(p, candidates, "min")).any(axis=1)

    assert_valid_and_sharp(monkeypatch, trial)


def test_theorem_2_holds_where_its_premises_do(monkeypatch):
    """Sharp model: f_y ≥ ½ in every row, so q(E₁) ≤ ½. With singletons the bound is tight; with sets of equal
    size it holds with a margin.
    """

    def rows(rng, k=5):
        own = rng.uniform(0.5, 1, N + NEW)
        p = rng.dirichlet(np.ones(k - 1), N + NEW) * (1 - own)[:, None]
        return np.column_stack([own, p]), np.zeros(N + NEW, int)

    def precise(rng):
        p, y = rows(rng)
        return predicted(p, one_hot(y, 5), "all")[:, 0]

    def pairs(rng):
        p, y = rows(rng)
        calibration = conformalize(
            p[:N], candidates := one_hot(y, 5)[:N] | one_hot(rng.integers(1, 5, N), 5), "all"
        )
        premises = calibration.guarantee(LEVEL).claims[-1].premises
        status = {premise.name: premise.status for premise in premises}
        assert (status["truth_is_candidate"], status["certificate"]) == ("stated by you", "shown by the data")
        assert (candidates.sum(axis=1) == 2).all()
        return calibration.predict_set(p[N:], LEVEL).to_mask()[:, 0]

    assert_valid_and_sharp(monkeypatch, precise)
    assert mean_at_least(shares(pairs), LEVEL)


def test_theorem_3_holds_where_its_premise_does(monkeypatch):
    """The other candidate is exactly as probable as the truth: the mean is the true score, the tight case."""

    def trial(rng):
        own = rng.uniform(0, 0.5, (N + NEW, 1))
        p = np.hstack([own, own, 0.5 - own, 0.5 - own])
        candidates = np.tile([True, True, False, False], (len(p), 1))
        return predicted(p, candidates, "mean")[:, 0]

    assert_valid_and_sharp(monkeypatch, trial)


@pytest.mark.parametrize("strategy", ["mean", "min", Mixture(mu=0.5)], ids=str)
def test_the_rho_line_is_never_violated_and_is_sharp(monkeypatch, strategy):
    """In a share ρ of rows the truth is the strangest label and the only candidates are the least strange:
    there e is small and the truth always missed, which is exactly the loss that the line allows.
    """
    rho = 0.1

    def trial(rng):
        own = rng.uniform(0, 0.5, (N + NEW, 1))
        p = np.hstack([own, own, 1 - 2 * own - 1e-6, np.full_like(own, 1e-6)])
        bad = rng.random(len(p)) < rho
        p[bad] = [0.5, 0.499999, 1e-6, 0.0]
        p /= p.sum(axis=1, keepdims=True)
        y = np.where(bad, 3, 0)
        candidates = np.tile([True, True, False, False], (len(p), 1))
        return inside(predicted(p, candidates, strategy), y)

    assert_valid_and_sharp(monkeypatch, trial, LEVEL - rho)


@pytest.mark.parametrize("strategy", ["max", "all", "mean", "min"])
def test_max_alone_covers_when_rho_is_large(strategy):
    """The truth is always the strangest of its candidates."""

    def trial(rng):
        p = np.sort(rng.dirichlet(np.ones(4), 59 + NEW), axis=1)
        candidates = np.tile([False, True, True, True], (len(p), 1))
        return predicted(p, candidates, strategy, n=59)[:, 1]

    assert mean_at_least(shares(trial), LEVEL) == (strategy == "max")


# -------------------------------------------------------------------------------- corrections beyond the rank


def missing_truth(rng, n, rate):
    """With probability `rate` the truth is missing and the least strange label stands in for it."""
    p, y = draw(rng, n, 4, new=NEW)
    gone = rng.random(len(p)) < rate
    y = np.where(gone, p.argmin(axis=1), y)
    return p, y, np.where(gone[:, None], one_hot(p.argmax(axis=1), 4), one_hot(y, 4))


def test_a_declared_miss_rate_restores_the_level():
    rate = 0.07

    def trial(rng, declared=rate):
        p, y, candidates = missing_truth(rng, 99, rate)
        return inside(predicted(p, candidates, "max", n=99, miss_rate=declared), y)

    assert mean_at_least(shares(trial), LEVEL)
    assert not mean_at_least(shares(lambda rng: trial(rng, 0.0)), LEVEL)


def test_weights_restore_coverage_under_covariate_shift():
    """Half of the calibration rows are hard, nearly all new rows are; the weights are the density ratio."""

    def trial(rng, weighted=True):
        n = 60
        hard = rng.random(n + NEW) < np.repeat([0.5, 0.95], [n, NEW])
        own = np.where(hard, rng.random(n + NEW) * 0.5, 0.5 + rng.random(n + NEW) / 2)
        p = np.column_stack([own, 1 - own])
        w = np.where(hard, 0.95, 0.05) / 0.5 if weighted else np.ones(n + NEW)
        calibration = conformalize(p[:n], np.zeros(n, int), "max", sample_weight=w[:n])
        return calibration.predict_set(p[n:], LEVEL, sample_weight=w[n:]).to_mask()[:, 0]

    assert mean_at_least(shares(trial), LEVEL)
    assert not mean_at_least(shares(lambda rng: trial(rng, weighted=False)), LEVEL)


def test_each_category_is_covered_for_itself():
    def trial(rng, split=True):
        n = 60
        by = np.append(np.arange(n) % 2, np.ones(NEW, int))
        own = rng.random(n + NEW) * np.where(by == 1, 0.1, 1.0)
        p = np.column_stack([own, 1 - own])
        options = {"by": by[:n]} if split else {}
        calibration = conformalize(p[:n], np.zeros(n, int), "max", **options)
        new = {"by": by[n:]} if split else {}
        return calibration.predict_set(p[n:], LEVEL, **new).to_mask()[:, 0]

    assert mean_at_least(shares(trial), LEVEL)
    assert not mean_at_least(shares(lambda rng: trial(rng, split=False)), LEVEL)


def test_groups_as_instances_cover_rows_of_new_groups():
    """Rows of a group are much alike; counting them as instances overstates what was seen."""

    def trial(rng, grouped=True):
        groups, size = 11, 15  # rank 11 of 11 groups, and 150 of 165 rows: the last of the tenth group
        centre = np.repeat(rng.random(groups + NEW), np.repeat([size, 1], [groups, NEW]))  # of each new group a row
        own = np.clip(centre + rng.uniform(-0.005, 0.005, len(centre)), 0, 1)
        p = np.column_stack([own, 1 - own])
        n = groups * size
        options = {"groups": np.repeat(np.arange(groups), size)} if grouped else {}
        calibration = conformalize(p[:n], np.zeros(n, int), "max", **options)
        return calibration.predict_set(p[n:], LEVEL).to_mask()[:, 0]

    assert mean_at_least(shares(trial), LEVEL)
    assert not mean_at_least(shares(lambda rng: trial(rng, grouped=False)), LEVEL)


@pytest.mark.parametrize("strategy", ["auto", "rectified"])
def test_groups_that_were_verified_as_a_whole_count_in_place_of_their_rows(strategy):
    """Eleven groups of 15 rows, and candidates that say nothing: 165 rows tell no more than eleven."""

    def trial(rng, grouped=True):
        groups, size = 22, 15
        centre = np.repeat(rng.random(groups + NEW), np.repeat([size, 1], [groups, NEW]))  # of each new group a row
        own = np.clip(centre + rng.uniform(-0.005, 0.005, len(centre)), 0, 1)
        p = np.column_stack([own, 1 - own])
        group = np.repeat(np.arange(groups), size)
        chosen = np.isin(group, rng.choice(groups, 11, replace=False))
        options = {"groups": group} if grouped else {}
        verified = np.where(chosen, 0.0, np.nan)
        calibration = conformalize(
            p[: len(group)], np.ones((len(group), 2), bool), strategy, verified=verified, **options
        )
        return calibration.predict_set(p[len(group) :], LEVEL).to_mask()[:, 0]

    assert mean_at_least(shares(trial), LEVEL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisuseWarning)  # such rows are no random choice of rows
        assert not mean_at_least(shares(lambda rng: trial(rng, grouped=False)), LEVEL)


def test_the_bracket_holds_the_coverage_and_needs_its_band(monkeypatch):
    """Truth the strangest (then the least strange) candidate: coverage sits on the lower (upper) end."""
    delta, draws = 0.1, 400

    def trial(rng, worst):
        low = rng.uniform(0.5, 0.99, (40, 1))
        p = np.hstack([low, 0.99 - low, np.full_like(low, 0.01)])
        candidates = np.tile([True, True, False], (40, 1))
        calibration = conformalize(p, candidates, "mean" if worst else "min")
        t = calibration.threshold(0.7) - 1
        # Exact coverage of the threshold: the truth has probability 0.99 − U or U, U uniform on [0.5, 0.99].
        coverage = np.clip((0.99 + t - 0.5) / 0.49, 0, 1) if worst else np.clip((0.99 + t) / 0.49, 0, 1)
        low, high = calibration.bracket(0.7, delta)
        return low - 1e-12 <= coverage <= high + 1e-12

    def held(worst):
        rng = np.random.default_rng(0)
        return sum(trial(rng, worst) for _ in range(draws))

    for worst in (True, False):
        assert at_least(held(worst), 1 - delta, draws)
    monkeypatch.setattr("setwise.calibration.base.dkw_band", lambda n, delta: 0.0)
    assert not at_least(held(worst=False), 1 - delta, draws)


def test_randomised_scores_are_exact_and_deterministic_ones_conservative():
    """With continuous scores coverage is r/(n+1), here 10/11, from both sides."""

    def trial(rng):
        p, y = draw(rng, N, 3, sharpness=0.5, new=NEW)
        return inside(predicted(p, one_hot(y, 3), "max", "aps", random_state=rng), y)

    found = shares(trial)
    assert mean_at_least(found, 10 / 11)
    assert mean_at_most(found, 10 / 11)


@pytest.mark.long
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("n", [9, 19, 99, 250])
def test_coverage_is_exact_at_many_sizes(score, n):
    exact = -(-(n + 1) * 9 // 10) / (n + 1)

    def trial(rng):
        p, y = draw(rng, n, 5, new=NEW)
        return inside(predicted(p, one_hot(y, 5), "max", score, n=n, random_state=rng), y)

    found = shares(trial, 5_000, seed=n)
    assert mean_at_least(found, exact)
    assert mean_at_most(found, exact)
