"""Verdicts: what is said when coverage lies above, around and below the guarantee, and when nobody can know."""

import numpy as np
import pytest

import setwise
from setwise.report.verdict import Promise, guarantees, judge, promise_of
from tests.conftest import candidates_from, labels_from, simplex


@pytest.mark.parametrize(
    ("hits", "status"), [(970, "kept"), (905, "open"), (890, "open"), (870, "short"), (800, "broken")]
)
def test_coverage_is_set_against_the_promise(hits, status):
    verdict = judge(Promise(0.9), hits, 1000, sets=1000, calibrated_on=300)
    assert verdict.status == status
    assert f"{hits} of 1,000 sets contain the true label" in verdict.headline
    assert "at least 90%" in verdict.sentence


def test_a_small_calibration_set_excuses_what_a_large_one_does_not():
    assert judge(Promise(0.9), 8600, 10_000, sets=10_000, calibrated_on=100).status == "short"
    assert judge(Promise(0.9), 8600, 10_000, sets=10_000, calibrated_on=100_000).status == "broken"


def test_where_no_exact_law_is_known_nothing_is_called_broken():
    assert judge(Promise(0.9), 100, 1000, sets=1000, calibrated_on=None).status == "short"


def test_without_truth_the_guarantee_and_the_bracket_are_what_is_said():
    verdict = judge(Promise(0.9), sets=50, bracket=(0.81, 0.97))
    assert verdict.headline == "50 sets. At least 90% of such sets contain the true label, on average."
    assert verdict.status == "unseen"
    assert "between 81.0% and 97.0%" in verdict.sentence
    assert judge(Promise(), sets=50).status == "nothing"


def test_what_was_measured_is_not_called_guaranteed():
    verdict = judge(Promise(), 950, 1000, sets=1200)
    assert verdict.status == "unpromised"
    assert "950 of 1,000 sets with a known label" in verdict.headline
    assert "Nothing is guaranteed" in verdict.sentence
    assert "No guarantee came with these sets" in judge(promise_of([]), 950, 1000, sets=1000).sentence


def test_a_guarantee_with_an_if_is_never_stated_without_it():
    promise = Promise(0.9, ("the sample is large",))
    assert promise.text == "≥ 90% (conditional)"
    for hits in (970, 905, 870):
        assert "under the condition below" in judge(promise, hits, 1000, sets=1000).sentence
    assert "if the condition below holds" in judge(promise, sets=1000).headline


def test_a_promise_is_what_the_guarantee_promises(rng):
    P = simplex(rng, 300, 4)
    y = labels_from(rng, P)
    S = candidates_from(rng, y, 4)
    for strategy in ("max", "min", "mean", "all"):
        guarantee = setwise.conformalize(P, S, strategy).guarantee(0.9)
        promise = promise_of(guarantees(guarantee))
        if promise.conditions:
            assert guarantee.promised is None
        else:
            assert promise.probability == guarantee.promised


def test_the_weakest_category_speaks(rng):
    P = simplex(rng, 105, 4)
    y = labels_from(rng, P)
    by = ["rare"] * 5 + ["common"] * 100
    made = guarantees(setwise.conformalize(P, y, by=by).guarantee(0.9))
    assert [each.category for each in made] == ["rare", "common"]


def test_a_promise_that_holds_is_rarely_called_broken():
    """At 1 % the Beta-binomial law allows it in 1 of 100 cases; with the law of the new rows alone it were many."""
    rng = np.random.default_rng(0)
    n, m, broken = 50, 2000, 0
    for _ in range(2000):
        coverage = rng.beta(46, 5)  # rank ⌈51·0.9⌉ = 46 of 50
        broken += judge(Promise(0.9), rng.binomial(m, coverage), m, sets=m, calibrated_on=n).status == "broken"
    assert broken <= 36  # P(more | 2000, 0.01) < 0.0005
    alone = judge(Promise(0.9), int(0.86 * m), m, sets=m, calibrated_on=10**6)
    assert alone.status == "broken"


def test_sets_for_several_right_labels_are_not_said_to_contain_the_true_one(rng):
    P = simplex(rng, 300, 4)
    promise = promise_of([setwise.conformalize(P, P > 0.2, truth=0.5, empty="drop").guarantee(0.9)])
    assert "contain at least 50 % of their right labels, on average" in judge(promise, sets=10).headline
