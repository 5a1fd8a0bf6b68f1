"""New rows that bring votes: scored by the posterior of their answers, calibrated on the verified rows alone."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from setwise import (
    APS,
    Calibration,
    ConformalClassifier,
    CrossConformalClassifier,
    MisuseWarning,
    SmallCalibrationWarning,
    Votes,
    conformalize,
)
from setwise.crowd.annotator_model import fit_annotators
from setwise.errors import InputError
from setwise.row_noise import uniforms
from tests.conftest import labels_from, printed, simplex

K = 4
PEOPLE = ["ann", "bob", "cyd"]


def told(rng, n, right=0.75, *, copied=False):
    """Probabilities, truth, and three answers per row; copied ones depend on each other."""
    p = simplex(rng, n, K)
    y = labels_from(rng, p)
    said = np.where(rng.random((n, 3)) < right, y[:, None], rng.integers(0, K, (n, 3)))
    if copied:
        said[:, 1] = said[:, 0]
    return p, y, said


def votes_of(said, names=PEOPLE):
    return Votes.from_matrix(said, classes=range(K), annotators=names)


def checked(y, m):
    return np.where(np.arange(len(y)) < m, y, None)


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    p, y, said = told(rng, 800)
    made = conformalize(p[:400], votes_of(said[:400]), verified=checked(y[:400], 60), random_state=0)
    return made, p[400:], y[400:], said[400:]


def coverage(samples=40, seed=0):
    """With 10 verified rows at level 0.9: the largest of 10 scores, which covers 10/11 on average."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(samples):
        p, y, said = told(rng, 240, copied=True)
        made = conformalize(p[:40], votes_of(said[:40]), verified=checked(y[:40], 10))
        sets = made.predict_set(p[40:], candidates=votes_of(said[40:]))
        found.append(sets.contains(y[40:]).mean())
    return np.mean(found), np.std(found) / math.sqrt(samples)


def test_the_promise_holds_whatever_annotators_do_and_needs_the_exact_rank(monkeypatch):
    mean, error = coverage()
    assert mean > 0.9 - 3 * error
    assert mean < 10 / 11 + 4 * error
    monkeypatch.setattr("setwise.strategies.threshold_rules.rank", lambda n, level: math.ceil(n * level))
    mean, error = coverage()
    assert mean < 0.9 - 3 * error


def test_sets_are_smaller_with_the_votes_and_no_promise_is_lost(world):
    made, p, y, said = world
    plain, voted = made.predict_set(p), made.predict_set(p, candidates=votes_of(said))
    assert voted.sizes.mean() < 0.8 * plain.sizes.mean()
    assert voted.contains(y).mean() > 0.8
    guarantee = made.guarantee(0.9, votes=True)
    assert guarantee.promised == 0.9
    assert {"verified_at_random", "same_annotators", "same_source"} <= {p.name for p in guarantee.premises}
    assert "independent" not in {p.name for p in guarantee.premises}
    assert made.guarantee(0.9).premises != guarantee.premises
    assert [g.promised for g in made.guarantee([0.8, 0.9], votes=True)] == [0.8, 0.9]


def test_sets_are_not_cut_down_to_the_answers(world):
    made, p, _, said = world
    sets = made.predict_set(p, 0.97, candidates=votes_of(said)).to_mask()
    assert (sets & (votes_of(said).counts == 0)).any()


def test_the_threshold_is_the_exact_rank_of_the_verified_rows(world):
    made, p, _, said = world
    scores = made.evidence.answered_truth
    checks = np.sort(scores[~np.isnan(scores)])
    assert len(checks) == 60
    limit = checks[math.ceil(61 * 0.9) - 1]
    posterior = made.annotators.posterior(votes_of(said), p)
    sets = made.predict_set(p, candidates=votes_of(said))
    assert np.array_equal(sets.to_mask(), -posterior <= limit)


def test_too_few_checks_give_every_label(world):
    made, p, _, said = world
    with pytest.warns(SmallCalibrationWarning, match="needs at least 99 calibration rows, and there are 60"):
        sets = made.predict_set(p, 0.99, candidates=votes_of(said))
    assert (sets.sizes == K).all()
    assert "Every label" in printed(made.guarantee(0.99, votes=True))


def test_annotators_are_known_by_name_and_others_are_taken_for_average_ones(world):
    made, p, _, said = world
    swapped = made.annotators.posterior(votes_of(said[:, ::-1], PEOPLE[::-1]), p)
    assert np.allclose(swapped, made.annotators.posterior(votes_of(said), p))
    others = made.annotators.posterior(votes_of(said, ["x", "y", "z"]), p)
    nameless = made.annotators.posterior(Votes.from_counts(votes_of(said).counts), p)
    assert np.allclose(others, nameless)
    assert not np.allclose(others, swapped)


def test_the_noise_of_verified_rows_is_their_own(world):
    _, p, y, said = world
    made = conformalize(p, votes_of(said), "auto", "aps", verified=checked(y, 50), random_state=1)
    posterior = made.annotators.posterior(votes_of(said)[:50], p[:50])
    own = APS().score(posterior, y[:50], u=uniforms(p, made.setting.seed)[:50])
    assert np.array_equal(made.evidence.answered_truth[:50], own)


@pytest.mark.parametrize("score", ["lac", "aps", "margin", "rps"])
def test_a_file_keeps_the_annotators(world, tmp_path, score):
    _, p, y, said = world
    votes = votes_of(said)
    made = conformalize(p[:300], votes[:300], "auto", score, verified=checked(y[:300], 50), random_state=1)
    made.save(tmp_path / "made")
    again = Calibration.load(tmp_path / "made")
    asked = {"candidates": votes[300:]}
    assert again.predict_set(p[300:], **asked) == made.predict_set(p[300:], **asked)
    assert str(again.guarantee(votes=True)) == str(made.guarantee(votes=True))
    assert again.annotators.names.classes.tolist() == PEOPLE


def test_verified_labels_and_answers_of_verified_rows_do_not_enter_the_annotator_model(world):
    _, p, y, said = world
    others = said.copy()
    others[:60] = (said[:60] + 1) % K
    for answers, labels in ((said, (y + 1) % K), (others, y)):
        with pytest.warns(MisuseWarning, match="not a random choice") if answers is others else nullcontext():
            made = conformalize(p, votes_of(answers), verified=checked(labels, 60))
        assert np.array_equal(made.annotators.own, fit_annotators(votes_of(said)[60:], p[60:]).parameters.own)


def test_with_every_row_verified_the_model_is_what_em_starts_from(world):
    _, p, y, said = world
    made = conformalize(p[:100], votes_of(said[:100]), verified=y[:100])
    sets = made.predict_set(p[100:], candidates=votes_of(said[100:]))
    assert sets.contains(y[100:]).mean() > 0.8


def test_parameters_give_the_posterior_that_was_fitted(world):
    _, p, _, said = world
    for votes in (votes_of(said), Votes.from_counts(votes_of(said).counts)):
        for given in (p, None):
            model = fit_annotators(votes, given)
            assert np.abs(model.parameters.posterior(votes, given) - model.posterior).max() < 0.02


def test_by_size_and_by_category_answer_too(world):
    _, p, y, said = world
    votes = votes_of(said)
    for by in ("size", "predicted"):
        made = conformalize(p[:300], votes[:300], "max", verified=checked(y[:300], 120), by=by)
        sets = made.predict_set(p[300:], 0.8, candidates=votes[300:])
        assert sets.contains(y[300:]).mean() > 0.6
        assert set(made.guarantee(0.8, votes=True).by_category) == set(made.category_names)


def test_votes_that_cannot_be_used_are_refused_with_a_way_out(world):
    made, p, y, said = world
    votes, way = votes_of(said), "verified=….*leave candidates out"
    sets = votes.candidates()
    for other in (conformalize(p, votes), conformalize(p, sets, verified=checked(y, 60), miss_rate=0.1)):
        with pytest.raises(InputError, match=way):
            other.predict_set(p, candidates=votes)
        with pytest.raises(InputError, match=way):
            other.guarantee(votes=True)
    chance = np.where(np.arange(400) < 60, 0.97, 0.005)
    chances = conformalize(p, votes, verified=checked(y, 60), verified_probability=chance)
    with pytest.raises(InputError, match="unequal verification; leave candidates out"):
        chances.predict_set(p, candidates=votes)
    made.predict_set(p.astype(np.float32), candidates=votes)  # another floating type is taken
    with pytest.raises(ValueError, match="candidates: 399 rows for 400"):
        made.predict_set(p, candidates=votes[1:])


def test_a_classifier_uses_the_votes_of_new_rows(world):
    _, _, y, said = world
    X, votes = 2 * np.eye(K)[y] + np.random.default_rng(0).normal(size=(400, K)), votes_of(said)
    model = ConformalClassifier(GaussianNB(), random_state=0, calibration_size=0.5)
    model.fit(X[:300], votes[:300], verified=checked(y[:300], 50))
    sets = model.predict_set(X[300:], candidates=votes[300:])
    assert sets.contains(y[300:]).mean() > 0.75  # one sample of 50 checks: 0.9 on average over samples
    assert model.guarantee(votes=True).promised == 0.9
    cross = CrossConformalClassifier(GaussianNB(), cv=3).fit(X, y)
    with pytest.raises(InputError, match="no cross-conformal method uses votes"):
        cross.predict_set(X, candidates=votes)


@pytest.mark.parametrize("verified", [20, 200])
def test_answers_of_nobody_by_name_come_back(verified, rng, tmp_path):
    """Of answers without names, as a language model gives them, one annotator is known, and none is counted."""
    p = simplex(rng, 300, 3)
    y = labels_from(rng, p)
    said = [[label if rng.random() < 0.8 else int(rng.integers(3)) for _ in range(3)] for label in y.tolist()]
    votes = Votes.from_lists(said, classes=[0, 1, 2])
    known = np.where(rng.permutation(300) < verified, y, None)
    made = conformalize(p, votes, verified=known)
    made.save(tmp_path / "c.cal")
    read = Calibration.load(tmp_path / "c.cal")
    assert str(read.guarantee(0.9)) == str(made.guarantee(0.9))
    assert read.predict_set(p, candidates=votes).to_lists() == made.predict_set(p, candidates=votes).to_lists()
