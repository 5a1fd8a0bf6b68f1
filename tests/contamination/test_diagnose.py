"""What the gate computes, what it says, and what it refuses."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, hypergeom, norm, ttest_1samp

from setwise import AssumptionRefuted, LabelSets, conformalize, diagnose, estimate_inclusion
from setwise.contamination.assumption import Assumption, as_assumption
from setwise.contamination.deficit_tests import RankedRows, below_zero, few_included
from setwise.contamination.diagnose import examine
from setwise.datasets import ClassConditional, Random, contaminate
from tests.statistical.sampling import draw


@pytest.fixture(scope="module")
def uniform():
    """Probabilities and uniformly contaminated sets."""
    p, y = draw(np.random.default_rng(0), 799, 6, 3.0)
    return p, contaminate(y, Random(p=0.3), 6, random_state=1)


@pytest.fixture(scope="module")
def plausible(uniform):
    """Sets that also hold whatever looks plausible."""
    p, sets = uniform
    return p, LabelSets.from_mask(sets.to_mask() | (p > 0.05))


# ---------------------------------------------------------------- the parts, in closed form


def test_one_label_a_row_follows_the_binomial_law():
    rows = np.array([0, 0, 30])  # two of eight wrong labels in each of thirty rows
    for count in range(31):
        assert few_included(count, rows, 1, 8) == pytest.approx(binom.cdf(count, 30, 0.25), abs=1e-12)


def test_several_labels_of_one_row_follow_the_hypergeometric_law():
    for count in range(5):
        assert few_included(count, np.array([0, 0, 0, 1]), 4, 8) == pytest.approx(hypergeom.cdf(count, 8, 3, 4))


def test_rows_of_different_sizes_are_convolved():
    one, two = hypergeom.pmf(range(3), 9, 2, 2), hypergeom.pmf(range(3), 9, 7, 2)
    law = np.convolve(np.convolve(one, one), two)
    rows = np.bincount([2, 2, 7])
    found = [few_included(count, rows, 2, 9) for count in range(len(law))]
    assert found == pytest.approx(np.cumsum(law))


def test_sets_without_or_with_all_wrong_labels_are_certain():
    assert few_included(0, np.array([50]), 1, 3) == pytest.approx(1)
    assert few_included(50, np.array([0, 0, 0, 50]), 1, 3) == pytest.approx(1)
    assert few_included(49, np.array([0, 0, 0, 50]), 1, 3) < 1e-11


def test_the_normal_law_continues_the_exact_one(monkeypatch):
    rows = np.bincount(np.arange(3000) % 10)
    exact = few_included(13_400, rows, 3, 9), few_included(4_400, rows, 1, 9)
    monkeypatch.setattr("setwise.contamination.deficit_tests._WIDE", 1.0)
    assert few_included(13_400, rows, 3, 9) == pytest.approx(exact[0], rel=0.02)
    assert few_included(4_400, rows, 1, 9) == pytest.approx(exact[1], rel=0.02)


def test_the_studentised_test_is_the_t_test_for_many_symmetric_rows():
    T = np.random.default_rng(0).normal(-0.02, 1, 20_000)
    plain = ttest_1samp(T, 0, alternative="less").pvalue
    assert below_zero(T) == pytest.approx(plain, rel=0.05)
    doubled = below_zero(T, error=T.var() / len(T))  # an error as large as that of the rows themselves
    assert doubled == pytest.approx(norm.cdf(norm.ppf(plain) / 2**0.5), rel=0.05)


def test_no_inclusion_in_a_few_rows_is_no_evidence():
    """Twenty rows at p = 0.05: none is what one sees in a third of cases, though the rows hardly vary."""
    assert below_zero(np.full(20, -0.05)) > 0.3
    assert below_zero(np.full(2000, -0.05)) < 1e-6


# ---------------------------------------------------------------- the answer


def test_the_curve_counts_candidates_by_predicted_rank(uniform):
    p, sets = uniform
    diagnosis = diagnose(p, sets)
    order = np.argsort(-p, axis=1, kind="stable")
    rate = np.take_along_axis(sets.to_mask(), order, axis=1).mean(axis=0)
    assert diagnosis.rate == pytest.approx(rate)
    assert diagnosis.inclusion == pytest.approx((sets.sizes.mean() - 1) / 5)
    assert diagnosis.floor == pytest.approx([diagnosis.inclusion] * 6)
    lower = binom.sf(round(rate[2] * 800) - 1, 800, diagnosis.lower[2])
    upper = binom.cdf(round(rate[2] * 800), 800, diagnosis.upper[2])
    assert (lower, upper) == pytest.approx((0.025, 0.025))


def test_uniform_contamination_is_not_refuted_and_never_confirmed(uniform):
    diagnosis = diagnose(*uniform)
    assert not diagnosis.refuted
    assert diagnosis.p_value >= 0.05
    assert "The 800 rows do not contradict uniform contamination" in diagnosis.sentence
    assert "unless true labels at low ranks offset it" in diagnosis.sentence
    assert 0 < diagnosis.detectable < 1 - diagnosis.inclusion
    assert "holds" not in str(diagnosis)


def test_sets_that_follow_the_model_are_refuted_with_the_place(plausible):
    diagnosis = diagnose(*plausible)
    assert diagnosis.refuted
    alarms = "where it holds, at most 5 of 100 samples are refuted, measured over 284 settings"
    assert f"is contradicted by 800 rows (p < 0.001; {alarms}): " in diagnosis.sentence
    assert "(p < 0.001; level 0.4): " in diagnose(*plausible, level=0.4).sentence
    by_rank = next(one for one in diagnosis.findings if one.family == "rank")
    assert int(by_rank.where[-1]) >= 4
    assert by_rank.seen < by_rank.expected
    assert diagnosis.p_value == diagnosis.strongest.p_value == min(one.p_value for one in diagnosis.findings)
    assert {one.family for one in diagnosis.findings} == {"rank", "category", "label", "size"}


def test_a_label_that_is_never_a_candidate_speaks_without_a_model():
    """The model knows nothing (equal probabilities), and class 4 neither occurs nor is ever proposed."""
    rng = np.random.default_rng(2)
    y = rng.integers(4, size=1000)
    S = (np.arange(5) == y[:, None]) | (rng.random((1000, 5)) < [0.3, 0.3, 0.3, 0.3, 0])
    diagnosis = diagnose(np.full((1000, 5), 0.2), S)
    assert diagnosis.refuted
    assert any(one.family == "label" and one.where == "the label 4" for one in diagnosis.findings)
    assert diagnosis.strongest.family != "label" or "the label 4 is a candidate in 0.00%" in diagnosis.sentence


def test_sets_that_are_larger_where_the_model_doubts_are_refuted_by_size():
    """Within each row inclusion is uniform; only its rate depends on x."""
    rng = np.random.default_rng(3)
    p, y = draw(rng, 2000, 6, 3.0)
    rate = np.where(p.max(axis=1) < 0.6, 0.5, 0.3)[:, None]
    diagnosis = diagnose(p, (np.arange(6) == y[:, None]) | (rng.random(p.shape) < rate))
    assert diagnosis.refuted
    assert diagnosis.strongest.family == "size"
    assert "candidate sets hold" in diagnosis.sentence


def test_only_a_low_rate_refutes_and_not_an_uneven_one():
    """A model that knows nothing puts the truth anywhere, and a good one puts it first."""
    rng = np.random.default_rng(4)
    for sharpness in (0.01, 30):
        p, y = draw(rng, 3000, 8, sharpness)
        assert not diagnose(p, contaminate(y, Random(p=0.2), 8, random_state=rng)).refuted


def test_the_law_of_the_sizes_is_described_and_refutes_nothing():
    """All wrong labels or none: the same first-order law, and far from binomial."""
    rng = np.random.default_rng(5)
    p, y = draw(rng, 2000, 6, 4.0)
    diagnosis = diagnose(p, (np.arange(6) == y[:, None]) | (rng.random((2001, 1)) < 0.4))
    assert diagnosis.sizes["variance"] > 3 * diagnosis.sizes["binomial_variance"]
    assert not diagnosis.refuted


def test_the_level_decides_what_is_refuted(plausible):
    p, sets = plausible
    rows = np.arange(60)
    p_value = diagnose(p[rows], sets[rows]).p_value
    assert 1e-9 < p_value < 0.9
    assert diagnose(p[rows], sets[rows], level=min(2 * p_value, 0.99)).refuted
    assert not diagnose(p[rows], sets[rows], level=p_value / 2).refuted


def test_few_rows_could_not_have_shown_anything():
    diagnosis = diagnose(np.full((5, 3), 1 / 3), [[0, 1], [1], [2], [0, 2], [1]])
    assert diagnosis.detectable is None
    assert not diagnosis.refuted
    assert "too few to show it even if the most probable label were always a candidate" in diagnosis.sentence


def test_two_classes_and_many_classes_are_fine():
    rng = np.random.default_rng(6)
    for k in (2, 13, 200):
        p, y = draw(rng, 300, k)
        assert diagnose(p, contaminate(y, Random(p=0.1), k, random_state=rng)).p_value > 0.01


def test_scores_serve_as_well_as_probabilities(plausible):
    p, sets = plausible
    assert examine(-p, sets.to_mask()) == diagnose(p, sets)
    assert examine(3 - 2 * p, sets.to_mask()).p_value == diagnose(p, sets).p_value


def test_the_order_of_rows_and_classes_does_not_matter(plausible):
    p, sets = plausible
    rows, columns = np.random.default_rng(7).permutation(len(p)), [3, 1, 5, 0, 2, 4]
    same = diagnose(p[rows][:, columns], sets.to_mask()[rows][:, columns])
    assert same.p_value == pytest.approx(diagnose(p, sets).p_value)


# ---------------------------------------------------------------- matrices


def test_a_uniform_matrix_says_what_uniform_says(uniform):
    """u for M_kl = p: the excess is that of the uniform case over 1 − p, whatever p is."""
    p, sets = uniform
    M = np.full((6, 6), 0.25) + 0.75 * np.eye(6)
    plain, given = (
        RankedRows(-p, sets.to_mask(), as_assumption(assume, 6), 0.0, list(range(6))) for assume in ("uniform", M)
    )
    assert given._excess(2, 5) == pytest.approx(plain._excess(2, 5) / 0.75)
    assert given.detectable(0.01, 0.8) == pytest.approx(plain.detectable(0.01, 0.8))


def test_the_error_of_an_estimated_matrix_enters_as_often_as_it_occurs(uniform):
    """The delta method against the spread of the mean excess over matrices drawn around the estimate."""
    p, sets = uniform
    rng, rows = np.random.default_rng(16), np.arange(100, 500)
    M = rng.uniform(0.1, 0.5, (6, 6))
    np.fill_diagonal(M, 1)

    def of(matrix):
        return RankedRows(-p, sets.to_mask(), Assumption("class", matrix, estimated=True), 0.0, list(range(6)))

    ranked = of(M)
    labels = ranked.order[rows, 2:5]
    noise = np.sqrt(M * (1 - M) / ranked.support[:, None])
    drawn = [of(M + noise * rng.normal(size=M.shape)) for _ in range(1500)]
    for one in drawn:  # the share is a constant of the test, not of the estimate
        one.floor = (one.total - 1) * ranked.share
    spread = np.var([one._excess(2, 5, rows).mean() for one in drawn])
    assert ranked._error_of(labels, rows) == pytest.approx(spread, rel=0.2)
    rest = np.setdiff1d(np.arange(len(p)), rows)
    gaps = np.var([one.total[rows].mean() - one.total[rest].mean() for one in drawn])
    assert ranked._size_error(rows) == pytest.approx(gaps, rel=0.2)


def test_a_matrix_is_refuted_where_the_data_follow_another_one():
    M = np.full((4, 4), 0.2) + 0.8 * np.eye(4)
    other = M.copy()
    other[0, 1], other[0, 2] = 0.6, 0.0
    p, y = draw(np.random.default_rng(8), 3000, 4, 4.0)
    sets = contaminate(y, ClassConditional(other), random_state=9)
    assert not diagnose(p, sets, other).refuted
    assert not diagnose(p, sets, "class").refuted
    wrong = diagnose(p, sets, M)
    assert wrong.refuted
    assert "The declared inclusion matrix is contradicted" in wrong.sentence
    assert diagnose(p, sets).refuted


def test_a_matrix_that_promises_smaller_sets_is_refuted_by_their_size():
    p, y = draw(np.random.default_rng(10), 1000, 4, 4.0)
    sets = contaminate(y, Random(p=0.5), 4, random_state=11)
    wrong = diagnose(p, sets, np.full((4, 4), 0.1) + 0.9 * np.eye(4))
    assert wrong.refuted
    assert any(one.family == "size" and one.where == "all rows" for one in wrong.findings)


def test_sets_that_follow_the_model_are_refuted_as_class_conditional_too():
    p, y = draw(np.random.default_rng(12), 6000, 6, 3.0)
    noise = contaminate(y, Random(p=0.1), 6, random_state=13).to_mask()
    diagnosis = diagnose(p, noise | (p > 0.1), "class")
    assert diagnosis.refuted
    assert "approximately" in diagnosis.sentence


def test_the_floor_of_a_matrix_is_the_rarest_inclusion_of_each_label(uniform):
    p, sets = uniform
    M = np.tile([0.1, 0.2, 0.3, 0.1, 0.2, 0.3], (6, 1))
    M[0, 1] = 0.05
    np.fill_diagonal(M, 1)
    rarest = np.array([0.1, 0.05, 0.3, 0.1, 0.2, 0.3])
    order = np.argsort(-p, axis=1, kind="stable")
    assert diagnose(p, sets, M).floor == pytest.approx(rarest[order].mean(axis=0))


def test_coarse_labels_are_refused_with_their_names(uniform):
    p, sets = uniform
    named = LabelSets.from_mask(sets.to_mask(), ["ant", "bee", "cat", "dog", "owl", "pig"])
    with pytest.raises(ValueError, match=r"\{ant, bee\}"):
        diagnose(p, named, np.kron(np.eye(3), np.ones((2, 2))))


# ---------------------------------------------------------------- miss rate


def test_a_miss_rate_lowers_the_share_of_truths_and_not_the_floor():
    p, y = draw(np.random.default_rng(14), 4000, 6, 8.0)
    sets = contaminate(y, Random(p=0.5), 6, miss_rate=0.2, random_state=15)
    told = diagnose(p, sets, miss_rate=0.2)
    assert told.inclusion == pytest.approx((sets.sizes.mean() - 0.8) / 5)
    assert not told.refuted
    M = np.full((6, 6), told.inclusion)
    np.fill_diagonal(M, 0.8)
    assert not diagnose(p, sets, M, miss_rate=0.2).refuted
    assert not diagnose(p, sets, "class", miss_rate=0.2).refuted


# ---------------------------------------------------------------- its faces


def test_it_prints_and_travels(plausible):
    diagnosis = diagnose(*plausible)
    text = str(diagnosis)
    assert text.startswith(diagnosis.sentence)
    assert "described, not tested" in text
    plain = json.loads(json.dumps(diagnosis.to_dict()))
    assert plain["refuted"] is True
    assert plain["sentence"] == diagnosis.sentence
    assert plain["findings"][0]["family"] == diagnosis.strongest.family
    assert repr(diagnosis) == text


def test_the_exception_carries_the_diagnosis_and_a_remedy(plausible):
    diagnosis = diagnose(*plausible)
    error = AssumptionRefuted(diagnosis)
    assert isinstance(error, ValueError)
    assert error.diagnosis is diagnosis
    assert str(error).startswith(diagnosis.sentence.removesuffix("."))
    assert "use strategy='max' without this premise, or use strategy='rectified' with" in str(error)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - as worker processes send it
    assert (str(again), again.diagnosis) == (str(error), diagnosis)


NAMES = ["asp", "bee", "cat", "dog", "eel", "fox"]


def test_labels_are_called_by_their_names_wherever_these_are_known(uniform):
    """One label is never a false candidate, so that the test of that label is the strongest."""
    p, sets = uniform
    mask = sets.to_mask() & ((np.arange(6) != 2) | (p > 0.9))
    mask[~mask.any(axis=1), 0] = True
    frame = pd.DataFrame(p, columns=NAMES)
    shuffled = frame[sorted(NAMES, reverse=True)]
    named = LabelSets.from_mask(mask, NAMES)
    told = [diagnose(p, mask), diagnose(p, mask, classes=NAMES), diagnose(p, named), diagnose(frame, mask)]
    told.append(diagnose(shuffled, named))
    assert told[0].strongest.where == "the label 2"
    for one in told[1:]:
        assert one.strongest.where == "the label 'cat'"
        assert "the label 'cat' is a candidate in" in one.sentence
        assert one.rate == told[0].rate
    with pytest.raises(AssumptionRefuted, match="the label 'cat' is a candidate in"):
        conformalize(p, mask, "corrected", assume="uniform", classes=NAMES)
    assert np.array_equal(estimate_inclusion(shuffled, named), estimate_inclusion(p, mask))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"assume": "random"}, "'random' is not known"),
        ({"assume": "nothing"}, "cannot be refuted"),
        ({"assume": np.eye(3)}, "6 × 6"),
        ({"level": 0}, "level"),
        ({"miss_rate": 1.0}, "miss_rate"),
        ({"assume": np.eye(6), "miss_rate": 0.1}, "diagonal"),
    ],
)
def test_wrong_options_are_named(uniform, options, message):
    with pytest.raises(ValueError, match=message):
        diagnose(*uniform, **options)


def test_wrong_rows_are_named(uniform):
    p, sets = uniform
    with pytest.raises(ValueError, match="799 rows for 800"):
        diagnose(p, sets[:799])
    with pytest.raises(ValueError, match="row 1 is empty"):
        diagnose(p[:2], [[0], []])
    with pytest.raises(ValueError, match="fewer than two"):
        diagnose(p[:1], [[0]])


def test_scores_alone_give_no_matrix(uniform):
    p, sets = uniform
    with pytest.raises(ValueError, match="estimate_inclusion"):
        examine(-p, sets.to_mask(), "class")


# ---------------------------------------------------------------- the tests, one by one


def one_by_one(p, mask, miss_rate=0.0):
    """The tests of uniform inclusion as they are defined: the labels of each test are gathered anew."""
    n, k = mask.shape
    order = np.argsort(-p, axis=1, kind="stable")
    floor = (mask.sum(axis=1) - 1 + miss_rate) / (k - 1)

    def test(labels, rows):
        seen = mask[rows[:, None], labels].sum(axis=1)
        T, size = seen - labels.shape[1] * floor[rows], labels.shape[1]
        p_value = below_zero(T)
        if p_value < 0.25:
            others = np.bincount((mask.sum(axis=1) - 1)[rows])
            p_value = max(p_value, few_included(int(seen.sum()), others, size, k - 1))
        return len(rows), seen.mean() / size, floor[rows].mean(), p_value

    every = np.arange(n)
    starts = sorted({int(r) - 1 for r in np.geomspace(1, k, 12)} if k > 12 else range(k))
    ranges = [*zip(starts, [*starts[1:], k], strict=True), *((s, k) for s in starts if 2 <= s < k - 1)]
    best = -p.max(axis=1).astype(np.float64)
    quarters = np.searchsorted(np.quantile(best, [0.25, 0.5, 0.75]), best)
    parts = [every[quarters == q] for q in range(4)] + [every[order[:, 0] == label] for label in range(k)]
    return {
        "rank": [test(order[:, low:high], every) for low, high in ranges],
        "category": [
            test(order[rows, low:], rows)
            for low in sorted({min(2, k - 1), k // 2})
            for rows in parts
            if len(rows) >= 20
        ],
        "label": [test(np.full((n, 1), label), every) for label in range(k)],
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "digits"), [(2, 1), (5, 1), (9, None), (20, 2)])
def test_every_test_is_the_one_that_gathers_its_labels(k, digits, dtype):
    rng = np.random.default_rng(k)
    p, y = draw(rng, 500, k, 3.0)
    p = (p if digits is None else p.round(digits)).astype(dtype)  # with ties
    mask = (np.arange(k) == y[:, None]) | (rng.random(p.shape) < 0.2) | (p > 0.3)
    ranked = RankedRows(-p, mask, Assumption("uniform"), 0.05, list(range(k)))
    for family, expected in one_by_one(p, mask, 0.05).items():
        found = getattr(ranked, f"by_{family}")()
        assert [one.rows for one in found] == [rows for rows, *_ in expected]
        numbers = [(one.seen, one.expected, one.p_value) for one in found]
        assert np.allclose(numbers, [rest for _, *rest in expected], rtol=1e-9, atol=1e-12)
