"""One training loop for M models of the same shape: logits are (M, batch, K) throughout.

The order of the examples is a function of a model's seed and the epoch alone, so that each model follows the
path it would follow by itself, on any device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from setwise.learn.batches import CHUNK, Resident
from setwise.learn.cuda_graphs import CapturedSteps
from setwise.learn.losses import CandidateLoss
from setwise.learn.networks import Single
from setwise.learn.optimizers import Optimizer, as_optimizer
from setwise.learn.scaling import Scaling
from setwise.learn.seeds import permutations
from setwise.learn.threads import threads_for

Hook = Callable[["Trainer"], None]


class DivergedError(ArithmeticError):
    """Training produced a loss that is not a number."""


@dataclass(frozen=True)
class Plan:
    """How to train; an optimizer of your own is a callable of the parameters, the rate and the decay."""

    epochs: int = 100
    batch_size: int = 256
    optimizer: str | Callable[..., Optimizer] = "sgd"
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    annealing_epochs: int | None = None
    """Number of epochs over which the learning rate falls to zero along a cosine. None means all `epochs`; with
    more than these, training stops on the way down; 0 keeps the rate constant."""
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


class Trainer:
    """Trains the M models of `network`, (M, batch, …) to (M, batch, K), on the rows of `source`.

    `scaling` is applied to each batch as stored, and the loss is made for n examples and M models. Candidates are a
    boolean mask or weights (M, n, K). Each model has a seed, for the order of its examples. Hooks are called with
    the trainer after every epoch.
    """

    def __init__(
        self,
        network: nn.Module,
        scaling: Scaling,
        loss: CandidateLoss,
        source: Resident,
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
        self.candidates = candidates.contiguous()
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.optimizer = as_optimizer(plan.optimizer, self.parameters, plan.learning_rate, plan.weight_decay)
        self.epoch = 0
        self.losses = torch.zeros(self.n_models, device=self.device, dtype=torch.float64)
        self.order = torch.arange(self.n_rows, device=self.device).repeat(self.n_models, 1)
        self._check_width()
        if self.device.type == "cuda":  # autograd's thread has no context at first, and cuBLAS would warn
            torch.ones(1, device=self.device, requires_grad=True).exp().backward()  # type: ignore[no-untyped-call]
        captures = self.device.type == "cuda" and not isinstance(network, Single)
        self.captured = CapturedSteps(self.step, self.order, self.tensors) if captures else None

    # ---------------------------------------------------------------- training

    def fit(self) -> Trainer:
        """Runs the remaining epochs and the hooks after each."""
        products = self.plan.batch_size * sum(parameter.numel() for parameter in self.parameters)
        with threads_for(products, self.device):
            while self.epoch < self.plan.epochs:
                self.run_epoch()
                for hook in self.hooks:
                    hook(self)
        self.network.eval()
        return self

    def run_epoch(self) -> None:
        """One pass over every model's rows."""
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
        values, slope = self.loss.slopes(logits, self.candidates, index)
        self.optimizer.step(torch.autograd.grad(logits, self.parameters, slope, allow_unused=True))
        self.losses.add_(values, alpha=index.shape[1])
        if self.loss.lag == "step":
            with torch.no_grad():
                self.loss.update(self._forward(index), index)

    def bounds(self) -> list[tuple[int, int]]:
        """Where batches start and stop; a last batch of one example joins the one before."""
        n, size = self.n_rows, min(self.plan.batch_size, self.n_rows)
        starts = list(range(0, n, size))
        if len(starts) > 1 and n - starts[-1] == 1:
            starts.pop()
        return list(zip(starts, [*starts[1:], n], strict=True))

    @torch.no_grad()
    def logits(self, source: Resident | None = None) -> Tensor:
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
        learned = [*self.network.parameters(), *self.network.buffers()]
        return [*learned, *self.optimizer.tensors(), self.losses, *memory]

    # ---------------------------------------------------------------- parts of a step

    def _forward(self, index: Tensor) -> Tensor:
        return self._logits(self.scaling(self.source.batch(index)))

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
            self.loss.open_memory(logits)

    def _check_finite(self) -> None:
        norms = torch.stack(torch._foreach_norm([*self.parameters]))
        if torch.isfinite(self.losses).all() and torch.isfinite(norms).all():
            return
        raise DivergedError(
            f"training diverged (loss {float(self.losses.sum())}) in epoch {self.epoch} of {self.plan.epochs}; "
            f"lower learning_rate (now {self.plan.learning_rate}) or scale the features (scale='standard')."
        )


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
