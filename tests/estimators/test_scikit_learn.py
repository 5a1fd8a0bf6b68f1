"""ConformalClassifier among scikit-learn's own: searches by set size, frames with names, routed metadata."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.stats import betabinom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets, MisuseWarning, SetSizeScorer
from setwise.ranks import as_level, chance_of_so_few

NAMES = np.array(["u", "v", "w"])


@pytest.fixture
def data(rng):
    y = rng.integers(0, 3, 900)
    X = 2 * np.eye(3)[y] + rng.normal(size=(900, 3))
    mask = np.eye(3)[y] + (rng.random((900, 3)) < 0.3) > 0
    return X, y, LabelSets.from_mask(mask, NAMES)


def search(model, grid, **options):
    return GridSearchCV(model, grid, scoring=SetSizeScorer(0.9, **options), cv=3, error_score="raise")


# -------------------------------------------------------------------- which setting is best


def test_on_exact_labels_the_smallest_sets_that_cover_win(data):
    X, y, _ = data
    model = ConformalClassifier(GaussianNB(), random_state=0)
    found = search(model, {"conformity_score": ["lac", "aps"]}).fit(X, NAMES[y])
    sizes = -found.cv_results_["mean_test_score"]
    assert found.best_params_ == {"conformity_score": "lac"}
    assert 1 < sizes[0] < sizes[1] < 3
    assert found.best_estimator_.predict_set(X).sizes.mean() < 2.5


UNSEEN = "ignore:y. candidate sets do not show whether the truth is covered"


@pytest.mark.filterwarnings(UNSEEN)
@pytest.mark.parametrize("where", ["alone", "in a pipeline", "in a pipeline within"])
def test_on_candidates_a_setting_that_promises_nothing_must_show_its_coverage(data, where):
    X, _, candidates = data
    model = ConformalClassifier(GaussianNB(), random_state=0)
    prefix = ""
    if where != "alone":
        model, prefix = make_pipeline(StandardScaler(), model), "conformalclassifier__"
    if where == "in a pipeline within":
        model, prefix = make_pipeline(StandardScaler(), model), "pipeline__conformalclassifier__"
    found = search(model, {f"{prefix}strategy": ["min", "mean", "max"]}).fit(X, candidates)
    assert found.best_params_ == {f"{prefix}strategy": "max"}
    least, mean, most = found.cv_results_["mean_test_score"]
    assert least < mean < -300  # refused, the worse the less they cover
    assert -3 <= most < -1


def test_a_setting_that_promises_is_believed_until_candidates_refute_it(data):
    X, y, candidates = data
    model = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:450], NAMES[y[:450]])
    score, new = SetSizeScorer(0.9), X[450:]
    assert score(model, new, candidates[450:]) == -model.predict_set(new).sizes.mean()
    assert candidates[450:].issubset(model.predict_set(new)).mean() < 0.8  # nor need all candidates be covered
    wrong = LabelSets.from_mask(np.eye(3)[y[450:]] == 0, NAMES)
    assert score(model, new, wrong) < -1000
    assert score(model, new, NAMES[(y[450:] + 1) % 3]) < -1000


def test_a_setting_that_fails_in_one_split_of_many_loses_to_any_that_holds():
    """The value of a failure outweighs sets of all labels in the mean over up to a thousand splits."""

    class Fixed:
        confidence_level = 0.9

        def __init__(self, sets):
            self.sets = sets
            part = type("C", (), {"evidence": type("E", (), {"instances": 100})})
            self.calibration_ = type("P", (), {"parts": [part]})

        def predict_set(self, X, level):
            return self.sets

        def guarantee(self, level):
            return type("G", (), {"promised": None})

    y = np.zeros(100, dtype=int)
    nothing = Fixed(LabelSets.from_mask(np.zeros((100, 4), dtype=bool)))
    everything = Fixed(LabelSets.from_mask(np.ones((100, 4), dtype=bool)))
    score = SetSizeScorer()
    assert score(everything, None, y) == -4
    assert score(nothing, None, y) / 1000 < score(everything, None, y)
    barely = Fixed(LabelSets.from_mask(np.arange(100)[:, None] < np.full(4, 70)))
    assert score(nothing, None, y) < score(barely, None, y) < -4000


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


def test_slack_lets_coverage_be_lower_and_the_level_may_be_the_models_own(data):
    X, y, _ = data
    model = ConformalClassifier(GaussianNB(), confidence_level=0.5, random_state=0).fit(X[:450], y[:450])
    assert SetSizeScorer()(model, X[450:], y[450:]) == -model.predict_set(X[450:]).sizes.mean()
    cut = y[450:].copy()
    cut[:150] = (cut[:150] + 1) % 3
    assert SetSizeScorer()(model, X[450:], cut) < -1000
    assert SetSizeScorer(slack=0.3)(model, X[450:], cut) > -3
    with pytest.raises(ValueError, match="confidence_level − slack: -1/10 is not between 0 and 1"):
        SetSizeScorer(slack=0.6)(model, X, y)
    with pytest.raises(TypeError, match="GaussianNB predicts no sets; use ConformalClassifier"):
        SetSizeScorer()(GaussianNB(), X, y)


def test_cross_conformal_models_are_scored_too_and_scorers_can_be_sent_to_other_processes(data):
    X, y, candidates = data
    model = CrossConformalClassifier(GaussianNB(), cv=3, random_state=0)
    sent = pickle.loads(pickle.dumps(SetSizeScorer()))  # noqa: S301
    values = cross_val_score(model, X, candidates, scoring=sent, cv=3)
    assert ((values >= -3) & (values < -1)).all()
    lists = [[str(label)] for label in NAMES[y]]
    values = cross_val_score(model, X, np.array(lists, dtype=object)[:, 0], scoring=SetSizeScorer(), cv=3)
    assert ((values >= -3) & (values < -1)).all()


def test_a_candidate_that_the_model_never_saw_is_in_no_set(data):
    X, _, candidates = data
    model = ConformalClassifier(GaussianNB(), "mean", random_state=0).fit(X, candidates)
    everything = LabelSets.from_mask(np.ones((900, 3), dtype=bool), NAMES)
    model.predict_set = lambda X, level: everything
    assert SetSizeScorer(0.9)(model, X, candidates) == -3
    lists = [[*labels, "x"] for labels in candidates.to_lists()]
    with pytest.warns(MisuseWarning, match="y: candidate sets do not show .* score on rows with known labels"):
        assert SetSizeScorer(0.9)(model, X, LabelSets.from_lists(lists)) < -1000


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
@pytest.mark.filterwarnings(UNSEEN)
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
    found = GridSearchCV(pipe, grid, cv=GroupKFold(3), scoring=SetSizeScorer(0.9, slack=0.1), error_score="raise")
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
    assert -3 <= SetSizeScorer()(model, X[600:], candidates[600:]) < -1
