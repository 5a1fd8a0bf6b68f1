"""The exact rule: over all draws of the verified rows, no pattern of wrong rows breaks it, and no part can go."""

from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.decisions.overall import (
    allowed_wrong,
    failure,
    fewest_verified,
    joint_allowed,
    joint_failure,
    joint_wrong,
    wrong_at_most,
)

DELTA = 0.05


def exactly(n, limit, allowed, m):
    """The probability of failure as a fraction."""
    marked = limit + allowed + 1
    ways = sum(comb(marked, j) * comb(n - marked, m - j) for j in range(min(allowed, m) + 1) if m - j <= n - marked)
    return Fraction(ways, comb(n, m))


def left_unseen(wrong, chosen, allowed):
    """How many wrong rows are accepted, of rows in this order, before the wrong verified one that is too many."""
    if allowed is None:
        return 0
    met = unseen = 0
    for row, false in enumerate(wrong):
        met += false and row in chosen
        if met > allowed:
            break
        unseen += false and row not in chosen
    return unseen


@cache
def draws(n, m):
    return [frozenset(chosen) for chosen in combinations(range(n), m)]


def worst(n, m, limit, allowed):
    """The largest probability, over all patterns of wrong rows, that more than `limit` are accepted."""
    broken = (
        sum(left_unseen(wrong, chosen, allowed) > limit for chosen in draws(n, m))
        for wrong in product((False, True), repeat=n)
    )
    return Fraction(max(broken), comb(n, m))


@settings(max_examples=200)
@given(st.integers(1, 60), st.data())
def test_failure_is_the_hypergeometric_probability(n, data):
    m = data.draw(st.integers(0, n))
    limit = data.draw(st.integers(0, n - 1))
    allowed = data.draw(st.integers(0, n - limit - 1))
    assert failure(n, limit, allowed, m) == pytest.approx(float(exactly(n, limit, allowed, m)), rel=1e-9, abs=1e-14)


@settings(max_examples=200)
@given(st.integers(1, 50), st.data(), st.sampled_from([0.05, 0.2, 0.5]))
def test_the_number_allowed_is_the_largest_that_keeps_delta(n, data, delta):
    m, limit = data.draw(st.integers(1, n)), data.draw(st.integers(0, n - 1))
    found = allowed_wrong(n, limit, m, delta)
    if n - m <= limit:
        assert found == m, "so few rows are unverified that all may be wrong"
        return
    kept = [k for k in range(n - limit) if exactly(n, limit, k, m) <= Fraction(delta).limit_denominator(100)]
    assert found == (kept[-1] if kept else None)
    assert kept == list(range(len(kept)))


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_no_pattern_of_wrong_rows_breaks_it_in_more_draws_than_delta(n, delta):
    for m, limit in product(range(1, n + 1), range(n)):
        found = allowed_wrong(n, limit, m, delta)
        assert worst(n, m, limit, found) <= Fraction(delta).limit_denominator(100)


def test_one_wrong_row_more_breaks_it():
    """In every case in which one is left to allow, some pattern of wrong rows fails more often than δ."""
    tried = 0
    for n, delta in product(range(4, 9), (0.05, 0.3)):
        for m, limit in product(range(1, n), range(n - 1)):
            found = allowed_wrong(n, limit, m, delta)
            more = 0 if found is None else found + 1
            if n - m > limit and limit + more + 1 <= n:
                assert worst(n, m, limit, more) > Fraction(delta).limit_denominator(100)
                tried += 1
    assert tried > 100


def test_of_new_rows_the_limit_counts_them_alone():
    """m verified rows and N new ones are one population, and ⌊ε·N⌋ of the new ones may be wrong."""
    new, m, error = 200, 100, 0.1
    rng = np.random.default_rng(0)
    right = allowed_wrong(new + m, floor(error * new), m, DELTA)
    cells = {
        "right": (right, 0.05),
        "the limit of all rows": (allowed_wrong(new + m, floor(error * (new + m)), m, DELTA), 1.0),
        "the population of new rows": (allowed_wrong(new, floor(error * new), m, DELTA), 1.0),
    }
    for name, (allowed, most) in cells.items():
        marked = floor(error * new) + allowed + 1  # the least favourable number of wrong rows
        broken = failure(new + m, floor(error * new), allowed, m)
        wrong = rng.permuted(np.tile(np.arange(new + m) < marked, (4000, 1)), axis=1)[:, :m].sum(axis=1)
        assert abs((wrong <= allowed).mean() - broken) < 0.04
        assert broken <= most
        assert (broken > 0.1) == (name != "right")


def test_an_order_that_saw_the_verified_labels_breaks_it():
    """A proposal that is wrong in a tenth of the rows, and an order that puts first what the truth confirmed."""
    rng = np.random.default_rng(1)
    n, m, limit = 400, 200, 20
    allowed = allowed_wrong(n, limit, m, DELTA)
    blind = peeked = 0
    for _ in range(300):
        kind = rng.integers(0, 80, n)  # rows of a kind share a confidence, as what was learnt of that kind
        wrong = rng.random(n) < 0.12
        verified = rng.permutation(n) < m
        learnt = np.bincount(kind, wrong & verified, 80) / np.maximum(np.bincount(kind, verified, 80), 1)
        for seen, order in (
            (False, np.argsort(kind, kind="stable")),
            (True, np.argsort(learnt[kind], kind="stable")),
        ):
            stops = np.flatnonzero(np.cumsum((wrong & verified)[order]) > allowed)
            before = order[: stops[0]] if len(stops) else order
            broken = int((wrong & ~verified)[before].sum() > limit)
            peeked += seen * broken
            blind += (not seen) * broken
    assert blind / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert peeked / 300 > 0.2


def test_looks_at_the_whole_of_delta_each_break_it_and_a_share_for_each_keeps_it():
    """Eight looks at growing numbers of verified rows, along one random order; the first that accepts all ends."""
    n, limit, looks, draws = 300, 60, np.linspace(15, 100, 8).astype(int), 4000
    rng = np.random.default_rng(3)
    wrong = rng.permuted(np.tile(np.arange(n) < limit + 7, (draws, 1)), axis=1)
    met = np.cumsum(wrong, axis=1)
    broken = {}
    for parts in (1, 8):
        fails, ended = np.zeros(draws, bool), np.zeros(draws, bool)
        for m in looks.tolist():
            allowed = allowed_wrong(n, limit, m, DELTA / parts)
            accepts = (met[:, m - 1] <= (-1 if allowed is None else allowed)) & ~ended
            fails |= accepts & (limit + 7 - met[:, m - 1] > limit)
            ended |= accepts
        broken[parts] = fails.mean()
    assert broken[8] <= 0.05
    assert broken[1] > 0.05 + 5 * np.sqrt(0.05 * 0.95 / draws)


def test_the_figures_of_the_research_hold():
    def fewest(n, error):
        limit = floor(error * n + 1e-9)
        return fewest_verified(range(1, n + 1), lambda m: (np.full_like(m, n), np.full_like(m, limit)), DELTA)

    assert [fewest(n, 0.05) for n in (100, 200, 500, 2000, 10**6)] == [39, 47, 54, 57, 59]
    assert [fewest(n, 0.02) for n in (100, 200, 500, 2000, 10**6)] == [63, 90, 119, 140, 149]
    limits = (20, 40, 100, 200, 400)
    assert [allowed_wrong(2000, limit, 200, DELTA) for limit in limits] == [None, 0, 5, 14, 34]
    assert joint_allowed(2000, limits, 200, DELTA) == [None, 0, 4, 12, 31]
    assert [allowed_wrong(2000, limit, 200, DELTA / 5) for limit in limits] == [None, None, 3, 11, 30]
    assert fewest_verified(range(1, 5), lambda m: (m + 4, 0 * m), DELTA) is None


def chain(n, m, points):
    """The joint probability, one row at a time."""
    law = {0: Fraction(1)}
    for j in range(1, n + 1):
        after = {}
        for c, p in law.items():
            for more, chance in ((1, Fraction(m - c, n - j + 1)), (0, 1 - Fraction(m - c, n - j + 1))):
                after[c + more] = after.get(c + more, 0) + p * chance
        drop = max((k for limit, k in points if limit + k + 1 == j), default=-1)
        law = {c: p for c, p in after.items() if c > drop}
    return 1 - sum(law.values())


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.data())
def test_the_joint_probability_is_that_of_the_chain(n, data):
    m = data.draw(st.integers(1, n - 1))
    points = data.draw(st.lists(st.tuples(st.integers(0, n), st.integers(0, m)), min_size=1, max_size=5))
    points = [(limit, k) for limit, k in points if limit + k + 1 <= n]
    assert joint_failure(n, m, points) == pytest.approx(float(chain(n, m, points)), abs=1e-9)


@pytest.mark.parametrize(("n", "m"), [(8, 4), (8, 6), (7, 5)])
def test_several_limits_hold_together_and_each_at_delta_does_not(n, m):
    """Over all draws: whether any of the limits is broken, for the pattern of wrong rows that breaks most."""

    def broken(allowed):
        fails = [
            sum(
                any(left_unseen(wrong, chosen, k) > limit for limit, k in zip(limits, allowed, strict=True))
                for chosen in draws(n, m)
            )
            for wrong in product((False, True), repeat=n)
        ]
        return max(fails) / comb(n, m)

    limits, delta = tuple(range(n - m)), 0.3
    assert broken(joint_allowed(n, limits, m, delta)) <= delta + 1e-12
    together = broken([allowed_wrong(n, limit, m, delta) for limit in limits])
    assert together == pytest.approx(
        joint_failure(n, m, [(i, k) for i in limits if (k := allowed_wrong(n, i, m, delta)) is not None])
    )
    if (n, m) != (7, 5):
        assert together > delta


@pytest.mark.parametrize(("n", "m"), [(8, 4), (8, 5), (7, 5)])
def test_what_each_number_of_wrong_rows_proves_holds_for_all_numbers_at_once(n, m):
    limits = joint_wrong(n, tuple(range(m + 1)), m, 0.2)
    assert limits == sorted(limits)
    assert limits[0] >= wrong_at_most(n, 0, m, 0.2)
    assert all(exactly(n, wrong_at_most(n, k, m, 0.2), k, m) <= Fraction(1, 5) for k in range(m))
    fails = max(
        sum(any(left_unseen(wrong, chosen, k) > limits[k] for k in range(m + 1)) for chosen in draws(n, m))
        for wrong in product((False, True), repeat=n)
    )
    assert fails / comb(n, m) <= 0.2


def test_a_million_rows_take_less_than_a_second():
    from time import perf_counter

    start = perf_counter()
    assert allowed_wrong(10**6, 50_000, 10_000, DELTA) == 468
    assert joint_allowed(10**6, (10_000, 20_000, 50_000, 100_000, 200_000), 10_000, DELTA)[2] == 456
    assert perf_counter() - start < 1
