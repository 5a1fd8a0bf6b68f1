"""ConformalClassifier: split, learn, conformalize, predict, as a scikit-learn estimator."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from setwise import (
    LAC,
    ConformalClassifier,
    CoveringClassifier,
    CrossConformalClassifier,
    LabelSets,
    MisuseWarning,
    PartialLabelClassifier,
    conformalize,
)
from tests.conftest import printed


@pytest.fixture
def data(rng):
    y = rng.integers(0, 3, 600)
    X = 2.5 * np.eye(3)[y] + rng.normal(size=(600, 3))
    mask = np.eye(3)[y] + (rng.random((600, 3)) < 0.2) > 0
    return X, y, mask


MODELS = [
    ConformalClassifier(LogisticRegression(), random_state=0),
    CrossConformalClassifier(LogisticRegression(), cv=3),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_it_is_a_scikit_learn_estimator(model):
    check_estimator(model)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_it_learns_calibrates_and_covers(model, data):
    X, y, mask = data
    names = np.array(["u", "v", "w"])
    fitted = (
        clone(model).set_params(estimator=GaussianNB()).fit(X[:400], LabelSets.from_mask(mask[:400], classes=names))
    )
    result = fitted.evaluate(X[400:], names[y[400:]])
    assert result["coverage_interval"][1] >= 0.9
    assert fitted.classes_.tolist() == ["u", "v", "w"]
    assert set(fitted.predict(X[400:])) <= set(names)
    assert fitted.predict_set(X[400:]).classes.tolist() == ["u", "v", "w"]
    for level in (0.5, 0.8, 0.95):
        sets, p = fitted.predict_set(X[400:], level).to_mask(), fitted.predict_p(X[400:])
        assert np.array_equal(sets, p > 1 - level + 1e-12)
    lists = fitted.predict_set(X[400:], [0.5, 0.9])
    assert lists[1] == fitted.predict_set(X[400:])
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert again.predict_set(X[400:]) == fitted.predict_set(X[400:])


def test_the_split_learn_and_calibration_are_those_one_would_write_by_hand(data):
    X, y, _ = data
    model = ConformalClassifier(
        FrozenEstimator(GaussianNB().fit(X[:300], y[:300])), conformity_score="aps", random_state=7
    )
    model.fit(X[300:500], y[300:500])
    by_hand = conformalize(
        model.predict_proba(X[300:500]),
        y[300:500],
        conformity_score="aps",
        random_state=model.calibration_.setting.seed,
    )
    assert model.calibration_.evidence.n == 200
    assert model.predict_set(X[500:]) == by_hand.predict_set(model.predict_proba(X[500:]))


def test_a_fixed_seed_gives_the_same_model(data):
    X, _, mask = data
    made = [ConformalClassifier(GaussianNB(), random_state=3).fit(X, mask).predict_p(X) for _ in range(2)]
    assert np.array_equal(*made)


def test_a_classifier_that_knows_no_candidates_is_wrapped_and_one_that_does_is_not(data):
    X, y, mask = data
    assert type(ConformalClassifier(GaussianNB()).fit(X, mask).estimator_).__name__ == "EMClassifier"
    assert type(ConformalClassifier(GaussianNB()).fit(X, y).estimator_).__name__ == "GaussianNB"


def test_a_pipeline_may_learn_and_be_learned_in(data):
    X, y, mask = data
    inside = ConformalClassifier(make_pipeline(StandardScaler(), GaussianNB()), random_state=0).fit(X, y)
    outside = make_pipeline(StandardScaler(), ConformalClassifier(GaussianNB(), random_state=0)).fit(X, mask)
    assert inside.predict_set(X).shape == (600, 3)
    assert outside[-1].predict_set(outside[:-1].transform(X)).shape == (600, 3)


def test_groups_stay_on_one_side_and_become_the_instances(data):
    X, _, mask = data
    groups = np.arange(600) // 6
    seen = {}

    class Recorder(GaussianNB):
        def fit(self, X, y):
            seen["rows"] = len(X)
            return super().fit(X, y)

    model = ConformalClassifier(Recorder(), random_state=0).fit(X, mask.argmax(axis=1), groups=groups)
    assert seen["rows"] % 6 == 0
    assert model.calibration_.evidence.instances == 20
    assert model.guarantee().unit == "groups"


@pytest.mark.parametrize("count", [12, 30])
def test_groups_that_were_verified_as_a_whole_are_kept_for_calibration_first(data, rng, count):
    X, y, _ = data
    groups = rng.integers(0, 100, 600)
    chosen = rng.choice(100, count, replace=False)
    verified = np.where(np.isin(groups, chosen), y.astype(object), None)
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X, y, groups=groups, verified=verified)
    held = np.unique(groups[model.calibration_rows_])
    assert len(held) == 20
    assert set(chosen) <= set(held) if count < 20 else set(held) <= set(chosen)
    assert len(np.intersect1d(groups[np.setdiff1d(np.arange(600), model.calibration_rows_)], held)) == 0
    assert model.guarantee().promised == 0.9


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_labels_and_probabilities_for_the_calibration_come_from_one_question(model, data, monkeypatch):
    X, y, _ = data
    model, asked, once = clone(model).fit(X, y), [], LogisticRegression.predict_proba
    labels, conformed = model.predict(X), model.predict_conformed(X)
    monkeypatch.setattr(LogisticRegression, "predict_proba", lambda *given: asked.append(1) or once(*given))
    found = model.predict_with_conformed(X)
    assert len(asked) == len(model.fitted_models)
    assert np.array_equal(found[0], labels)
    assert np.array_equal(found[1], conformed)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_columns_are_compared_with_those_of_fit(frame, data):
    X, y, _ = data
    named = frame({name: X[:, k] for k, name in enumerate("abc")})
    model = ConformalClassifier(LogisticRegression(), random_state=0).fit(named, y)
    assert model.predict_set(named[["a", "b", "c"]]) == model.predict_set(named)
    with pytest.raises(ValueError, match="same order as they were in fit"):
        model.predict_set(named[["b", "a", "c"]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.predict_set(frame({name: X[:, k] for k, name in enumerate("abd")}))


def test_with_nothing_known_the_default_learner_covers_candidate_sets_and_comes_back_from_its_directory(
    data, tmp_path
):
    X, _, mask = (part[:240] for part in data)
    model = ConformalClassifier(random_state=0).fit(X, mask)
    assert type(model.estimator_).__name__ == "CoveringClassifier"
    assert model.calibration_.conformity_score == LAC(domain="unit")
    inclusion = model.estimator_.predict_inclusion(X)
    assert model.predict_set(X, 0.8) == model.calibration_.predict_set(inclusion, 0.8)
    assert np.array_equal(model.predict_with_conformed(X)[0], model.predict(X))
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.guarantee().claims[0].source.startswith("Theorem 1")
    model.save(tmp_path / "model")
    read = ConformalClassifier.load(tmp_path / "model")
    assert read.predict_set(X) == model.predict_set(X)
    assert np.array_equal(read.predict_p(X), model.predict_p(X))


def test_with_something_known_the_default_learner_is_the_plain_one_and_verified_rows_are_all_calibrated_on(data):
    X, y, mask = (part[:200] for part in data)
    verified = np.where(np.arange(200) % 20 == 0, y, -1).astype(object)
    verified[verified == -1] = None
    model = ConformalClassifier(random_state=0).fit(X, mask, verified=verified)
    assert type(model.estimator_).__name__ == "PartialLabelClassifier"
    assert model.guarantee().strategy == "auto"
    assert model.calibration_.evidence.verified.sum() == 10
    assert model.calibration_.evidence.n == 40
    declared = ConformalClassifier(random_state=0, assume="uniform").fit(X, mask)
    assert type(declared.estimator_).__name__ == "PartialLabelClassifier"
    assert declared.guarantee().strategy == "corrected"


def test_verified_rows_reach_the_calibration(data):
    X, y, mask = data
    verified = [int(label) if i % 2 else None for i, label in enumerate(y)]
    model = ConformalClassifier(GaussianNB(), "mean", random_state=0, calibration_size=300)
    model.fit(X, mask, verified=verified)
    assert 100 < model.calibration_.evidence.verified.sum() < 200
    assert model.guarantee().promised is not None


def test_calibration_may_be_repeated_with_other_options(data):
    X, _, mask = data
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:300], mask[:300])
    first = model.guarantee().n
    model.conformalize(X[300:], mask[300:], strategy="min", miss_rate=0.01, by=np.arange(300) % 2)
    assert model.guarantee().by_category[0].n == 150 != first
    assert model.predict_set(X[:5], by=[0] * 5).shape == (5, 3)


def test_score_is_the_covering_rate(data):
    X, y, mask = data
    model = ConformalClassifier(GaussianNB(), conformity_score="margin", random_state=0).fit(X, mask)
    assert model.get_params()["conformity_score"] == "margin"
    assert clone(model.set_params(conformity_score="aps")).get_params()["conformity_score"] == "aps"
    assert model.score(X, y) == (model.predict(X) == y).mean()
    assert model.score(X, mask) == mask[np.arange(600), model.predict(X)].mean()
    assert len(cross_val_score(model, X, LabelSets.from_mask(mask), cv=3)) == 3
    search = GridSearchCV(model, {"estimator__var_smoothing": [1e-9, 1e-2]}, cv=2).fit(X, LabelSets.from_mask(mask))
    assert set(search.best_params_) == {"estimator__var_smoothing"}


class Peculiar(ClassifierMixin, BaseEstimator):
    """A trained model whose columns come in an order of its own."""

    classes_ = np.array(["w", "u", "v"])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.asarray(X)[:, [2, 0, 1]]


def test_columns_are_matched_by_label(rng):
    p = rng.dirichlet(np.ones(3), 200)
    names = np.array(["u", "v", "w"])
    model = ConformalClassifier(FrozenEstimator(Peculiar())).fit(p, names[p.argmax(axis=1)])
    assert np.array_equal(model.predict_proba(p), p)
    with pytest.raises(ValueError, match="3 probability columns are not the 2 classes"):
        ConformalClassifier(FrozenEstimator(Peculiar())).fit(p, np.array(["u", "v"])[(p[:, 0] < 0.5).astype(int)])


def test_frames_and_their_column_names_go_to_the_estimator(data):
    X, _, mask = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(frame, mask.argmax(axis=1))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict_set(frame[["c", "a", "b"]])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((4, 2)), None, "requires y to be passed"),
        (np.zeros((4, 2)), [0, 1], "y: 2 rows for 4 rows of X"),
        (np.zeros((4, 2)), [[0], [1], [], [0]], "y: row 2 is empty"),
        (np.zeros((4, 2)), ["a"] * 4, "y: 1 class"),
        (np.zeros((1, 2)), [[0, 1]], "calibration_size: 0.2 of n_samples=1"),
    ],
)
def test_bad_input_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        ConformalClassifier(GaussianNB()).fit(X, y)


def test_cross_conformal_says_what_it_guarantees_and_what_it_cannot_do(data):
    X, _, mask = data
    model = CrossConformalClassifier(GaussianNB(), cv=5, random_state=0).fit(X, mask)
    guarantee = model.guarantee(0.9)
    assert np.isclose(guarantee.promised, 0.8 - min(2 * 0.8 / 121, (1 - 5 / 600) / 6))
    assert "at least 0.7867" in printed(guarantee)
    assert "In practice it is near 0.9." in printed(guarantee)
    assert CrossConformalClassifier(GaussianNB(), "min").fit(X, mask).guarantee().promised is None
    with pytest.raises(ValueError, match="'all' has no cross-conformal form"):
        CrossConformalClassifier(GaussianNB(), "all").fit(X, mask)
    for option in ("groups", "verified"):
        with pytest.raises(ValueError, match=f"{option}: no cross-conformal guarantee is known; use ConformalC"):
            CrossConformalClassifier(GaussianNB()).fit(X, mask, **{option: np.zeros(600)})
    for unknown in (model.calibration_.threshold, model.calibration_.bracket):
        with pytest.raises(ValueError, match="use predict_p|not independent"):
            unknown(0.9)


class Untrained(GaussianNB):
    """Fails the test where it is asked to learn."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("trained before the argument was refused")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "all"}, "strategy: 'all' has no cross-conformal form"),
        ({"strategy": "corrected"}, "strategy: 'corrected' has no"),
        ({"assume": "uniform"}, "assume: no cross-conformal method uses it"),
        ({"conformity_score": "lack"}, "conformity_score: 'lack' is not known"),
    ],
)
def test_cross_conformal_refuses_what_it_cannot_do_before_it_trains(data, options, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        CrossConformalClassifier(Untrained(), **options).fit(X, y)


def test_a_cross_conformal_model_answers_as_a_split_one_does(data):
    X, y, mask = data
    model = CrossConformalClassifier(GaussianNB(), cv=4, random_state=0).fit(X[:400], mask[:400])
    asked = model.predict_conformed(X[400:])
    assert len(asked) == 4
    assert model.calibration_.predict_set(asked, 0.8) == model.predict_set(X[400:], 0.8)
    cut = model.predict_set(X[400:], 0.8, candidates=mask[400:])
    assert cut == model.predict_set(X[400:], 0.8) & LabelSets.from_mask(mask[400:], model.classes_)
    with pytest.warns(MisuseWarning, match="confidence_level=0.95 if this was meant as the error rate"):
        assert model.predict_set(X[400:], 0.05, allow_empty=False).sizes.min() == 1
    low, high = model.predict_set(X[400:], [0.5, 0.9])
    assert low.issubset(high).all()
    assert model.evaluate(X[400:], y[400:])["coverage"] > 0.85


def test_cross_conformal_p_values_are_those_of_the_definition(data):
    X, y, _ = data
    model = CrossConformalClassifier(GaussianNB(), cv=4, random_state=0).fit(X[:100], y[:100])
    counts = np.ones((20, 3))
    for fold, estimator in zip(model.calibration_.parts, model.estimators_, strict=True):
        scores = -estimator.predict_proba(X[100:120])
        counts += (fold.evidence.high >= scores[:, :, None]).sum(axis=2)
    assert np.allclose(model.predict_p(X[100:120]), counts / 101)


def test_verified_rows_do_not_decide_who_is_calibrated_on_for_max(data):
    """`max` makes no premise of how rows were chosen to be verified, so the split must not depend on it."""
    X, y, mask = data
    verified = np.full(600, None, object)
    verified[:15] = y[:15]
    some = ConformalClassifier(GaussianNB(), strategy="max", random_state=0).fit(X, mask, verified=verified)
    none = ConformalClassifier(GaussianNB(), strategy="max", random_state=0).fit(X, mask)
    assert some.guarantee().strategy == "max"
    assert np.array_equal(np.sort(some.calibration_.evidence.high), np.sort(none.calibration_.evidence.high))


def test_a_verified_label_that_is_not_known_is_named_by_its_row(data):
    X, _, mask = data
    verified = np.full(600, None, object)
    verified[417] = 9
    with pytest.raises(ValueError, match="verified: row 417 holds 9"):
        ConformalClassifier(GaussianNB(), random_state=0).fit(X, mask, verified=verified)


def test_pipelines_learn_from_candidates_and_pass_inclusion_on(data):
    X, _, mask = data
    plain = ConformalClassifier(make_pipeline(StandardScaler(), GaussianNB()), random_state=0).fit(X, mask)
    assert plain.predict_set(X).sizes.mean() < 3
    small = PartialLabelClassifier("linear", epochs=5)
    covering = make_pipeline(StandardScaler(), CoveringClassifier(small, small))
    model = ConformalClassifier(covering, random_state=0).fit(X, mask)
    assert model.calibration_.conformity_score == LAC(domain="unit")
    assert len(model.predict_set(X)) == 600


@pytest.mark.parametrize("truth", ["all", "one", 0.5])
def test_rows_may_have_several_right_labels(data, truth):
    X, y, mask = data
    right = mask | (np.roll(np.eye(3), 1, axis=0)[y] * (X.max(axis=1, keepdims=True) < 2) > 0)
    known = [np.flatnonzero(row).tolist() if i < 60 else None for i, row in enumerate(right[:400])]
    model = ConformalClassifier(LogisticRegression(), random_state=0)
    model.fit(X[:400], right[:400], verified=known, truth=truth)
    assert set(range(60)) <= set(model.calibration_rows_)
    found = model.evaluate(X[400:], LabelSets.from_mask(right[400:]), truth=truth)
    inside = (model.predict_set(X[400:]).to_mask() & right[400:]).sum(axis=1)
    enough = inside >= np.ceil({"all": 1, "one": 1e-9}.get(truth, truth) * right[400:].sum(axis=1))
    assert found["coverage"] == enough.mean() > 0.7
    assert model.guarantee().promised == 0.9
    again = model.conformalize(X[400:], right[400:], truth=truth).calibration_
    own = conformalize(model.predict_proba(X[400:]), right[400:], truth=truth)
    assert again.threshold(0.8) == pytest.approx(own.threshold(0.8))
    dropped = np.where(np.arange(200)[:, None] % 9 == 0, False, right[400:])
    model.conformalize(X[400:], dropped, truth=truth, empty="drop")
    assert "a new row with a right label" in printed(model.guarantee())
    with pytest.raises(ValueError, match="truth: no cross-conformal guarantee is known; use ConformalClassifier"):
        CrossConformalClassifier(GaussianNB()).fit(X, mask, truth=truth)
