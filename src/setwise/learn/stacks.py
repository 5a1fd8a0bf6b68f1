"""A stack: models of one shape that train together, each on its own rows with its own candidates."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from setwise.errors import InputError, Remedy
from setwise.learn.batches import Resident
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.progress import Progress
from setwise.learn.scaling import Scaling, fit_scaling
from setwise.learn.settings import Settings
from setwise.learn.trainer import Trainer


def train_stack(
    settings: Settings,
    source: Resident,
    candidates: Tensor,
    seeds: Sequence[int],
    *,
    scaling: Scaling | None = None,
    doing: str = "learning",
) -> Trainer:
    """Trains a stack to the end, on candidates that are a boolean mask or weights (M, n, K).

    Each model has a seed, for its first weights and the order of its examples. Without `scaling` it is that of the
    settings, with the statistics of the first model's rows for all of them. Progress is shown of `doing`.
    """
    n_models, n, n_classes = candidates.shape
    device = candidates.device
    if scaling is None:
        scaling = fit_scaling(settings.scale, source.chunks())
    network = build_network(
        settings.network,
        seeds,
        source.shape,
        n_classes,
        hidden_sizes=settings.hidden_sizes,
        batch_norm=settings.batch_norm,
        dropout=settings.dropout,
    )
    loss = as_loss(settings.loss, n, n_models)
    if candidates.dtype != torch.bool and not loss.weighs:
        raise InputError(f"loss: {settings.loss!r} does not weigh votes", Remedy("loss", "proden"))
    plan, scaling = settings.plan(n, device), scaling.to(device)
    trainer = Trainer(network.to(device), scaling, loss, source, candidates, plan=plan, seeds=seeds)
    return run(trainer, settings, doing=doing)


def run(trainer: Trainer, settings: Settings, *, doing: str = "learning") -> Trainer:
    """Trains to the end, with progress if the settings ask for it."""
    if not settings.verbose:
        return trainer.fit()
    with Progress(f"{doing} ({settings.loss}, {settings.network})", trainer.plan.epochs) as progress:
        trainer.hooks.append(progress)
        return trainer.fit()
