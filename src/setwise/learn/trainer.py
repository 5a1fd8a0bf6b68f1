"""One training loop for M models of the same shape: logits are (M, batch, K) throughout.

The order of the examples is a function of a model's seed and the epoch alone, so that each model follows the
path it would follow by itself, on any device, and a run can be resumed from its state at an epoch's end.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from setwise.learn import gpu_kernels
from setwise.learn.batches import CHUNK, Source
from setwise.learn.graphs import CapturedSteps
from setwise.learn.losses import CandidateLoss
from setwise.learn.networks import Single
from setwise.learn.optimizers import as_optimizer
from setwise.learn.scaling import Scaling, scaled_batches
from setwise.learn.seeds import permutations

_LARGE_STEP = 100_000_000  # products of a parameter and an example

Hook = Callable[["Trainer"], None]


class DivergedError(ArithmeticError):
    """Training produced a loss that is not a number."""


@dataclass(frozen=True)
class Plan:
    """How to train: rates and decays are one number for all models or one for each."""

    epochs: int = 100
    batch_size: int = 256
    optimizer: str = "sgd"
    learning_rate: float | Sequence[float] = 0.01
    weight_decay: float | Sequence[float] = 0.0
    annealing_epochs: int | None = None
    """The learning rate falls to zero along a cosine over so many epochs: None over all `epochs`, more than those
    stop on the way down, and 0 keeps the rate constant."""
    shuffle: bool = True
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        if self.annealing_epochs and self.annealing_epochs < self.epochs:
            raise ValueError(
                f"annealing_epochs: {self.annealing_epochs} is fewer than epochs ({self.epochs}); raise it, or use "
                "None for as many as epochs."
            )

    def rate_share(self, epoch: int) -> float:
        """The share of the learning rate that an epoch, counted from 0, is trained with.

        >>> Plan(epochs=50).rate_share(25), round(Plan(epochs=50, annealing_epochs=500).rate_share(49), 3)
        (0.5, 0.976)
        """
        horizon = self.epochs if self.annealing_epochs is None else self.annealing_epochs
        return (1 + math.cos(math.pi * epoch / horizon)) / 2 if horizon else 1.0

    def per_model(self, value: float | Sequence[float], n_models: int) -> list[float]:
        """One value for each model."""
        values = [float(value)] * n_models if isinstance(value, (int, float)) else [float(v) for v in value]
        if len(values) != n_models:
            raise ValueError(f"{len(values)} learning rates or weight decays for {n_models} models.")
        return values


class Trainer:
    """Trains the M models of `network` on the rows of `source`.

    Parameters
    ----------
    network
        (M, batch, …) to (M, batch, K); see `build_network`.
    scaling
        Applied to each batch as stored.
    loss
        A `CandidateLoss` made for n_examples = n and n_models = M.
    source, candidates
        The rows, and a boolean mask (M, n, K).
    plan
        How to train.
    seeds
        One per model: the order of its examples.
    hooks
        Called with the trainer after every epoch; a hook may replace `candidates` or set `finished`. One with a
        method `finish` has it called at the end, one with `state` and `restore` is part of a checkpoint.
    """

    def __init__(
        self,
        network: nn.Module,
        scaling: Scaling,
        loss: CandidateLoss,
        source: Source,
        candidates: Tensor,
        *,
        plan: Plan,
        seeds: Sequence[int],
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.network, self.scaling, self.loss = network, scaling, loss
        self.source, self.plan, self.seeds, self.hooks = source, plan, list(seeds), list(hooks)
        self.n_models, self.n_rows, self.n_classes = candidates.shape
        if len(self.seeds) != self.n_models or source.n_rows != self.n_rows:
            raise ValueError(
                f"candidates: {self.n_models} models of {self.n_rows} rows, but there are {len(self.seeds)} "
                f"seeds and {source.n_rows} rows of features."
            )
        self.device = candidates.device
        self.given, self.candidates = candidates, candidates.clone()
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.optimizer = as_optimizer(
            plan.optimizer,
            self.parameters,
            plan.per_model(plan.learning_rate, self.n_models),
            plan.per_model(plan.weight_decay, self.n_models),
        )
        self.epoch, self.finished = 0, False
        self.losses = torch.zeros(self.n_models, device=self.device, dtype=torch.float64)
        self.order = torch.arange(self.n_rows, device=self.device).repeat(self.n_models, 1)
        self._offsets = self.n_rows * torch.arange(self.n_models, device=self.device)[:, None]
        self._read = scaled_batches(scaling, source, self.n_models)
        self._check_width()
        captures = self.device.type == "cuda" and source.resident and not isinstance(network, Single)
        self.captured = CapturedSteps(self.step, self.order, self._changing) if captures else None

    # ---------------------------------------------------------------- training

    def fit(self) -> Trainer:
        """Runs the remaining epochs and the hooks after each."""
        products = self.plan.batch_size * sum(parameter.numel() for parameter in self.parameters)
        with threads_for(products, self.device):
            while self.epoch < self.plan.epochs and not self.finished:
                self.run_epoch()
                for hook in self.hooks:
                    hook(self)
        self.network.eval()
        for hook in self.hooks:
            if hasattr(hook, "finish"):
                hook.finish(self)
        return self

    def prepare(self) -> float:
        """Compiles and captures the step where that applies, and says how many seconds it took."""
        if self.captured is None:
            return 0.0
        self.network.train()
        with matmul_precision(self.plan.precision, self.device):
            self.captured.prepare(self.bounds())
        return self.captured.seconds

    def run_epoch(self) -> None:
        """One pass over every model's rows."""
        self.prepare()
        self.network.train()
        if self.plan.shuffle:
            self.order.copy_(permutations(self.seeds, self.epoch, self.n_rows, self.device))
        self.optimizer.scale_rate(self.plan.rate_share(self.epoch))
        self.losses.zero_()
        with matmul_precision(self.plan.precision, self.device):
            if self.captured is not None:
                self.captured.run(self.bounds())
            else:
                for start, stop in self.bounds():
                    self.step(self.order[:, start:stop])
        self.epoch += 1
        self.losses /= self.n_rows
        self._check_finite()

    def step(self, index: Tensor) -> None:
        """One update of every model from the examples at positions `index` (M, batch)."""
        logits = self._forward(index)
        if self.loss.plain and gpu_kernels.can_weigh(logits, self.candidates):
            memory = self.loss.opened(logits) if self.loss.remembers else None
            losses, slope = gpu_kernels.candidate_loss(
                logits.detach(), index, self.candidates, memory, self.loss.beta
            )
            self.optimizer.step(torch.autograd.grad(logits, self.parameters, slope, allow_unused=True))
            self.losses.add_(losses.sum(dim=1))
            return
        flat = (index + self._offsets).reshape(-1)
        candidates = self.candidates.view(-1, self.n_classes).index_select(0, flat).view(logits.shape)
        values = self.loss.value(logits, candidates, self.loss.recall(logits, index))
        self.optimizer.step(torch.autograd.grad(values.sum(), self.parameters, allow_unused=True))
        if self.loss.lag == "step":
            with torch.no_grad():
                logits = self._forward(index)
        self.loss.update(logits.detach(), index)
        self.losses.add_(values.detach(), alpha=index.shape[1])

    def bounds(self) -> list[tuple[int, int]]:
        """Where batches start and stop; a last batch of one example joins the one before."""
        n, size = self.n_rows, min(self.plan.batch_size, self.n_rows)
        starts = list(range(0, n, size))
        if len(starts) > 1 and n - starts[-1] == 1:
            starts.pop()
        return list(zip(starts, [*starts[1:], n], strict=True))

    @torch.no_grad()
    def logits(self, source: Source | None = None) -> Tensor:
        """The logits (M, n, K) of all rows, in evaluation mode."""
        source = self.source if source is None else source
        self.network.eval()
        parts, size = [], max(CHUNK // self.n_models, 256)
        for start in range(0, source.n_rows, size):
            index = torch.arange(start, min(start + size, source.n_rows), device=self.device)
            parts.append(self._logits(self.scaling(source.batch(index.expand(self.n_models, -1)))).float())
        return torch.cat(parts, dim=1)

    # ---------------------------------------------------------------- state

    def tensors(self) -> list[Tensor]:
        """Everything that changes from step to step."""
        memory = [] if self.loss.memory is None else [self.loss.memory]
        return [*self.network.parameters(), *self.network.buffers(), *self.optimizer.tensors(), *memory]

    def _changing(self) -> list[Tensor]:
        return [*self.tensors(), self.losses]

    def state(self) -> dict[str, Any]:
        """All that is needed to go on from the end of this epoch."""
        return {
            "epoch": self.epoch,
            "tensors": [tensor.detach().cpu() for tensor in self.tensors()],
            "candidates": self.candidates.cpu(),
            "losses": self.losses.cpu(),
            "finished": self.finished,
            "hooks": [getattr(hook, "state", dict)() for hook in self.hooks],
            "random": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a state made by `state`."""
        with torch.no_grad():
            for tensor, saved in zip(self.tensors(), state["tensors"], strict=True):
                tensor.copy_(saved)
        self.epoch, self.finished = state["epoch"], state["finished"]
        self.candidates.copy_(state["candidates"])
        self.losses.copy_(state["losses"])
        torch.set_rng_state(state["random"])
        for hook, saved in zip(self.hooks, state["hooks"], strict=True):
            if hasattr(hook, "restore"):
                hook.restore(saved)

    # ---------------------------------------------------------------- parts of a step

    def _forward(self, index: Tensor) -> Tensor:
        return self._logits(self._read(index))

    def _logits(self, x: Tensor) -> Tensor:
        half = self.plan.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16) if half else nullcontext():
            logits: Tensor = self.network(x)
        return logits

    @torch.no_grad()
    def _check_width(self) -> None:
        """One example in evaluation mode: the network's output must have K columns."""
        self.network.eval()
        logits = self._forward(self.order[:, :1])
        if tuple(logits.shape) != (self.n_models, 1, self.n_classes):
            raise ValueError(
                f"network: its output for one example has shape {tuple(logits.shape[1:])}, expected "
                f"(1, {self.n_classes}): one logit for each of the {self.n_classes} classes."
            )
        if self.loss.remembers:
            self.loss.opened(logits)

    def _check_finite(self) -> None:
        sound = torch.isfinite(self.losses)
        if sound.all() and torch.isfinite(torch.stack(torch._foreach_norm([*self.parameters]))).all():
            return
        for parameter in self.parameters:
            finite = torch.isfinite(parameter.detach())
            stacked = parameter.ndim > 0 and len(parameter) == self.n_models
            sound &= finite.reshape(self.n_models, -1).all(dim=1) if stacked else finite.all()
        broken = (~sound).nonzero().flatten().tolist()
        if broken:
            which = "" if self.n_models == 1 else f" (models {', '.join(map(str, broken))})"
            raise DivergedError(
                f"training diverged (loss {float(self.losses[broken[0]])}) in epoch {self.epoch} of "
                f"{self.plan.epochs}{which}; lower learning_rate (now {self.plan.learning_rate}) or scale the "
                "features (scale='standard'). A checkpoint file, if one was asked for, holds the last good "
                "epoch."
            )


@contextmanager
def threads_for(products: int, device: torch.device) -> Iterator[None]:
    """One thread while inside for small steps on a CPU, unless the user said how many (`OMP_NUM_THREADS`).

    Several threads wait for each other at every operation, on a busy machine ten times as long as they work.
    """
    before = torch.get_num_threads()
    if device.type != "cpu" or products > _LARGE_STEP or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def matmul_precision(precision: str, device: torch.device) -> Iterator[None]:
    """Lets float32 products run as TF32 on a GPU while inside."""
    if precision != "tf32" or device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
