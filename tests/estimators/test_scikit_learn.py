"""ConformalClassifier among scikit-learn's own: searches by set size, frames with names, routed metadata."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.stats import betabinom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets
from setwise.ranks import as_level, chance_of_so_few

NAMES = np.array(["u", "v", "w"])


@pytest.fixture
def data(rng):
    y = rng.integers(0, 3, 900)
    X = 2 * np.eye(3)[y] + rng.normal(size=(900, 3))
    mask = np.eye(3)[y] + (rng.random((900, 3)) < 0.3) > 0
    return X, y, LabelSets.from_mask(mask, NAMES)


def smallness(model, X, y):
    """Minus the mean size of the sets, also of a pipeline."""
    if hasattr(model, "steps"):
        model, X = model[-1], model[:-1].transform(X)
    return -model.predict_set(X, 0.9).sizes.mean()


def search(model, grid):
    return GridSearchCV(model, grid, scoring=smallness, cv=3, error_score="raise")


# -------------------------------------------------------------------- which setting is best


def test_on_exact_labels_the_smallest_sets_that_cover_win(data):
    X, y, _ = data
    model = ConformalClassifier(GaussianNB(), random_state=0)
    found = search(model, {"conformity_score": ["lac", "aps"]}).fit(X, NAMES[y])
    sizes = -found.cv_results_["mean_test_score"]
    assert found.best_params_ == {"conformity_score": "lac"}
    assert 1 < sizes[0] < sizes[1] < 3
    assert found.best_estimator_.predict_set(X).sizes.mean() < 2.5


@pytest.mark.parametrize(("n", "m"), [(19, 50), (100, 30), (100, 10_000)])
def test_the_tolerance_counts_the_chance_in_both_calibration_and_new_rows(n, m):
    law = betabinom(m, np.ceil((n + 1) * 0.9), n + 1 - np.ceil((n + 1) * 0.9))
    for covered in (0, m // 2, int(0.8 * m), int(0.95 * m), m):
        assert np.isclose(chance_of_so_few(covered, m, n, as_level(0.9)), law.cdf(covered), rtol=1e-6, atol=1e-12)


def test_a_valid_setting_is_refused_as_rarely_as_promised(rng):
    """Exact labels and a large test part: a tolerance for new rows alone would refuse a third of them."""
    refused = alone = 0
    for _ in range(300):
        scores = np.sort(rng.random(50))
        threshold = scores[int(np.ceil(51 * 0.9)) - 1]
        covered = int((rng.random(2000) <= threshold).sum())
        refused += chance_of_so_few(covered, 2000, 50, as_level(0.9)) < 0.01
        alone += covered < 1800 - 2.33 * np.sqrt(2000 * 0.9 * 0.1)
    assert refused <= 11  # of Binomial(300, 0.01) with probability below 1e-4
    assert alone > 50


# -------------------------------------------------------------------- frames


def frames(X, kind):
    names = ["a", "b", "c"]
    return pd.DataFrame(X, columns=names) if kind == "pandas" else pl.DataFrame(X, schema=names)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("model", [ConformalClassifier(), CrossConformalClassifier(cv=3)], ids=["split", "cross"])
@pytest.mark.parametrize("learner", [GaussianNB(), LogisticRegression()], ids=["bayes", "logistic"])
def test_frames_go_in_and_frames_come_out(data, kind, model, learner):
    X, _, candidates = data
    frame = frames(X, kind)
    model = clone(model).set_params(estimator=learner, random_state=0)
    assert model.fit(frame, candidates).feature_names_in_.tolist() == ["a", "b", "c"]
    sets = model.predict_set(frame)
    assert list(sets.to_frame().columns) == ["labels", "size"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict_set(frame[["c", "a", "b"]])
    assert sets == model.fit(X, candidates).predict_set(X)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_transformer_that_gives_frames_hands_over_its_names(data, kind):
    X, _, candidates = data
    frame = frames(X, kind)
    scaler = StandardScaler().set_output(transform=kind)
    pipe = make_pipeline(scaler, ConformalClassifier(GaussianNB(), random_state=0)).fit(frame, candidates)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipe.predict(frame).shape == (900,)
    sets = pipe[-1].predict_set(pipe[:-1].transform(frame))
    assert sets == make_pipeline(StandardScaler(), clone(pipe[-1])).fit(X, candidates)[-1].predict_set(
        StandardScaler().fit_transform(X)
    )
    with pytest.raises(ValueError, match="feature names"):
        pipe[-1].predict_set(pipe[:-1].transform(frame)[["b", "a", "c"]])
    with pytest.raises(ValueError, match="feature names"):
        pipe.predict(frame[["b", "a", "c"]])
    found = search(pipe, {"conformalclassifier__conformity_score": ["lac", "aps"]}).fit(frame, candidates)
    assert found.best_params_["conformalclassifier__conformity_score"] in {"lac", "aps"}


# -------------------------------------------------------------------- metadata


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_groups_and_verified_are_routed_through_pipelines_and_searches(data):
    X, y, candidates = data
    groups = np.repeat(np.arange(150), 6)
    verified = [str(NAMES[label]) if i % 2 else None for i, label in enumerate(y)]
    model = ConformalClassifier(GaussianNB(), "mean", random_state=0)
    model = model.set_fit_request(groups=True, verified=True)
    pipe = make_pipeline(StandardScaler(), model).fit(X, candidates, groups=groups, verified=verified)
    assert pipe[-1].guarantee().unit == "groups"
    assert pipe[-1].calibration_.evidence.verified.sum() == 90  # half of a fifth of the rows
    grid = {"conformalclassifier__conformity_score": ["lac", "aps"]}
    found = GridSearchCV(pipe, grid, cv=GroupKFold(3), scoring=smallness, error_score="raise")
    best = found.fit(X, candidates, groups=groups, verified=verified).best_estimator_[-1]
    assert best.guarantee().unit == "groups"
    assert best.calibration_.evidence.verified.sum() == 90


@pytest.mark.usefixtures("routing")
def test_what_was_not_asked_for_is_not_routed_in_silence(data):
    X, _, candidates = data
    groups = np.repeat(np.arange(150), 6)
    pipe = make_pipeline(StandardScaler(), ConformalClassifier(GaussianNB(), random_state=0))
    with pytest.raises(ValueError, match="groups.*not explicitly set as requested or not requested"):
        pipe.fit(X, candidates, groups=groups)
    ignoring = ConformalClassifier(GaussianNB(), random_state=0).set_fit_request(groups=False, by="kind")
    kind = np.where(np.arange(900) % 2, "x", "y")
    pipe = make_pipeline(StandardScaler(), ignoring).fit(X, candidates, kind=kind)
    assert set(pipe[-1].guarantee().by_category) == {"x", "y"}


def test_categories_are_calibrated_each_for_itself(data):
    X, y, candidates = data
    kind = np.where(X[:, 0] > 1, "near", "far")
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:600], candidates[:600], by=kind[:600])
    result = model.evaluate(X[600:], NAMES[y[600:]], by=kind[600:])
    assert set(result["by_category"]) == {"near", "far"}
    made = model.guarantee()
    assert {name: part.promised for name, part in made.by_category.items()} == {"near": 0.9, "far": 0.9}
    assert made.promised == 0.9
    with pytest.raises(ValueError, match="by: calibrated by category"):
        model.predict_set(X)
    with pytest.raises(ValueError, match="by: 3 entries for 900 rows"):
        model.fit(X, candidates, by=kind[:3])


def test_the_chance_of_being_verified_reaches_the_calibration(data, rng):
    X, y, candidates = data
    chance = np.where(X[:, 0] > 0, 0.8, 0.2)
    verified = [
        str(NAMES[label]) if u < c else None for label, u, c in zip(y, rng.random(900), chance, strict=True)
    ]
    model = ConformalClassifier(GaussianNB(), "rectified", calibration_size=500, random_state=0)
    plain = model.fit(X, candidates, verified=verified).predict_set(X)
    told = model.fit(X, candidates, verified=verified, verified_probability=chance).predict_set(X)
    assert plain != told
    with pytest.raises(ValueError, match="verified_probability"):
        model.fit(X, candidates, verified=verified, verified_probability=chance[:5])


def test_the_predicted_label_may_be_the_category(data):
    X, y, candidates = data
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:600], candidates[:600], by="predicted")
    assert set(model.guarantee().by_category) == {"u", "v", "w"}
    assert model.evaluate(X[600:], NAMES[y[600:]])["coverage"] > 0.85
