"""Cleaning, expectation maximisation, neighbours, temperature, scaling and criteria."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from setwise.learn import (
    ConformalCleaning,
    EMClassifier,
    PartialLabelKNN,
    Purification,
    TemperatureError,
    approximated_accuracy,
    covering_rate,
    fit_temperature,
)
from setwise.learn.batches import Resident
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.scaling import fit_scaling
from setwise.learn.trainer import Plan, Trainer


def some_rows(n=300, d=5, k=4, p=0.4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, d)) + 4 * np.eye(d)[y]
    candidates = rng.random((n, k)) < p
    candidates[np.arange(n), y] = True
    return X, candidates, y


def cleaned(hook, epochs=30, n_models=1, held=60):
    X, candidates, y = some_rows()
    x, mask = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(candidates)
    if hasattr(hook, "attach"):
        hook.attach(Resident(x[:held]), mask[:held].expand(n_models, -1, -1))
    else:
        held = 0
    trainer = Trainer(
        build_network("linear", list(range(n_models)), x.shape[1:], 4),
        fit_scaling("standard", [x]),
        as_loss("proden", len(x) - held, n_models),
        Resident(x[held:]),
        mask[held:].expand(n_models, -1, -1),
        plan=Plan(epochs, 50, "adam", 0.05),
        seeds=list(range(n_models)),
        hooks=[hook],
    ).fit()
    return trainer, mask[held:], torch.as_tensor(y[held:])


@pytest.mark.parametrize("make", [lambda: Purification(start=10), lambda: ConformalCleaning(start=10)])
def test_cleaning_drops_wrong_candidates_and_keeps_right_ones(make):
    trainer, original, y = cleaned(make(), n_models=2)
    for candidates in trainer.candidates:
        assert not (candidates & ~original).any()
        assert candidates.any(dim=-1).all()
        assert candidates.sum() < 0.85 * original.sum()
        assert candidates.gather(1, y[:, None]).float().mean() > 0.93
    assert torch.equal(trainer.given[0], original)


def test_cleaning_waits_for_its_first_epoch():
    for hook in (Purification(start=50), ConformalCleaning(start=50)):
        trainer, original, _ = cleaned(hook, epochs=12)
        assert torch.equal(trainer.candidates[0], original)


def test_a_candidate_cleaned_away_can_come_back():
    hook = ConformalCleaning(start=1)
    trainer, original, _ = cleaned(hook)
    with torch.no_grad():
        trainer.network.output.weight.zero_()
        trainer.network.output.bias.zero_()
    hook(trainer)  # a model that knows nothing has no reason to drop anything
    assert torch.equal(trainer.candidates[0], original)


def test_conformal_cleaning_asks_for_held_out_rows():
    hook = ConformalCleaning()
    trainer, _, _ = cleaned(ConformalCleaning(), epochs=1)
    with pytest.raises(ValueError, match="attach"):
        hook(trainer)


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


def test_neighbours_vote_as_defined():
    X = np.array([[0.0], [1.0], [3.0]])
    model = PartialLabelKNN(n_neighbors=2).fit(X, [["a", "b"], ["b"], ["c"]])
    p = model.predict_proba([[0.25]])[0]  # distances 0.25 and 0.75: weights 0.75 and 0.25
    np.testing.assert_allclose(p, np.array([0.75, 1.0, 0.0]) / 1.75)


def test_neighbours_learn():
    X, candidates, y = some_rows(600)
    model = PartialLabelKNN().fit(X[:400], candidates[:400])
    assert (model.predict(X[400:]) == y[400:]).mean() > 0.9


def test_the_temperature_that_made_the_data_comes_back():
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(20000, 6, generator=generator, dtype=torch.float64)
    y = torch.multinomial((z / 2).softmax(-1), 1, generator=generator)
    exact = torch.zeros(20000, 6, dtype=torch.bool).scatter_(1, y, True)
    assert fit_temperature(z, exact, verified=True) == pytest.approx(2, rel=0.03)
    random = exact | (torch.rand(20000, 6, generator=generator) < 0.3)
    assert fit_temperature(z, random) == pytest.approx(2, rel=0.05)


def test_the_temperature_is_refused_where_the_model_made_the_candidates():
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(2000, 6, generator=generator, dtype=torch.float64)
    p = z.softmax(-1)
    made = torch.rand(2000, 6, generator=generator) < p / p.amax(-1, keepdim=True)
    with pytest.raises(TemperatureError, match="100.0%"):
        fit_temperature(z, made)
    made[:40] = ~made[:40]
    with pytest.raises(TemperatureError, match="bound"):
        fit_temperature(1e-3 * z, made)


def test_scaling_uses_the_statistics_of_the_rows_given_block_by_block():
    x = torch.as_tensor(some_rows()[0]) * 7 + 3
    whole, parts = fit_scaling("standard", [x]), fit_scaling("standard", x.split(37))
    torch.testing.assert_close(whole.shift, x.mean(0))
    torch.testing.assert_close(parts.spread, x.std(0, unbiased=False))
    constant = fit_scaling("standard", [torch.ones(5, 2)])
    assert torch.isfinite(constant(torch.ones(1, 5, 2))).all()
    assert torch.isfinite(fit_scaling("rows", ())(torch.zeros(1, 2, 3))).all()
    far = 1e8 + torch.arange(4, dtype=torch.float64)[:, None]
    assert fit_scaling("standard", [far])(far[None]).unique().numel() == 4
    with pytest.raises(ValueError, match="positive spreads"):
        fit_scaling((0.0, 0.0), ())


def test_the_criteria_need_no_truth_and_order_models():
    _, candidates, y = some_rows()
    good, mask = 5 * torch.eye(4)[torch.as_tensor(y)], torch.as_tensor(candidates)
    bad = good.roll(1, dims=-1)
    for criterion in (covering_rate, approximated_accuracy):
        assert criterion(good, mask) > 0.9
        assert criterion(torch.stack([good, bad]), mask.expand(2, -1, -1))[1] < 0.6
