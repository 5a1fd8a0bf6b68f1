"""Fits of the annotator model have one owner: none is made twice, and none sees more rows than it may."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier, Votes
from setwise.crowd import annotator_model
from setwise.crowd.annotator_model import choose_shrinkage, fit_annotators, own_fits
from setwise.learn import PartialLabelClassifier
from tests.conftest import labels_from, simplex

N, K, PEOPLE = 240, 3, [f"a{j}" for j in range(12)]


def said(rng, y, each=4, right=0.75):
    """One column of answers per annotator, a few of whom answer about each row."""
    shape = (len(y), len(PEOPLE))
    cells = np.where(rng.random(shape) < right, y[:, None], rng.integers(0, K, shape))
    asked = rng.permuted(np.tile(np.arange(len(PEOPLE)) < each, (len(y), 1)), axis=1)
    return np.where(asked, cells, -1)


def votes_of(cells):
    return Votes.from_matrix(cells, classes=range(K), missing=-1, annotators=PEOPLE)


@pytest.fixture
def crowd(rng):
    y = rng.integers(0, K, N)
    return 2 * np.eye(K)[y] + rng.normal(size=(N, K)), y, said(rng, y)


@pytest.fixture
def fits(monkeypatch):
    """What each fit was made of, in order: its rows and answers, its probabilities, and how much it shrinks."""
    made, fit = [], annotator_model._fit

    def counted(votes, given, probabilities, shrink):
        p = None if probabilities is None else np.asarray(probabilities).tobytes()
        made.append((votes.row.tobytes(), votes.label.tobytes(), p, shrink))
        return fit(votes, given, probabilities, shrink)

    monkeypatch.setattr(annotator_model, "_fit", counted)
    return made


@pytest.mark.parametrize(
    ("estimator", "assume", "count"),
    [
        (
            LogisticRegression(),
            "nothing",
            6,
        ),  # the answers alone, three rounds, all calibration rows, the unverified
        (LogisticRegression(), "independent", 14),  # and two halves of the rows for each of four shrinkages
        (PartialLabelClassifier("linear", scale=None, epochs=2), "nothing", 4),  # one round instead of three
    ],
    ids=["em", "independent", "network"],
)
def test_no_fit_is_made_twice(crowd, fits, estimator, assume, count):
    X, y, cells = crowd
    verified = np.where(np.arange(N) % 6, None, y)
    ConformalClassifier(estimator, assume=assume, random_state=0).fit(X, votes_of(cells), verified=verified)
    assert len(fits) == len(set(fits)) == count


def test_rows_taken_out_own_fits_of_their_own(crowd):
    votes = own_fits(votes_of(crowd[2]))
    assert own_fits(votes) is votes
    assert votes.answer_model is votes.answer_model
    assert votes.answer_model.posterior.flags.writeable is False
    assert np.array_equal(votes[:100].answer_model.posterior, fit_annotators(votes_of(crowd[2][:100])).posterior)
    assert not np.array_equal(votes[:100].answer_model.posterior, votes.answer_model.posterior[:100])


def test_what_learns_has_not_seen_votes_of_calibration_rows(crowd):
    X, y, cells = crowd
    verified = np.where(np.arange(N) % 6, None, y)
    models = []
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ConformalClassifier(LogisticRegression(), random_state=0)
            models.append(model.fit(X, votes_of(cells), verified=verified))
        cells = cells.copy()
        kept = model.calibration_rows_
        cells[kept] = np.where(cells[kept] < 0, -1, (cells[kept] + 1) % K)
    assert np.array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


def test_shrinkage_is_chosen_by_answers_that_the_fit_has_not_seen(rng):
    """Of annotators who are alike, what each half seems to show of them does not hold in the other half."""
    p = simplex(rng, 120, K)
    votes = votes_of(said(rng, labels_from(rng, p), each=2))
    assert choose_shrinkage(votes, p) == 320
    fitted = {
        shrink: fit_annotators(votes, p, shrink=shrink).parameters.likelihood(votes, p) for shrink in (5, 320)
    }
    assert fitted[5] > fitted[320]  # the answers themselves would choose the least


def test_a_posterior_of_owned_votes_is_that_of_plain_ones(crowd, rng):
    cells, p = crowd[2], simplex(rng, 120, K)
    parameters = own_fits(votes_of(cells[:120])).fit(p).parameters
    for names in (PEOPLE, [*PEOPLE[6:], *"uvwxyz"]):  # half of the others are strangers
        others = Votes.from_matrix(cells[120:], range(K), -1, annotators=names)
        assert np.array_equal(parameters.posterior(own_fits(others), p), parameters.posterior(others, p))
