import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from setwise.datasets import Adversarial, ClassConditional, InstanceDependent, Random, contaminate
from tests.conftest import calls_in, simplex


def rate_is(successes, trials, rate):
    """Whether so many successes are compatible with a rate; wrong once in a million fair cases."""
    return stats.binomtest(int(successes), int(trials), rate).pvalue > 1e-6


@pytest.mark.parametrize(("p", "size"), [(0.1, 2.29), (0.7, 7.30)])
def test_random_contamination_has_the_average_size_of_table_one(p, size):
    y = np.arange(60_000) % 10
    sets = contaminate(y, Random(p=p), random_state=0)
    assert sets.sizes.mean() == pytest.approx(size, abs=0.02)
    assert 1 + 9 * Random(p=p).inclusion_probability(10) == pytest.approx(sets.sizes.mean(), abs=0.02)


@pytest.mark.parametrize("p", [0.0, 0.03, 0.5, 0.95, 1.0])
def test_each_wrong_label_enters_with_the_effective_probability(p):
    y = np.arange(30_000) % 6
    mask = contaminate(y, Random(p=p), n_classes=6, random_state=1).to_mask()
    effective = Random(p=p).inclusion_probability(6)
    for true in range(6):
        for label in set(range(6)) - {true}:
            assert rate_is(mask[y == true, label].sum(), 5_000, effective)


def test_random_contamination_adds_a_label_where_none_was():
    sets = contaminate(np.zeros(1000, dtype=int), Random(p=0.0), n_classes=5, random_state=0)
    assert (sets.sizes == 2).all()
    wrong = sets.to_mask()[:, 1:].sum(axis=0)
    assert stats.chisquare(wrong).pvalue > 1e-6


@settings(max_examples=60)
@given(n=st.integers(0, 40), k=st.integers(2, 9), p=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_random_sets_hold_the_truth_and_at_least_one_wrong_label(n, k, p, seed):
    y = np.random.default_rng(seed).integers(k, size=n)
    sets = contaminate(y, Random(p=p), n_classes=k, random_state=seed)
    assert sets.shape == (n, k)
    assert sets.contains(y).all()
    assert (sets.sizes >= 2).all()


def test_the_same_seed_gives_the_same_sets_and_another_seed_others():
    y = np.arange(500) % 7
    one, same, other = (contaminate(y, Random(p=0.3), random_state=seed) for seed in (3, 3, 4))
    assert one == same
    assert one != other


def test_instance_dependent_inclusion_follows_the_papers_equation(rng):
    p = np.tile(simplex(rng, 1, 5), (20_000, 1))
    y = np.full(len(p), 2)
    mask = contaminate(y, InstanceDependent(p), random_state=0).to_mask()
    wrong = np.delete(np.arange(5), 2)
    expected = p[0, wrong] / p[0, wrong].max()
    for label, chance in zip(wrong, expected, strict=True):
        assert rate_is(mask[:, label].sum(), len(p), chance)
    assert mask[:, wrong[expected.argmax()]].all()


def test_a_model_that_excludes_every_wrong_label_adds_one_at_random():
    p = np.eye(4)[np.zeros(400, dtype=int)]
    sets = contaminate(np.zeros(400, dtype=int), InstanceDependent(p), 4, random_state=0)
    assert (sets.sizes == 2).all()
    assert len({frozenset(row) for row in sets}) == 3


def test_class_conditional_inclusion_follows_the_matrix():
    matrix = np.array([[1, 0.2, 0.0], [0.9, 1, 0.5], [0.0, 0.0, 1]])
    y = np.arange(30_000) % 3
    mask = contaminate(y, ClassConditional(matrix), random_state=0).to_mask()
    for true in range(3):
        for label in range(3):
            assert rate_is(mask[y == true, label].sum(), 10_000, matrix[true, label])


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        (np.eye(2), r"shape \(2, 2\), but there are 3 classes"),
        (np.eye(3) + 0.1, "row 0 has entries outside"),
        (np.full((3, 3), 0.5), "the diagonal of row 0 is not 1"),
    ],
)
def test_a_matrix_that_is_none_of_inclusion_probabilities_is_refused(matrix, says):
    with pytest.raises(ValueError, match=says):
        contaminate([0, 1, 2], ClassConditional(matrix), n_classes=3)


def test_adversarial_sets_hold_what_the_model_likes_best(rng):
    p = simplex(rng, 200, 6)
    y = rng.integers(6, size=200)
    wrong = p.copy()
    wrong[np.arange(200), y] = np.nan
    for added in (1, 2):
        confused = contaminate(y, Adversarial(p, added=added), random_state=0)
        assert confused.contains(np.nanargmax(wrong, axis=1)).all()
        assert (confused.sizes == added + 1).all()
    with pytest.raises(ValueError, match="at most all"):
        contaminate(y, Adversarial(p, added=6))


@pytest.mark.parametrize("rule", ["random", "instance", "class", "adversarial"])
def test_the_truth_is_absent_at_the_miss_rate_and_no_set_is_empty(rng, rule):
    n, k = 20_000, 4
    p = simplex(rng, n, k)
    y = rng.integers(k, size=n)
    how = {
        "random": Random(p=0.2),
        "instance": InstanceDependent(p),
        "class": ClassConditional(np.eye(k)),
        "adversarial": Adversarial(p),
    }[rule]
    sets = contaminate(y, how, miss_rate=0.1, random_state=0)
    assert rate_is((~sets.contains(y)).sum(), n, 0.1)
    assert (sets.sizes >= 1).all()


@pytest.mark.parametrize(
    ("y", "options", "says"),
    [
        (["cat"], {}, "expected integers"),
        ([0, 5], {"n_classes": 5}, "row 1 is 5, outside 0..4"),
        ([-1], {"n_classes": 5}, "row 0 is -1"),
        ([0], {"n_classes": 1}, "needs a wrong label"),
        ([0, 1], {"miss_rate": 1.5}, "miss_rate"),
    ],
)
def test_labels_that_cannot_be_contaminated_are_refused_by_row(y, options, says):
    with pytest.raises((ValueError, TypeError), match=says):
        contaminate(y, Random(p=0.5), **options)


@pytest.mark.parametrize("p", [0.1, 0.7])
def test_rows_are_contaminated_without_a_python_loop_over_them(p):
    y = np.arange(60_000) % 10
    few, many = (calls_in(lambda n=n: contaminate(y[:n], Random(p=p), random_state=0)) for n in (600, 60_000))
    assert many < few + 100


def test_a_million_rows_of_a_thousand_classes_never_meet_in_one_matrix():
    y = np.arange(1_000_000) % 1000
    tracemalloc.start()
    sets = contaminate(y, Random(p=0.001), random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert abs(sets.sizes.mean() - 1 - 999 * Random(p=0.001).inclusion_probability(1000)) < 0.01
    assert peak < 200e6, "memory follows the labels that enter, not the 10⁹ cells"


def test_the_average_size_of_instance_dependent_contamination_is_one_and_the_sum_of_its_chances(rng):
    p = rng.dirichlet(np.ones(6), 20_000)
    y = rng.integers(6, size=len(p))
    wrong = np.where(np.arange(6) == y[:, None], 0, p)
    expected = 1 + (wrong.sum(axis=1) / wrong.max(axis=1)).mean()
    assert contaminate(y, InstanceDependent(p), random_state=0).sizes.mean() == pytest.approx(expected, abs=0.03)
