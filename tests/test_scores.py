"""Scores: golden values, and one definition behind every way of asking for it."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from setwise import APS, LAC, RAPS, SAPS, Margin
from setwise.row_noise import uniforms
from setwise.scores import Score, as_score
from tests.conftest import simplex

ALL_SCORES = [
    LAC(),
    Margin(),
    *(kind(randomized=flag) for kind in (APS, RAPS, SAPS) for flag in (True, False)),
    RAPS(penalty=0.3, free_ranks=0),
    SAPS(weight=0.01),
]


def published(score, row, y, u):
    """The score of one label in exact arithmetic, as its paper writes it."""
    f = [Fraction(float(v)) for v in row]
    head = sum((v for v in f if v > f[y]), Fraction(0))
    order = 1 + sum(v > f[y] for v in f)
    u = Fraction(float(u)) if score.randomized else Fraction(1)
    match score:
        case LAC():
            return 1 - f[y]
        case Margin():
            return max(v for j, v in enumerate(f) if j != y) - f[y]
        case APS():
            return head + u * f[y]
        case RAPS():
            return head + u * f[y] + Fraction(score.penalty) * max(0, order - score.free_ranks)
        case SAPS():
            return u * max(f) if order == 1 else max(f) + (order - 2 + u) * Fraction(score.weight)


rows_with_ties = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(2, 7)),
    elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 1e-12]),
).map(
    lambda a: (a + (a.sum(axis=1, keepdims=True) == 0)) / (a + (a.sum(axis=1, keepdims=True) == 0)).sum(1)[:, None]
)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
@settings(max_examples=60)
@given(rows_with_ties)
def test_scores_are_those_of_their_papers_ties_included(score, p):
    u = uniforms(p, 0)
    made = score.score(p, u=u) + score.offset
    for i, row in enumerate(p):
        for y in range(p.shape[1]):
            assert np.isclose(made[i, y], float(published(score, row, y, u[i])), atol=1e-13)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_label_all_labels_and_sets_agree_to_the_last_bit(score, dtype, rng):
    for k, n in ((2, 300), (10, 300), (400, 40), (3, 2), (3, 1)):
        p = simplex(rng, n, k).astype(dtype)
        p[: n // 4] = np.round(p[: n // 4], 2)  # ties
        p[0] = np.eye(k)[0]
        u = uniforms(p, 3)
        every = score.score(p, u=u)
        for _ in range(3):
            y = rng.integers(0, k, n)
            assert np.array_equal(score.score(p, y, u=u), every[np.arange(n), y])
        for limit in (*rng.choice(every.ravel(), 20), -np.inf, np.inf):
            assert np.array_equal(score.below(p, limit, u=u), every <= limit)
        limits = rng.choice(every.ravel(), n)
        assert np.array_equal(score.below(p, limits, u=u), every <= limits[:, None])


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_more_probable_labels_never_score_higher(score, rng):
    p = simplex(rng, 500, 12)
    every = score.score(p, u=uniforms(p, 0))
    order = np.argsort(p, axis=1)
    assert (np.diff(np.take_along_axis(every, order, axis=1), axis=1) <= 0).all()


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_scores_do_not_depend_on_the_batch_and_do_not_touch_it(score, rng):
    p = simplex(rng, 200, 6)
    p.flags.writeable = False
    kept = p.copy()
    whole = score.score(p, u=uniforms(p, 9))
    single = np.concatenate([score.score(p[i : i + 1], u=uniforms(p[i : i + 1], 9)) for i in range(len(p))])
    assert np.array_equal(whole, single)
    assert np.array_equal(p, kept)
    assert np.array_equal(score.score(np.asfortranarray(p), u=uniforms(p, 9)), whole)


def test_golden_values():
    p = np.array([[0.5, 0.25, 0.125, 0.125]])
    u = np.array([0.5])
    assert LAC().score(p).tolist() == [[-0.5, -0.75 + 0.5, -0.125, -0.125]]
    assert (APS().score(p, u=u) + 1).tolist() == [[0.25, 0.625, 0.8125, 0.8125]]
    assert (APS(randomized=False).score(p) + 1).tolist() == [[0.5, 0.75, 0.875, 0.875]]
    raps = RAPS(penalty=0.5, free_ranks=1).score(p, u=u) + 1
    assert raps.tolist() == [[0.25, 1.125, 1.8125, 1.8125]]
    saps = SAPS(weight=0.25).score(p, u=u) + 1
    assert saps.tolist() == [[0.25, 0.625, 0.875, 0.875]]
    assert Margin().score(p).tolist() == [[-0.25, 0.25, 0.375, 0.375]]


def test_defaults_are_those_of_the_page():
    assert RAPS() == RAPS(penalty=0.01, free_ranks=5, randomized=True)
    assert SAPS() == SAPS(weight=0.2, randomized=True)
    assert APS() == APS(randomized=True)
    assert [made().randomized for made in (LAC, Margin, APS, RAPS, SAPS)] == [False, False, True, True, True]
    assert [made.elementwise for made in (LAC, Margin, APS, RAPS, SAPS)] == [True, False, False, False, False]


def test_tiny_probabilities_keep_their_order_under_lac():
    p = np.array([[1.0, 1e-20, 1e-30, 0.0]])
    scores = LAC().score(p)[0]
    assert (np.diff(scores) > 0).all()
    assert LAC().below(p, scores[1]).tolist() == [[True, True, False, False]]


def test_a_float64_threshold_is_not_rounded_to_float32():
    p = np.array([[0.1, 0.9]], dtype=np.float32)
    stored = float(p[0, 0])
    assert LAC().below(p, -stored)[0, 0]
    assert not LAC().below(p, -np.nextafter(stored, 1))[0, 0]
    assert LAC().below(p, -np.nextafter(stored, 0))[0, 0]


def test_without_noise_given_it_comes_from_the_row(rng):
    p = simplex(rng, 50, 4)
    assert np.array_equal(APS().score(p), APS().score(p[::-1])[::-1])
    assert np.array_equal(APS().score(p), APS().score(p, u=uniforms(p, 0)))


def test_scores_by_name_or_object():
    assert as_score("LAC") == LAC()
    assert as_score(RAPS(penalty=1.0)).penalty == 1.0
    for made in ALL_SCORES:
        assert isinstance(made, Score)
        assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301
    with pytest.raises(ValueError, match="score: 'topk' is not known"):
        as_score("topk")
    for bad in (LAC, 3, object()):
        with pytest.raises(TypeError, match="score"):
            as_score(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RAPS(penalty=-1),
        lambda: RAPS(penalty=float("nan")),
        lambda: RAPS(free_ranks=-1),
        lambda: SAPS(weight=0),
        lambda: SAPS(weight=float("nan")),
        lambda: SAPS(weight=float("inf")),
        lambda: RAPS(penalty=float("inf")),
    ],
)
def test_senseless_parameters_are_refused(make):
    with pytest.raises(ValueError, match="RAPS|SAPS"):
        make()
