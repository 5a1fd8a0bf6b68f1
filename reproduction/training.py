"""Stacks of the paper's models, by the package's trainer: each has its own scaling, rate and decay.

Parts that take the place of the package's own: rows that are scaled as they are read, and optimizers; on a GPU also
a network and losses with kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from reproduction import gpu_kernels, stack_kernels
from reproduction.stacked_optimizers import StackedAdam, StackedSGD
from setwise.learn.batches import Resident
from setwise.learn.losses import CandidateLoss, as_loss
from setwise.learn.networks import MLP, StackedBatchNorm, build_network
from setwise.learn.optimizers import Optimizer, as_optimizer
from setwise.learn.scaling import Scaling
from setwise.learn.settings import Settings
from setwise.learn.stacks import run
from setwise.learn.trainer import Hook, Trainer

_STACKED = {"sgd": StackedSGD, "adam": StackedAdam}
_WEIGHING: dict[str, dict[str, Any]] = {"proden": {"lag": "forward"}, "naive": {"beta": 0.0}}


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

    shape: dict[str, Any] = {"hidden_sizes": settings.hidden_sizes, "batch_norm": settings.batch_norm}
    if settings.network == "mlp":
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        network: nn.Module = StackMLP(generators, rows.shape, candidates.shape[-1], **shape)
    else:
        network = build_network(str(settings.network), seeds, rows.shape, candidates.shape[-1], **shape)
    trainer = Trainer(
        network.to(dtype).to(device),
        Scaling(dtype=dtype).to(device),
        stack_loss(settings.loss, candidates.shape[1], len(seeds)),
        rows,
        candidates,
        plan=replace(plan, optimizer=optimizer),
        seeds=seeds,
        hooks=hooks,
    )
    return run(trainer, settings)


class StackMLP(MLP):
    """An MLP that normalises with kernels, in training on a GPU."""

    def forward(self, x: Tensor) -> Tensor:
        """(M, batch, …) to (M, batch, K)."""
        plain = self.training and not self.dropout and len(x) > 1 and gpu_kernels.usable(x)
        return self._examples_last(x.flatten(2).transpose(1, 2)) if plain else super().forward(x)

    def _examples_last(self, x: Tensor) -> Tensor:
        """(M, features, batch) to (M, batch, K), so that what a GPU sums up is contiguous."""
        for linear, norm in zip(self.hidden, self.norms, strict=True):
            weight, bias = linear.weight, linear.bias
            x = torch.bmm(weight, x)  # type: ignore[arg-type]
            if isinstance(norm, StackedBatchNorm) and gpu_kernels.can_normalise(x):
                x = gpu_kernels.normalise_with_relu(x, bias, norm)  # type: ignore[arg-type]
            else:
                x = x + bias.transpose(1, 2)  # type: ignore[operator]
                x = torch.relu_(norm(x.view(1, -1, x.shape[-1])).view(x.shape))
        return self.output(x.transpose(1, 2))  # type: ignore[no-any-return]


class WeighingLoss(CandidateLoss):
    """The cross-entropy to the weights of candidates, on a GPU by one kernel."""

    def slopes(self, logits: Tensor, candidates: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        """As of every loss."""
        if not gpu_kernels.can_weigh(logits, candidates):
            return super().slopes(logits, candidates, index)
        memory = self.open_memory(logits) if self.remembers else None
        losses, slope = gpu_kernels.weigh_losses(logits.detach(), index, candidates, memory, self.beta)
        return losses.mean(dim=1), slope


def stack_loss(loss: Any, n_examples: int, n_models: int) -> CandidateLoss:
    """A loss by name, with kernels where it weighs candidates."""
    known = _WEIGHING.get(loss)
    return as_loss(loss, n_examples, n_models) if known is None else WeighingLoss(n_examples, n_models, **known)


def stack_scalings(scalings: Sequence[Scaling]) -> Scaling:
    """The scalings of M models of one kind as one: (M, batch, …) as stored to (M, batch, …) scaled."""
    first = scalings[0]
    if first.shift is None:
        return first
    parts = [[getattr(scaling, name) for scaling in scalings] for name in ("shift", "spread")]
    if first.shift.ndim == 0:
        if all(part == same[0] for same in parts for part in same):
            return first
        parts = [[part.view(1) for part in same] for same in parts]
    shift, spread = (torch.stack(same)[:, None] for same in parts)
    return Scaling(shift, spread, rows=first.rows, dtype=first.dtype)


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
