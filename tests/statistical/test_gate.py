"""The gate as a test of its own promise: a true assumption is refuted no more often than its level says."""

from importlib import import_module

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from setwise import diagnose
from setwise.contamination.assumption import Assumption
from setwise.contamination.deficit_tests import RankedRows
from setwise.datasets import ClassConditional, InstanceDependent, Random, contaminate
from tests.statistical.sampling import at_least, at_most, draw, one_hot

MODULE = import_module("setwise.contamination.diagnose")  # the package shows the function under this name


def p_values(rows, repetitions, assume="uniform", seed=0):
    """The p-values of independent runs; `rows(rng)` gives probabilities and candidates."""
    rng = np.random.default_rng(seed)
    return np.array([diagnose(*rows(rng), assume).p_value for _ in range(repetitions)])


def super_uniform(found):
    """Whether small p-values are no more frequent than they say (error 1e-6 for each level)."""
    return all(at_most(int((found <= level).sum()), level, len(found)) for level in (0.002, 0.01, 0.05, 0.2, 0.5))


@pytest.mark.parametrize("sharpness", [0.3, 8.0])  # a model that knows little, and one that knows nearly all
@pytest.mark.parametrize(
    ("k", "n", "p"), [(3, 30, 0.7), (3, 300, 0.05), (10, 60, 0.1), (10, 400, 0.7), (50, 40, 0.9)]
)
def test_uniform_contamination_is_refuted_no_more_often_than_the_level(k, n, p, sharpness):
    def rows(rng):
        P, y = draw(rng, n, k, sharpness)
        return P, one_hot(y, k) | (rng.random(P.shape) < p)

    assert super_uniform(p_values(rows, 120))


@pytest.mark.parametrize("p", [0.1, 0.7])
def test_the_papers_random_contamination_is_uniform(p):
    """One wrong label is added where none entered, so that inclusions depend on each other."""

    def rows(rng):
        P, y = draw(rng, 500, 10, 5.0)
        return P, contaminate(y, Random(p=p), 10, random_state=rng)

    assert super_uniform(p_values(rows, 150))


def exclusive(rng):
    """Either the least plausible label enters, or all the others: each with probability one half.

    Inclusion is uniform, and the truth is first. The rate of the last rank and the estimate of p err in opposite
    directions, so that their difference varies more than either.
    """
    n, k = 300, 10
    P, _ = draw(rng, n, k, 5.0)
    last = one_hot(P.argmin(axis=1), k)
    return P, one_hot(P.argmax(axis=1), k) | (last == (rng.random((n + 1, 1)) < 0.5))


def rank_p_values(repetitions):
    """The p-values of the tests by rank alone, adjusted for their number, on exclusive inclusions."""
    rng, found = np.random.default_rng(0), []
    for _ in range(repetitions):
        P, S = exclusive(rng)
        tests = RankedRows(-P, S, Assumption("uniform"), 0.0, list(range(10))).by_rank()
        found.append(len(tests) * min(one.p_value for one in tests))
    return np.array(found)


def test_the_error_of_the_estimated_inclusion_is_part_of_the_test(monkeypatch):
    assert super_uniform(rank_p_values(700))

    def as_if_known(ranked, low, high, rows=slice(None)):
        return ranked._sum_ranks(low, high, rows) - (high - low) * ranked.floor.mean()

    monkeypatch.setattr(RankedRows, "_excess", as_if_known)
    assert not super_uniform(rank_p_values(700))


def test_counts_given_the_sizes_are_not_enough_where_inclusions_exclude_each_other(monkeypatch):
    """Without the studentised test the exact law of exchangeable labels would be trusted where it is wrong."""
    monkeypatch.setattr("setwise.contamination.deficit_tests.below_zero", lambda T, error=0.0: 0.0)
    assert not super_uniform(rank_p_values(300))


def test_the_studentised_test_is_not_enough_where_inclusions_are_rare(monkeypatch):
    """Without the imaginary row and the exact law, labels that are never met among few rows seem certain."""

    def rows(rng):
        P, y = draw(rng, 30, 50, 8.0)
        return P, one_hot(y, 50) | (rng.random(P.shape) < 0.05)

    assert super_uniform(p_values(rows, 60))
    monkeypatch.setattr("setwise.contamination.deficit_tests.few_included", lambda *arguments: 0.0)
    monkeypatch.setattr(
        "setwise.contamination.deficit_tests.below_zero",
        lambda T: float(ttest_1samp(T, 0, alternative="less").pvalue),
    )
    assert not super_uniform(p_values(rows, 20))


def test_the_number_of_ranks_is_accounted_for(monkeypatch):
    def rows(rng):
        P, y = draw(rng, 300, 10, 20.0)
        return P, one_hot(y, 10) | (rng.random(P.shape) < 0.5)

    assert super_uniform(p_values(rows, 150))
    monkeypatch.setattr(MODULE, "_adjust", lambda family: min(family, key=lambda one: one.p_value))
    assert not super_uniform(p_values(rows, 150))


def test_a_class_conditional_matrix_is_refuted_no_more_often_than_the_level():
    M = np.random.default_rng(0).uniform(0.05, 0.6, (6, 6))
    np.fill_diagonal(M, 1)

    def rows(rng):
        P, y = draw(rng, 300, 6, 5.0)
        return P, contaminate(y, ClassConditional(M), random_state=rng)

    assert super_uniform(p_values(rows, 150, M))
    assert super_uniform(p_values(rows, 60, "class"))


def test_the_default_level_refutes_a_true_matrix_in_at_most_5_of_100_samples(monkeypatch):
    """The setting with the most false alarms of all that `benchmarks/gate.py` tries."""
    M = np.random.default_rng(20).uniform(0, 0.6, (20, 20))
    np.fill_diagonal(M, 1)

    def refuted():
        rng, found = np.random.default_rng(0), 0
        for _ in range(200):
            P, y = draw(rng, 49, 20, 3.0)
            found += diagnose(P, contaminate(y, ClassConditional(M), random_state=rng), M).refuted
        return found

    assert at_most(refuted(), 0.05, 200)
    monkeypatch.setitem(MODULE._LEVELS, "matrix", 0.3)
    assert not at_most(refuted(), 0.05, 200)


@pytest.mark.parametrize(("n", "least"), [(100, 0.2), (300, 0.8)])
def test_shared_confusions_among_five_classes_are_seen(n, least):
    """As measured at the default level: 0.24 and 0.85."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(100):
        P, y = draw(rng, n - 1, 5, 3.0)
        hits += diagnose(P, one_hot(y, 5) | one_hot(P.argmax(axis=1), 5) | (rng.random(P.shape) < 0.3)).refuted
    assert at_least(hits, least, 100)


def test_contamination_that_follows_a_model_is_refuted():
    def rows(rng):
        P, y = draw(rng, 400, 10, 3.0)
        return P, contaminate(y, InstanceDependent(P), random_state=rng)

    found = p_values(rows, 100)
    assert at_least(int((found < 0.05).sum()), 0.99, 100)


def top_two(rng, excess):
    """The truth is first (0.6) or second; a wrong top label enters more often than others, by `excess` overall."""
    n, k, p = 2000, 10, 0.3
    P, _ = draw(rng, n, k, 5.0)
    order = np.argsort(-P, axis=1)
    first = rng.random(n + 1) < 0.6
    truth = np.where(first, order[:, 0], order[:, 1])
    chance = np.full(P.shape, p)
    chance[np.arange(n + 1), order[:, 0]] += excess / 0.4
    return P, one_hot(truth, k) | (rng.random(P.shape) < chance)


def test_the_detectable_excess_is_detected_as_often_as_it_says():
    """Eighty of a hundred by one of the rank tests, so at least that often by all of them; a third of it rarely."""
    excess = diagnose(*top_two(np.random.default_rng(2), 0.0)).detectable
    assert 0.01 < excess < 0.2
    hits, fewer = (
        int((p_values(lambda rng, e=e: top_two(rng, e), 80, seed=3) < 0.05).sum()) for e in (excess, excess / 3)
    )
    assert at_least(hits, 0.8, 80)
    assert at_most(fewer, 0.5, 80)


def test_shared_confusions_are_invisible_where_the_model_knows_its_top_label_alone():
    """The wrong top label is always a candidate, the truth anywhere below it: no rate lies under the floor."""

    def rows(rng):
        P, _ = draw(rng, 600, 10, 5.0)
        top = P.argmax(axis=1)
        anywhere = (top + rng.integers(1, 10, size=len(top))) % 10
        y = np.where(rng.random(len(top)) < 0.84, top, anywhere)
        return P, one_hot(y, 10) | one_hot(top, 10) | (rng.random(P.shape) < 0.7)

    found = p_values(rows, 120)
    assert at_most(int((found < 0.05).sum()), 0.05, 120)
