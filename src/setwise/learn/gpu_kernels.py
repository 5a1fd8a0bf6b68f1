"""Kernels for stacks of networks on a GPU: each does in one pass over memory what torch does in five or more.

Reading and scaling a batch, normalisation with ReLU, the loss of candidate sets with its gradient, and optimizers:
the parts of a step that are limited by memory and not by products. They are written in Triton, which comes with
torch on Linux, are compiled within seconds on first use, and are kept by Triton for the next process. Without
Triton, on a CPU and in other arithmetic than float32 the plain operations serve, and give the same up to rounding.
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

_jit: Any = (lambda function: function) if triton is None else triton.jit
_MOST_ROWS = 1024  # of a batch that one program normalises
_MOST_CELLS = 2**28  # of a layer's input: places are counted in 32 bits
_MOST_CLASSES = 256
_CELLS = 8192  # of a program


def usable(*tensors: Tensor) -> bool:
    """Whether kernels take these tensors: on a GPU, in float32, in one piece, and not in mixed precision."""
    if triton is None or torch.is_autocast_enabled("cuda"):
        return False
    return all(t.is_cuda and t.dtype == torch.float32 and t.is_contiguous() for t in tensors)


# -------------------------------------------------------------------- normalisation and ReLU


def can_normalise(x: Tensor) -> bool:
    """Whether `normalised_relu` takes (M, batch, features) like these."""
    return x.ndim == 3 and 1 < x.shape[1] <= _MOST_ROWS and x.numel() < _MOST_CELLS and usable(x)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x·wᵀ of each model, with a gradient of the weight that is in one piece."""
    found: Tensor = _Product.apply(x, weight)
    return found


def normalised_relu(x: Tensor, bias: Tensor, norm: Any) -> Tensor:
    """ReLU of the batch normalisation of x + bias in training; updates the running statistics of the norm."""
    found: Tensor = _NormalisedReLU.apply(x, bias, norm.weight, norm.bias, norm)
    return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.bmm(x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor]:
        x, weight = ctx.saved_tensors
        back = torch.bmm(slope, weight) if ctx.needs_input_grad[0] else None
        return back, torch.bmm(slope.transpose(1, 2), x)


class _NormalisedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, norm: Any) -> Tensor:
        y, mean, inverse = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        grid, tile = _tiles(x, cells_of_thread=32)
        _normalise[grid](
            x, bias, weight, shift, norm.running_mean, norm.running_var, y, mean, inverse,
            x.shape[1], x.shape[2], norm.momentum, norm.eps, **tile,
        )  # fmt: skip
        ctx.save_for_backward(x, weight, shift, mean, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, shift, mean, inverse = ctx.saved_tensors
        back, of_weight, of_shift = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        of_bias = torch.empty_like(weight)
        grid, tile = _tiles(x, cells_of_thread=16)
        _normalise_back[grid](
            x, weight, shift, mean, inverse, slope.contiguous(), back, of_weight, of_shift, of_bias,
            x.shape[1], x.shape[2], **tile,
        )  # fmt: skip
        return back, of_bias[:, None], of_weight, of_shift, None


def _tiles(x: Tensor, cells_of_thread: int) -> tuple[tuple[int, int], dict[str, int]]:
    """One program for some features of one model: all rows of the batch, so that their sums need no second pass."""
    rows = triton.next_power_of_2(x.shape[1])
    columns = max(8, min(_CELLS // rows, 32))
    warps = min(max(rows * columns // (32 * cells_of_thread), 1), 16)
    return (len(x), triton.cdiv(x.shape[2], columns)), {"ROWS": rows, "COLUMNS": columns, "num_warps": warps}


@_jit
def _normalise(
    x, bias, weight, shift, running_mean, running_var, y, mean, inverse, batch, features, momentum, eps,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    there = column < features
    inside = (row[:, None] < batch) & there[None, :]
    at = (model * batch + row[:, None]) * features + column[None, :]
    own = model * features + column
    values = tl.load(x + at, mask=inside, other=0.0)
    centre = tl.sum(values, axis=0) / batch
    apart = tl.where(inside, values - centre[None, :], 0.0)
    variance = tl.sum(apart * apart, axis=0) / batch
    scale = 1.0 / tl.sqrt(variance + eps)
    w = tl.load(weight + own, mask=there, other=0.0)
    s = tl.load(shift + own, mask=there, other=0.0)
    tl.store(y + at, tl.maximum(apart * (scale * w)[None, :] + s[None, :], 0.0), mask=inside)
    tl.store(mean + own, centre, mask=there)
    tl.store(inverse + own, scale, mask=there)
    b = tl.load(bias + own, mask=there, other=0.0)
    old_mean = tl.load(running_mean + own, mask=there, other=0.0)
    old_var = tl.load(running_var + own, mask=there, other=0.0)
    tl.store(running_mean + own, old_mean + momentum * (centre + b - old_mean), mask=there)
    tl.store(running_var + own, old_var + momentum * (variance * batch / (batch - 1) - old_var), mask=there)


@_jit
def _normalise_back(
    x, weight, shift, mean, inverse, slope, back, of_weight, of_shift, of_bias, batch, features,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    there = column < features
    inside = (row[:, None] < batch) & there[None, :]
    at = (model * batch + row[:, None]) * features + column[None, :]
    own = model * features + column
    centre = tl.load(mean + own, mask=there, other=0.0)
    scale = tl.load(inverse + own, mask=there, other=0.0)
    w = tl.load(weight + own, mask=there, other=0.0)
    s = tl.load(shift + own, mask=there, other=0.0)
    apart = tl.load(x + at, mask=inside, other=0.0) - centre[None, :]
    given = tl.load(slope + at, mask=inside, other=0.0)
    given = tl.where(inside & (apart * (scale * w)[None, :] + s[None, :] > 0.0), given, 0.0)
    normal = apart * scale[None, :]
    first = tl.sum(given, axis=0)
    second = tl.sum(given * normal, axis=0)
    found = (w * scale)[None, :] * (given - (first[None, :] + normal * second[None, :]) / batch)
    found = tl.where(inside, found, 0.0)
    tl.store(back + at, found, mask=inside)
    tl.store(of_weight + own, second, mask=there)
    tl.store(of_shift + own, first, mask=there)
    tl.store(of_bias + own, tl.sum(found, axis=0), mask=there)


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


@_jit
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


# -------------------------------------------------------------------- the loss of candidate sets


def candidate_loss(
    logits: Tensor, index: Tensor, candidates: Tensor, memory: Tensor | None, beta: float
) -> tuple[Tensor, Tensor]:
    """The loss of every example (M, batch), and the slope of each model's mean; `memory` then holds these logits.

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


def can_weigh(logits: Tensor, candidates: Tensor) -> bool:
    """Whether `candidate_loss` takes logits and candidates like these."""
    fits = candidates.dtype == torch.bool and candidates.is_contiguous() and logits.shape[-1] <= _MOST_CLASSES
    return fits and usable(logits)


@_jit
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
    *,
    decoupled: bool = False,
) -> None:
    """One update of Adam, in place; of AdamW where the decay is decoupled from the gradient."""
    grid, size, block = _pieces(p, rate)
    _adapt[grid](p, g, *state, rate, decay, *corrections, size, *betas, eps, DECOUPLED=decoupled, BLOCK=block)


def _pieces(p: Tensor, rate: Tensor) -> tuple[tuple[int, int], int, int]:
    """Programs for each model's part of a parameter, the part's size, and how much a program does."""
    size = p.numel() // len(rate)
    block = min(triton.next_power_of_2(size), 1024)
    return (len(rate), triton.cdiv(size, block)), size, block


@_jit
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


@_jit
def _adapt(
    p, g, first, second, rate, decay, correction, root_correction, size, beta, root_beta, eps,
    DECOUPLED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < size
    at = model.to(tl.int64) * size + column
    value = tl.load(p + at, mask=inside, other=0.0)
    slope = tl.load(g + at, mask=inside, other=0.0)
    step, fade = tl.load(rate + model), tl.load(decay + model)
    if DECOUPLED:
        value *= 1 - step * fade
    else:
        slope += fade * value
    mean = tl.load(first + at, mask=inside, other=0.0)
    mean += (1 - beta) * (slope - mean)
    square = root_beta * tl.load(second + at, mask=inside, other=0.0) + (1 - root_beta) * slope * slope
    tl.store(first + at, mean, mask=inside)
    tl.store(second + at, square, mask=inside)
    spread = tl.sqrt(square) / tl.load(root_correction) + eps
    tl.store(p + at, value - step / tl.load(correction) * mean / spread, mask=inside)
