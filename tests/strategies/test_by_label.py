"""`by="label"`: each class by its own rows, from exact labels or verified ones."""

import numpy as np
import pytest

from setwise import Calibration, ConformalClassifier, LabelSets, TopK, Votes, conformalize
from setwise.ranks import as_level, rank
from setwise.strategies.by_label import LabelRule
from setwise.streams import CalibrationRows
from tests.conftest import candidates_from, labels_from, printed, simplex

K = 4


def rows(rng, n=800, k=K):
    p = simplex(rng, n, k)
    return p, labels_from(rng, p)


def some_verified(rng, y, m):
    verified = np.full(len(y), None, dtype=object)
    chosen = rng.choice(len(y), m, replace=False)
    verified[chosen] = y[chosen]
    return verified, chosen


def own_thresholds(p, y, level):
    """The ⌈(n_k + 1)·level⌉-th smallest of 1 − f_k over the rows of each class."""
    found = np.full(p.shape[1], np.inf)
    for k in range(p.shape[1]):
        own, position = np.sort(1 - p[y == k, k]), rank(int((y == k).sum()), as_level(level))
        if position <= len(own):
            found[k] = own[position - 1]
    return found


@pytest.mark.parametrize("level", [0.7, 0.8, 0.9])
def test_sets_of_many_classes_are_those_of_the_formula(rng, level):
    p, y = rows(rng, 10_000, 100)
    limits = own_thresholds(p[:5000], y[:5000], level)
    made = conformalize(p[:5000], y[:5000], by="label")
    assert np.allclose(made.threshold(level), limits, rtol=0, atol=1e-12)
    near = np.isclose(1 - p[5000:], limits, rtol=0, atol=1e-9)
    assert ((made.predict_set(p[5000:], level).to_mask() == (1 - p[5000:] <= limits)) | near).all()


@pytest.mark.parametrize("score", ["lac", "aps", "margin"])
def test_a_label_is_in_the_set_where_its_p_value_exceeds_epsilon(rng, score):
    p, y = rows(rng)
    made = conformalize(p[:400], y[:400], "max", score, by="label", random_state=0)
    values = made.predict_p(p[400:])
    for level in (0.7, 0.9):
        inside = np.round(values * 10**6) > round((1 - level) * 10**6)
        assert np.array_equal(made.predict_set(p[400:], level).to_mask(), inside)


def test_the_p_value_of_a_label_ranks_among_the_rows_of_its_class(rng):
    p, y = rows(rng, 60)
    found = conformalize(p[:50], y[:50], by="label").predict_p(p[50:])
    for k in range(K):
        own = -p[:50][y[:50] == k, k]
        assert np.allclose(found[:, k], [(1 + (own >= -f).sum()) / (len(own) + 1) for f in p[50:, k]])


def test_classes_with_too_few_rows_are_in_every_set_and_the_guarantee_names_them(rng):
    p, y = rows(rng)
    named = LabelSets.from_labels(np.array(["cat", "dog", "elk", "owl"])[y], classes=["cat", "dog", "elk", "owl"])
    kept = np.flatnonzero((y < 2) | (np.arange(len(y)) < 30))
    kept = kept[y[kept] != 3]
    made = conformalize(p[kept], named[kept], by="label")
    sets = made.predict_set(p, 0.95).to_mask()
    elks = int((y[kept] == 2).sum())
    assert sets[:, 2:].all()
    assert not sets[:, :2].all()
    text = printed(made.guarantee(0.95))
    assert f"Too few rows: 'owl' (0), 'elk' ({elks}). Every set contains such a class" in text
    assert "because confidence 0.95 needs at least 19 rows of a class." in text
    assert "The smallest class" not in text  # it is among them
    (rule,) = made.rules
    assert rule.short_classes(as_level(0.95)) == {"owl": 0, "elk": elks}
    with pytest.warns(UserWarning, match="needs at least 999 rows of a class, and the largest has"):
        assert made.predict_set(p[:3], 0.999).to_mask().all()


def test_a_long_tail_is_counted_and_a_few_of_its_classes_are_named(rng):
    p, y = rows(rng, 300, 30)
    (remark,) = conformalize(p, y, by="label").guarantee(0.99).remarks
    assert remark.count("(") == 5
    assert "and 25 more classes." in remark


def test_the_claim_is_about_the_rows_of_any_one_class(rng):
    p, y = rows(rng)
    made = conformalize(p, y, by="label").guarantee(0.9)
    assert made.promised == 0.9
    assert made.claims[0].subject == "a new row of any one true class"
    counts = np.bincount(y)
    alone = [conformalize(p[y == k], y[y == k], classes=range(K)).guarantee(0.9) for k in range(K)]
    least = min(each.given_calibration for each in alone)
    assert made.given_calibration == f"{least[:-1]} for a class chosen beforehand."  # some class may have less
    assert f"The smallest class is {counts.argmin()} with {counts.min()} rows." in made.remarks


def test_verified_rows_alone_supply_the_labels(rng):
    p, y = rows(rng)
    verified, chosen = some_verified(rng, y, 200)
    made = conformalize(p, candidates_from(rng, y, K, 0.3), by="label", verified=verified)
    assert np.array_equal(made.threshold(0.9), conformalize(p[chosen], y[chosen], by="label").threshold(0.9))
    guarantee = made.guarantee(0.9)
    assert guarantee.verified == 200
    assert guarantee.promised == 0.9
    assert "rest on the verified rows alone, and not on the candidates of other rows." in printed(guarantee)
    assert {"verified_at_random", "verified_right"} <= {premise.name for premise in guarantee.premises}


def test_verified_labels_outside_the_classes_void_nothing(rng):
    p, y = rows(rng)
    verified, _ = some_verified(rng, y, 200)
    mask = candidates_from(rng, y, K, 0.3)
    usual = conformalize(p, mask, by="label", verified=verified)
    verified[np.flatnonzero(verified == None)[:3]] = 17  # noqa: E711 - elementwise
    with pytest.warns(
        UserWarning, match="holds 17, which is not among the classes; 3 such rows count for no class"
    ):
        made = conformalize(p, mask, by="label", verified=verified)
    assert np.array_equal(made.threshold(0.9), usual.threshold(0.9))
    assert made.guarantee(0.9).promised == 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verified": None}, "use verified=….*or leave out by"),
        ({"strategy": "max"}, "strategy 'max' does not; use strategy='auto'"),
        ({"strategy": "posterior"}, "strategy 'posterior' does not"),
        ({"assume": "uniform"}, "assume: 'label' uses true labels alone"),
        ({"sample_weight": np.ones(800)}, "sample_weight: rows of a class count alike"),
        ({"verified_probability": np.full(800, 0.25)}, "verified_probability: rows of a class count alike"),
        ({"groups": np.arange(800) // 4}, "groups: 'label' counts groups, and some are verified in part"),
        ({"exact": True, "verified": None, "miss_rate": 0.05}, "miss_rate: wrong labels stand among the rows"),
        ({"exact": True, "verified": None, "strategy": "corrected"}, "strategy 'corrected' does not"),
    ],
)
def test_what_a_calibration_by_label_would_not_use_is_refused_by_name(rng, options, message):
    p, y = rows(rng)
    verified, _ = some_verified(rng, y, 200)
    exact = options.pop("exact", False)
    candidates = LabelSets.from_labels(y, classes=range(K)) if exact else candidates_from(rng, y, K, 0.3)
    with pytest.raises(ValueError, match=message):
        conformalize(p, candidates, by="label", **({"verified": verified} | options))


def test_groups_are_counted_in_each_class(rng):
    p, y = rows(rng)
    alone = conformalize(p, y, by="label")
    same = conformalize(p, y, by="label", groups=np.arange(800))
    assert np.array_equal(same.threshold(0.9), alone.threshold(0.9))
    few = conformalize(p, y, by="label", groups=np.arange(800) // 100)
    with pytest.warns(UserWarning, match="needs at least 9 groups of a class, and the largest has 8"):
        assert np.isinf(few.threshold(0.9)).all()
    assert "a row of any one true class in a random new group" in printed(few.guarantee(0.9))


def test_new_rows_need_no_category_and_a_file_gives_back_the_same(rng, tmp_path):
    p, y = rows(rng)
    made = conformalize(p, y, by="label")
    with pytest.raises(ValueError, match="calibrated by label, and nobody knows those of new rows"):
        made.predict_set(p, by=y)
    with pytest.raises(ValueError, match="calibrated by label"):
        made.threshold(0.9, by=1)
    made.save(tmp_path / "made.cal")
    again = Calibration.load(tmp_path / "made.cal")
    assert isinstance(again.rules[0], LabelRule)
    assert np.array_equal(again.threshold(0.9), made.threshold(0.9))
    assert str(again.guarantee(0.9)) == str(made.guarantee(0.9))
    assert not made.compare(p[:400]).refuted


def test_candidates_of_new_rows_cut_the_sets_and_votes_are_ranked_within_classes(rng):
    p, y = rows(rng)
    verified, chosen = some_verified(rng, y, 300)
    votes = Votes.from_matrix(np.where(rng.random((800, 3)) < 0.7, y[:, None], rng.integers(0, K, (800, 3))))
    mask = candidates_from(rng, y, K, 0.3)
    made = conformalize(p, mask, by="label", verified=verified)
    assert made.predict_set(p, candidates=mask) == (made.predict_set(p) & LabelSets.from_mask(mask))
    made = conformalize(p, votes, by="label", verified=verified)
    new = votes[:100]
    found = made.predict_set(p[:100], 0.9, candidates=new).to_mask()
    scores = made.evidence.answered_truth
    posterior = made.annotators.posterior(new, p[:100])
    for k in range(K):
        mine = np.sort(scores[chosen][y[chosen] == k])
        limit = mine[rank(len(mine), as_level(0.9)) - 1]
        assert np.array_equal(found[:, k], -posterior[:, k] <= limit)
    assert "same_annotators" in {premise.name for premise in made.guarantee(0.9, votes=True).premises}


def test_tensors_give_the_same_sets_and_stored_top_labels_are_refused(rng):
    torch = pytest.importorskip("torch")
    p, y = rows(rng)
    made, tensors = conformalize(p, y, by="label"), torch.from_numpy(p)
    assert np.array_equal(conformalize(tensors, y, by="label").predict_mask(tensors).numpy(), made.predict_mask(p))
    with pytest.raises(ValueError, match="'label' compares all labels, and rows store the top 2 alone"):
        conformalize(TopK.of(p, k=2), y, by="label")


def test_new_rows_are_triaged_as_without_it(rng):
    p, y = rows(rng)
    verified, _ = some_verified(rng, y, 300)
    mask = candidates_from(rng, y, K, 0.3)
    found = [conformalize(p, mask, by=by, verified=verified, random_state=0) for by in (None, "label")]
    decided = [each.triage(max_error=0.3) for each in found]
    assert np.array_equal(decided[0].accepted, decided[1].accepted)
    assert np.array_equal(decided[0].labels, decided[1].labels)


def test_estimators_and_batches_of_rows_calibrate_by_label_too(rng):
    p, y = rows(rng)
    X = np.log(p)
    model = ConformalClassifier(random_state=0).fit(X, y, by="label")
    assert "any one true class" in model.guarantee(0.9).claims[0].subject
    assert model.predict_set(X[:5]).shape == (5, K)
    p, y = rows(rng)
    again = model.conformalize(np.log(p), y, by="label").calibration_.threshold(0.9)
    assert again.shape == (K,)
    batches = CalibrationRows(random_state=0)
    batches.add(p[:300], y[:300])
    batches.add(p[300:], y[300:])
    made = batches.conformalize(by="label")
    assert np.array_equal(made.threshold(0.9), conformalize(p, y, by="label").threshold(0.9))
