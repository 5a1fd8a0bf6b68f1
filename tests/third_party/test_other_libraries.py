"""Models of other libraries, through these libraries: `make test-third-party` installs them and runs this.

Elsewhere what is not installed is skipped, and the reason says so.
"""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from setwise import ConformalClassifier, CrossConformalClassifier, Votes, conformalize
from setwise.learn import EMClassifier

pytestmark = pytest.mark.filterwarnings("default")  # other libraries' warnings are theirs
CITIES = np.array(["Bonn", "Rome", "Oslo"])


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: run `make test-third-party`")


def xgboost():
    return library("xgboost").XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True)


def lightgbm():
    return library("lightgbm").LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1)


def catboost():
    return library("catboost").CatBoostClassifier(
        iterations=20, thread_count=1, verbose=0, cat_features=["city"], allow_writing_files=False
    )


class InContext(ClassifierMixin, BaseEstimator):
    """As TabPFN: `fit` keeps the rows and takes no weights."""

    def fit(self, X, y):
        self.near_ = KNeighborsClassifier(15).fit(X[["a", "b"]].fillna(0.0), y)
        self.classes_ = self.near_.classes_
        return self

    def predict_proba(self, X):
        return self.near_.predict_proba(X[["a", "b"]].fillna(0.0))


MODELS = {"XGBoost": xgboost, "LightGBM": lightgbm, "CatBoost": catboost, "as TabPFN": InContext}


@pytest.fixture(scope="module")
def rows():
    """A frame with gaps and categories, candidates, and the truth."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    frame = pd.DataFrame(2 * np.eye(3)[y][:, :2] + rng.normal(size=(400, 2)), columns=["a", "b"])
    frame["city"] = pd.Categorical(np.where(rng.random(400) < 0.8, CITIES[y], rng.choice(CITIES, 400)))
    frame.loc[::9, "a"] = np.nan
    return frame, np.eye(3)[y] + (rng.random((400, 3)) < 0.2) > 0, y


@pytest.mark.parametrize("name", MODELS)
def test_a_frame_with_candidate_sets(rows, name):
    frame, candidates, y = rows
    model = ConformalClassifier(MODELS[name](), random_state=0).fit(frame[:300], candidates[:300])
    assert model.estimator_.n_fits_ <= 12
    assert (model.predict(frame[300:]) == y[300:]).mean() > 0.6
    assert model.predict_set(frame[300:]).contains(y[300:]).mean() > 0.85


@pytest.mark.parametrize("name", MODELS)
def test_votes_and_a_label_that_no_row_has(rows, name):
    frame, candidates, y = rows
    answers = [[int(CODES[label]) for label in np.flatnonzero(row)] for row in candidates]
    votes = Votes.from_lists(answers, classes=range(4))
    model = EMClassifier(MODELS[name](), random_state=0).fit(frame, votes)
    assert (model.predict(frame) == CODES[y]).mean() > 0.6
    assert (model.predict_proba(frame)[:, 1] == 0).all()


CODES = np.array([0, 2, 3])


@pytest.mark.parametrize("name", MODELS)
def test_exact_labels_as_text_or_cross_conformal(rows, name):
    frame, candidates, y = rows
    cross = CrossConformalClassifier(MODELS[name](), cv=2, random_state=0).fit(frame, candidates)
    assert cross.predict_set(frame).contains(y).mean() > 0.85
    exact = EMClassifier(MODELS[name]()).fit(frame, CITIES[y])
    assert exact.n_fits_ == 1
    assert (exact.predict(frame) == CITIES[y]).mean() > 0.6


def test_a_classifier_of_hugging_face_is_trained_on_tokens_and_calibrated(rows):
    torch, transformers = library("torch"), library("transformers")
    from setwise.learn import PartialLabelClassifier

    def tiny():
        shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        config = transformers.BertConfig(vocab_size=40, max_position_embeddings=8, num_labels=3, **shape)
        return transformers.BertForSequenceClassification(config)

    _, candidates, y = rows
    tokens = 10 * y[:, None] + np.random.default_rng(1).integers(1, 10, (400, 5))
    learner = PartialLabelClassifier(tiny, scale=None, epochs=8, learning_rate=0.005, random_state=0)
    learner.fit(tokens[:200], candidates[:200])
    assert (learner.predict(tokens[200:]) == y[200:]).mean() > 0.8
    trained = learner.network_.module
    assert isinstance(trained, torch.nn.Module)
    model = ConformalClassifier(trained, random_state=0).fit(tokens[200:300], candidates[200:300])
    assert model.predict_set(tokens[300:]).contains(y[300:]).mean() > 0.85


@pytest.fixture(scope="module")
def exact():
    """Probabilities of 100 classes, and labels drawn from them: 10,000 calibration rows and as many new ones."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(100, 0.05), 20_000)
    y = (p.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1).clip(max=99)
    return p[:10_000], y[:10_000], p[10_000:]


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_sets_by_label_are_the_class_conditional_ones_of_crepes(exact, level):
    crepes = library("crepes")
    p, y, new = exact
    theirs = crepes.ConformalClassifier().fit(crepes.extras.hinge(p, np.arange(100), y), bins=y)
    scores, rows, made = 1 - new, len(new), conformalize(p, y, by="label")
    sets = made.predict_set(new, level).to_mask()
    tied = np.isclose(made.predict_p(new), 1 - level)  # which counts as inside there
    for k in range(100):
        found = theirs.predict_set(scores[:, [k]], np.full(rows, k), confidence=level, smoothing=False)
        assert ((sets[:, k] == (found[:, 0] == 1)) | tied[:, k]).all()


@pytest.mark.parametrize("name", ["XGBoost", "LightGBM"])
def test_boosted_trees_of_other_libraries_come_back_where_somebody_vouches_for_them(name, rows, tmp_path):
    """Their own loaders end the process over damaged files."""
    frame, _, y = rows
    model = ConformalClassifier(MODELS[name](), random_state=0).fit(frame, y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="types that need your trust") as error:
        ConformalClassifier.load(tmp_path / "model")
    named = re.findall(r"'([\w.]+)'", str(error.value).partition("trusted=")[2])
    assert name.lower() in {word.partition(".")[0] for word in named}
    again = ConformalClassifier.load(tmp_path / "model", trusted=named)
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))
