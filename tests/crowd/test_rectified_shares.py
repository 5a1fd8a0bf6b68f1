"""Intervals of shares: exact coverage over all outcomes of the draw, and what breaks without the corrections."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from setwise import Votes
from setwise.crowd import rectified_shares
from setwise.crowd.rectified_shares import annotator_shares, rectify, single_answers
from setwise.labels.vocabulary import MISSING

DESIGNS = [  # rows and hits where the proxy is 0, and where it is 1; how many rows are verified
    ((290, 191), (10, 6), 100),
    ((920, 598), (80, 80), 200),
    ((500, 0), (500, 500), 80),
    ((250, 130), (250, 120), 60),
    ((300, 3), (200, 199), 61),
    ((60, 30), (60, 58), 60),
    ((105, 1), (45, 1), 70),
    ((138, 137), (12, 11), 61),
    ((2500, 25), (2500, 25), 61),
    ((2500, 2475), (2500, 2488), 80),
    ((3116, 1367), (133, 130), 55),
    ((665, 243), (66, 40), 33),
    ((1200, 803), (46, 0), 30),
]


def coverage(rows, hits, m, interval=rectify):
    """The probability that the interval holds the true share, over all ways to draw m rows."""
    rows, hits, share, held = np.array(rows), np.array(hits), sum(hits) / sum(rows), 0.0
    for inside in range(max(0, m - rows[0]), min(m, rows[1]) + 1):
        drawn = np.array([m - inside, inside])
        chance = hypergeom.pmf(inside, rows.sum(), rows[1], m)
        if chance < 1e-7:
            continue
        x = np.stack(np.meshgrid(*(np.arange(count + 1) for count in drawn), indexing="ij"), axis=-1)
        law = hypergeom.pmf(x, rows, hits, drawn).prod(axis=-1)
        found = interval(x, np.broadcast_to(drawn, x.shape), np.broadcast_to(rows, x.shape))
        held += chance * law[(found.lower - 1e-12 <= share) & (share <= found.upper + 1e-12)].sum()
    return held


def share_of_rows(hits, proxy, rows):
    """The share of hits among all rows, from those of the verified ones."""
    counts = np.bincount(proxy[rows], hits, 2).astype(int), np.bincount(proxy[rows], minlength=2)
    return rectify(*counts, np.bincount(proxy, minlength=2))


def normal(hits, verified, rows):
    """The usual interval of prediction-powered inference with the same two strata."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share, weight = np.nan_to_num(hits / verified), rows / rows.sum(axis=-1, keepdims=True)
        off = 1.96 * np.sqrt(np.nansum(weight**2 * share * (1 - share) / verified, axis=-1))
    value = (weight * share).sum(axis=-1)
    return rectified_shares.Shares(value, value - off, value + off, verified.sum(axis=-1))


@pytest.mark.parametrize(("zero", "one", "m"), DESIGNS)
def test_the_interval_holds_in_95_percent_of_all_draws(zero, one, m):
    rows, hits = zip(zero, one, strict=True)
    assert coverage(rows, hits, m) >= 0.95


def test_without_clopper_pearson_within_the_strata_it_fails():
    (zero, one, m) = DESIGNS[4]
    rows, hits = zip(zero, one, strict=True)
    assert coverage(rows, hits, m) >= 0.95
    assert coverage(rows, hits, m, normal) < 0.9


def test_without_rounding_to_whole_rows_it_fails_where_few_rows_are_hits(monkeypatch):
    monkeypatch.setattr(rectified_shares, "np", _NoRounding())
    monkeypatch.setattr(rectified_shares, "_RARE", -1)
    assert coverage((105, 45), (1, 1), 70) < 0.9


def test_without_the_exact_interval_beside_few_hits_it_fails(monkeypatch):
    monkeypatch.setattr(rectified_shares, "_RARE", -1)
    assert coverage((2500, 2500), (25, 25), 61) < 0.94


class _NoRounding:
    """NumPy, whose floor and ceil leave numbers as they are."""

    floor = ceil = staticmethod(lambda values: values)

    def __getattr__(self, name):
        return getattr(np, name)


@pytest.mark.parametrize("m", [1, 7, 15, 20, 29])
def test_fewer_than_thirty_verified_rows_have_the_exact_interval(m):
    rows, hits = np.array([60, 40]), np.array([10, 39])
    x = np.arange(m + 1)[:, None] * [1, 0]
    found = rectify(x, np.broadcast_to([m, 0], x.shape), np.broadcast_to(rows, x.shape))
    inside = (found.lower - 1e-12 <= 0.49) & (found.upper + 1e-12 >= 0.49)
    assert hypergeom.pmf(np.arange(m + 1), 100, hits.sum(), m)[inside].sum() >= 0.95


def test_a_proxy_without_a_verified_row_in_one_stratum_changes_nothing():
    hit = np.arange(500) % 3 == 0
    proxy = np.arange(500) >= 490
    rows = np.arange(100)
    assert share_of_rows(hit[rows], proxy, rows) == share_of_rows(hit[rows], np.zeros(500, bool), rows)


def test_a_proxy_that_has_seen_the_verified_labels_fails():
    rng = np.random.default_rng(0)
    hit, held, blind = rng.random(1000) < 0.7, [], []
    for _ in range(200):
        rows = rng.permutation(1000)[:100]
        seeing = np.ones(1000, dtype=bool)
        seeing[rows] = hit[rows]
        for proxy, kept in ((seeing, held), (np.arange(1000) % 2 == 0, blind)):
            found = share_of_rows(hit[rows], proxy, rows)
            kept.append(found.lower <= hit.mean() <= found.upper)
    assert np.mean(held) < 0.1
    assert np.mean(blind) > 0.9


def test_what_is_verified_bounds_the_share_and_all_verified_rows_give_it():
    hit = np.arange(200) % 7 == 0
    assert share_of_rows(hit, hit, np.arange(200))[:3] == (hit.mean(),) * 3
    found = share_of_rows(hit[:190], np.arange(200) % 2 == 0, np.arange(190))
    assert hit[:190].sum() / 200 <= found.lower <= found.upper <= (hit[:190].sum() + 10) / 200


def test_no_verified_row_says_nothing():
    found = share_of_rows(np.zeros(0, bool), np.ones(5, bool), np.zeros(0, int))
    assert np.isnan(found.value)
    assert (found.lower, found.upper, found.verified) == (0, 1, 0)


def test_repeated_answers_are_one_by_weight():
    votes = Votes.of(
        2,
        np.array([0, 0, 0, 1, 1]),
        ["b", "b", "a", "c", "a"],
        np.array(["x", "x", "x", "x", "x"], dtype=object),
    )
    row, who, label = single_answers(votes)
    assert (row.tolist(), who.tolist(), votes.classes[label].tolist()) == ([0, 1], [0, 0], ["b", "a"])


def test_accuracies_count_the_rows_that_an_annotator_answered():
    y = np.arange(300) % 3
    right = np.random.default_rng(2).random((300, 4)) < 0.8
    cells = np.where(right, y[:, None], (y[:, None] + 1) % 3).astype(object)
    cells[:100, 3] = None
    votes = Votes.from_matrix(cells, classes=range(3))
    lead, truth = votes.counts.argmax(axis=1), np.array([*right[:, :3].mean(axis=0), right[100:, 3].mean()])
    found = annotator_shares(votes, lead, np.where(np.arange(300) % 2 == 0, y, MISSING))
    assert found.verified.tolist() == [150, 150, 150, 100]
    held = []
    for draw in range(200):
        seen = np.random.default_rng(draw).permutation(300) < 60
        found = annotator_shares(votes, lead, np.where(seen, y, MISSING))
        held.append((found.lower <= truth) & (truth <= found.upper))
    assert np.mean(held, axis=0).min() >= 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5
    everything = annotator_shares(votes, lead, y)
    np.testing.assert_allclose([everything.value, everything.lower, everything.upper], [truth] * 3)
