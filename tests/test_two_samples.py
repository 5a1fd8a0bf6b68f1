"""The tests of two samples: exact where small, conservative where tied or looked at in few places."""

import numpy as np
import pytest
from scipy.stats import hypergeom, ks_2samp

from setwise import two_samples
from setwise.two_samples import Points, counts_at, fisher, kolmogorov_smirnov, outside_band


def gap(old, new, most=None):
    points = Points.of(np.asarray(old, dtype=float), most)
    return points.gap(*counts_at(points.values, np.sort(new)), len(new))[0]


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 3), (5, 17), (40, 31), (1, 50)])
def test_the_gap_and_its_law_are_those_of_scipy(rng, n, m):
    old, new = rng.normal(size=n), rng.normal(size=m) + 1
    known = ks_2samp(old, new, method="exact")
    assert gap(old, new) == round(known.statistic * n * m)
    assert outside_band(gap(old, new), n, m) == pytest.approx(known.pvalue, rel=1e-9)
    assert kolmogorov_smirnov([gap(old, new)], [n], [m]) == pytest.approx([known.pvalue], rel=1e-9)


def test_large_samples_have_nearly_their_asymptotic_law_and_never_less(rng):
    old, new = rng.normal(size=6000), rng.normal(size=9000) + 0.04
    p_value = kolmogorov_smirnov([gap(old, new)], [6000], [9000])[0]
    assert 1 <= p_value / ks_2samp(old, new, method="asymp").pvalue < 1.2


def test_fewer_points_show_no_larger_gap(rng):
    for _ in range(50):
        old, new = rng.normal(size=200).round(1), rng.normal(size=90).round(1) + 0.1
        assert gap(old, new, most=8) <= gap(old, new)


def test_tied_values_make_it_conservative(rng):
    p_values = np.array(
        [outside_band(gap(rng.integers(0, 3, 12), rng.integers(0, 3, 9).astype(float)), 12, 9) for _ in range(2000)]
    )
    for level in (0.05, 0.2):
        assert (p_values <= level).mean() <= level


def test_shares_are_compared_exactly():
    n, m, together = 12, 7, 6
    new = np.arange(together + 1)
    p_values = fisher(together - new, n, new, m)
    law = hypergeom.pmf(new, n + m, together, m)
    for level in np.unique(p_values):
        assert law[p_values <= level].sum() <= level + 1e-12
    assert fisher(np.array([50]), 100, np.array([1]), 100)[0] < 1e-12


@pytest.mark.parametrize(("n", "m"), [(1, 1), (30, 5), (5, 3000), (20_000, 7000)])
def test_shares_have_the_tails_of_the_hypergeometric_law(rng, n, m):
    old, new = rng.integers(0, n + 1, 40), rng.integers(0, m + 1, 40)
    law = (n + m, old + new, m)
    tails = np.minimum(hypergeom.cdf(new, *law), hypergeom.sf(new - 1, *law))
    seen = tails > 1e-290  # numbers end near 1e-308
    assert fisher(old, n, new, m)[seen] == pytest.approx(np.minimum(2 * tails, 1.0)[seen], rel=1e-8)


@pytest.mark.parametrize(
    ("n", "m"), [(1500, 1), (1500, 2), (3, 1500), (1500, 40), (900, 300), (700, 700), (699, 701)]
)
def test_the_approximation_is_never_smaller_than_the_exact_p_value(monkeypatch, n, m):
    gaps = np.unique(np.linspace(min(n, m), n * m, 60).astype(int))
    exact = np.array([outside_band(int(gap), n, m) for gap in gaps])
    monkeypatch.setattr(two_samples, "_STEPS", 0)
    found = np.array([kolmogorov_smirnov([gap], [n], [m])[0] for gap in gaps])
    told = (exact < 0.1) & (exact > 1e-13)  # what is tested with; below, rounding decides
    assert (found >= exact * (1 - 1e-9))[told].all()


def test_one_row_beyond_all_others_is_no_miracle():
    n = 20_000
    assert kolmogorov_smirnov([n], [n], [1])[0] == pytest.approx(2 / n, rel=1e-3)
