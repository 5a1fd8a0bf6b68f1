"""Verdicts: what is said when coverage lies above, around and below the promise, and when nobody can know."""

import numpy as np
import pytest

import setwise
from setwise.report.verdict import Promise, guarantees, in_plain_words, judge, promise_of
from tests.conftest import candidates_from, labels_from, simplex


@pytest.mark.parametrize(
    ("hits", "status"), [(970, "kept"), (905, "open"), (890, "open"), (870, "short"), (800, "broken")]
)
def test_coverage_is_set_against_the_promise(hits, status):
    verdict = judge(Promise(0.9), hits, 1000, calibrated_on=300)
    assert verdict.status == status
    assert f"{hits} of 1,000" in verdict.sentence
    assert "at least 90%" in verdict.sentence


def test_a_small_calibration_set_excuses_what_a_large_one_does_not():
    assert judge(Promise(0.9), 8600, 10_000, calibrated_on=100).status == "short"
    assert judge(Promise(0.9), 8600, 10_000, calibrated_on=100_000).status == "broken"


def test_where_no_exact_law_is_known_nothing_is_called_broken():
    assert judge(Promise(0.9), 100, 1000, calibrated_on=None).status == "short"


def test_without_truth_the_promise_and_the_bracket_are_what_is_said():
    verdict = judge(Promise(0.9), bracket=(0.81, 0.97))
    assert verdict.status == "unseen"
    assert "between 81.0% and 97.0%" in verdict.sentence
    assert judge(Promise()).status == "nothing"


def test_what_was_measured_is_not_called_promised():
    verdict = judge(Promise(), 950, 1000)
    assert verdict.status == "unpromised"
    assert "measured, not promised" in verdict.sentence


def test_a_promise_with_an_if_is_never_told_without_it():
    promise = Promise(0.9, ("the sample is large",))
    assert promise.text == "≥ 90% (conditional)"
    for hits in (970, 905, 870):
        verdict = judge(promise, hits, 1000)
        assert "conditional promise" in verdict.headline
        assert "if the sample is large" in verdict.sentence


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
    plain = in_plain_words(setwise.conformalize(P, S).guarantee(0.9))
    assert "at least 90 of 100" in plain
    assert "the true label is always a candidate" in plain


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
        broken += judge(Promise(0.9), rng.binomial(m, coverage), m, calibrated_on=n).status == "broken"
    assert broken <= 36  # P(more | 2000, 0.01) < 0.0005
    alone = judge(Promise(0.9), int(0.86 * m), m, calibrated_on=10**6)
    assert alone.status == "broken"
