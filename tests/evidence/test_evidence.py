"""What calibration rows tell, against a loop over rows."""

from dataclasses import replace

import numpy as np
import pytest

from setwise import LabelSets
from setwise.evidence.evidence import Evidence, gather
from setwise.evidence.row_facts import RowFacts
from setwise.labels.vocabulary import MISSING
from setwise.probabilities.dense import DenseRows
from setwise.probabilities.proposed_labels import Proposals
from setwise.row_noise import uniforms
from setwise.scores import LAC
from tests.conftest import candidates_from, labels_from, simplex
from tests.test_scores import ALL_SCORES


@pytest.fixture
def rows(rng):
    p = simplex(rng, 400, 6)
    p[:50] = np.round(p[:50] + 1e-9, 1) / np.round(p[:50] + 1e-9, 1).sum(axis=1, keepdims=True)  # ties
    y = labels_from(rng, p)
    return p, y, candidates_from(rng, y, 6)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
@pytest.mark.parametrize("every", [True, False])
def test_extremes_and_mean_are_those_of_a_loop(score, every, rows):
    p, y, mask = rows
    u = uniforms(p, 1)
    full = score.score(p, u=u)
    verified = np.where(np.arange(400) < 30, y, MISSING)
    evidence = gather(
        score, DenseRows(p), LabelSets.from_mask(mask), RowFacts(verified=verified, u=u), {"every"} if every else ()
    )
    for i in range(400):
        own = full[i][mask[i]]
        assert evidence.low[i] == own.min()
        assert evidence.high[i] == own.max()
        assert evidence.sizes[i] == len(own)
        if every:
            assert np.isclose(evidence.mean[i], own.mean(), rtol=1e-12)
    assert np.array_equal(evidence.truth[:30], full[np.arange(30), y[:30]])
    assert np.isnan(evidence.truth[30:]).all()
    assert evidence.verified.sum() == 30
    assert evidence.held[:30].all()
    if not every:
        with pytest.raises(ValueError, match="extremes only"):
            _ = evidence.mean


def test_with_precise_labels_all_statistics_are_the_score_itself(rows):
    p, y, _ = rows
    for score in ALL_SCORES:
        u = uniforms(p, 1)
        evidence = gather(score, DenseRows(p), LabelSets.from_labels(y, classes=range(6)), RowFacts(u=u), {"every"})
        expected = score.score(p, y, u=u)
        for found in (evidence.low, evidence.high, evidence.mean, evidence.every):
            assert np.array_equal(found, expected)
        assert evidence.precise


def test_parts_merge_back_into_the_whole(rows):
    p, _, mask = rows
    evidence = gather(
        LAC(), DenseRows(p), LabelSets.from_mask(mask), RowFacts(verified=np.full(400, MISSING)), {"every"}
    )
    first, second = evidence.rows(np.arange(150)), evidence.rows(np.arange(150, 400))
    merged = first.merge(second)
    for name, column in evidence.to_arrays().items():
        assert np.array_equal(merged.to_arrays()[name], column, equal_nan=True)
    assert np.array_equal(Evidence.of(**merged.to_arrays()).mean, evidence.mean)
    with pytest.raises(ValueError, match="weight"):
        first.merge(replace(second, weight=np.ones(250)))


class Cube:
    """A score that is not monotone and not setwise's own: distance of f from one half."""

    name, offset, monotone, elementwise, domain, randomized = "cube", 0.0, False, False, "simplex", False

    def score(self, probabilities, labels=None, *, u=None):
        values = np.abs(probabilities - 0.5)
        return values if labels is None else values[np.arange(len(values)), labels]

    def below(self, probabilities, threshold, *, u=None):
        return self.score(probabilities) <= np.reshape(threshold, (-1, 1))


def test_a_score_of_ones_own_need_not_be_monotone(rows):
    p, _, mask = rows
    evidence = gather(Cube(), DenseRows(p), LabelSets.from_mask(mask))
    values = np.abs(p - 0.5)
    assert np.array_equal(evidence.high, np.where(mask, values, -1).max(axis=1))
    assert np.array_equal(evidence.low, np.where(mask, values, 2).min(axis=1))


def test_rows_of_a_group_share_its_weight_in_whole_numbers_while_these_are_exact(rows):
    p, _, mask = rows
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]  # their product is beyond 2⁵⁰
    for sizes, unit in (([2, 3, 4], 12), (primes, 1)):
        n = sum(sizes)
        made = gather(
            LAC(),
            DenseRows(p[:n]),
            LabelSets.from_mask(mask[:n]),
            RowFacts(group=np.repeat(np.arange(len(sizes)), sizes)),
        )
        share, new = made.shares
        assert new == unit
        assert share.tolist() == [unit / size for size in sizes for _ in range(size)]


def test_proposals_of_batches_keep_their_noise_below_each_other():
    parts = [Proposals(np.array([i]), np.array([0.5]), np.array([i / 10])) for i in range(3)]
    assert Proposals.concatenate(parts).noise.tolist() == [0.0, 0.1, 0.2]
    assert Proposals.concatenate([replace(part, noise=None) for part in parts]).noise is None
