"""Learning from votes: what the targets are, and that no row's own model confirms itself."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from setwise import ConformalClassifier, Votes
from setwise.learn import EMClassifier, PartialLabelClassifier
from setwise.learn.batches import Resident
from setwise.learn.criteria import approximated_accuracy
from setwise.learn.fitted_networks import out_of_sample

K, WIDTH = 4, 40


def crowd(n, seed, skill=(0.8, 0.6, 0.0)):
    """Features, answers of three annotators of whom the last one guesses, and the truth."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    X = np.random.default_rng(99).normal(scale=0.5, size=(K, WIDTH))[y] + rng.normal(size=(n, WIDTH))
    said = np.where(rng.random((n, 3)) < skill, y[:, None], rng.integers(0, K, (n, 3)))
    return X, said, y


def votes_of(said):
    return Votes.from_matrix(said, classes=range(K), annotators=["ann", "bob", "eve"])


@pytest.mark.parametrize(
    ("learner", "labels"),
    [
        (PartialLabelClassifier("linear", scale="standard", epochs=30, random_state=0), None),
        (EMClassifier(random_state=0), LogisticRegression(max_iter=1000)),
    ],
    ids=["network", "em"],
)
def test_votes_teach_more_than_their_majority(learner, labels):
    X, said, _ = crowd(200, 0)
    X_new, _, y_new = crowd(4000, 1)
    votes, rng = votes_of(said), np.random.default_rng(2)
    majority = (votes.counts + 0.5 * rng.random(votes.shape)).argmax(axis=1)
    learned = (learner.fit(X, votes).predict(X_new) == y_new).mean()
    plain = ((labels or learner).fit(X, majority).predict(X_new) == y_new).mean()
    assert learned > plain + 0.05


def test_a_row_is_judged_by_networks_that_did_not_see_its_answers():
    X, said, _ = crowd(60, 0)
    settings = PartialLabelClassifier("linear", "naive", "standard", epochs=3).settings()
    source = Resident(torch.from_numpy(X))
    targets = torch.from_numpy(votes_of(said).counts.astype(np.float32))
    other = targets.clone()
    other[7] = torch.tensor([0.0, 0.0, 0.0, 9.0])
    before, after = (out_of_sample(settings, source, each, seed=0) for each in (targets, other))
    assert torch.equal(before[7], after[7])
    assert not torch.equal(before, after)


def test_a_module_of_ones_own_learns_from_votes_too():
    X, said, y = crowd(80, 0)
    model = PartialLabelClassifier(lambda: torch.nn.Linear(WIDTH, K), epochs=9, learning_rate=0.1, scale=None)
    model.fit(torch.from_numpy(X).float(), votes_of(said))
    assert (model.predict(X) == y).mean() > 0.5


def test_a_model_is_not_chosen_for_its_own_confidence():
    logits = torch.tensor([[[2.0, 1.0, 0.0]]])
    posterior = torch.tensor([[[0.3, 0.6, 0.1]]])
    modest, sure = (approximated_accuracy(scale * logits, posterior) for scale in (1.0, 100.0))
    assert float(modest) == float(sure) == pytest.approx(0.3)


def test_sets_learned_from_votes_alone_are_nearly_those_of_true_labels():
    X, said, y = crowd(3000, 0)
    X_new, _, y_new = crowd(3000, 1)
    model = ConformalClassifier(LogisticRegression(), "crowd", assume="independent", random_state=0)
    model.fit(X[:2000], votes_of(said[:2000]))
    sets = model.predict_set(X_new)
    assert abs(sets.contains(y_new).mean() - 0.9) < 0.03
    model.conformalize(X[2000:], y[2000:], strategy="auto", assume="nothing")
    assert sets.sizes.mean() < 1.1 * model.predict_set(X_new).sizes.mean()
