"""SGD with momentum, Adam and AdamW on stacked parameters: a few elementwise lines each.

Each model has its own learning rate and weight decay. All state lives on the device, the step count too, so
that a step can be captured in a CUDA graph. The numbers are those of `torch.optim`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.optim.adam import adam

from setwise.learn import gpu_kernels
from setwise.learn.graphs import beside

_LARGE = 100_000  # entries of a parameter whose update fills a GPU


class Optimizer(ABC):
    """Parameters, and for each model a learning rate and a weight decay; a subclass says how to step."""

    slots = 0  # tensors of state per parameter

    def __init__(
        self, parameters: Iterable[Tensor], learning_rate: Sequence[float], weight_decay: Sequence[float]
    ) -> None:
        self.parameters = list(parameters)
        if not self.parameters:
            raise ValueError("network: it has no parameters to train.")
        like = self.parameters[0]
        self.base = torch.tensor(learning_rate, dtype=like.dtype, device=like.device)
        self.decay = torch.tensor(weight_decay, dtype=like.dtype, device=like.device)
        self.rate = self.base.clone()
        self.rates = {*zip(learning_rate, weight_decay, strict=True)}
        self.count = torch.zeros(1, dtype=torch.float64, device=like.device)
        self.wide = [(_wide(self.rate, p), _wide(self.decay, p)) for p in self.parameters]
        self.state = [[torch.zeros_like(p) for _ in range(self.slots)] for p in self.parameters]

    def scale_rate(self, factor: float) -> None:
        """Sets every model's learning rate to this share of its first one."""
        torch.mul(self.base, factor, out=self.rate)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """One update; parameters without a gradient stay."""
        self.count.add_(1)
        self.prepare()
        parts = zip(self.parameters, gradients, self.state, self.wide, strict=True)
        with beside(self.count.device) as aside:
            for parameter, gradient, state, (rate, decay) in parts:
                if gradient is not None:
                    with aside if parameter.numel() < _LARGE else nullcontext():
                        self.update(parameter, gradient, state, rate, decay)

    def prepare(self) -> None:  # noqa: B027 - SGD has nothing to prepare
        """Computes what the updates of one step have in common."""

    @abstractmethod
    def update(self, p: Tensor, g: Tensor, state: list[Tensor], rate: Tensor, decay: Tensor) -> None:
        """One parameter's update, in place."""

    def tensors(self) -> list[Tensor]:
        """Everything that changes while training, apart from the parameters."""
        return [self.rate, self.count, *(tensor for state in self.state for tensor in state)]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum 0.9."""

    slots, momentum = 1, 0.9

    def update(self, p: Tensor, g: Tensor, state: list[Tensor], rate: Tensor, decay: Tensor) -> None:
        """Momentum: b ← μb + g + λp;  p ← p − ηb, with (1 − μ)b kept: one pass over memory less."""
        if gpu_kernels.usable(p, g, *state):
            gpu_kernels.descend(p, g, state[0], self.rate, self.decay, self.momentum)
            return
        fresh = 1 - self.momentum
        state[0].lerp_(g, fresh).addcmul_(decay, p, value=fresh)
        p.addcmul_(rate, state[0], value=-1 / fresh)


class Adam(Optimizer):
    """Adam; weight decay is added to the gradient."""

    slots, betas, eps = 2, (0.9, 0.999), 1e-8
    corrections: tuple[Tensor, Tensor]
    decoupled = False

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """One update; on a CPU by torch's kernel for all parameters, where models have one rate."""
        known = [i for i, gradient in enumerate(gradients) if gradient is not None]
        if self.count.device.type != "cpu" or len(self.rates) > 1 or not known:
            super().step(gradients)
            return
        adam(
            [self.parameters[i] for i in known],
            [gradients[i].contiguous() for i in known],  # type: ignore[union-attr] # the kernel ignores strides
            [self.state[i][0] for i in known],
            [self.state[i][1] for i in known],
            [],
            list(self.count.float().expand(len(known)).clone().unbind()),
            fused=True,
            decoupled_weight_decay=self.decoupled,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=float(self.rate[0]),
            weight_decay=float(self.decay[0]),
            eps=self.eps,
            maximize=False,
        )
        self.count.add_(1)

    def prepare(self) -> None:
        """Computes the corrections of both moments, which begin at zero."""
        (a, b), dtype = self.betas, self.parameters[0].dtype
        self.corrections = (1 - a**self.count).to(dtype), (1 - b**self.count).sqrt().to(dtype)

    def update(self, p: Tensor, g: Tensor, state: list[Tensor], rate: Tensor, decay: Tensor) -> None:
        """Moments: m, v ← those of g + λp;  p ← p − η m̂ / (√v̂ + ε)."""
        if gpu_kernels.usable(p, g, *state):
            gpu_kernels.adapt(p, g, state, self.rate, self.decay, self.corrections, self.betas, self.eps)
            return
        self.descend(p, torch.addcmul(g, decay, p), state, rate)

    def descend(self, p: Tensor, g: Tensor, state: list[Tensor], rate: Tensor) -> None:
        """The step along the bias-corrected moments."""
        first, second = state
        a, b = self.betas
        first.lerp_(g, 1 - a)
        second.mul_(b).addcmul_(g, g, value=1 - b)
        spread = second.sqrt().div_(self.corrections[1]).add_(self.eps)
        p.sub_((rate / self.corrections[0] * first).div_(spread))


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    decoupled = True

    def update(self, p: Tensor, g: Tensor, state: list[Tensor], rate: Tensor, decay: Tensor) -> None:
        """Decay first, p ← (1 − ηλ) p, then Adam's step."""
        if gpu_kernels.usable(p, g, *state):
            coupled = (self.betas, self.eps)
            gpu_kernels.adapt(p, g, state, self.rate, self.decay, self.corrections, *coupled, decoupled=True)
            return
        p.mul_(1 - rate * decay)
        self.descend(p, g, state, rate)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adam": Adam, "adamw": AdamW}


def as_optimizer(
    name: str, parameters: Iterable[Tensor], learning_rate: Sequence[float], weight_decay: Sequence[float]
) -> Optimizer:
    """An optimizer by name."""
    if name not in OPTIMIZERS:
        raise ValueError(f"optimizer: {name!r} is not known; use one of {', '.join(OPTIMIZERS)}.")
    return OPTIMIZERS[name](parameters, learning_rate, weight_decay)


def _wide(values: Tensor, parameter: Tensor) -> Tensor:
    """One value per model, shaped to multiply its slice of the parameter."""
    return values.view(-1, *[1] * (parameter.ndim - 1)) if parameter.ndim else values[0]
