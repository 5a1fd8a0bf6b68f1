"""Stacks of the paper's models, by the package's trainer: each has its own scaling, rate and decay.

Two parts take the place of the trainer's own, on a GPU with kernels: rows that are scaled as they are read, and
optimizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from reproduction import stack_kernels
from reproduction.stacked_optimizers import StackedAdam, StackedSGD
from setwise.learn.batches import Resident
from setwise.learn.networks import build_network
from setwise.learn.optimizers import Optimizer, as_optimizer
from setwise.learn.scaling import Scaling
from setwise.learn.settings import Settings
from setwise.learn.stacks import train_stack
from setwise.learn.trainer import Hook, Trainer

_STACKED = {"sgd": StackedSGD, "adam": StackedAdam}


def train_models(
    settings: Settings,
    rows: ScaledRows,
    candidates: Tensor,
    seeds: Sequence[int],
    *,
    learning_rates: Sequence[float] | None = None,
    weight_decays: Sequence[float] | None = None,
    dtype: torch.dtype = torch.float32,
    hooks: Sequence[Hook] = (),
) -> Trainer:
    """Trains a model for each seed on its rows with `candidates` (M, n, K).

    Each has its own rate and decay, or that of the settings.
    """
    device = candidates.device
    plan = settings.plan(candidates.shape[1], device)
    name = plan.optimizer
    rates = list(learning_rates or [plan.learning_rate] * len(seeds))
    decays = list(weight_decays or [plan.weight_decay] * len(seeds))

    def optimizer(parameters: Sequence[Tensor], *_: float) -> Optimizer:
        if name == "adam" and device.type == "cpu" and len({*rates}) == len({*decays}) == 1:
            return as_optimizer(name, parameters, rates[0], decays[0])
        return _STACKED[name](parameters, rates, decays)

    shape = {"hidden_sizes": settings.hidden_sizes, "batch_norm": settings.batch_norm}
    network = build_network(settings.network, seeds, rows.shape, candidates.shape[-1], **shape)
    return train_stack(
        settings,
        rows,
        candidates,
        seeds,
        scaling=Scaling(dtype=dtype),
        network=network.to(dtype),
        plan=replace(plan, optimizer=optimizer),
        hooks=hooks,
    )


class ScaledRows(Resident):
    """Rows as stored that are scaled as they are read, each model's by its own scaling (see `stack_scalings`).

    On a GPU in one pass where all features have the same shift and spread, and are bytes or float32.
    """

    def __init__(self, source: Resident, scaling: Scaling) -> None:
        super().__init__(source.features, source.selected)
        self.scaling = scaling.to(source.features.device)
        shift, spread = self.scaling.shift, self.scaling.spread
        self._numbers: list[Tensor] = []
        if shift is None or spread is None or scaling.rows or scaling.dtype != torch.float32:
            return
        by_model = shift.ndim == 3 and shift.shape[1:] == (1, 1) and shift.shape != self.shape
        if (shift.ndim == 0 or by_model) and stack_kernels.can_read(self.features):
            self._numbers = [part.float().contiguous() for part in (shift, spread)]

    def batch(self, index: Tensor) -> Tensor:
        """The rows at these positions, scaled."""
        if not self._numbers:
            scaled: Tensor = self.scaling(super().batch(index))
            return scaled
        x = stack_kernels.scaled_batch(self.features, self.selected, index, *self._numbers)
        return x.view(*index.shape, *self.shape)
