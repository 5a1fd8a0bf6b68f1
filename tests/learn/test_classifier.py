"""PartialLabelClassifier as a scikit-learn estimator: inputs, options, continuation, errors."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise import LabelSets
from setwise.learn import (
    CCLoss,
    DivergedError,
    EMClassifier,
    MeritLoss,
    PartialLabelClassifier,
)


def some_rows(n=150, d=6, k=3, seed=0, p=0.3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, d))
    X[:, :k] += 4 * np.eye(k)[y]
    candidates = rng.random((n, k)) < p
    candidates[np.arange(n), y] = True
    return X, candidates, y


def quick(**settings):
    return PartialLabelClassifier(
        **{"network": "linear", "scale": "standard", "epochs": 15, "random_state": 0} | settings
    )


def weights(model):
    return [p.detach().numpy() for p in model.network_.parameters()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([PartialLabelClassifier(epochs=5, hidden_sizes=(50,), random_state=0), EMClassifier()])
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "as_input",
    [
        np.asarray,
        sparse.csr_matrix,
        pd.DataFrame,
        pl.DataFrame,
        torch.as_tensor,
        lambda X: X.tolist(),
    ],
)
def test_every_kind_of_features_gives_the_same_model(as_input):
    X, candidates, _ = some_rows()
    expected = quick().fit(X, candidates).predict_proba(X)
    X = pd.DataFrame(X, columns=[f"f{i}" for i in range(6)]) if as_input is pd.DataFrame else as_input(X)
    np.testing.assert_allclose(quick().fit(X, candidates).predict_proba(X), expected, rtol=1e-6)


def test_every_kind_of_candidates_gives_the_same_model():
    X, mask, _ = some_rows()
    expected = quick().fit(X, mask).predict_proba(X)
    sets = LabelSets.from_mask(mask)
    kinds = [sets, mask.tolist(), sets.to_lists(), torch.as_tensor(mask), sets.to_arrow(), pd.DataFrame(mask)]
    for candidates in [*kinds, pd.Series(sets.to_lists())]:
        np.testing.assert_array_equal(quick().fit(X, candidates).predict_proba(X), expected)


def test_a_torch_dataset_is_asked_for_as_a_tensor():
    X, candidates, _ = some_rows()
    rows = torch.utils.data.TensorDataset(torch.as_tensor(X))
    with pytest.raises(ValueError, match="X: a torch Dataset, not an array or a tensor; stack its items"):
        quick().fit(rows, candidates)


def test_the_defaults_learn_from_raw_features_and_say_what_they_chose():
    X, candidates, y = some_rows(200)
    model = PartialLabelClassifier(epochs=20, random_state=0).fit(100 + 50 * X, candidates)
    assert (model.predict(100 + 50 * X) == y).mean() > 0.85
    assert len(model.choices_) == 4
    assert all(0 <= value <= 1 for value in model.choices_.values())


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    X, candidates, _ = some_rows()
    settings = {"network": "mlp", "hidden_sizes": (8,), "ensemble": 2}
    one, again, other = (quick(**settings, random_state=s).fit(X, candidates) for s in (1, 1, 2))
    for a, b in zip(weights(one), weights(again), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(weights(one)[0], weights(other)[0])
    assert weights(one)[0].shape[0] == 2


def test_it_clones_pickles_pipes_and_grid_searches():
    X, candidates, _ = some_rows()
    model = quick().fit(X, candidates)
    assert clone(model).get_params() == model.get_params()
    thawed = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(thawed.predict_proba(X), model.predict_proba(X))
    sets = LabelSets.from_mask(candidates, classes=["a", "b", "c"])
    search = GridSearchCV(quick(epochs=5), {"loss": ["proden", "cc"]}, cv=2).fit(X, sets)
    assert set(search.predict(X)) <= {"a", "b", "c"}
    assert search.best_score_ > 0.6
    assert cross_val_score(make_pipeline(StandardScaler(), quick(scale=None)), X, sets, cv=3).min() > 0.6


def test_the_score_is_the_covering_rate_and_accuracy_for_labels():
    X, candidates, y = some_rows(p=0.5)
    model = quick().fit(X, candidates)
    predicted = model.predict(X)
    assert model.score(X, candidates) == pytest.approx(candidates[np.arange(len(y)), predicted].mean())
    assert model.score(X, y) == pytest.approx((predicted == y).mean())
    named = quick().fit(X, LabelSets.from_mask(candidates, classes=["u", "v", "w"]))
    assert named.score(X, np.array(["u", "v", "w"])[y]) == pytest.approx(model.score(X, y))


def test_unlabelled_rows_are_full_sets_and_help():
    X, candidates, y = some_rows(400, p=0.0)
    unlabelled = candidates.copy()
    unlabelled[20:] = True
    model = quick(epochs=60).fit(X, unlabelled)
    assert (model.predict(X) == y).mean() > 0.9
    lists = [[int(k)] if i < 20 else None for i, k in enumerate(y)]
    filled = quick(missing="full", epochs=60).fit(X, lists)
    np.testing.assert_array_equal(filled.predict(X), model.predict(X))


def test_any_module_can_be_the_network():
    X, candidates, y = some_rows(300)
    before = torch.get_rng_state()

    def network():
        layers = [torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(16, 3)]
        return torch.nn.Sequential(*layers)

    model = quick(network=network, epochs=60).fit(X, candidates)
    assert (model.predict(X) == y).mean() > 0.85
    assert torch.equal(torch.get_rng_state(), before)
    again = quick(network=network, epochs=60).fit(X, candidates)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="one logit for each of the 3 classes"):
        quick(network=lambda: torch.nn.Linear(6, 5)).fit(X, candidates)


def test_images_go_to_a_small_convolutional_network():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    X = rng.integers(0, 50, (80, 8, 8)).astype(np.uint8)
    X[y == 1, 2:6, 2:6] += 150
    for images in (X, X.reshape(80, 64)):
        model = PartialLabelClassifier("cnn", scale=(25, 50), epochs=15, random_state=0).fit(images, y)
        assert model.score(images, y) > 0.95


def test_a_loss_of_ones_own_and_bfloat16(bfloat16):
    X, candidates, y = some_rows()
    model = quick(loss=partial(MeritLoss, beta=0.5), precision="bfloat16").fit(X, candidates)
    assert (model.predict(X) == y).mean() > 0.8


def test_progress_goes_to_stderr_and_only_when_asked(capfd):
    X, candidates, _ = some_rows()
    quick().fit(X, candidates)
    assert capfd.readouterr() == ("", "")
    quick(verbose=1).fit(X, candidates)
    out, err = capfd.readouterr()
    assert out == ""
    assert "learning (proden, linear)" in err
    assert "15/15" in err


def test_bad_input_is_named_with_its_row_and_a_remedy():
    X, candidates, _ = some_rows()
    broken = X.copy()
    broken[7, 2] = np.nan
    for kind in (broken, torch.as_tensor(broken)):
        with pytest.raises(ValueError, match="row 7 holds NaN in column 2; remove or impute"):
            quick().fit(kind, candidates)
    empty = candidates.copy()
    empty[4] = False
    with pytest.raises(ValueError, match="row 4 is empty"):
        quick().fit(X, empty)
    with pytest.raises(ValueError, match="140 rows for 150 rows of X"):
        quick().fit(X, candidates[:140])
    with pytest.raises(ValueError, match="network: 'resnet' is not known"):
        quick(network="resnet").fit(X, candidates)
    with pytest.raises(ValueError, match="scale: 'minmax' is not known"):
        quick(scale="minmax").fit(X, candidates)
    with pytest.raises(ValueError, match="epochs: 0 is not"):
        quick(epochs=0).fit(X, candidates)
    with pytest.raises(ValueError, match="6 features are not a square"):
        quick(network="cnn").fit(X, candidates)
    with pytest.raises(NotFittedError):
        quick().predict(X)


class Bursting(CCLoss):
    """Finite for the first six batches."""

    calls = 0

    def value(self, logits, candidates, remembered):
        self.calls += 1
        return super().value(logits, candidates, remembered) * (1.0 if self.calls <= 6 else np.nan)


def test_divergence_names_its_epoch():
    X, candidates, _ = some_rows()
    with pytest.raises(DivergedError, match="epoch 4 of 15; lower learning_rate"):
        quick(loss=Bursting).fit(X, candidates)  # two batches an epoch
    with pytest.raises(DivergedError, match="epoch 1 of 15"):
        quick(scale=None, learning_rate=1e30, optimizer="sgd").fit(1e20 * X, candidates)


def test_without_epochs_many_rows_are_seen_less_often_on_a_cpu():
    settings = PartialLabelClassifier().settings()
    epochs = [settings.plan(n, torch.device(kind)).epochs for kind in ("cpu", "cuda") for n in (5_000, 50_000)]
    assert epochs == [100, 20, 100, 100]
    assert (settings.for_trial(1_999).epochs, settings.for_trial(2_000).epochs) == (25, 40)
    asked = PartialLabelClassifier(epochs=7).settings()
    assert (asked.plan(50_000, torch.device("cpu")).epochs, asked.for_trial(1_000).epochs) == (7, 7)
    recommended = PartialLabelClassifier(epochs=100).settings()
    assert recommended.plan(50_000, torch.device("cpu")).epochs == 100
