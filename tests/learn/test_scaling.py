"""Features are scaled by the statistics of the rows to learn from."""

import pytest
import torch

from setwise.learn.scaling import fit_scaling
from tests.toy_data import some_rows


def test_scaling_uses_the_statistics_of_the_rows_given_block_by_block():
    x = torch.as_tensor(some_rows()[0]) * 7 + 3
    whole, parts = fit_scaling("standard", [x]), fit_scaling("standard", x.split(37))
    torch.testing.assert_close(whole.shift, x.mean(0))
    torch.testing.assert_close(parts.spread, x.std(0, unbiased=False))
    constant = fit_scaling("standard", [torch.ones(5, 2)])
    assert torch.isfinite(constant(torch.ones(1, 5, 2))).all()
    assert torch.isfinite(fit_scaling("rows", ())(torch.zeros(1, 2, 3))).all()
    far = 1e8 + torch.arange(4, dtype=torch.float64)[:, None]
    assert fit_scaling("standard", [far])(far[None]).unique().numel() == 4
    with pytest.raises(ValueError, match="positive spreads"):
        fit_scaling((0.0, 0.0), ())
