"""Optimizers against torch.optim."""

import pytest
import torch

from setwise.learn.optimizers import as_optimizer

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="NOT TESTED: no GPU")
THEIRS = {
    "sgd": lambda p, lr, wd: torch.optim.SGD(p, lr=lr, momentum=0.9, weight_decay=wd),
    "adam": lambda p, lr, wd: torch.optim.Adam(p, lr=lr, weight_decay=wd),
    "adamw": lambda p, lr, wd: torch.optim.AdamW(p, lr=lr, weight_decay=wd),
}


@pytest.mark.parametrize("name", list(THEIRS))
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_steps_are_those_of_torch(name, device):
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(2, 4, 3, generator=generator).to(device)
    theirs = ours.clone().requires_grad_()
    mine, other = as_optimizer(name, [ours], 0.1, 0.2), THEIRS[name]([theirs], 0.1, 0.2)
    for epoch in range(15):
        factor = 1 - epoch / 20
        gradient = torch.randn(2, 4, 3, generator=generator).to(device)
        mine.scale_rate(factor)
        mine.step([gradient])
        other.param_groups[0]["lr"] = 0.1 * factor
        theirs.grad = gradient
        other.step()
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)


def test_a_parameter_without_gradient_stays():
    parameters = [torch.ones(1, 2), torch.ones(1, 2)]
    as_optimizer("adamw", parameters, 0.1, 0.1).step([torch.ones(1, 2), None])
    assert (parameters[0] != 1).all()
    assert (parameters[1] == 1).all()


def test_unknown_names_and_empty_networks_are_refused():
    with pytest.raises(ValueError, match="use one of sgd, adam, adamw"):
        as_optimizer("lion", [torch.ones(1)], 0.1, 0.0)
    with pytest.raises(ValueError, match="no parameters"):
        as_optimizer("sgd", [], 0.1, 0.0)
