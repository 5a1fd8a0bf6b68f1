"""Misuse that was once silent, one test each: what makes a guarantee false for new rows is noticed."""

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from setwise import (
    Calibration,
    ConformalClassifier,
    CrossConformalClassifier,
    EMClassifier,
    LabelSets,
    MisuseWarning,
    Votes,
    conformalize,
    evaluate,
    triage,
)
from setwise.errors import InputError
from setwise.report import report_model
from tests.conftest import candidates_from, labels_from, printed, simplex


def sample(rng, n=400):
    y = rng.integers(0, 4, n)
    return 1.2 * np.eye(4)[y] + rng.normal(size=(n, 4)), y


@pytest.fixture
def fitted(rng):
    X, y = sample(rng)
    return ConformalClassifier(KNeighborsClassifier(3), random_state=0).fit(X, y), X, y


# ------------------------------------------------------------------ the same rows again


def test_calibrating_on_rows_that_were_learned_from_is_noticed(fitted, rng):
    model, X, y = fitted
    with pytest.warns(MisuseWarning, match=r"^X: 320 rows \(80%, the first is row \d+\) were learned from"):
        model.conformalize(X, y)
    new, truth = sample(rng, 2000)
    assert model.evaluate(new, truth)["coverage"] < 0.85
    assert model.guarantee().promised is None
    assert "the model did not learn from the calibration rows (it learned from 320" in printed(model.guarantee())
    with pytest.raises(ValueError, match="bracket: not available for rows that the model has seen: it learned"):
        model.calibration_.bracket()
    model.conformalize(*sample(rng))
    assert model.guarantee().promised == 0.9
    model.conformalize(X[model.calibration_rows_], y[model.calibration_rows_])  # they may be used again


def test_a_loaded_model_knows_the_rows_it_learned_from(tmp_path, rng):
    X, y = sample(rng)
    ConformalClassifier(LogisticRegression(), random_state=0).fit(X, y).save(tmp_path / "model")
    loaded = ConformalClassifier.load(tmp_path / "model")
    with pytest.warns(MisuseWarning, match="400 rows"):
        loaded.evaluate(X, y)
    with pytest.warns(MisuseWarning, match="320 rows"):
        loaded.conformalize(pd.DataFrame(X), y)
    loaded.conformalize(*sample(rng))


@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
def test_evaluating_on_rows_that_were_used_is_noticed(kind, tmp_path, rng):
    X, y = sample(rng)
    model = kind(LogisticRegression(), random_state=0).fit(X, y)
    with pytest.warns(
        MisuseWarning, match=r"400 rows \(100%, the first is row 0\) were learned from or calibrated on"
    ):
        model.evaluate(X, y)
    new, truth = sample(rng)
    with pytest.warns(MisuseWarning, match="20 rows .5%, the first is row 380"):
        report_model(tmp_path / "page.html", model, np.vstack([new[:380], X[:20]]), np.append(truth[:380], y[:20]))
    model.evaluate(new, truth)


def test_a_model_trained_elsewhere_knows_its_calibration_rows_alone(rng):
    (X, y), (other, labels) = sample(rng), sample(rng)
    trained = LogisticRegression().fit(X, y)
    model = ConformalClassifier(FrozenEstimator(trained)).fit(other, labels)
    model.evaluate(X, y)  # nobody said what it learned from
    with pytest.warns(MisuseWarning, match="400 rows"):
        model.evaluate(other, labels)
    model.conformalize(*sample(rng))
    model.evaluate(other, labels)  # they are not calibrated on any more


@pytest.mark.parametrize("levels", [2, 4, 10])
def test_rows_of_few_distinct_values_are_no_misuse(levels, rng):
    X = rng.integers(0, levels, (1200, 3))
    y = (X.sum(axis=1) + (rng.random(1200) < 0.3)) % 3
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X[:400], y[:400])
    model.conformalize(X[400:800], y[400:800])
    model.evaluate(X[800:], y[800:])
    distinct = np.column_stack([X, rng.normal(size=1200)])
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(distinct[:400], y[:400])
    with pytest.warns(MisuseWarning, match="400 rows"):
        model.evaluate(distinct[:400], y[:400])


def test_searching_over_settings_warns_of_nothing(rng):
    X, y = sample(rng)
    search = GridSearchCV(
        ConformalClassifier(LogisticRegression(), random_state=0),
        {"estimator__C": [0.1, 1.0]},
        scoring=lambda model, X, y: -model.predict_set(X, 0.9).sizes.mean(),
        return_train_score=True,
    )
    search.fit(X, y)
    with pytest.warns(MisuseWarning, match="400 rows"):  # of which it would have had reason
        search.best_estimator_.evaluate(X, y)


def catalogue(rng, n, things=150):
    """Events of the things of a catalogue: equal rows with labels of their own."""
    attributes = np.random.default_rng(0).normal(size=(things, 4))
    which = rng.integers(0, things, n)
    p = np.exp(1.5 * attributes[which])
    return attributes[which], ((p / p.sum(axis=1, keepdims=True)).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def test_events_of_a_catalogue_are_calibrated_on_and_its_training_rows_are_not(tmp_path, rng):
    (X, y), (new, truth) = catalogue(rng, 400), catalogue(rng, 300)
    with pytest.warns(MisuseWarning, match="equal a training row"):
        model = ConformalClassifier(GaussianNB(), random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    for each in (model, ConformalClassifier.load(tmp_path / "model")):
        assert each.guarantee().promised == 0.9
        assert each.conformalize(new, truth).guarantee().promised == 0.9
        with pytest.warns(MisuseWarning, match="were learned from"):
            each.conformalize(X, y)  # of which 320 were learned from
        assert each.guarantee().promised is None
        each.save(tmp_path / "again")
        assert ConformalClassifier.load(tmp_path / "again").guarantee().promised is None


def test_a_second_measurement_of_the_same_things_is_told_from_the_first(rng):
    things = rng.normal(size=(120, 4))
    first, second = ((things + rng.normal(size=(120, 4))).argmax(axis=1) for _ in range(2))
    model = ConformalClassifier(GaussianNB(), calibration_size=20, random_state=0).fit(things, first)
    with pytest.warns(MisuseWarning, match="100 of 120 calibration rows .* equal a training row"):
        model.conformalize(things, second)
    made = model.guarantee()
    assert made.promised == 0.9
    assert "100 of 120 calibration rows equal a training row; they are different events" in " ".join(
        str(made).split()
    )
    with pytest.warns(MisuseWarning, match="100 rows .* were learned from"):
        model.conformalize(things, first)
    assert model.guarantee().promised is None


# ------------------------------------------------------------------ copies on both sides of a split


def test_copies_across_the_split_are_noticed_and_groups_keep_them_together(rng):
    X, y = (np.repeat(values, 3, axis=0) for values in sample(rng, 200))
    nearest = KNeighborsClassifier(1)
    with pytest.warns(
        MisuseWarning, match=r"1\d\d of 120 calibration rows \(the first is row \d+\) equal .* use groups=…"
    ):
        made = ConformalClassifier(nearest, random_state=0).fit(X, y).guarantee()
    assert made.promised == 0.9
    stated = dict(made.lines)["You state"]
    assert re.search(r"1\d\d of 120 calibration rows equal a training row; they are different events", stated)
    with pytest.warns(MisuseWarning, match=r"equal a training row.*remove the copies\.$"):
        folds = CrossConformalClassifier(nearest, random_state=0).fit(X, y).guarantee()
    assert "600 calibration rows equal a training row; they are different events" in " ".join(str(folds).split())
    together = np.unique(X, axis=0, return_inverse=True)[1]
    model = ConformalClassifier(nearest, random_state=0).fit(X, y, groups=together)
    new, truth = sample(rng, 2000)
    assert model.evaluate(new, truth)["coverage"] >= 0.85


# ------------------------------------------------------------------ verified rows


@pytest.fixture
def rows(rng):
    p = simplex(rng, 500, 4)
    y = labels_from(rng, p)
    return p, y, candidates_from(rng, y, 4)


def test_verified_rows_unlike_the_others_are_noticed(rows, rng):
    p, y, mask = rows
    verified = np.where(mask.sum(axis=1) <= 2, y, np.nan)
    with pytest.warns(
        MisuseWarning, match=r"number of candidates \(1.\d\d on average, 3.\d\d elsewhere; p < 0.001\)"
    ):
        conformalize(p, mask, verified=verified)
    with pytest.warns(MisuseWarning, match="draw the rows to verify at random, or use verified_probability=…"):
        conformalize(p, mask, verified=verified)
    conformalize(p, mask, verified=verified, verified_probability=np.full(500, 0.79))
    conformalize(p, mask, verified=np.where(rng.random(500) < 0.3, y, np.nan))


def test_a_verified_truth_outside_its_candidates_is_noticed(rows):
    p, y, mask = rows
    names = np.array(["ant", "bee", "cat", "dog"])
    verified = [str(names[label]) if i < 10 else None for i, label in enumerate(y)]
    mask[20], mask[4] = False, ~np.eye(4, dtype=bool)[y[4]]
    sets = LabelSets.from_mask(mask, classes=names)
    own = ", ".join(f"'{name}'" for name in names if name != names[y[4]])
    words = (
        f"the label of row 4 is '{names[y[4]]}', which is not among its candidates {{{own}}} (1 of 10 verified rows"
    )
    with pytest.warns(MisuseWarning, match=re.escape(words)):
        conformalize(p, sets, "max", verified=verified, missing="drop")
    with pytest.warns(MisuseWarning, match="correct the candidates, or use miss_rate=…"):
        conformalize(p, sets, "max", verified=verified, missing="drop")
    conformalize(p, sets, "max", verified=verified, missing="drop", miss_rate=0.05)
    conformalize(p, sets, "rectified", verified=verified, missing="drop")  # it does not rest on the candidates
    verified[20] = str(names[y[20]])
    with pytest.warns(MisuseWarning, match="missing: 1 of the 1 rows dropped for lack of candidates are verified"):
        conformalize(p, sets, "rectified", verified=verified, missing="drop")


# ------------------------------------------------------------------ verified labels among the candidates


@pytest.fixture
def written(rows, rng):
    """Rows drawn at random whose verified labels were written into the candidates."""
    p, y, mask = rows
    drawn = rng.choice(500, 60, replace=False)
    verified = np.full(500, None)
    verified[drawn] = y[drawn]
    before = mask.copy()
    mask[drawn] = np.eye(4, dtype=bool)[y[drawn]]
    return p, y, mask, before, verified


def test_verified_labels_that_were_written_into_the_candidates_leave_sets_their_guarantee(written, tmp_path):
    p, _, mask, before, verified = written
    with pytest.warns(MisuseWarning, match="each of the 60 verified labels is the only candidate of its row"):
        found = conformalize(p, mask, verified=verified, random_state=0)
    assert found.guarantee().promised == 0.9
    assert "the verified labels were written into the candidates or votes of their rows" in " ".join(
        str(found.guarantee()).split()
    )
    found.save(tmp_path / "c.cal")
    assert Calibration.load(tmp_path / "c.cal").guarantee() == found.guarantee()
    with pytest.warns(MisuseWarning, match="only candidate"):
        rectified = conformalize(p, mask, "rectified", verified=verified, random_state=0)
    alone = conformalize(p, before, verified=verified, random_state=0).rules[0].alone
    assert rectified.threshold(0.9) >= alone.threshold(Fraction(9, 10)) - 0.05  # candidates would make it smaller
    with pytest.warns(MisuseWarning, match="only candidate"):
        assert conformalize(p, mask, "mean", verified=verified).guarantee().promised is None
    with pytest.warns(MisuseWarning, match="only candidate"):
        claims = conformalize(p, mask, "max", verified=verified).guarantee().claims
    assert "verified rows" not in str(claims[0].premises)


def test_triage_refuses_verified_labels_that_were_written_into_the_candidates(written):
    p, _, mask, before, verified = written
    remedy = "pass the candidates or votes as they were before rows were verified"
    with pytest.warns(MisuseWarning, match="only candidate"):
        found = conformalize(p, mask, verified=verified, random_state=0)
    with pytest.raises(InputError, match=remedy):
        found.triage()
    with pytest.raises(InputError, match=remedy):
        found.triage(p, before)
    found.triage(p)  # the model alone proposes
    lists = [np.flatnonzero(row).tolist() for row in mask]
    with pytest.raises(InputError, match=remedy):
        triage(Votes.from_lists(lists, classes=range(4)), verified)


def test_fit_keeps_its_guarantee_with_written_labels_and_folds_refuse_to_decide(rng):
    X, y = sample(rng, 500)
    mask = (np.eye(4)[y] + (rng.random((500, 4)) < 0.4)) > 0
    drawn = rng.choice(500, 60, replace=False)
    verified = np.full(500, None)
    verified[drawn], mask[drawn] = y[drawn], np.eye(4, dtype=bool)[y[drawn]]
    model = ConformalClassifier(LogisticRegression(), random_state=0)
    with pytest.warns(MisuseWarning, match="only candidate"):
        assert model.fit(X, mask, verified=verified).guarantee().promised == 0.9
    folds = CrossConformalClassifier(LogisticRegression(), cv=4, random_state=0).fit(X, mask)
    with pytest.raises(InputError, match="as they were before"):
        folds.triage(verified=verified)


def test_rows_chosen_because_the_model_is_sure_of_their_single_candidate_are_no_random_choice(rng):
    p = simplex(rng, 500, 4)
    y = labels_from(rng, p)
    sure = p.max(axis=1) > np.quantile(p.max(axis=1), 0.8)
    mask = np.eye(4, dtype=bool)[y] | (~sure[:, None] & (rng.random((500, 4)) < 0.6))
    verified = np.where(sure, y, np.nan)
    warned = pytest.warns(MisuseWarning, match="verified rows differ .* in the probability of the most probable")
    with pytest.warns(MisuseWarning, match="only candidate"), warned:
        made = conformalize(p, mask, verified=verified).guarantee()
    assert made.promised is None


# ------------------------------------------------------------------ row names in another order


@pytest.fixture
def shuffled(rng):
    """A frame of features, labels in another order, and the other things a row may come with."""
    X, y = sample(rng, 300)
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(300)])
    order = rng.permutation(300)
    return frame, pd.Series(y, frame.index), frame.index[order]


def test_row_names_in_another_order_are_an_error_in_fit(shuffled):
    X, y, other = shuffled
    wrong = y.loc[other]
    for kind in (ConformalClassifier, CrossConformalClassifier):
        with pytest.raises(InputError, match="y: its index holds the rows of X in another order: row 0 is 'row "):
            kind(LogisticRegression()).fit(X, wrong)
    for name in ("verified", "by", "groups"):
        with pytest.raises(InputError, match=f"{name}: its index"):
            ConformalClassifier(LogisticRegression()).fit(X, y, **{name: wrong})
    ConformalClassifier(LogisticRegression()).fit(X, wrong.loc[X.index])
    ConformalClassifier(LogisticRegression()).fit(X, y.to_numpy())


def test_row_names_in_another_order_are_an_error_in_conformalize_and_evaluate(shuffled):
    X, y, _ = shuffled
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X.to_numpy()[:150], y.to_numpy()[:150])
    X, y = X.iloc[150:].set_axis(range(150), axis=0), y.iloc[150:].set_axis(range(150))
    wrong = y.iloc[::-1]
    for name in ("verified", "by", "groups", "sample_weight"):
        with pytest.raises(InputError, match=f"{name}: its index"):
            model.conformalize(X, y, **{name: wrong})
    p = pd.DataFrame(model.predict_proba(X.to_numpy()))
    for name in ("verified", "by", "groups", "sample_weight", "row_ids", "verified_probability"):
        with pytest.raises(InputError, match=f"{name}: its index holds the rows of probabilities"):
            conformalize(p, y, **{name: wrong})
    with pytest.raises(InputError, match="candidates: its index"):
        conformalize(p, wrong)
    with pytest.raises(InputError, match="y: its index"):
        model.evaluate(X, wrong)
    with pytest.raises(InputError, match="y: its index holds the rows of sets"):
        evaluate(pd.DataFrame(p > 0.3), wrong)
    with pytest.raises(InputError, match="by: its index holds the rows of y"):
        evaluate(LabelSets.from_mask(p.to_numpy() > 0.3), y, by=wrong)


# ------------------------------------------------------------------ a crash


def test_categories_by_size_go_with_dropped_rows(rows):
    p, _, mask = rows
    mask[::7] = False
    calibration = conformalize(p, mask, "max", by="size", missing="drop")
    sizes = mask.sum(axis=1)
    assert calibration.category_names == sorted(set(sizes.tolist()) - {0})
    assert calibration.evidence.n == int((sizes > 0).sum())
    assert [rule.n for rule in calibration.rules] == [
        int((sizes == size).sum()) for size in calibration.category_names
    ]


def test_checks_that_avoid_large_sets_are_noticed_although_only_verified_rows_are_calibrated_on(rng):
    X, y = sample(rng)
    hard = X[np.arange(400), y] < 1.2
    mask = (np.eye(4)[y] > 0) | (rng.random((400, 4)) < np.where(hard, 0.6, 0.02)[:, None])
    easy = np.argsort(mask.sum(axis=1), kind="stable")[:100]
    verified = np.full(400, None, dtype=object)
    verified[easy] = y[easy]
    model = ConformalClassifier(LogisticRegression(), random_state=0)
    warned = pytest.warns(MisuseWarning, match="verified: not a random choice of the rows")
    with pytest.warns(MisuseWarning, match="only candidate"), warned:
        model.fit(X, mask, verified=verified)
    assert model.calibration_.evidence.verified.all()
    assert model.guarantee().promised is None
    drawn = np.full(400, None, dtype=object)
    some = rng.choice(400, 100, replace=False)
    drawn[some] = y[some]
    assert model.fit(X, mask, verified=drawn).guarantee().promised == 0.9
    by = np.where(mask.sum(axis=1) == 1, "one", "several")  # a random choice within each category
    some = np.concatenate(
        [rng.choice(np.flatnonzero(by == "one"), 60), rng.choice(np.flatnonzero(by != "one"), 20)]
    )
    drawn[:] = None
    drawn[some] = y[some]
    assert model.fit(X, mask, verified=drawn, by=by).guarantee().promised is not None


# -------------------------------------------------------------------- arguments that mean something else


@pytest.mark.parametrize("sep", ["|", ",", "; "])
@pytest.mark.parametrize("model", [ConformalClassifier(GaussianNB()), EMClassifier(), CrossConformalClassifier()])
def test_several_labels_in_one_text_are_refused(model, sep):
    y = ["cat", "dog", f"cat{sep}dog", "owl"] * 5
    remedy = re.escape(f"use LabelSets.from_strings(y, sep={sep.strip()!r}) for rows of several labels")
    with pytest.raises(ValueError, match=f"y: .*made of other labels of y; {remedy}, or use LabelSets.from_labels"):
        model.fit(np.arange(40.0).reshape(20, 2), y)


def test_a_text_that_is_one_label_may_hold_a_comma_or_be_declared():
    X = np.random.default_rng(0).normal(size=(60, 2))
    names = ["Smith, Anna", "Smith, John", "Jones"] * 20
    assert len(ConformalClassifier(GaussianNB(), random_state=0).fit(X, names).classes_) == 3
    declared = LabelSets.from_labels(["cat", "dog", "cat|dog"] * 20)
    assert len(ConformalClassifier(GaussianNB(), random_state=0).fit(X, declared).classes_) == 3


@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
def test_alpha_is_answered_with_confidence_level(kind):
    with pytest.raises(TypeError, match=r"alpha: not an argument here; use confidence_level=0\.9\."):
        kind(GaussianNB(), alpha=0.1)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    model = kind(GaussianNB(), random_state=0).fit(X, y)
    for ask in (model.predict_set, lambda X, alpha: model.evaluate(X, y, alpha=alpha)):
        with pytest.raises(TypeError, match=r"use confidence_level=0\.95"):
            ask(X, alpha=0.05)


def test_a_level_that_looks_like_an_error_rate_is_a_warning():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    model = ConformalClassifier(GaussianNB(), confidence_level=0.1, random_state=0).fit(X, y)
    with pytest.warns(
        MisuseWarning, match="confidence_level: 0.1 asks .* use confidence_level=0.9 if this was meant"
    ):
        model.predict_set(X)
    model.predict_set(X, 0.9)
    model.predict_set(X, [0.1, 0.9])  # somebody who draws a curve


def test_a_verified_label_that_nothing_can_be_learned_about_is_a_warning():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    sets = LabelSets.from_labels(np.array(["cat", "dog"])[y], classes=["cat", "dog", "owl"])
    verified = [None] * 7 + ["owl"] + ["cat", "dog"] * 26
    with pytest.warns(
        MisuseWarning, match="verified: the label of row 7, 'owl', is not a candidate in any row; add it"
    ):
        ConformalClassifier(GaussianNB(), "rectified", random_state=0).fit(X, sets, verified=verified)


def test_rows_that_nobody_answered_are_left_out_and_counted(rng):
    X, y = sample(rng, 400)
    votes = Votes.from_lists([[] if i % 40 == 0 else [int(label)] for i, label in enumerate(y)], range(4))
    with pytest.warns(MisuseWarning, match="nobody answered 10 of 400 rows, which are left out"):
        model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, votes)
    assert "dropped)" in " ".join(str(model.guarantee()).split())
    verified = np.where(np.arange(400) % 7 == 0, y.astype(object), None)
    kept = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, votes, None, verified, missing="full")
    assert kept.calibration_.evidence.n == len(kept.calibration_rows_) > model.calibration_.evidence.n
    with pytest.warns(MisuseWarning, match="nobody answered 10 of 400 rows"):
        made = conformalize(model.predict_proba(X), votes)
    assert made.evidence.n == 390
    with pytest.raises(InputError, match="candidates: row 0 is empty"):
        conformalize(model.predict_proba(X), votes, missing="error")
    with pytest.raises(InputError, match="candidates: row 0 is empty"):
        conformalize(model.predict_proba(X), votes.candidates(missing="empty"))
