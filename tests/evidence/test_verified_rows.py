"""What verified rows reveal: a choice that was not random."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from setwise import LabelSets, Votes
from setwise.evidence.evidence import Evidence, gather
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.verified_rows import compare_verified, written_back
from setwise.labels.vocabulary import MISSING
from setwise.probabilities.dense import DenseRows
from setwise.scores import LAC
from tests.conftest import candidates_from, labels_from, simplex


def sample(rng, n, k, chosen, **facts):
    """Evidence in which the chosen rows are verified; `chosen` sees probabilities and candidates."""
    p = simplex(rng, n, k)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, k)
    verified = np.full(n, MISSING)
    rows = chosen(p, mask)
    verified[rows] = y[rows]
    return gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), RowFacts(verified=verified, **facts), ())


CHOICES = {
    "singletons": (lambda p, mask: np.flatnonzero(mask.sum(axis=1) == 1), "number of candidates"),
    "the least sure": (
        lambda p, mask: np.argsort(p.max(axis=1))[:60],
        "score of the most plausible candidate .* higher",
    ),
    "the surest": (
        lambda p, mask: np.argsort(-p.max(axis=1))[:60],
        "score of the most plausible candidate .* lower",
    ),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_verified_rows_that_were_picked_are_seen(choice, rng):
    chosen, words = CHOICES[choice]
    found = compare_verified(sample(rng, 500, 5, chosen))
    assert found.p_value < 1e-4
    assert re.search(words, found.sentence)


@pytest.mark.parametrize(("n", "k", "m"), [(300, 5, 60), (60, 5, 20), (40, 3, 3), (100, 2, 98), (300, 5, 5)])
def test_verified_rows_drawn_at_random_are_called_different_in_one_of_a_hundred_samples_at_most(n, k, m):
    rng = np.random.default_rng(5)
    alarms = sum(
        compare_verified(sample(rng, n, k, lambda p, mask: rng.permutation(n)[:m])) is not None for _ in range(400)
    )
    assert alarms <= binom.ppf(0.999, 400, 0.01)


def test_known_chances_whole_samples_and_nothing_verified_leave_nothing_to_compare(rng):
    picked, _ = CHOICES["singletons"]
    few = sample(rng, 500, 5, picked)
    share = few.verified.mean()
    assert compare_verified(few) is not None
    assert compare_verified(replace(few, chance=np.full(500, share))) is None
    assert compare_verified(sample(rng, 500, 5, lambda p, mask: np.arange(500))) is None
    assert compare_verified(sample(rng, 500, 5, lambda p, mask: np.arange(0))) is None


def test_whole_groups_are_compared_as_groups():
    rng = np.random.default_rng(6)

    def grouped(pick):
        p = np.repeat(simplex(rng, 50, 5), 20, axis=0)  # the rows of a group are alike
        y = np.repeat(labels_from(rng, p[::20]), 20)
        mask = np.repeat(candidates_from(rng, y[::20], 5), 20, axis=0)
        group = np.repeat(np.arange(50), 20)
        verified = np.where(np.isin(group, pick(mask[::20])), y, MISSING)
        return gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), RowFacts(verified=verified, group=group), ())

    random = [compare_verified(grouped(lambda mask: rng.permutation(50)[:15])) for _ in range(100)]
    assert sum(found is not None for found in random) <= 4  # by rows it is nearly all of them
    assert compare_verified(grouped(lambda mask: np.argsort(mask.sum(axis=1))[:15])) is not None


def test_a_different_number_of_checks_in_each_category_is_no_difference(rng):
    easy = np.arange(600) < 300
    p = np.where(easy[:, None], simplex(rng, 600, 5, 8.0), simplex(rng, 600, 5, 0.5))
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, 5)
    verified = np.where(rng.random(600) < np.where(easy, 0.6, 0.1), y, MISSING)
    evidence = gather(LAC(), DenseRows(p), LabelSets.from_mask(mask), RowFacts(verified=verified), ())
    assert compare_verified(evidence) is not None
    assert compare_verified(evidence, easy.astype(int)) is None


def drawn(chance, truth_of=None, seed=0):
    """Evidence of rows verified with the chances of `truth_of`, which are said to be `chance`."""
    rng = np.random.default_rng(seed)
    checked = rng.random(len(chance)) < (chance if truth_of is None else truth_of)
    alike = np.zeros(len(chance))
    return Evidence(
        alike, alike, np.full(len(chance), 2), truth=np.where(checked, 0.0, np.nan), chance=np.asarray(chance)
    )


@pytest.mark.parametrize(
    "chance", [np.full(300, 0.1), np.repeat([0.05, 1.0], 200), np.linspace(0.01, 0.99, 400), np.full(20, 1e-9)]
)
def test_rows_verified_with_the_chances_given_are_rarely_called_otherwise(chance):
    assert sum(compare_verified(drawn(chance, seed=seed)) is not None for seed in range(400)) <= 8  # 1 % are 4


@pytest.mark.parametrize(
    ("chance", "truly", "told"),
    [
        (np.repeat([0.2, 1.0], 200), np.full(400, 0.2), "rows whose probability is 1 are not verified"),
        (np.full(400, 0.5), np.full(400, 0.2), "rows are verified where the probabilities given expect 200"),
        (np.linspace(0.1, 0.9, 2000), np.linspace(0.9, 0.1, 2000), "where the probabilities given expect"),
        (np.repeat([0.1, 0.5], 500), np.repeat([0.5, 0.1], 500), "where the probabilities given expect"),
    ],
)
def test_chances_that_the_rows_refute_are_told(chance, truly, told):
    assert told in compare_verified(drawn(chance, truly)).sentence


def test_the_p_value_of_chances_is_the_one_of_bernsteins_inequality():
    checked = np.arange(400) < 80
    truth = np.where(checked, 0.0, np.nan)
    alike = np.zeros(400)
    found = compare_verified(Evidence(alike, alike, np.full(400, 2), truth=truth, chance=np.full(400, 0.3)))
    assert found.p_value == pytest.approx(2 * np.exp(-(40**2) / (2 * (400 * 0.3 * 0.7 + 40 / 3))))


@pytest.mark.parametrize(("m", "found"), [(9, False), (10, True)])
def test_candidates_are_called_written_where_a_random_draw_would_hardly_give_single_ones_alone(m, found):
    """Of 200 rows 50 have one candidate: nine drawn at random all do with probability 3·10⁻⁶, ten with 5·10⁻⁷."""
    rows = np.arange(200)
    sizes = np.where(rows < 50, 1, 3)
    assert written_back(sizes, np.ones(200, bool), rows < m) == found


def test_candidates_are_called_written_as_long_as_most_other_rows_have_several():
    rows = np.arange(200)
    for several, found in ((80, True), (70, False)):
        sizes = np.where(rows >= 200 - several, 3, 1)
        assert written_back(sizes, np.ones(200, bool), rows < 60) == found


def test_verified_rows_with_an_answer_more_are_seen(rng):
    evidence = sample(rng, 400, 5, lambda p, mask: rng.permutation(400)[:60])
    alike, one_more = (
        Votes.from_lists([[0] * (3 + more) for more in counts], classes=range(5))
        for counts in (np.zeros(400, int), evidence.verified.astype(int))
    )
    assert compare_verified(evidence, votes=alike) is None
    assert (
        "number of answers (4.00 on average, 3.00 elsewhere" in compare_verified(evidence, votes=one_more).sentence
    )
