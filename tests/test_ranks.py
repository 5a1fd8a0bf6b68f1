"""Exact ranks and exact bounds, each against a slow and obvious reference."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import beta, binom, hypergeom, t

from setwise import ranks
from setwise.ranks import Ascending

levels = st.integers(1, 9999).map(lambda i: i / 10_000)


@given(levels, st.integers(0, 3000))
def test_the_rank_is_that_of_the_decimal_written(level, n):
    exact = (n + 1) * Decimal(repr(level))
    assert ranks.rank(n, ranks.as_level(level)) == math.ceil(exact)


@given(levels, st.lists(st.floats(-1, 0), min_size=1, max_size=60))
def test_the_order_statistic_is_the_smallest_value_with_enough_at_or_below(level, values):
    scores, exact = np.array(values), Fraction(repr(level))
    reached = [t for t in [*sorted(values), math.inf] if sum(v <= t for v in values) >= (len(values) + 1) * exact]
    expected = min(reached, default=math.inf)
    assert ranks.order_statistic(scores, ranks.rank(len(values), ranks.as_level(level))) == expected


@given(levels)
def test_the_number_needed_is_the_smallest_that_gives_a_finite_rank(level):
    exact = ranks.as_level(level)
    n = ranks.instances_needed(exact)
    assert ranks.rank(n, exact) <= n
    assert n == 1 or ranks.rank(n - 1, exact) > n - 1


def test_nine_examples_are_enough_for_ninety_percent():
    assert ranks.rank(9, ranks.as_level(0.9)) == 9
    assert ranks.rank(8, ranks.as_level(0.9)) == 9
    assert ranks.instances_needed(Fraction(1)) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.9, Fraction(9, 10)),
        (1 - 0.7, Fraction(3, 10)),
        (np.float32(0.6), Fraction(3, 5)),
        (np.float64(0.95), Fraction(19, 20)),
        (Fraction(2, 3), Fraction(2, 3)),
        (1 / 3, Fraction(1, 3)),
        (0.9999999, Fraction(0.9999999)),
        (1 / 1_234_567, Fraction(1 / 1_234_567)),
        (Decimal("0.9"), Fraction(9, 10)),
        (np.array(0.9), Fraction(9, 10)),
    ],
)
def test_a_level_is_the_decimal_that_was_meant(value, expected):
    assert ranks.as_level(value) == expected


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, 90, math.nan, math.inf])
def test_levels_outside_the_open_interval_are_refused(level):
    with pytest.raises(ValueError, match="confidence_level"):
        ranks.as_level(level)


def test_a_percentage_is_recognised():
    with pytest.raises(ValueError, match="did you mean 0.9"):
        ranks.as_level(90)


@pytest.mark.parametrize("level", ["0.9", None, True, [0.9]])
def test_levels_must_be_numbers(level):
    with pytest.raises(TypeError, match="confidence_level"):
        ranks.as_level(level)


@given(st.integers(1, 40), st.data())
def test_the_hypergeometric_law_is_that_of_scipy(n, data):
    marked, drawn = (data.draw(st.integers(0, n)) for _ in range(2))
    count = np.arange(drawn + 1)
    found = ranks.hypergeometric_cdf(count, *(np.full(drawn + 1, value) for value in (n, marked, drawn)))
    np.testing.assert_allclose(found, hypergeom.cdf(count, n, marked, drawn), atol=1e-10)


@pytest.mark.parametrize("n", [1, 6, 17, 30])
def test_hypergeometric_bounds_hold_whatever_share_of_the_rows_is_marked(n):
    for m in range(n + 1):
        x = np.arange(m + 1)
        lower, upper = (n * ends for ends in ranks.hypergeometric_bounds(x, x * 0 + m, x * 0 + n, 0.05))
        for marked in range(n + 1):
            law = hypergeom.pmf(x, n, marked, m)
            assert law[marked < lower - 1e-9].sum() <= 0.025 + 1e-9
            assert law[marked > upper + 1e-9].sum() <= 0.025 + 1e-9
    assert n == 1 or max(upper - lower) == 0


@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from([0.01, 0.05, 0.2]))
def test_clopper_pearson_inverts_the_binomial_tails(successes, trials, delta):
    assume(successes <= trials)
    low, high = ranks.clopper_pearson(successes, trials, delta)
    if successes:
        assert math.isclose(binom.sf(successes - 1, trials, low), delta / 2, rel_tol=1e-6)
    else:
        assert low == 0
    if successes < trials:
        assert math.isclose(binom.cdf(successes, trials, high), delta / 2, rel_tol=1e-6)
    else:
        assert high == 1


def test_without_trials_nothing_is_known():
    assert ranks.clopper_pearson(0, 0, 0.05) == (0.0, 1.0)


def test_the_beta_interval_is_that_of_the_order_statistic():
    low, high = ranks.beta_interval(99, 90, 0.1)
    assert np.allclose((low, high), beta(90, 10).ppf([0.05, 0.95]))
    assert ranks.beta_interval(5, 6, 0.1) == (1.0, 1.0)


@given(st.integers(2, 60), st.integers(0, 30), st.integers(0, 60), st.integers(1, 50))
def test_lemma_b1_holds_for_every_epsilon_up_to_one_half(n, t_left, extra, percent):
    """Adding t_l elements up to q and t_r ≥ t_l above cannot lower q: the paper asks ε ≤ ¼ and t_l ≥ 2."""
    level = 1 - Fraction(percent, 100)
    position = ranks.rank(n, level)
    assume(position <= n)
    scores = np.arange(1.0, n + 1)
    q = scores[position - 1]
    larger = np.concatenate([scores, np.full(t_left, q - 0.5), np.full(t_left + extra, q + 0.25)])
    assert ranks.order_statistic(larger, ranks.rank(len(larger), level)) >= q


@given(st.integers(4, 80), st.integers(2, 30), st.integers(0, 60), st.integers(1, 25))
def test_lemma_b1_holds_in_the_papers_form(n, t_left, extra, percent):
    level = 1 - Fraction(percent, 100)
    position = ranks.rank(n, level)
    assume(position <= n)
    scores = np.arange(1.0, n + 1)
    q = scores[position - 1]
    larger = np.concatenate([scores, np.full(t_left, q), np.full(t_left + extra, q + 0.25)])
    assert ranks.order_statistic(larger, ranks.rank(len(larger), level)) >= q


def test_lemma_b1_fails_beyond_one_half_so_the_bound_is_sharp():
    level, scores = Fraction(2, 5), np.arange(1.0, 11)
    q = scores[ranks.rank(10, level) - 1]
    larger = np.concatenate([scores, np.full(20, q - 0.5), np.full(20, q + 0.25)])
    assert ranks.order_statistic(larger, ranks.rank(len(larger), level)) < q


finite = st.floats(-10, 10, width=32) | st.sampled_from([-1e300, 1e300, 1e-320, -0.0, 0.0, 0.1, 0.1 + 2**-40])


@given(st.lists(finite, max_size=60), st.lists(finite | st.sampled_from([-np.inf, np.inf]), max_size=60))
def test_counts_below_are_those_of_a_search(held, asked):
    ordered = np.sort(np.array(held, dtype=np.float64))
    scores = np.array(asked + held, dtype=np.float64)
    found = Ascending(ordered).count_below(scores)
    assert np.array_equal(found, np.searchsorted(ordered, scores, side="left"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_below_are_those_of_a_search_in_crowded_places_too(dtype, rng):
    """Many values in one cell of the table, by ties and by nearness, and many beyond all of them."""
    near = 0.5 + np.arange(500) * 2.0**-24
    ordered = np.sort(np.concatenate([near, np.full(300, 0.25), -(rng.random(5000) ** 8)]).astype(dtype))
    scores = np.concatenate([rng.choice(ordered, 3000), 2 * rng.random(3000).astype(dtype) - 1, near]).astype(dtype)
    found = Ascending(ordered).count_below(scores.reshape(-1, 2))
    assert np.array_equal(found, np.searchsorted(ordered, scores.reshape(-1, 2), side="left"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 3000])
def test_counts_below_are_those_of_a_search_at_every_size(size, dtype, rng):
    values = np.sort(np.round(rng.normal(size=size), 2)).astype(dtype)
    near = np.nextafter(values, dtype(np.inf))
    scores = np.concatenate(
        [values, near, rng.normal(size=300).astype(dtype), [-np.inf, -1e30, -0.0, 0.0, 1e30, np.inf]]
    )
    expected = np.searchsorted(values, scores, side="left")
    assert np.array_equal(ranks.Ascending(values).count_below(scores), expected)
    assert np.array_equal(ranks.Ascending(values).count_below(scores[:, None]), expected[:, None])


def test_hoeffdings_bound_wants_enough_rows():
    """n·KL(0.35 ‖ 0.2) is 2.44 for 40 rows and 3.66 for 60, and −log 0.05 is 3.00."""
    ones = {n: np.repeat([1.0, 0.0], [round(0.35 * n), round(0.65 * n)]) for n in (40, 60)}
    assert not ranks.mean_exceeds(ones[40], 0.2, 0.05)
    assert ranks.mean_exceeds(ones[60], 0.2, 0.05)
    assert not ranks.mean_exceeds(1 - ones[60], 0.8, 0.05)  # as far below
    assert not ranks.mean_exceeds(np.array([]), 0.2, 0.05)


def test_scores_are_looked_up_and_none_is_searched_for(monkeypatch):
    ulp = float(np.spacing(np.float32(1)))
    even, tied = np.linspace(1, 2, 1000), np.append(np.ones(20), 1 + 2 * ulp)
    searched = []
    honest = np.searchsorted
    monkeypatch.setattr(
        ranks.np,
        "searchsorted",
        lambda values, scores, side: searched.append(scores) or honest(values, scores, side),
    )
    for values, scores in (
        (even, even + 3e-4),
        (even * 2.0**-30, (even + 3e-4) * 2.0**-30),
        (np.append(even[:-1], np.full(10, 2.0)), np.array([3.0])),
        (tied, np.array([1 + ulp])),
    ):
        found = Ascending(values).count_below(scores)
        assert np.array_equal(found, honest(values, scores))
    assert sum(map(len, searched)) == 0


def korn_and_graubard(groups, delta):
    """The interval of a share from (hits, rows) of each group, in the words of the docstring."""
    hits, rows = sum(good for good, _ in groups), sum(m for _, m in groups)
    largest = max(m for _, m in groups)
    more = [*groups, (0 if hits / rows > 0.5 else largest, largest)]
    all_rows = sum(m for _, m in more)
    ratio = sum(good for good, _ in more) / all_rows
    off = sum((good - ratio * m) ** 2 for good, m in more)
    variance = len(more) / (len(more) - 1) * off / all_rows**2
    few = max(rows**2 / sum(m**2 for _, m in groups) - 1, 1)
    quantiles = [t.ppf(1 - delta / 2, freedom) for freedom in (rows - 1, few)]
    effective = min(ratio * (1 - ratio) / variance * (quantiles[0] / quantiles[1]) ** 2, rows)
    x = hits / rows * effective
    return beta.ppf(delta / 2, x, effective - x + 1), beta.ppf(1 - delta / 2, x + 1, effective - x)


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_interval_of_a_share_of_rows_in_groups_is_that_of_korn_and_graubard(delta, rng):
    for share in (0.2, 0.8):
        for sizes in (np.full(24, 5), rng.integers(1, 30, 20), np.append(np.ones(21, int), 40), np.full(60, 5)):
            hits = rng.binomial(sizes, rng.beta(4 * share, 4 * (1 - share), len(sizes)))
            for good in (hits, np.round(share * sizes).astype(int)):  # these differ less than independent rows
                expected = korn_and_graubard(list(zip(good.tolist(), sizes.tolist(), strict=True)), delta)
                assert ranks.share_interval(good, sizes, delta) == pytest.approx(expected, rel=1e-9)
    assert ranks.share_interval(np.ones(19, int), np.ones(19, int)) is None
    assert ranks.share_interval(np.arange(20) < 16) == ranks.clopper_pearson(16, 20, 0.05)
