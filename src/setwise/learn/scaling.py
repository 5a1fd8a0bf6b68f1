"""Feature scaling as part of the model: statistics of the training rows alone, applied in the step.

Images can thus stay bytes on the device, and a saved model carries its own scaling.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

BYTES = (127.5, 73.9)
"""Shift and spread of bytes that take every value alike: what images need, without amplifying dark pixels."""


class Scaling(nn.Module):
    """(x − shift) / spread, or rows of unit length, in the arithmetic of `dtype`.

    >>> Scaling(rows=True)(torch.tensor([[[3.0, 4.0]]]))
    tensor([[[0.6000, 0.8000]]])
    """

    shift: Tensor | None
    spread: Tensor | None

    def __init__(
        self,
        shift: Tensor | None = None,
        spread: Tensor | None = None,
        *,
        rows: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.rows, self.dtype = rows, dtype
        self.register_buffer("shift", shift)
        self.register_buffer("spread", spread)

    def forward(self, x: Tensor) -> Tensor:
        """(M, batch, …) as stored to (M, batch, …) scaled."""
        exact = x if x.dtype == torch.float64 else x.to(self.dtype)
        if self.shift is not None and self.spread is not None:
            exact = (exact - self.shift.to(exact.dtype)) / self.spread.to(exact.dtype)
        if self.rows:
            lengths = exact.flatten(2).norm(dim=-1).clamp_min(1e-12)
            exact = exact / lengths.view(*lengths.shape, *[1] * (exact.ndim - 2))
        return exact.to(self.dtype)


def fit_scaling(scale: Any, chunks: Iterable[Tensor], dtype: torch.dtype = torch.float32) -> Scaling:
    """The scaling of this name, with statistics of these rows; a pair (shift, spread) is used as it is.

    `chunks` are blocks of training rows; they are read only where statistics are needed.
    """
    if scale is None:
        return Scaling(dtype=dtype)
    if isinstance(scale, str):
        if scale == "rows":
            return Scaling(rows=True, dtype=dtype)
        if scale == "standard":
            return Scaling(*_moments(chunks), dtype=dtype)
        raise ValueError(
            f"scale: {scale!r} is not known; use 'auto', 'standard', 'rows', None, or a pair (shift, spread)."
        )
    shift, spread = (torch.as_tensor(np.asarray(part, dtype=np.float64)) for part in scale)
    if not (torch.isfinite(shift).all() and (spread > 0).all()):
        raise ValueError("scale: a pair (shift, spread) needs finite shifts and positive spreads.")
    return Scaling(shift, spread, dtype=dtype)


def _moments(chunks: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each feature, merged block by block; constant features keep spread 1."""
    count, mean, squares = 0, torch.zeros(()), torch.zeros(())
    for chunk in chunks:
        x = chunk.to(torch.float64)
        own = x.mean(dim=0)
        apart = own - mean
        total = count + len(x)
        squares = squares + ((x - own) ** 2).sum(dim=0) + apart**2 * (count * len(x) / total)
        mean = mean + apart * (len(x) / total)
        count = total
    spread = (squares / max(count, 1)).sqrt()
    tiny = spread <= 1e-12 * mean.abs().clamp_min(1e-300)
    return mean, torch.where(tiny | (spread == 0), 1.0, spread)
