"""SGD with momentum, Adam and AdamW: the numbers are those of `torch.optim`.

All state lives on the device, the rate and the step count too, so that a step can be captured in a CUDA graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd


class Optimizer(ABC):
    """Parameters with a learning rate and a weight decay; a subclass says how to step."""

    slots = 0  # tensors of state per parameter

    def __init__(self, parameters: Iterable[Tensor], learning_rate: Any, weight_decay: Any) -> None:
        self.parameters = list(parameters)
        if not self.parameters:
            raise ValueError("network: it has no parameters to train.")
        like = self.parameters[0]
        self.base = torch.tensor(learning_rate, dtype=like.dtype, device=like.device)
        self.decay = torch.tensor(weight_decay, dtype=like.dtype, device=like.device)
        self.weight_decay: Any = self.decay.tolist()  # in the precision of the parameters
        self.rate = self.base.clone()
        self.count = torch.zeros(1, dtype=torch.float64, device=like.device)
        self.state = [[torch.zeros_like(p) for _ in range(self.slots)] for p in self.parameters]

    def scale_rate(self, factor: float) -> None:
        """Sets the learning rate to this share of the first one."""
        torch.mul(self.base, factor, out=self.rate)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """One update; parameters without a gradient stay."""
        parts = zip(self.parameters, gradients, self.state, strict=True)
        moving = [(parameter, gradient, *state) for parameter, gradient, state in parts if gradient is not None]
        if moving:
            self.update(*map(list, zip(*moving, strict=True)))
        self.count.add_(1)

    @abstractmethod
    def update(self, parameters: list[Tensor], gradients: list[Tensor], *state: list[Tensor]) -> None:
        """Moves these parameters along their gradients, in place."""

    def tensors(self) -> list[Tensor]:
        """Everything that changes while training, apart from the parameters."""
        return [self.rate, self.count, *(tensor for state in self.state for tensor in state)]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum 0.9: b ← μb + g + λp;  p ← p − ηb.

    It stores (1 − μ)b, which saves a pass over memory.
    """

    slots, momentum = 1, 0.9

    def update(self, parameters: list[Tensor], gradients: list[Tensor], *state: list[Tensor]) -> None:
        """On a GPU by torch's kernel for all parameters."""
        fresh, (kept,) = 1 - self.momentum, state
        if self.rate.device.type == "cuda":
            sgd(
                parameters,
                [gradient.contiguous() for gradient in gradients],
                [*kept],
                fused=True,
                weight_decay=self.weight_decay,
                momentum=self.momentum,
                lr=(self.rate / fresh).float(),  # type: ignore[arg-type] # a tensor will do
                dampening=self.momentum,
                nesterov=False,
                maximize=False,
            )
            return
        for parameter, gradient, momentum in zip(parameters, gradients, kept, strict=True):
            momentum.lerp_(gradient, fresh).addcmul_(self.decay, parameter, value=fresh)
            parameter.addcmul_(self.rate, momentum, value=-1 / fresh)


class Adam(Optimizer):
    """Adam; weight decay is added to the gradient."""

    slots, betas, eps = 2, (0.9, 0.999), 1e-8
    decoupled = False

    def update(self, parameters: list[Tensor], gradients: list[Tensor], *state: list[Tensor]) -> None:
        """By torch's kernel for all parameters."""
        first, second = state
        adam(
            parameters,
            [gradient.contiguous() for gradient in gradients],  # the kernel ignores strides
            first,
            second,
            [],
            list(self.count.float().expand(len(parameters)).clone().unbind()),
            fused=True,
            decoupled_weight_decay=self.decoupled,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self.rate if self.rate.device.type == "cpu" else self.rate.float(),
            weight_decay=self.weight_decay,
            eps=self.eps,
            maximize=False,
        )


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    decoupled = True


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adam": Adam, "adamw": AdamW}


def as_optimizer(
    optimizer: str | Callable[..., Optimizer],
    parameters: Iterable[Tensor],
    learning_rate: float,
    weight_decay: float,
) -> Optimizer:
    """An optimizer by name, or by a callable that makes one from parameters, rate and decay."""
    if callable(optimizer):
        return optimizer(parameters, learning_rate, weight_decay)
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer: {optimizer!r} is not known; use one of {', '.join(OPTIMIZERS)}.")
    return OPTIMIZERS[optimizer](parameters, learning_rate, weight_decay)
