"""Optimizers of stacks against torch.optim, each model with a rate and a decay of its own."""

import pytest
import torch
from reproduction.stacked_optimizers import StackedAdam, StackedSGD

PAIRS = {
    StackedSGD: lambda p, lr, wd: torch.optim.SGD(p, lr=lr, momentum=0.9, weight_decay=wd),
    StackedAdam: lambda p, lr, wd: torch.optim.Adam(p, lr=lr, weight_decay=wd),
}


@pytest.mark.parametrize("kind", list(PAIRS))
def test_stacked_models_step_as_torch_does_with_each_ones_rate_and_decay(kind):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(2, 4, 3, dtype=torch.float64, generator=generator)
    rates, decays = [0.1, 0.003], [0.0, 0.2]
    stacked = start.clone()
    ours = kind([stacked], rates, decays)
    apart = [start[m].clone().requires_grad_() for m in range(2)]
    theirs = [PAIRS[kind]([p], lr, wd) for p, lr, wd in zip(apart, rates, decays, strict=True)]
    for epoch in range(15):
        factor = 1 - epoch / 20
        gradient = torch.randn(2, 4, 3, dtype=torch.float64, generator=generator)
        ours.scale_rate(factor)
        ours.step([gradient])
        for m, optimizer in enumerate(theirs):
            optimizer.param_groups[0]["lr"] = rates[m] * factor
            apart[m].grad = gradient[m]
            optimizer.step()
    for m in range(2):
        torch.testing.assert_close(stacked[m], apart[m].detach(), rtol=1e-12, atol=1e-13)
