"""Optimizers against torch.optim, one model and several."""

import pytest
import torch

from setwise.learn.optimizers import as_optimizer

THEIRS = {
    "sgd": lambda p, lr, wd: torch.optim.SGD(p, lr=lr, momentum=0.9, weight_decay=wd),
    "adam": lambda p, lr, wd: torch.optim.Adam(p, lr=lr, weight_decay=wd),
    "adamw": lambda p, lr, wd: torch.optim.AdamW(p, lr=lr, weight_decay=wd),
}


@pytest.mark.parametrize("name", list(THEIRS))
def test_stacked_models_step_as_torch_does_with_each_ones_rate_and_decay(name):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(2, 4, 3, dtype=torch.float64, generator=generator)
    rates, decays = [0.1, 0.003], [0.0, 0.2]
    stacked = start.clone()
    ours = as_optimizer(name, [stacked], rates, decays)
    apart = [start[m].clone().requires_grad_() for m in range(2)]
    theirs = [THEIRS[name]([p], lr, wd) for p, lr, wd in zip(apart, rates, decays, strict=True)]
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


def test_a_parameter_without_gradient_stays():
    parameters = [torch.ones(1, 2), torch.ones(1, 2)]
    as_optimizer("adamw", parameters, [0.1], [0.1]).step([torch.ones(1, 2), None])
    assert (parameters[0] != 1).all()
    assert (parameters[1] == 1).all()


def test_unknown_names_and_empty_networks_are_refused():
    with pytest.raises(ValueError, match="use one of sgd, adam, adamw"):
        as_optimizer("lion", [torch.ones(1)], [0.1], [0.0])
    with pytest.raises(ValueError, match="no parameters"):
        as_optimizer("sgd", [], [0.1], [0.0])
