"""What happens to a model that goes on, is taken up again, or fails on the way."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy import sparse

from setwise import EMClassifier, LabelSets
from setwise.learn import (
    DivergedError,
    GCELoss,
    PartialLabelClassifier,
    PartialLabelKNN,
    ProdenLoss,
)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = np.eye(4)[y] @ rng.normal(size=(4, 6)) + 0.5 * rng.normal(size=(300, 6))
    return X, np.eye(4)[y] + (rng.random((300, 4)) < 0.3) > 0, y


def confidence(model, X):
    return model.predict_proba(X).max(axis=1).mean()


def linear(**options):
    return PartialLabelClassifier("linear", scale="standard", random_state=0, **options)


def test_going_on_keeps_what_the_model_thinks_of_the_rows(rows):
    """Without it every pass of PRODEN would be a first one, which is the naive loss, and undo a fit."""
    X, candidates, _ = rows
    proden, naive = linear(), linear(loss="naive")
    for _ in range(6):
        proden.partial_fit(X, candidates)
        naive.partial_fit(X, candidates)
    assert confidence(proden, X) > confidence(naive, X) + 0.05
    fitted = linear(epochs=50).fit(X, candidates)
    before = confidence(fitted, X)
    for _ in range(3):
        fitted.partial_fit(X, candidates)
    assert confidence(fitted, X) > before - 0.05


def test_a_failing_continuation_leaves_the_model_as_it_was(rows):
    X, candidates, _ = rows
    model = linear(epochs=5).fit(X, candidates)
    before = model.predict_proba(X)
    model.set_params(optimizer="sgd", learning_rate=1e38)
    with pytest.raises(DivergedError):
        model.partial_fit(X, candidates)
    assert np.array_equal(model.predict_proba(X), before)


def test_weights_that_are_no_numbers_are_a_divergence_even_in_the_last_step(rows, tmp_path):
    X, candidates, _ = rows
    with pytest.raises(DivergedError, match="epoch 1"):
        linear(epochs=1, batch_size=300, optimizer="sgd", learning_rate=float("inf")).fit(X, candidates)
    path = tmp_path / "run.pt"
    with pytest.raises(DivergedError):
        linear(epochs=5, optimizer="sgd", learning_rate=1e39, checkpoint=path).fit(X, candidates)
    assert not path.exists()  # no epoch was good


@pytest.mark.parametrize("change", ["features", "loss"])
def test_a_checkpoint_of_another_training_is_refused(change, rows, tmp_path):
    X, candidates, _ = rows
    options = {"loss": partial(GCELoss, q=0.7), "epochs": 3}
    model = linear(checkpoint=tmp_path / "run.pt", **options).set_params(scale="rows")
    model.fit(X, candidates)
    other = X.copy()
    if change == "features":
        other[1:] = np.random.default_rng(1).normal(size=other[1:].shape)
    else:
        model.set_params(loss=partial(GCELoss, q=0.1))
    with pytest.raises(ValueError, match="other data or settings"):
        model.fit(other, candidates)


def test_a_checkpoint_needs_a_seed(rows, tmp_path):
    X, candidates, _ = rows
    with pytest.raises(ValueError, match="set random_state"):
        PartialLabelClassifier("linear", checkpoint=tmp_path / "run.pt").fit(X, candidates)


def test_neighbours_do_not_depend_on_the_unit_of_the_features(rows):
    X, candidates, _ = rows
    for scale in (1e-6, 1.0, 1e6):
        model = PartialLabelKNN(5).fit(X * scale, candidates)
        assert np.array_equal(model.predict(X * scale), PartialLabelKNN(5).fit(X, candidates).predict(X))


def test_scores_go_by_label_and_count_unlabelled_rows_as_covered(rows):
    X, candidates, _ = rows
    model = linear(epochs=20).fit(X, LabelSets.from_mask(candidates, [0, 1, 2, 3]).with_classes([3, 2, 1, 0]))
    assert model.score(X, LabelSets.from_mask(candidates, [0, 1, 2, 3])) > 0.85
    gaps = candidates.copy()
    gaps[:3] = False
    assert model.score(X, LabelSets.from_mask(gaps, [0, 1, 2, 3])) > 0.85


def test_what_is_not_a_number_is_named_by_row_in_data_sets_and_sparse_matrices(rows):
    X, candidates, y = rows
    X = X.copy()
    X[7, 2] = np.nan

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(X)

        def __getitem__(self, i):
            return torch.as_tensor(X[i]), int(y[i])

    with pytest.raises(ValueError, match="item 7 of the data set holds NaN"):
        PartialLabelClassifier("linear", scale=None, epochs=1, random_state=0).fit(Rows())
    with pytest.raises(ValueError, match="row 7 holds NaN in column 2"):
        EMClassifier().fit(sparse.csr_matrix(X), candidates)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size: 0 is not positive"),
        ({"batch_size": -3}, "batch_size: -3 is not positive"),
        ({"learning_rate": -1.0}, "learning_rate: -1.0 is not positive"),
        ({"weight_decay": -1.0}, "weight_decay: -1.0 is negative"),
        ({"precision": "fp8"}, "precision: 'fp8' is not known"),
    ],
)
def test_senseless_parameters_are_named(options, message, rows):
    X, candidates, _ = rows
    with pytest.raises(ValueError, match=message):
        linear(**options).fit(X, candidates)


def test_images_with_channels_last_are_explained():
    with pytest.raises(ValueError, match="channels first"):
        PartialLabelClassifier("cnn", epochs=1).fit(np.zeros((20, 28, 28, 1)), np.arange(20) % 3)


def test_a_loss_in_a_loop_of_ones_own_saves_and_restores_its_memory():
    first, second = ProdenLoss(n_examples=5), ProdenLoss(n_examples=5)
    logits, candidates = torch.tensor([[4.0, 0.0, 0.0]]), torch.tensor([[True, True, False]])
    first(logits, candidates, torch.tensor([3]))
    second.load_state_dict(first.state_dict())
    index = torch.tensor([3])
    assert second(logits, candidates, index) == first(logits, candidates, index)
