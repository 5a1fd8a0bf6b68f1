"""Any classifier, pipeline or search learns from candidate sets, on any X that it reads."""

import io
import re
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from setwise import ConformalClassifier, CrossConformalClassifier, LabelSets, Votes, progress_lines
from setwise.learn import (
    EMClassifier,
)
from setwise.learn.em import _copies
from tests.toy_data import some_rows

CITIES = np.array(["Bonn", "Rome", "Oslo"])


@pytest.fixture(scope="module")
def rows():
    """A frame of numbers with gaps and text, candidates, and the truth."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    numbers = 2 * np.eye(3)[y] + rng.normal(size=(240, 3))
    frame = pd.DataFrame(numbers, columns=["a", "b", "c"], index=[f"row {i}" for i in range(240)])
    frame["city"] = np.where(rng.random(240) < 0.8, CITIES[y], rng.choice(CITIES, 240))
    frame.loc[frame.index[::7], "a"] = np.nan
    return frame, np.eye(3)[y] + (rng.random((240, 3)) < 0.2) > 0, y


def mixed(last):
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]), (SimpleImputer(), ["a", "b", "c"])
    )
    return make_pipeline(columns, last)


def native(frame):
    return frame.assign(city=frame["city"].astype("category"))


BOOSTING = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")


CASES = {
    "columns by name": (mixed(LogisticRegression()), lambda frame: frame),
    "columns by name, polars": (mixed(LogisticRegression()), pl.from_pandas),
    "no sample_weight": (mixed(KNeighborsClassifier()), lambda frame: frame),
    "search": (GridSearchCV(mixed(GaussianNB()), {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, cv=2), lambda X: X),
    "gaps and categories": (BOOSTING, native),
    "sparse": (LogisticRegression(), lambda frame: sparse.coo_array(frame[["b", "c"]])),
    "texts": (make_pipeline(TfidfVectorizer(), LogisticRegression()), lambda frame: frame["city"].tolist()),
    "lists": (LogisticRegression(), lambda frame: frame[["b", "c"]].to_numpy().tolist()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_classifier_reads_is_handed_over_untouched(rows, case):
    frame, candidates, y = rows
    estimator, made = CASES[case]
    X = made(frame)
    model = EMClassifier(estimator, random_state=0).fit(X, candidates)
    assert (model.predict(X) == y).mean() > 0.7
    sets = ConformalClassifier(estimator, random_state=0).fit(X, candidates).predict_set(X)
    assert candidates[np.arange(240), y].all()
    assert sets.contains(y).mean() > 0.85


def test_votes_and_cross_conformal_sets_take_frames_too(rows):
    frame, candidates, y = rows
    votes = Votes.from_lists([[int(label) for label in np.flatnonzero(row)] for row in candidates])
    model = EMClassifier(mixed(LogisticRegression()), random_state=0).fit(frame, votes)
    assert (model.predict(frame) == y).mean() > 0.7
    assert model.n_fits_ <= 10
    cross = CrossConformalClassifier(mixed(LogisticRegression()), cv=2, random_state=0).fit(frame, candidates)
    assert cross.predict_set(frame).contains(y).mean() > 0.85


class Counting(DummyClassifier):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        Counting.frame = X
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):  # never twice the same, so that weights go on moving
        p = np.random.default_rng(Counting.fits).random((len(X), len(self.classes_)))
        return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("given", "most"), [({}, 12), ({"cv": 0}, 10), ({"max_iter": 4, "cv": 5}, 8)])
def test_fits_are_bounded_and_counted(rows, given, most):
    frame, candidates, _ = rows
    Counting.fits = 0
    model = EMClassifier(Counting(), random_state=0, **given).fit(frame, candidates)
    assert Counting.fits == model.n_fits_ == most
    assert Counting.frame.columns.tolist() == frame.columns.tolist()


def test_fits_on_votes_are_bounded(rows):
    frame, candidates, _ = rows
    votes = Votes.from_lists([[int(label) for label in np.flatnonzero(row)] for row in candidates])
    assert EMClassifier(Counting(), random_state=0, tol=0).fit(frame, votes).n_fits_ == 10


@pytest.mark.parametrize(
    ("base", "memorises"),
    [
        (LogisticRegression(), False),
        (GaussianNB(), False),
        (DecisionTreeClassifier(random_state=0), True),
        (RandomForestClassifier(20, random_state=0), True),
    ],
)
def test_one_that_memorises_is_recognised_and_its_weights_come_from_other_folds(rows, base, memorises):
    frame, candidates, _ = rows
    X = frame[["b", "c"]]
    model = EMClassifier(base, random_state=0, tol=0).fit(X[:160], candidates[:160])
    assert model.memorises_ is memorises
    assert model.n_fits_ == (10 if memorises else 12)
    if isinstance(base, DecisionTreeClassifier):  # which would only repeat the uniform weights of the first round
        alone = EMClassifier(base, cv=0).fit(X[:160], candidates[:160])
        told, kept = (m.predict_proba(X[:160]).max(axis=1).mean() for m in (alone, model))
        assert (alone.n_fits_, told < kept) == (1, True)


def test_every_fit_is_told_where_asked(rows, capsys):
    frame, candidates, _ = rows
    model = EMClassifier(GaussianNB(), verbose=1, random_state=0).fit(frame[["b", "c"]], candidates)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == model.n_fits_
    assert lines[3] == "EMClassifier: fit 4, round 2 of at most 10"


class Watched(io.StringIO):
    """Says when a line was written."""

    def __init__(self):
        super().__init__()
        self.told = threading.Event()

    def flush(self):
        self.told.set()


class Slow(GaussianNB):
    """One whose fit takes until a line about it was written."""

    def fit(self, X, y, sample_weight=None):
        assert sys.stderr.told.wait(60)
        return super().fit(X, y, sample_weight)


def test_a_long_fit_says_how_far_it_is_and_a_short_or_silent_one_nothing(rows, monkeypatch):
    frame, candidates, _ = rows
    X = frame[["b", "c"]]
    for seconds, base, verbose in ((3600, GaussianNB(), None), (0.001, GaussianNB(), 0), (0.001, Slow(), None)):
        monkeypatch.setattr(progress_lines, "SECONDS", seconds)
        monkeypatch.setattr(sys, "stderr", Watched())
        ConformalClassifier(EMClassifier(base, verbose=verbose), random_state=0).fit(X, candidates)
        said = sys.stderr.getvalue()
        if isinstance(base, Slow):
            assert re.match(r"EMClassifier: fit \d+, round 1 of at most 10: \d+ s so far\n", said)
        else:
            assert said == ""


def test_copies_stand_for_weights():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(4), size=300)
    weights[:50] = np.eye(4)[0]
    found, labels = _copies(weights)
    times = np.zeros_like(weights)
    np.add.at(times, (found, labels), 1)
    assert (np.abs(times - 3 * weights) < 1).all()
    np.testing.assert_allclose(times.sum(axis=0), 3 * weights.sum(axis=0), atol=1)
    assert (times[:50, 0] == 3).all()
    assert (np.diff(found) >= 0).all()  # copies of a row lie together
    assert _copies(np.eye(3))[0].tolist() == [0, 1, 2]


def test_copies_serve_about_as_well_as_weights(rows):
    frame, candidates, y = rows
    X = frame[["b", "c"]].to_numpy()

    class Unweighted(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    given = EMClassifier(LogisticRegression(), random_state=0).fit(X, candidates).predict_proba(X)
    copied = EMClassifier(Unweighted(), random_state=0).fit(X, candidates).predict_proba(X)
    assert np.abs(given - copied).mean() < 0.1
    assert abs((given.argmax(1) == y).mean() - (copied.argmax(1) == y).mean()) < 0.05


def test_labels_come_as_0_to_k_whichever_were_left(rows):
    frame, candidates, _ = rows

    class Strict(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            assert np.unique(y).tolist() == list(range(len(np.unique(y))))
            return super().fit(X, y, sample_weight)

    wide = np.insert(candidates, 1, False, axis=1)
    p = EMClassifier(Strict(), random_state=0).fit(frame[["b", "c"]], wide).predict_proba(frame[["b", "c"]])
    assert (p[:, 1] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_a_classifier_whose_probabilities_show_only_after_fitting_serves(rows):
    frame, candidates, _ = rows
    stacked = StackingClassifier([("nb", GaussianNB())], cv=2)
    model = EMClassifier(stacked, max_iter=2, random_state=0).fit(frame[["b", "c"]], candidates)
    assert model.predict_proba(frame[["b", "c"]]).shape == (240, 3)


@pytest.mark.parametrize("y", ["candidates", "labels"])
def test_a_classifier_without_probabilities_is_refused_with_a_remedy(rows, y):
    frame, candidates, truth = rows
    given = candidates if y == "candidates" else truth
    with pytest.raises(ValueError, match="LinearSVC gives no probabilities .* wrap it in .*CalibratedClassifierCV"):
        ConformalClassifier(LinearSVC(), random_state=0).fit(frame[["b", "c"]], given)


# -------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize("kind", [ConformalClassifier, CrossConformalClassifier])
@pytest.mark.parametrize("precise", [False, True])
def test_gaps_are_named_by_row_and_column_of_the_whole_table(rows, kind, precise):
    frame, candidates, y = rows
    X = frame[["b", "c"]].copy()
    X.iloc[201, 1] = np.nan
    given = LabelSets.from_labels(y) if precise else candidates
    for random_state in range(3):
        with pytest.raises(ValueError, match=r"X: row 201 holds NaN in column 'c'; remove or impute"):
            kind(LogisticRegression(), random_state=random_state).fit(X, given)
    model = kind(LogisticRegression(), random_state=0).fit(frame[["b", "c"]], given)
    with pytest.raises(ValueError, match=r"X: row 201 holds NaN in column 'c'"):
        model.predict_set(X)


@pytest.mark.parametrize("estimator", [None, LogisticRegression(), RandomForestClassifier(3)])
def test_text_and_dates_are_named_by_column(rows, estimator):
    frame, candidates, _ = rows
    model = ConformalClassifier(estimator, random_state=0)
    with pytest.raises(
        ValueError, match=r"X: row 0 holds text \('\w+'\) in column 'city'; encode it in a pipeline"
    ):
        model.fit(frame[["b", "city"]], candidates)
    dated = frame[["b"]].assign(when=pd.Timestamp("2024-05-01"))
    with pytest.raises(ValueError, match=r"X: row 0 holds a date \(2024-05-01.*\) in column 'when'; convert it"):
        model.fit(dated, candidates)
    with pytest.raises(ValueError, match=r"row 0 holds text \('\w+'\) in column 1"):
        model.fit(frame[["b", "city"]].to_numpy(), candidates)


def test_a_column_that_the_classifier_reads_is_not_blamed(rows):
    frame, candidates, _ = rows
    model = EMClassifier(BOOSTING, random_state=0)
    with pytest.raises(ValueError, match=r"X: row 0 holds text \('red'\) in column 'colour'"):
        model.fit(native(frame).assign(colour="red"), candidates)
    with pytest.raises(ValueError, match=r"X: row 0 holds a date .* in column 'when'"):
        model.fit(native(frame).assign(when=pd.Timestamp("2024-05-01")), candidates)
    endless = frame[["a", "b"]].copy()
    endless.loc["row 9", "b"] = np.inf
    with pytest.raises(ValueError, match=r"X: row 9 holds infinity \(inf\) in column 'b'"):
        EMClassifier(make_pipeline(SimpleImputer(), GaussianNB())).fit(endless, candidates)


def test_an_error_of_another_kind_stays_what_it_is(rows):
    frame, candidates, _ = rows

    class Broken(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise ValueError("the moon is full")

    with pytest.raises(ValueError, match="^the moon is full$"):
        ConformalClassifier(Broken(), random_state=0).fit(frame[["a", "b"]], candidates)


@pytest.mark.parametrize(
    "base",
    [
        LogisticRegression(),
        HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5, max_bins=15, max_leaf_nodes=6),
        RandomForestClassifier(20, random_state=0),
    ],
)
def test_any_classifier_learns_from_candidates_better_than_from_their_average(base):
    X, candidates, y = some_rows(n=500, p=0.6)
    model = EMClassifier(base, max_iter=4, random_state=0).fit(X[:350], candidates[:350])
    once = EMClassifier(base, max_iter=1).fit(X[:350], candidates[:350])
    accuracy = (model.predict(X[350:]) == y[350:]).mean()
    assert accuracy > 0.85
    assert accuracy >= (once.predict(X[350:]) == y[350:]).mean() - 0.01
    certainty = [m.predict_proba(X[350:]).max(axis=1).mean() for m in (model, once)]
    assert certainty[0] > certainty[1]


def test_em_with_exact_labels_is_the_base_classifier():
    X, _, y = some_rows()
    model = EMClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X), rtol=1e-6)
    assert model.n_iter_ == 1


def test_em_takes_a_splitter_for_folds():
    X, candidates, _ = some_rows(120)

    class Folds(KFold):
        calls = 0

        def split(self, *rows):
            Folds.calls += 1
            return super().split(*rows)

    model = EMClassifier(cv=Folds(3), max_iter=3, tol=0).fit(X, candidates)
    assert (Folds.calls, model.n_iter_) == (1, 3)
    number = EMClassifier(cv=3, max_iter=3, tol=0, random_state=0).fit(X, candidates)
    none = EMClassifier(cv=0, max_iter=3, tol=0).fit(X, candidates)
    assert not np.allclose(model.predict_proba(X), none.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), number.predict_proba(X), atol=0.1)


def test_em_keeps_a_column_for_a_class_that_is_never_a_candidate():
    X, candidates, _ = some_rows()
    wide = np.column_stack([candidates, np.zeros(len(candidates), dtype=bool)])
    p = EMClassifier().fit(X, wide).predict_proba(X)
    assert p.shape == (300, 5)
    assert (p[:, 4] == 0).all()
