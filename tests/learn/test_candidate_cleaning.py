"""Candidates are thinned out while a network learns, and can come back."""

import pytest
import torch

from setwise.learn import (
    ConformalCleaning,
    Purification,
)
from setwise.learn.batches import Resident
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.scaling import fit_scaling
from setwise.learn.trainer import Plan, Trainer
from tests.toy_data import some_rows


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
