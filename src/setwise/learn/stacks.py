"""A stack: models of one shape that train together, each on its own rows with its own candidates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from setwise.errors import InputError, Remedy
from setwise.learn.batches import ExampleSource
from setwise.learn.checkpoints import Checkpoint
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.progress import Progress
from setwise.learn.scaling import Scaling, fit_scaling
from setwise.learn.settings import Settings
from setwise.learn.trainer import Trainer


def train_stack(settings: Settings, *rows: Any, doing: str = "learning", **options: Any) -> Trainer:
    """Makes a `stack_trainer` from the same arguments, and trains it to the end."""
    return run(stack_trainer(settings, *rows, **options), settings, doing=doing)


def stack_trainer(
    settings: Settings,
    source: ExampleSource,
    candidates: Tensor,
    seeds: Sequence[int],
    *,
    scaling: Scaling | None = None,
    network: nn.Module | None = None,
) -> Trainer:
    """The trainer of a stack.

    Parameters
    ----------
    settings
        What all models have in common.
    source, candidates
        The rows, and a boolean mask or weights (M, n, K).
    seeds
        One per model: its first weights and the order of its examples.
    scaling
        None uses that of the settings, with the statistics of the first model's rows for all of them.
    network
        Models to continue with; None makes new ones.
    """
    n_models, n, n_classes = candidates.shape
    device = candidates.device
    if scaling is None:
        scaling = fit_scaling(settings.scale, source.chunks())
    if network is None:
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
    return Trainer(
        network.to(device),
        scaling.to(device),
        loss,
        source,
        candidates,
        plan=settings.plan(n, device),
        seeds=seeds,
    )


def run(trainer: Trainer, settings: Settings, *, doing: str = "learning") -> Trainer:
    """Trains to the end, with a checkpoint file and progress if the settings ask for them."""
    with ExitStack() as stack:
        if settings.checkpoint is not None:
            checkpoint = Checkpoint(settings.checkpoint, settings.checkpoint_every)
            trainer.hooks.append(checkpoint)
            checkpoint.resume(trainer)
        if settings.verbose:
            title = f"{doing} ({settings.loss}, {settings.network})"
            trainer.hooks.append(stack.enter_context(Progress(title, trainer.plan.epochs)))
        return trainer.fit()
