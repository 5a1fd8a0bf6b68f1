"""The temperature that made the data comes back, or is refused."""

import pytest
import torch

from setwise.learn import (
    TemperatureError,
    fit_temperature,
)


def test_the_temperature_that_made_the_data_comes_back():
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(20000, 6, generator=generator, dtype=torch.float64)
    y = torch.multinomial((z / 2).softmax(-1), 1, generator=generator)
    exact = torch.zeros(20000, 6, dtype=torch.bool).scatter_(1, y, True)
    assert fit_temperature(z, exact, verified=True) == pytest.approx(2, rel=0.03)
    random = exact | (torch.rand(20000, 6, generator=generator) < 0.3)
    assert fit_temperature(z, random) == pytest.approx(2, rel=0.05)


def test_the_temperature_is_refused_where_the_model_made_the_candidates():
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(2000, 6, generator=generator, dtype=torch.float64)
    p = z.softmax(-1)
    made = torch.rand(2000, 6, generator=generator) < p / p.amax(-1, keepdim=True)
    with pytest.raises(TemperatureError, match="100.0%"):
        fit_temperature(z, made)
    made[:40] = ~made[:40]
    with pytest.raises(TemperatureError, match="bound"):
        fit_temperature(1e-3 * z, made)
