"""What a model refuses, and how it fails on the way."""

import numpy as np
import pytest
import torch
from scipy import sparse

from setwise import EMClassifier, LabelSets
from setwise.learn import (
    DivergedError,
    PartialLabelClassifier,
    ProdenLoss,
)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = np.eye(4)[y] @ rng.normal(size=(4, 6)) + 0.5 * rng.normal(size=(300, 6))
    return X, np.eye(4)[y] + (rng.random((300, 4)) < 0.3) > 0, y


def linear(**options):
    return PartialLabelClassifier("linear", scale="standard", random_state=0, **options)


def test_weights_that_are_no_numbers_are_a_divergence_even_in_the_last_step(rows):
    X, candidates, _ = rows
    with pytest.raises(DivergedError, match="epoch 1"):
        linear(epochs=1, batch_size=300, optimizer="sgd", learning_rate=float("inf")).fit(X, candidates)
    with pytest.raises(DivergedError):
        linear(epochs=5, optimizer="sgd", learning_rate=1e39).fit(X, candidates)


def test_scores_go_by_label_and_count_unlabelled_rows_as_covered(rows):
    X, candidates, _ = rows
    model = linear(epochs=20).fit(X, LabelSets.from_mask(candidates, [0, 1, 2, 3]).with_classes([3, 2, 1, 0]))
    assert model.score(X, LabelSets.from_mask(candidates, [0, 1, 2, 3])) > 0.85
    gaps = candidates.copy()
    gaps[:3] = False
    assert model.score(X, LabelSets.from_mask(gaps, [0, 1, 2, 3])) > 0.85


def test_what_is_not_a_number_is_named_by_row_in_tensors_and_sparse_matrices(rows):
    X, candidates, _ = rows
    X = X.copy()
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7 holds NaN in column 2"):
        PartialLabelClassifier("linear", scale=None, epochs=1, random_state=0).fit(torch.as_tensor(X), candidates)
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
