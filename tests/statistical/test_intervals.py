"""Intervals of coverage hold where rows come in groups, and those of single rows do not."""

import numpy as np
import pytest

from setwise.ranks import share_interval
from tests.statistical.sampling import at_least

TRIALS = 300


def _groups(rng, count, size, share, alike):
    """Hits and rows of groups whose shares vary: with `alike` 0 not at all, with 1 all rows hit or none does."""
    sizes = np.full(count, size) if size else 1 + rng.poisson(10 * np.exp(rng.normal(size=count) / 2))
    spread = 1 / alike - 1 if alike else 0
    shares = np.full(count, share)
    if alike == 1:
        shares = (rng.random(count) < share).astype(float)
    elif alike:
        shares = rng.beta(share * spread, (1 - share) * spread, count)
    return rng.binomial(sizes, shares), sizes


@pytest.mark.parametrize("alike", [0, 0.2, 0.5, 1])
@pytest.mark.parametrize("size", [5, 100, None], ids=["of 5", "of 100", "of unequal size"])
@pytest.mark.parametrize("count", [20, 40, 200])
@pytest.mark.parametrize("share", [0.8, 0.9, 0.98])
def test_the_interval_over_groups_holds_its_share(share, count, size, alike):
    rng = np.random.default_rng(0)
    found = [share_interval(*_groups(rng, count, size, share, alike)) for _ in range(TRIALS)]
    held = sum(low <= share <= high for low, high in found)
    assert at_least(held, 0.95, TRIALS)


def test_the_interval_over_rows_does_not_hold_in_groups():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(TRIALS):
        hits, sizes = _groups(rng, 20, 25, 0.9, 0.2)
        low, high = share_interval(np.repeat([1, 0], [hits.sum(), sizes.sum() - hits.sum()]))
        held += low <= 0.9 <= high
    assert not at_least(held, 0.95, TRIALS)
    assert held < 0.8 * TRIALS


def test_without_the_added_group_few_groups_would_not_be_enough():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(TRIALS):
        hits, sizes = _groups(rng, 20, 25, 0.95, 0.5)
        ratio = hits.sum() / sizes.sum()
        error = np.sqrt(len(sizes) / (len(sizes) - 1) * np.square(hits - ratio * sizes).sum()) / sizes.sum()
        held += abs(ratio - 0.95) <= 2.1 * error
    assert not at_least(held, 0.95, TRIALS)
