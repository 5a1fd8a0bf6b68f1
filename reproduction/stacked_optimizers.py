"""SGD and Adam on stacked parameters, where each model has its own learning rate and weight decay.

The numbers are those of `torch.optim`. On a GPU small parameters are updated beside the large ones, and by kernels
where these take them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from reproduction import stack_kernels
from setwise.learn.optimizers import SGD, Adam, Optimizer

_LARGE = 100_000  # entries of a parameter whose update fills a GPU


class StackedOptimizer(Optimizer):
    """Parameters with a leading model dimension, and for each model a rate and a decay."""

    def update(self, parameters: list[Tensor], gradients: list[Tensor], *state: list[Tensor]) -> None:
        """Updates each of them by itself."""
        self.prepare()
        with _beside(self.count.device) as aside:
            for parameter, gradient, *own in zip(parameters, gradients, *state, strict=True):
                with aside if parameter.numel() < _LARGE else nullcontext():
                    self.move(parameter, gradient.contiguous(), own)

    def prepare(self) -> None:
        """Computes what the updates of one step have in common."""

    def move(self, p: Tensor, g: Tensor, state: list[Tensor]) -> None:
        """One parameter's update, in place."""
        raise NotImplementedError


class StackedSGD(StackedOptimizer):
    """Stochastic gradient descent with momentum: b ← μb + g + λp;  p ← p − ηb, with (1 − μ)b kept."""

    slots, momentum = SGD.slots, SGD.momentum

    def move(self, p: Tensor, g: Tensor, state: list[Tensor]) -> None:
        """Momentum, and the step along it."""
        if stack_kernels.usable(p, g, *state):
            stack_kernels.descend(p, g, state[0], self.rate, self.decay, self.momentum)
            return
        fresh = 1 - self.momentum
        state[0].lerp_(g, fresh).addcmul_(_wide(self.decay, p), p, value=fresh)
        p.addcmul_(_wide(self.rate, p), state[0], value=-1 / fresh)


class StackedAdam(StackedOptimizer):
    """Adam; weight decay is added to the gradient."""

    slots, betas, eps = Adam.slots, Adam.betas, Adam.eps
    corrections: tuple[Tensor, Tensor]

    def prepare(self) -> None:
        """Computes the corrections of both moments, which begin at zero."""
        (a, b), dtype = self.betas, self.parameters[0].dtype
        steps = self.count + 1
        self.corrections = (1 - a**steps).to(dtype), (1 - b**steps).sqrt().to(dtype)

    def move(self, p: Tensor, g: Tensor, state: list[Tensor]) -> None:
        """Moments: m, v ← those of g + λp;  p ← p − η m̂ / (√v̂ + ε)."""
        if stack_kernels.usable(p, g, *state):
            stack_kernels.adapt(p, g, state, self.rate, self.decay, self.corrections, self.betas, self.eps)
            return
        (first, second), (a, b) = state, self.betas
        g = torch.addcmul(g, _wide(self.decay, p), p)
        first.lerp_(g, 1 - a)
        second.mul_(b).addcmul_(g, g, value=1 - b)
        spread = second.sqrt().div_(self.corrections[1]).add_(self.eps)
        p.sub_((_wide(self.rate, p) / self.corrections[0] * first).div_(spread))


@contextmanager
def _beside(device: torch.device) -> Iterator[AbstractContextManager[Any]]:
    """On a GPU a second stream, as a context: what is done in it runs beside the rest, and is then waited for."""
    if device.type != "cuda":
        yield nullcontext()
        return
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    yield torch.cuda.stream(stream)
    torch.cuda.current_stream().wait_stream(stream)


def _wide(values: Tensor, parameter: Tensor) -> Tensor:
    """One value per model, shaped to multiply its slice of the parameter."""
    return values.view(-1, *[1] * (parameter.ndim - 1))
