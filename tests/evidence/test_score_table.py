"""Scores by blocks of rows: the same as all at once, and the order of labels is the stable one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from setwise.errors import InputError
from setwise.evidence.score_table import ScoreTable, check_unchanged, row_order
from setwise.row_noise import uniforms
from tests.conftest import simplex
from tests.test_scores import ALL_SCORES

values = st.sampled_from([-1.0, -0.5, -0.1, -1e-30, -0.0, 0.0, 1e-40, 0.25, 3.0, 0.1 + 2**-40])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.data())
def test_labels_are_in_the_stable_order(dtype, data):
    shape = data.draw(st.tuples(st.integers(0, 5), st.integers(1, 9)))
    scores = data.draw(arrays(np.float64, shape, elements=values)).astype(dtype)
    assert np.array_equal(row_order(scores), np.argsort(scores, axis=1, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_a_block_has_the_scores_of_its_rows(score, dtype, rng):
    p = simplex(rng, 50, 6).astype(dtype)
    u = uniforms(p, 3)
    table, whole = ScoreTable(score, p, u), score.score(p, u=u)
    assert table.shape == (len(table), 6) == whole.shape
    assert np.array_equal(np.asarray(table), whole)
    assert np.array_equal(table[10:30], whole[10:30])
    chosen = np.array([4, 4, 49, 0])
    assert np.array_equal(np.asarray(table.take(chosen)), whole[chosen])


def test_probabilities_that_were_changed_are_noticed_whatever_their_layout(rng):
    p = simplex(rng, 50, 6)
    for given_ in (p, np.asfortranarray(p), p[::2]):
        table = ScoreTable(ALL_SCORES[0], given_)
        assert check_unchanged(table) is table
        given_[[3, 4]] = given_[[4, 3]]
        with pytest.raises(InputError, match="changed after"):
            check_unchanged(table)
    assert check_unchanged(p) is p
