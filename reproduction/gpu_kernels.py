"""Kernels for a training step on a GPU: each does in one pass over memory what torch does in many.

The loss of candidate sets, with its gradient and what it remembers, and the normalisation of stacks with ReLU. They
are written in Triton, which comes with torch on Linux, are compiled on first use, and kept by Triton for the next
process. Without Triton, on a CPU, or in other arithmetic than float32, plain operations give the same up to
rounding.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

if torch.cuda.is_available() or "TRITON_INTERPRET" in os.environ:  # it takes a second to load
    try:
        import triton
        import triton.language as tl
    except ImportError:
        triton = None
else:
    triton = None

jit: Any = (lambda function: function) if triton is None else triton.jit
_MOST_CLASSES = 256
_MOST_EXAMPLES = 1024  # in a batch that one program normalises
_MOST_CELLS = 2**28  # in a layer's input: places are counted in 32 bits
_CELLS = 2048  # per program


def usable(*tensors: Tensor) -> bool:
    """Whether kernels take these tensors: on a GPU, in float32, in one piece, and not in mixed precision."""
    if triton is None or torch.is_autocast_enabled("cuda"):
        return False
    return all(t.is_cuda and t.dtype == torch.float32 and t.is_contiguous() for t in tensors)


# -------------------------------------------------------------------- the loss of candidate sets


def can_weigh(logits: Tensor, candidates: Tensor) -> bool:
    """Whether `weigh_losses` takes logits and candidates like these."""
    fits = candidates.dtype == torch.bool and candidates.is_contiguous() and logits.shape[-1] <= _MOST_CLASSES
    return fits and usable(logits)


def weigh_losses(
    logits: Tensor, index: Tensor, candidates: Tensor, memory: Tensor | None, beta: float
) -> tuple[Tensor, Tensor]:
    """The loss of every example (M, batch), and the slope of each model's mean; stores these logits in `memory`.

    As `CandidateLoss`: the cross-entropy to weights w ∝ 1{S}·p^β, with p of the memory or else of the logits.
    """
    models, batch, k = logits.shape
    slope, losses = torch.empty_like(logits), logits.new_empty(models, batch)
    columns = triton.next_power_of_2(k)
    rows = max(1, 1024 // columns)
    _weigh[(triton.cdiv(models * batch, rows),)](
        logits, index.contiguous(), candidates.view(torch.uint8), logits if memory is None else memory,
        slope, losses,
        models * batch, batch, candidates.shape[1], k, beta,
        REMEMBERS=memory is not None, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip
    return losses, slope


@jit
def _weigh(
    logits, index, candidates, memory, slope, losses, n, batch, examples, k, beta,
    REMEMBERS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row[:, None] < n) & (column[None, :] < k)
    position = (row // batch).to(tl.int64) * examples + tl.load(index + row, mask=row < n, other=0)
    here = row[:, None] * k + column[None, :]
    there = position[:, None] * k + column[None, :]
    z = tl.load(logits + here, mask=inside, other=float("-inf"))
    z = tl.where(row[:, None] < n, z, 0.0)
    named = tl.load(candidates + there, mask=inside, other=0) != 0
    source = tl.load(memory + there, mask=inside, other=0.0) if REMEMBERS else z
    source = tl.where(named, beta * source, float("-inf"))
    top = tl.max(source, axis=1)
    weights = tl.exp(source - tl.where(top == float("-inf"), 0.0, top)[:, None])
    weights = weights / tl.maximum(tl.sum(weights, axis=1), 1e-30)[:, None]
    best = tl.max(z, axis=1)
    powers = tl.exp(z - best[:, None])
    total = tl.sum(powers, axis=1)
    logs = z - (best + tl.log(total))[:, None]
    loss = -tl.sum(tl.where(weights > 0, weights * logs, 0.0), axis=1)
    share = tl.sum(weights, axis=1)
    tl.store(slope + here, (powers * (share / total)[:, None] - weights) / batch, mask=inside)
    tl.store(losses + row, loss, mask=row < n)
    if REMEMBERS:
        tl.store(memory + there, z, mask=inside)


# -------------------------------------------------------------------- normalisation and ReLU


def can_normalise(x: Tensor) -> bool:
    """Whether `normalise_with_relu` takes (M, features, batch) like these."""
    return 1 < x.shape[-1] <= _MOST_EXAMPLES and x.numel() < _MOST_CELLS and usable(x)


def normalise_with_relu(x: Tensor, bias: Tensor, norm: Any) -> Tensor:
    """ReLU of the batch normalisation of x + bias, (M, features, batch), in training; updates its statistics."""
    result: Tensor = _NormalisedReLU.apply(x, bias, norm.weight, norm.bias, norm)
    return result


class _NormalisedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, norm: Any) -> Tensor:
        y, mean, inverse = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        grid, rows, tile = _tiles(x)
        _normalise[grid](
            x, bias, weight, shift, norm.running_mean, norm.running_var, y, mean, inverse,
            rows, x.shape[-1], norm.momentum, norm.eps, **tile,
        )  # fmt: skip
        ctx.save_for_backward(x, weight, shift, mean, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, shift, mean, inverse = ctx.saved_tensors
        back, of_weight, of_shift = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        of_bias = torch.empty_like(weight)
        grid, rows, tile = _tiles(x)
        _normalise_back[grid](
            x, weight, shift, mean, inverse, slope.contiguous(), back, of_weight, of_shift, of_bias,
            rows, x.shape[-1], **tile,
        )  # fmt: skip
        return back, of_bias[:, None], of_weight, of_shift, None


def _tiles(x: Tensor) -> tuple[tuple[int], int, dict[str, int]]:
    """One program for some features: all examples of the batch, so that their sums need no second pass."""
    rows, columns = x.shape[0] * x.shape[1], triton.next_power_of_2(x.shape[2])
    at_once = max(_CELLS // columns, 1)
    return (triton.cdiv(rows, at_once),), rows, {"ROWS": at_once, "COLUMNS": columns}


@jit
def _normalise(
    x, bias, weight, shift, running_mean, running_var, y, mean, inverse, rows, batch, momentum, eps,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    there = row < rows
    inside = there[:, None] & (column[None, :] < batch)
    at = row[:, None] * batch + column[None, :]
    values = tl.load(x + at, mask=inside, other=0.0)
    centre = tl.sum(values, axis=1) / batch
    apart = tl.where(inside, values - centre[:, None], 0.0)
    variance = tl.sum(apart * apart, axis=1) / batch
    scale = 1.0 / tl.sqrt(variance + eps)
    w = tl.load(weight + row, mask=there, other=0.0)
    s = tl.load(shift + row, mask=there, other=0.0)
    tl.store(y + at, tl.maximum(apart * (scale * w)[:, None] + s[:, None], 0.0), mask=inside)
    tl.store(mean + row, centre, mask=there)
    tl.store(inverse + row, scale, mask=there)
    b = tl.load(bias + row, mask=there, other=0.0)
    old_mean = tl.load(running_mean + row, mask=there, other=0.0)
    old_var = tl.load(running_var + row, mask=there, other=0.0)
    tl.store(running_mean + row, old_mean + momentum * (centre + b - old_mean), mask=there)
    tl.store(running_var + row, old_var + momentum * (variance * batch / (batch - 1) - old_var), mask=there)


@jit
def _normalise_back(
    x, weight, shift, mean, inverse, slope, back, of_weight, of_shift, of_bias, rows, batch,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    there = row < rows
    inside = there[:, None] & (column[None, :] < batch)
    at = row[:, None] * batch + column[None, :]
    centre = tl.load(mean + row, mask=there, other=0.0)
    scale = tl.load(inverse + row, mask=there, other=0.0)
    w = tl.load(weight + row, mask=there, other=0.0)
    s = tl.load(shift + row, mask=there, other=0.0)
    apart = tl.load(x + at, mask=inside, other=0.0) - centre[:, None]
    given = tl.load(slope + at, mask=inside, other=0.0)
    given = tl.where(inside & (apart * (scale * w)[:, None] + s[:, None] > 0.0), given, 0.0)
    normal = apart * scale[:, None]
    first = tl.sum(given, axis=1)
    second = tl.sum(given * normal, axis=1)
    found = (w * scale)[:, None] * (given - (first[:, None] + normal * second[:, None]) / batch)
    found = tl.where(inside, found, 0.0)
    tl.store(back + at, found, mask=inside)
    tl.store(of_bias + row, tl.sum(found, axis=1), mask=there)
    tl.store(of_weight + row, second, mask=there)
    tl.store(of_shift + row, first, mask=there)
