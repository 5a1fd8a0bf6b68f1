"""The paper's strategies: equations 10, 12, 14, 15, 16, and what each may claim."""

from fractions import Fraction

import numpy as np
import pytest

from setwise import LabelSets, conformalize
from setwise.calibration.pooled import check_poolable
from setwise.evidence.evidence import Evidence
from setwise.ranks import beta_interval, rank, upper_bound
from setwise.strategies import All, Auto, Max, Mean, Min, Mixture, Setting, as_strategy
from setwise.strategies.rank_strategies import epsilon_bound, size_certificate
from tests.conftest import candidates_from, labels_from, printed, simplex
from tests.test_scores import ALL_SCORES

STRATEGIES = ["max", "all", "mean", "min", Mixture(mu=0.3), Mixture(mu=0.5), Mixture(mu=0.7), "auto"]
NINE = Fraction(9, 10)


def paper_scores(f, mask, strategy):
    """The score sets of the paper, written as the paper writes them."""
    rows = [f[i][mask[i]] for i in range(len(f))]
    match strategy:
        case "max" | "auto":
            return [1 - row.min() for row in rows]
        case "all":
            return [1 - v for row in rows for v in row]
        case "mean":
            return [1 - row.sum() / len(row) for row in rows]
        case "min":
            return [1 - row.max() for row in rows]
        case Mixture(mu=mu):
            return [mu * (1 - row.max()) + (1 - mu) * (1 - row.min()) for row in rows]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_thresholds_are_those_of_the_equations(strategy, level, rng):
    p = simplex(rng, 250, 5)
    mask = candidates_from(rng, labels_from(rng, p), 5)
    e = np.sort(paper_scores(p, mask, strategy))
    q = e[int(np.ceil(round((len(e) + 1) * level, 9))) - 1]
    assert np.isclose(conformalize(p, mask, strategy).threshold(level), q, atol=1e-14)


@pytest.mark.parametrize("score", ALL_SCORES, ids=repr)
def test_with_precise_labels_all_strategies_are_split_conformal_prediction(score, rng):
    p, q = simplex(rng, 211, 5), simplex(rng, 60, 5)
    y = labels_from(rng, p)
    made = [conformalize(p, y, strategy, score, random_state=3) for strategy in STRATEGIES]
    for level in (0.6, 0.9, 0.99):
        thresholds = {calibration.threshold(level) for calibration in made}
        assert len(thresholds) == 1
        assert len({calibration.predict_set(q, level).to_mask().tobytes() for calibration in made}) == 1
        assert {c.guarantee(level).promised for c in made} == {level}
    assert all(np.array_equal(c.predict_p(q), made[0].predict_p(q)) for c in made)


def test_a_hand_worked_example():
    """n = 4, level 0.6: rank ⌈5·0.6⌉ = 3 of each score set (all: ⌈9·0.6⌉ = 6 of 8)."""
    f = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    mask = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 1, 1]], bool)
    expected = {"max": 0.9, "all": 0.8, "mean": 0.7, "min": 0.5, Mixture(mu=0.3): 0.78}
    for strategy, q in expected.items():
        assert np.isclose(conformalize(f, mask, strategy).threshold(0.6), q)


def test_mixtures_end_in_max_and_min(rng):
    p = simplex(rng, 100, 4)
    mask = candidates_from(rng, labels_from(rng, p), 4)
    for mu, name in ((0, "max"), (1, "min")):
        mixed, pure = conformalize(p, mask, Mixture(mu=mu)), conformalize(p, mask, name)
        assert mixed.threshold() == pure.threshold()
        assert str(mixed.guarantee()) == str(pure.guarantee())


def test_auto_is_max_when_nothing_is_known(rng):
    p = simplex(rng, 100, 4)
    mask = candidates_from(rng, labels_from(rng, p), 4)
    assert str(conformalize(p, mask).guarantee()) == str(conformalize(p, mask, "max").guarantee())


# -------------------------------------------------------------------------------- small samples


def evidence_of(high, *, low=None, sizes=None, every=None, truth=None, held=None, total=1.0):
    high = np.asarray(high, float)
    return Evidence(
        high if low is None else np.asarray(low, float),
        high,
        np.full(len(high), 2) if sizes is None else np.asarray(sizes),
        None if every is None else np.asarray(every, float),
        total=None if every is None or total is None else np.full(len(high), total),
        truth=None if truth is None else np.asarray(truth, float),
        held=None if truth is None else np.ones(len(high), bool) if held is None else np.asarray(held),
    )


SETTING = Setting("lac", 10)


def test_all_counts_instances_not_scores():
    evidence = evidence_of(np.linspace(-1, 0, 8), sizes=np.full(8, 3), every=np.linspace(-1, 0, 24))
    assert All().calibrate(evidence, SETTING).threshold(NINE) == np.inf
    nine = evidence_of(np.linspace(-1, 0, 9), sizes=np.full(9, 3), every=np.linspace(-1, 0, 27))
    assert All().calibrate(nine, SETTING).threshold(NINE) < np.inf


def test_p_values_of_all_respect_the_same_rule():
    evidence = evidence_of(np.linspace(-1, 0, 8), sizes=np.full(8, 3), every=np.linspace(-1, 0, 24))
    assert (All().calibrate(evidence, SETTING).p_values(np.array([[0.5]])) > 0.1).all()


# -------------------------------------------------------------------------------- claims


def test_max_runs_at_epsilon_minus_the_miss_rate():
    evidence = evidence_of(np.linspace(-1, 0, 999))
    strict = Max().calibrate(evidence, Setting("lac", 10, Fraction(3, 100)))
    assert strict.threshold(NINE) == Max().calibrate(evidence, SETTING).threshold(Fraction(93, 100))
    guarantee = strict.claim(NINE)
    assert guarantee.promised == 0.9
    assert [claim.probability for claim in guarantee.claims] == [0.9, 0.93]


def test_a_miss_rate_that_uses_up_the_error_leaves_all_labels():
    rule = Max().calibrate(evidence_of(np.linspace(-1, 0, 999)), Setting("lac", 10, Fraction(1, 10)))
    assert rule.threshold(NINE) == np.inf
    assert "already used up" in printed(rule.claim(NINE))


def test_max_makes_two_claims_and_one_of_them_is_conditional():
    guarantee = Max().calibrate(evidence_of(np.linspace(-1, 0, 99)), SETTING).claim(NINE)
    truth, candidates = guarantee.claims
    assert (truth.event, truth.promised) == ("truth", True)
    assert (candidates.event, candidates.promised) == ("candidates", False)
    assert candidates.conditions[0].text == "candidates arise for new rows as they did for these"


def test_a_verified_miss_voids_theorem_1_and_the_rho_line_steps_in():
    truth = np.full(200, np.nan)
    truth[:100] = -0.9
    held = np.arange(200) >= 2
    truth[:2] = 0.5
    evidence = evidence_of(np.linspace(-0.5, 0, 200), truth=truth, held=held)
    guarantee = Max().calibrate(evidence, SETTING).claim(NINE)
    assert guarantee.claims[0].refuted[0].detail == "missing in 2 of 100 verified rows"
    bound = guarantee.claims[2]
    assert guarantee.promised == bound.probability
    assert np.isclose(bound.probability, beta_interval(200, 181, 0.05)[0] - upper_bound(2, 100, 0.025))
    assert guarantee.delta == bound.delta == 0.05
    assert "Contradicted: the true label is always a candidate" in printed(guarantee)


def test_min_promises_overlap_and_nothing_about_the_truth():
    guarantee = Min().calibrate(evidence_of(np.zeros(99), low=np.linspace(-1, 0, 99)), SETTING).claim(NINE)
    assert guarantee.promised is None
    assert [(c.event, c.probability) for c in guarantee.claims] == [("overlap", 0.9), ("truth", None)]


@pytest.mark.parametrize("strategy", [Mean(), Mixture(mu=0.5), Min()])
def test_verified_rows_bound_rho(strategy):
    high = np.zeros(300)
    truth = np.full(300, np.nan)
    truth[:100] = -0.9
    truth[:4] = -0.1  # stranger than the mean, the middle and the least strange candidate
    evidence = evidence_of(high, low=np.full(300, -0.8), every=np.tile([-0.8, 0.0], 300), truth=truth)
    guarantee = strategy.calibrate(evidence, SETTING).claim(NINE)
    assert np.isclose(guarantee.promised, beta_interval(300, 271, 0.05)[0] - upper_bound(4, 100, 0.025))
    if isinstance(strategy, Mean):
        assert guarantee.claims[0].refuted[0].detail == "fails in 4 of 100 verified rows"


@pytest.mark.parametrize("strategy", [Mean(), Min()])
def test_a_category_without_verified_rows_has_no_rho_line(strategy):
    evidence = evidence_of(
        np.zeros(99), low=np.full(99, -1), every=np.tile([-1.0, 0.0], 99), truth=np.full(99, np.nan)
    )
    theorem, *_, bound = strategy.calibrate(evidence, SETTING).claim(NINE).claims
    assert bound.probability is None
    assert "Only verified labels can show ρ" in bound.note
    if isinstance(strategy, Mean):
        assert theorem.conditions[0].detail == "verified labels could refute it"


def test_theorem_3_is_conditional_on_what_candidates_cannot_tell():
    evidence = evidence_of(np.zeros(99), low=np.full(99, -1), every=np.tile([-1.0, 0.0], 99))
    guarantee = Mean().calibrate(evidence, SETTING).claim(NINE)
    theorem = guarantee.claims[0]
    assert theorem.source == "Theorem 3"
    assert theorem.conditions[0].status == "assumed"
    assert guarantee.promised is None


def test_theorem_3_shown_in_this_sample_is_a_selection_and_stays_conditional():
    evidence = evidence_of(
        np.zeros(99), low=np.full(99, -1), every=np.tile([-1.0, 0.0], 99), truth=np.full(99, -0.7)
    )
    theorem = Mean().calibrate(evidence, SETTING).claim(NINE).claims[0]
    assert "shown by the data" in {premise.status for premise in theorem.premises}
    assert [premise.name for premise in theorem.conditions] == ["max_otherwise"]


def certificate(claim):
    return next(premise for premise in claim.premises if premise.name == "certificate")


def pooled(sizes):
    """Rows of these sizes, every false candidate just right of one half, the truth far left."""
    n = len(sizes)
    return evidence_of(np.zeros(n), low=np.full(n, -1), sizes=sizes, every=np.full(sizes.sum(), -0.1))


def test_the_size_certificate_of_theorem_2_replaces_its_hidden_premise():
    shown = (np.full(100, 2), np.where(np.arange(100) < 60, 1, 9), np.repeat([1, 3, 10], [60, 30, 10]))
    for sizes in shown:
        premise = certificate(All().calibrate(pooled(sizes), SETTING).claim(NINE).claims[-1])
        assert premise.status == "shown by the data"
    long = pooled(np.where(np.arange(100) < 95, 1, 60))
    premise = certificate(All().calibrate(long, SETTING).claim(NINE).claims[-1])
    assert premise.status == "assumed"
    assert "outside the paper's own premise" in premise.detail


@pytest.mark.parametrize("percent", [30, 60, 90])
def test_the_size_certificate_is_right_whenever_it_is_given(percent, rng):
    """Against the worst placement: false scores of the t covered rows just above q, all others below."""
    level = Fraction(percent, 100)
    given = 0
    for _ in range(300):
        sizes = rng.integers(1, rng.integers(2, 8), 12)
        t = rank(12, level)
        if t > 12:
            continue
        true = np.linspace(-1, -0.6, 12)
        order = np.argsort(sizes)  # the largest sets belong to the rows that are not covered
        false = [np.full(sizes[row] - 1, -0.5 if place < t else -2.0) for place, row in enumerate(order)]
        every = np.concatenate([true, *false])
        rule = All().calibrate(evidence_of(true, sizes=sizes, every=every), SETTING)
        if size_certificate(rule, level).status == "shown by the data":
            given += 1
            assert rule.threshold(level) >= np.sort(true)[t - 1]
    assert given > 20


def test_theorem_2_needs_verified_rows_for_its_other_premise():
    n, every = 400, np.tile([-0.9, -0.1], 400)

    def claim(truth):
        evidence = evidence_of(np.full(n, -0.1), low=np.full(n, -0.9), every=every, truth=truth)
        return All().calibrate(evidence, SETTING).claim(NINE).claims[-1]

    def open_questions(truth):
        return {premise.name for premise in claim(truth).conditions}

    def uses_verified_rows(truth):
        return "verified_at_random" in {premise.name for premise in claim(truth).premises}

    assert "confident_truth" in open_questions(None)
    assert not uses_verified_rows(np.full(n, -0.9))  # all rows were looked at
    some = np.full(n, np.nan)
    some[:150] = -0.9
    assert uses_verified_rows(some)
    assert open_questions(some) == {"max_otherwise"}  # shown in this sample, which is a selection
    some[:60] = -0.3
    assert claim(some).refuted
    some[:60], some[:12] = -0.9, -0.3
    assert "confident_truth" in open_questions(some)
    some = np.full(n, np.nan)
    some[:29] = -0.9  # of 400 rows 361 are needed: 29 of 29 verified ones leave 5 % for 360
    assert "confident_truth" in open_questions(some)
    some[29] = -0.9
    assert open_questions(some) == {"max_otherwise"}
    assert open_questions(np.full(n, -0.9)) == {"max_otherwise"}


def test_theorem_2_is_not_stated_where_it_does_not_hold():
    high = np.linspace(-0.2, -0.1, 99)
    evidence = evidence_of(high, low=np.full(99, -0.9), every=np.stack([np.full(99, -0.9), high], 1).ravel())
    for setting, level in ((Setting("aps", 10), NINE), (Setting("lac", 10, Fraction(1, 20)), NINE)):
        guarantee = All().calibrate(evidence, setting).claim(level)
        assert guarantee.promised is None
        assert [claim.probability for claim in guarantee.claims] == [None]


def test_all_inherits_theorem_1_only_for_whoever_would_use_max_otherwise():
    n = 99
    high, low = np.full(n, -0.5), np.full(n, -0.5)
    evidence = evidence_of(high, low=low, every=np.full(2 * n, -0.5))
    guarantee = All().calibrate(evidence, Setting("aps", 10)).claim(NINE)
    assert guarantee.promised is None
    assert guarantee.claims[0].source == "Theorem 1"
    assert guarantee.claims[0].conditions[0].name == "max_otherwise"


def test_theorem_2_needs_rows_that_sum_to_no_more_than_one():
    """f_y ≥ s/2 for rows that sum to s; for inclusion probabilities there is no such bound at all."""
    n, every = 400, np.tile([-0.5002, -0.1], 400)
    truth = np.full(n, -0.5002)

    def theorem(largest):
        evidence = evidence_of(np.full(n, -0.1), low=truth, every=every, truth=truth, total=largest)
        claims = All().calibrate(evidence, Setting("lac", 10)).claim(NINE).claims
        return next((claim for claim in claims if claim.source == "Theorem 2" and claim.probability), None)

    assert not theorem(1.0).refuted
    assert theorem(1.009).refuted
    assert theorem(None) is None


def test_singletons_by_chance_promise_less_than_singletons_by_design(rng):
    p = simplex(rng, 99, 4)
    y = labels_from(rng, p)
    for strategy in ("all", "mean", "min", Mixture(mu=0.5)):
        assert conformalize(p, y, strategy).guarantee().promised == 0.9
        assert conformalize(p, LabelSets.from_labels(y, classes=range(4)), strategy).guarantee().promised == 0.9
        by_chance = conformalize(p, np.eye(4, dtype=bool)[y], strategy).guarantee()
        assert by_chance.promised is None
        assert "by design" in by_chance.claims[0].conditions[0].text
    by_chance, by_design = (conformalize(p, given, "max").guarantee() for given in (np.eye(4, dtype=bool)[y], y))
    assert by_chance.promised == by_design.promised == 0.9
    assert "the true label is always a candidate" in printed(by_chance)
    assert "the labels are right" in printed(by_design)
    assert "candidate" not in printed(by_design)


def test_the_law_given_the_calibration_set_is_a_floor_only_without_misses():
    evidence = evidence_of(np.linspace(-1, 0, 999))
    law = "this probability is at least {:.3f} in 19 of 20 draws."
    plain, above = (np.floor(1000 * beta_interval(999, r, 0.1)[0]) / 1000 for r in (900, 920))
    assert law.format(plain) in printed(Max().calibrate(evidence, SETTING).claim(NINE))
    with_misses = printed(Max().calibrate(evidence, Setting("lac", 10, Fraction(2, 100))).claim(NINE))
    assert law.format(above - 0.02) in with_misses
    assert "missing from at most 0.02 of the candidate sets." in with_misses
    truth = np.where(np.arange(999) < 10, 0.5, np.nan)
    refuted = evidence_of(np.linspace(-1, 0, 999), truth=truth, held=np.zeros(999, bool))
    assert law[:30] not in printed(Max().calibrate(refuted, SETTING).claim(NINE))


def test_the_law_given_the_calibration_set_is_a_bound_from_below():
    text = str(Max().calibrate(evidence_of(np.full(99, -0.5)), SETTING).claim(NINE))
    assert "is at least 0.846 in" in text
    assert "between" not in text


@pytest.mark.parametrize(("n", "k", "bound"), [(6000, 10, 0.1001), (800, 13, 0.0781), (180, 16, 0.0677)])
def test_the_papers_bound_on_epsilon(n, k, bound):
    assert np.isclose(float(epsilon_bound(n, k)), bound, atol=2e-4)


@pytest.mark.parametrize("bad", [{"mu": 1.5}, {"mu": -0.1}])
def test_senseless_mixtures_are_refused(bad):
    with pytest.raises(ValueError, match="mu"):
        Mixture(**bad)


def test_what_has_one_score_per_row_has_a_cross_conformal_form():
    for strategy in ("max", "min", "mean", "auto", Mixture(mu=0.3)):
        assert "table" not in as_strategy(strategy).needs(SETTING)
        check_poolable(strategy)
    with pytest.raises(ValueError, match="has no cross-conformal form"):
        check_poolable("all")


def test_strategies_by_name_or_object():
    assert as_strategy("MEAN") == Mean()
    assert as_strategy(Auto()) == Auto()
    assert Mixture(mu=0.3).name == "mixture(μ=0.3)"
    with pytest.raises(ValueError, match="strategy: 'median' is not known"):
        as_strategy("median")
    for bad in (Max, 3):
        with pytest.raises(TypeError, match="strategy"):
            as_strategy(bad)


def test_all_needs_every_score_and_equal_weights(rng):
    with pytest.raises(ValueError, match="every"):
        All().calibrate(evidence_of([0.0]), SETTING)
    p = simplex(rng, 20, 3)
    with pytest.raises(ValueError, match="not defined for weighted"):
        conformalize(p, LabelSets.from_top_k(p, k=2), "all", sample_weight=np.ones(20))


@pytest.mark.parametrize(
    ("percent", "singleton", "side"), [(90, 0, "within"), (89, 0, "outside"), (90, 1, "outside")]
)
def test_whether_the_paper_would_speak_is_told(percent, singleton, side):
    """ε ≤ 110/1010 for 100 rows of 10 classes, and at least two candidates in each."""
    sizes = np.r_[np.full(99, 2), 2 - singleton]
    rule = All().calibrate(pooled(sizes), SETTING)
    assert f"; {side} the paper's own premise" in size_certificate(rule, Fraction(percent, 100)).detail
