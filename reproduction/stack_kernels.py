"""Kernels for stacks of networks on a GPU: reading and scaling a batch, and optimizers, each in one pass.

With those of `gpu_kernels` they make the parts of a step that are limited by memory and not by products. Where they
cannot be used the plain operations serve, and give the same up to rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reproduction.gpu_kernels import jit, usable

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# -------------------------------------------------------------------- a batch as stored, scaled


def can_read(features: Tensor) -> bool:
    """Whether `scaled_batch` reads rows of these."""
    plain = features.dtype in {torch.uint8, torch.float32} and features.is_contiguous()
    return plain and usable(torch.empty(0, device=features.device))


def scaled_batch(features: Tensor, selected: Tensor | None, index: Tensor, shift: Tensor, spread: Tensor) -> Tensor:
    """(features[rows] − shift) / spread in float32, with one shift and spread for all models or one for each.

    The rows are those of the index, or `selected` (M, n) at the index.
    """
    (models, batch), width = index.shape, features[0].numel()
    x = torch.empty(models, batch, width, device=features.device)
    block = min(triton.next_power_of_2(width), 1024)
    n = selected.shape[1] if selected is not None and len(selected) > 1 else 0
    _read[(models * batch, triton.cdiv(width, block))](
        features, index if selected is None else selected, index.contiguous(), shift, spread, x, batch, width, n,
        SELECTED=selected is not None, PER_MODEL=int(shift.numel() > 1), BLOCK=block,
    )  # fmt: skip
    return x


@jit
def _read(
    features, selected, index, shift, spread, x, batch, width, n,
    SELECTED: tl.constexpr, PER_MODEL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    model = row // batch
    place = tl.load(index + row)
    if SELECTED:
        place = tl.load(selected + model.to(tl.int64) * n + place)
    values = tl.load(features + place.to(tl.int64) * width + column, mask=column < width, other=0).to(tl.float32)
    own = model * PER_MODEL
    values = tl.math.div_rn(values - tl.load(shift + own), tl.load(spread + own) + tl.zeros_like(values))
    tl.store(x + row.to(tl.int64) * width + column, values, mask=column < width)


# -------------------------------------------------------------------- optimizers


def descend(p: Tensor, g: Tensor, state: Tensor, rate: Tensor, decay: Tensor, momentum: float) -> None:
    """One update of SGD with momentum, in place, with a rate and a decay for each model."""
    grid, size, block = _pieces(p, rate)
    _descend[grid](p, g, state, rate, decay, size, 1 - momentum, BLOCK=block)


def adapt(
    p: Tensor,
    g: Tensor,
    state: list[Tensor],
    rate: Tensor,
    decay: Tensor,
    corrections: tuple[Tensor, Tensor],
    betas: tuple[float, float],
    eps: float,
) -> None:
    """One update of Adam, in place."""
    grid, size, block = _pieces(p, rate)
    _adapt[grid](p, g, *state, rate, decay, *corrections, size, *betas, eps, BLOCK=block)


def _pieces(p: Tensor, rate: Tensor) -> tuple[tuple[int, int], int, int]:
    """Programs for each model's part of a parameter, the part's size, and how much a program does."""
    size = p.numel() // len(rate)
    block = min(triton.next_power_of_2(size), 1024)
    return (len(rate), triton.cdiv(size, block)), size, block


@jit
def _descend(p, g, state, rate, decay, size, fresh, BLOCK: tl.constexpr):
    model = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < size
    at = model.to(tl.int64) * size + column
    value = tl.load(p + at, mask=inside)
    held = tl.load(state + at, mask=inside)
    held += fresh * (tl.load(g + at, mask=inside) - held)
    held += fresh * tl.load(decay + model) * value
    tl.store(state + at, held, mask=inside)
    tl.store(p + at, value - tl.load(rate + model) * held / fresh, mask=inside)


@jit
def _adapt(
    p, g, first, second, rate, decay, correction, root_correction, size, beta, root_beta, eps, BLOCK: tl.constexpr
):  # fmt: skip
    model = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < size
    at = model.to(tl.int64) * size + column
    value = tl.load(p + at, mask=inside, other=0.0)
    slope = tl.load(g + at, mask=inside, other=0.0)
    step = tl.load(rate + model)
    slope += tl.load(decay + model) * value
    mean = tl.load(first + at, mask=inside, other=0.0)
    mean += (1 - beta) * (slope - mean)
    square = root_beta * tl.load(second + at, mask=inside, other=0.0) + (1 - root_beta) * slope * slope
    tl.store(first + at, mean, mask=inside)
    tl.store(second + at, square, mask=inside)
    spread = tl.sqrt(square) / tl.load(root_correction) + eps
    tl.store(p + at, value - step / tl.load(correction) * mean / spread, mask=inside)
