"""One uniform number per row, from the row alone."""

import numpy as np
import pytest
from scipy.stats import kstest

from setwise.row_noise import draw_seed, uniforms
from tests.conftest import simplex


def test_noise_depends_on_the_row_alone(rng):
    for dtype in (np.float32, np.float64):
        p = simplex(rng, 3000, 7).astype(dtype)
        u = uniforms(p, 5)
        order = rng.permutation(len(p))
        assert np.array_equal(uniforms(p[order], 5), u[order])
        assert np.array_equal(uniforms(np.asfortranarray(p), 5), u)
        assert np.array_equal(np.concatenate([uniforms(p[i : i + 1], 5) for i in range(50)]), u[:50])


def test_noise_is_uniform_and_unrelated_to_the_probabilities(rng):
    p = simplex(rng, 20_000, 5)
    u = uniforms(p, 1)
    assert kstest(u, "uniform").pvalue > 1e-3
    for column in p.T:
        assert abs(np.corrcoef(u, column)[0, 1]) < 4 / np.sqrt(len(u))
    assert ((u >= 0) & (u < 1)).all()


def test_rows_that_differ_in_one_bit_get_unrelated_noise():
    p = np.full((2000, 2), 0.5)
    p[:, 0] += np.arange(2000) * 2.0**-53
    assert kstest(uniforms(p, 0), "uniform").pvalue > 1e-3
    hot = np.eye(500)
    assert len(np.unique(uniforms(hot, 0))) == 500
    assert len(np.unique(uniforms(hot.astype(np.float32), 0))) == 500


def test_noise_depends_on_the_seed(rng):
    p = simplex(rng, 2000, 3)
    assert abs(np.corrcoef(uniforms(p, 0), uniforms(p, 1))[0, 1]) < 0.1


def test_negative_zero_is_zero():
    assert uniforms(np.array([[1.0, 0.0]]), 0) == uniforms(np.array([[1.0, -0.0]]), 0)


def test_ids_replace_the_probabilities(rng):
    p, q = simplex(rng, 40, 3), simplex(rng, 40, 4)
    for ids in (np.arange(40), [f"row {i}" for i in range(40)]):
        assert np.array_equal(uniforms(p, 3, ids), uniforms(q, 3, ids))
        assert len(np.unique(uniforms(p, 3, ids))) == 40
    long = ["a", "a much longer identifier than the first"]
    assert uniforms(p[:2], 3, long)[0] == uniforms(p[:1], 3, ["a"])[0]


def test_bad_ids_are_refused(rng):
    p = simplex(rng, 3, 2)
    with pytest.raises(ValueError, match="row_ids"):
        uniforms(p, 0, [1, 2])
    with pytest.raises(TypeError, match="row_ids"):
        uniforms(p, 0, [0.5, 1.5, 2.5])


def test_seeds_come_from_integers_generators_or_entropy():
    assert draw_seed(7) == draw_seed(np.int64(7)) == 7
    assert draw_seed(np.random.default_rng(0)) == draw_seed(np.random.default_rng(0))
    assert draw_seed(np.random.RandomState(0)) == draw_seed(np.random.RandomState(0))
    assert draw_seed(None) != draw_seed(None)
    with pytest.raises(ValueError, match="negative"):
        draw_seed(-1)
    with pytest.raises(TypeError, match="random_state"):
        draw_seed("seed")
