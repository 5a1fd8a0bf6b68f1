"""Several right labels: sets contain as many of them as guaranteed, and not with another order statistic."""

import numpy as np
import pytest

from setwise import conformalize
from setwise.evidence import right_labels
from tests.statistical.sampling import LEVEL, NEW, N, assert_valid_and_sharp, mean_at_least, shares

K = 8
NEEDED = {"all": lambda m: m, "one": lambda m: np.minimum(m, 1), 0.5: lambda m: np.ceil(m / 2)}

pytestmark = pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")  # 1 of 100 random choices differs


def several(rng, n):
    """Probabilities, and right labels: one to six in a row, whatever the model says."""
    p = rng.dirichlet(np.full(K, 0.7), n)
    right = rng.random((n, K)).argsort(axis=1).argsort(axis=1) < rng.integers(1, 7, (n, 1))
    return p, right | (np.arange(K) == p.argmax(axis=1)[:, None]) & (rng.random((n, 1)) < 0.5)


def covering(rng, truth, form, unverified=5):
    """For which new rows the set contains as many right labels as it must."""
    n = N if form == "exact" else N + unverified
    p, right = several(rng, n + NEW)
    candidates, options = right, {}
    if form != "exact":
        candidates = right | (rng.random(right.shape) < 0.3)
        known = [np.flatnonzero(row).tolist() if i < N else None for i, row in enumerate(right[:n])]
        options = {"verified": known}
    made = conformalize(p[:n], candidates[:n], "max" if form == "exact" else "auto", truth=truth, **options)
    found = (made.predict_set(p[n:], LEVEL).to_mask() & right[n:]).sum(axis=1)
    return found >= NEEDED[truth](right[n:].sum(axis=1))


@pytest.mark.parametrize("form", ["exact", "verified"])
@pytest.mark.parametrize("truth", list(NEEDED))
def test_sets_contain_as_many_right_labels_as_guaranteed(monkeypatch, truth, form):
    assert_valid_and_sharp(monkeypatch, lambda rng: covering(rng, truth, form))


@pytest.mark.parametrize("form", ["exact", "verified"])
@pytest.mark.parametrize("truth", ["all", 0.5])
def test_sets_contain_too_few_where_the_order_statistic_is_one_too_small(monkeypatch, truth, form):
    right = right_labels.count_needed
    monkeypatch.setattr(right_labels, "count_needed", lambda sizes, how: np.maximum(right(sizes, how) - 1, 1))
    assert not mean_at_least(shares(lambda rng: covering(rng, truth, form)), LEVEL)


def test_rows_without_a_right_label_that_are_left_out_do_not_count(monkeypatch):
    """Rows without a right label are those of which the model is sure: with them thresholds would be too small."""

    def trial(rng):
        n = N + 5
        p, right = several(rng, n + NEW)
        known = [np.flatnonzero(row).tolist() if i < N else None for i, row in enumerate(right[:n])]
        sure = np.eye(K)[rng.integers(0, K, 20)] * 0.93 + 0.01
        p, known = np.concatenate([p[:n], sure, p[n:]]), known + [[]] * 10 + [None] * 10
        made = conformalize(p[: n + 20], np.ones((n + 20, K), bool), verified=known, truth="all", empty="drop")
        return ~(right[n:] & ~made.predict_set(p[n + 20 :], LEVEL).to_mask()).any(axis=1)

    assert_valid_and_sharp(monkeypatch, trial)
