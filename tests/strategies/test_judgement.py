"""No promise outlives its premises: what rows refute, or what nobody may know of them, is not promised."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets, MisuseWarning, Votes, conformalize
from setwise.evidence.evidence import Evidence
from setwise.strategies import Corrected, Mixture
from setwise.strategies.judgement import Judgement, Setting
from setwise.tables import read_table
from tests.conftest import candidates_from, labels_from, printed, simplex

K = 4


@pytest.fixture
def rows(rng):
    p = simplex(rng, 600, K)
    y = labels_from(rng, p)
    return p, y, candidates_from(rng, y, K)


def verified_rows(y, m, n):
    return [int(label) if i < m else None for i, label in enumerate(y[:n])]


@pytest.mark.parametrize("strategy", ["mean", "min", Mixture(mu=0.5)])
def test_unequal_chances_of_being_verified_bound_nothing_on_the_rho_line(rows, strategy):
    p, y, mask = rows
    verified, chance = verified_rows(y, 200, 600), np.where(np.arange(600) < 300, 0.6, 0.01)
    assert conformalize(p, mask, strategy, verified=verified).guarantee().promised is not None
    told = conformalize(p, mask, strategy, verified=verified, verified_probability=chance).guarantee()
    assert told.promised is None
    assert "unequal probabilities" in printed(told)


def test_with_labels_the_model_has_never_seen_the_guarantee_is_about_rows_of_the_known_classes(rng):
    y = np.where(rng.random(400) < 0.7, rng.integers(0, 3, 400), 10 + np.arange(400))  # a long tail
    X = np.eye(3)[np.minimum(y, 2)] * 3 + rng.normal(size=(400, 3))
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X, y)
    guarantee = model.guarantee(0.9)
    assert guarantee.promised == 0.9
    classes = len(model.classes_)
    assert f"a new row whose true label is one of the {classes} classes" in printed(guarantee)
    first, text = guarantee.lines[0]
    assert first == "Warning"
    assert "of 80 calibration rows have a label the model has never seen. Declare all classes." in text
    assert guarantee.to_dict()["caution"] == text
    declared = LabelSets.from_labels(y, classes=np.unique(y))
    sure = ConformalClassifier(GaussianNB(), random_state=0).fit(X, declared).guarantee(0.9)
    assert (sure.promised, sure.caution) == (0.9, "")


def test_folds_count_the_labels_that_their_models_have_never_seen(rng):
    y = np.where(rng.random(200) < 0.9, rng.integers(0, 3, 200), 10 + np.arange(200))
    X = np.eye(3)[np.minimum(y, 2)] * 3 + rng.normal(size=(200, 3))
    made = CrossConformalClassifier(GaussianNB(), cv=4, random_state=0).fit(X, y).guarantee(0.9)
    assert made.caution.startswith(f"{(y >= 10).sum()} of 200 calibration rows have a label")
    assert made.promised is not None


def test_every_label_of_those_seen_is_not_every_label(tmp_path, rng):
    path = tmp_path / "t.csv"
    path.write_text("x,labels\n" + "0,a\n1,b\n2,\n3,c\n" * 30)
    sets = read_table(path, candidates="labels", missing="full").candidates
    with pytest.raises(ValueError, match="'every label', and know only 3 of the 4 labels"):
        conformalize(simplex(rng, 120, 4), sets, classes=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="y: some rows stand for every label, but only the labels that occur"):
        ConformalClassifier(GaussianNB()).fit(rng.normal(size=(120, 2)), sets)


def test_by_size_the_candidates_of_new_rows_must_come_from_the_same_source(rows):
    p, _, mask = rows
    made = conformalize(p, mask, "max", by="size").guarantee()
    assert made.promised is None
    for part in made.by_category.values():
        assert "same_candidates" in {premise.name for premise in part.claims[0].conditions}


def test_with_groups_the_promise_is_about_a_row_of_a_random_new_group(rows):
    p, _, mask = rows
    made = conformalize(p, mask, groups=np.arange(600) // 5).guarantee()
    assert made.promised == 0.9
    assert {claim.subject for claim in made.claims} == {"a row of a random new group"}
    assert "a row of a random new group" in printed(made)


def without_truth(y, mask, rows):
    """Candidate sets that lack the truth in some rows."""
    mask = mask.copy()
    mask[rows, y[rows]] = False
    mask[rows, (y[rows] + 1) % K] = True
    return mask


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")
def test_a_category_knows_what_the_verified_rows_of_another_refute(rows):
    p, y, mask = rows
    broken = without_truth(y, mask, np.arange(40))
    by = np.where(np.arange(600) < 300, "checked", "other")
    made = conformalize(p, broken, "max", by=by, verified=verified_rows(y, 100, 600)).guarantee()
    assert made.by_category["other"].claims[0].refuted
    assert made.promised is None


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")
def test_the_bracket_gives_way_where_verified_rows_refute_the_miss_rate(rows):
    p, y, mask = rows
    broken = without_truth(y, mask, np.arange(0, 600, 3))
    verified = verified_rows(y, 200, 600)
    made = conformalize(p, broken, "max", verified=verified)
    low, high = made.bracket(0.8)
    inside = made.predict_set(p, 0.8).contains(y).mean()
    assert low <= inside <= high
    assert low < conformalize(p, broken, "max").bracket(0.8)[0]
    with pytest.raises(ValueError, match="bracket: verified rows refute the miss rate"):
        conformalize(p, broken, "max", verified=verified, verified_probability=[0.4] * 600).bracket()


@pytest.mark.parametrize("strategy", [Corrected("finite"), "posterior"])
def test_rows_that_were_given_every_label_are_not_weighed(rows, strategy):
    p, _, mask = rows
    gone = mask.copy()
    gone[:50] = False
    options = {"assume": "uniform", "missing": "full"}
    if strategy == "posterior":
        del options["assume"]
    with pytest.raises(ValueError, match="weighs candidates, and rows without any were given every label"):
        conformalize(p, gone, strategy, **options)
    assert conformalize(p, gone, **options).guarantee().promised == 0.9


@pytest.mark.parametrize("score", ["lac", "aps", "raps", "saps", "margin", "rps"])
@pytest.mark.parametrize("types", [("float32", "float64"), ("float64", "float32"), ("float16", "float64")])
def test_scores_are_compared_in_the_coarser_precision(rng, score, types):
    first, then = types
    p = rng.integers(1, 8, (500, K))
    p = p / p.sum(axis=1, keepdims=True)
    y = labels_from(rng, p)
    calibrated = conformalize(p[:250].astype(first), y[:250], conformity_score=score, random_state=0)
    same = conformalize(p[:250].astype(then), y[:250], conformity_score=score, random_state=0)
    sets, exact = (made.predict_set(p[250:].astype(then), 0.8) for made in (calibrated, same))
    if score in {"lac", "margin"}:  # of the others the noise depends on the bits
        assert sets == exact or exact.issubset(sets).all()
    values = calibrated.predict_p(p[250:].astype(then))
    assert np.array_equal(values > 0.2, sets.to_mask())


def test_the_law_given_the_calibration_set_states_no_upper_end(rows):
    p, _, mask = rows
    text = conformalize(p, mask, "max").guarantee().given_calibration
    assert "is at least" in text
    assert "between" not in text


def test_theorem_2_shown_in_this_sample_is_conditional_on_what_other_samples_would_get(rng):
    p = np.tile([0.9, 0.05, 0.03, 0.02], (200, 1))
    mask = np.tile([True, True, False, False], (200, 1))
    made = conformalize(p, mask, "all", verified=[0] * 200).guarantee()
    theorem = next(claim for claim in made.claims if claim.source == "Theorem 2")
    assert [premise.name for premise in theorem.conditions] == ["max_otherwise"]
    assert made.promised is None


def without_truth_everywhere(y, mask, rate, rng):
    return without_truth(y, mask, np.flatnonzero(rng.random(len(y)) < rate))


def test_the_bracket_of_votes_does_not_take_the_truth_to_be_an_answer(rows, rng):
    p, y, _ = rows
    votes = Votes.from_lists([[label] for label in np.where(rng.random(600) < 0.6, y, (y + 1) % K)], range(K))
    with pytest.raises(ValueError, match="bracket: the true label need not be among the answers"):
        conformalize(p, votes).bracket(0.5)
    made = conformalize(p, votes, miss_rate=0.5)
    low, high = made.bracket(0.5)
    assert low <= made.predict_set(p, 0.5).contains(y).mean() <= high


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")
def test_the_bracket_takes_no_bound_from_rows_that_were_not_verified_at_random(rows):
    p, y, mask = rows
    broken = without_truth(y, mask, np.arange(0, 600, 3))
    large = np.argsort(-broken.sum(axis=1), kind="stable")[:200]
    verified = np.full(600, None, dtype=object)
    verified[large] = y[large]
    with pytest.raises(ValueError, match="cannot bound it: verified rows differ from the others in the number"):
        conformalize(p, broken, "max", verified=verified).bracket()


@pytest.mark.filterwarnings("ignore::setwise.MisuseWarning")
@pytest.mark.parametrize("strategy", ["auto", "rectified", "max"])
def test_sets_are_not_cut_down_to_candidates_that_verified_rows_refute(rows, rng, strategy):
    p, y, mask = rows
    broken = without_truth_everywhere(y, mask, 0.3, rng)
    verified = verified_rows(y, 200, 600)
    made = conformalize(p, broken, strategy, verified=verified)
    with pytest.raises(ValueError, match="candidates: those of new rows may lack the true label as these do"):
        made.predict_set(p, candidates=broken)
    by_size = conformalize(p, broken, strategy, verified=verified, by="size")
    with pytest.raises(ValueError, match="pass by=…, how many each row has"):
        by_size.predict_set(p, candidates=broken)
    with pytest.raises(ValueError, match="pass by=…, how many each row has"):
        conformalize(p, mask, "mean", by="size", miss_rate=0.1).predict_set(p, candidates=mask)
    by_size.predict_set(p, 0.5, by=broken.sum(axis=1))


def test_a_random_answer_is_drawn_by_weight(rows):
    p, _, _ = rows
    votes = Votes.from_proposals([{0: 0.9, 1: 0.1}] * 600, range(K))
    assert "an answer drawn at random, by weight" in printed(conformalize(p, votes).guarantee())


@pytest.mark.parametrize("unequal", ["chance", "weight"])
def test_unequal_rows_refute_a_miss_rate_too(rows, rng, unequal):
    p, y, mask = rows
    weight = rng.choice([0.2, 0.6], 600)
    verified = [int(label) if known else None for label, known in zip(y, rng.random(600) < weight, strict=True)]
    options = {"verified_probability" if unequal == "chance" else "sample_weight": weight, "verified": verified}
    for missed, refuted in ((0.5, True), (0.05, False)):
        broken = without_truth_everywhere(y, mask, missed, rng)
        made = conformalize(p, broken, "max", miss_rate=0.08, **options).guarantee()
        assert (made.promised is None) == refuted


def test_a_miss_rate_of_each_category_is_refuted_by_one(rng):
    p = simplex(rng, 2000, K)
    y = labels_from(rng, p)
    rare = rng.random(2000) < 0.1
    broken = without_truth(y, candidates_from(rng, y, K), np.flatnonzero(rare & (rng.random(2000) < 0.5)))
    options = {"miss_rate": 0.08, "verified": verified_rows(y, 1000, 2000)}
    assert conformalize(p, broken, "max", **options).guarantee().promised == 0.9
    made = conformalize(p, broken, "max", by=np.where(rare, "rare", "common"), **options).guarantee()
    for part in made.parts:
        assert [premise.name for premise in part.claims[0].refuted] == ["miss_rate"]
    assert "verified rows of one category" in printed(made)


def test_verified_rows_of_few_groups_or_hard_rows_do_not_refute_a_miss_rate_that_holds(rng):
    p = simplex(rng, 600, K)
    y = labels_from(rng, p)
    mask = candidates_from(rng, y, K)
    groups = np.repeat(np.arange(6), 100)
    broken = without_truth(y, mask, np.arange(100))  # one group of six, where one of five is declared
    made = conformalize(p, broken, "max", groups=groups, miss_rate=0.2, verified=[*y[:300].tolist()] + [None] * 300)
    assert made.guarantee().promised == 0.9
    hard = np.flatnonzero(mask.sum(axis=1) > 2)
    broken = without_truth(y, mask, hard[:30])
    verified = np.full(600, None, dtype=object)
    verified[hard[:80]] = y[hard[:80]]
    with pytest.warns(MisuseWarning, match="not a random choice"):
        made = conformalize(p, broken, "max", miss_rate=0.1, verified=verified)
    assert made.guarantee().promised == 0.9


def test_chances_that_the_rows_refute_are_not_promised_on():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 1000)
    y, hard = P.argmax(axis=1), P.max(axis=1) < 0.5
    verified = np.where(rng.random(1000) < 0.3, y, None)
    with pytest.warns(MisuseWarning, match="rows whose probability is 1 are not verified"):
        cal = conformalize(
            P,
            LabelSets.from_mask(np.ones((1000, 3), bool)),
            verified=verified,
            verified_probability=np.where(hard, 1.0, 0.3),
        )
    assert cal.guarantee(0.9).promised is None
    assert "Contradicted" in printed(cal.guarantee(0.9))


def test_single_candidates_are_no_labels_by_design_unless_that_is_declared():
    alike = np.zeros(20)
    evidence = Evidence(alike, alike, np.ones(20, int))
    assert Judgement(evidence, Setting("lac", K)).truth_is_candidate.name == "truth_is_candidate"
    assert Judgement(evidence, Setting("lac", K, single=True)).truth_is_candidate.name == "labels_right"
