"""Kernels for stacks of networks on a GPU: each does in one pass over memory what torch does in five or more.

Reading and scaling a batch, normalisation with ReLU, the loss of candidate sets with its gradient, and optimizers:
the parts of a step that are limited by memory and not by products. They are written in Triton, which comes with
torch on Linux, are compiled within seconds on first use, and are kept by Triton for the next process. Without
Triton, on a CPU and in other arithmetic than float32 the plain operations serve, and give the same up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # as on a CPU
    triton = None

_jit: Any = (lambda function: function) if triton is None else triton.jit
_MOST_ROWS = 256  # of a batch that one program normalises
_PROGRAMS = 132  # that run at once
_MOST_CLASSES = 256


def usable(*tensors: Tensor) -> bool:
    """Whether kernels take these tensors: on a GPU, in float32, in one piece, and not in mixed precision."""
    if triton is None or torch.is_autocast_enabled("cuda"):
        return False
    return all(t.is_cuda and t.dtype == torch.float32 and t.is_contiguous() for t in tensors)


# -------------------------------------------------------------------- products

Factors = dict[int, tuple[Tensor, Tensor]]
"""By the address of a weight the slope of its layer's output and the layer's input: their product is its gradient."""
_factors: list[Factors] = []


@contextmanager
def factored(wanted: bool) -> Iterator[Factors]:
    """Layers used inside leave the gradients of their weights as factors, and give none, if wanted.

    An optimizer that takes factors multiplies them where it updates the weight: no gradient goes through memory.
    """
    found: Factors = {}
    if wanted:
        _factors.append(found)
    try:
        yield found
    finally:
        if wanted:
            _factors.pop()


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x·wᵀ of each model, with a gradient of the weight that is in one piece."""
    found: Tensor = _Product.apply(x, weight)
    return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.factors = _factors[-1] if _factors else None
        return torch.bmm(x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        back = torch.bmm(slope, weight) if ctx.needs_input_grad[0] else None
        return back, _slope_of(weight, slope, x, ctx.factors)


def _slope_of(weight: Tensor, slope: Tensor, x: Tensor, factors: Factors | None) -> Tensor | None:
    if factors is None:
        return torch.bmm(slope.transpose(1, 2), x)
    factors[weight.data_ptr()] = (slope.contiguous(), x)
    return None


# -------------------------------------------------------------------- a network with batch normalisation


def can_pass(x: Tensor, norms: Iterable[Any]) -> bool:
    """Whether `normalised_network` takes (M, batch, features) like these in training."""
    fits = x.ndim == 3 and 1 < x.shape[1] <= _MOST_ROWS
    return fits and usable(x) and all(hasattr(norm, "running_var") for norm in norms)


def normalised_network(x: Tensor, hidden: Sequence[Any], norms: Sequence[Any], output: Any) -> Tensor:
    """The logits of layers with batch normalisation and ReLU, and a last one without, in training.

    A program computes some features of one model for the whole batch, so that their statistics, in both directions,
    need no second pass over memory. The running statistics of the norms are updated.
    """
    layers = [part for pair in zip(hidden, norms, strict=True) for part in pair]
    parameters = [parameter for layer in (*layers, output) for parameter in (layer.weight, layer.bias)]
    found: Tensor = _NormalisedNetwork.apply(x, norms, *parameters)
    return found


class _NormalisedNetwork(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, norms: Sequence[Any], *parameters: Tensor) -> Tensor:
        kept = [x]
        for layer, norm in enumerate(norms):
            weight, bias, scale, shift = parameters[4 * layer : 4 * layer + 4]
            models, batch, n_in = x.shape
            n_out = weight.shape[1]
            h, y = x.new_empty(models, batch, n_out), x.new_empty(models, batch, n_out)
            mean, inverse = torch.empty_like(scale), torch.empty_like(scale)
            grid, tile = _whole_batch(models, batch, n_out)
            _hidden[grid](
                x, weight, bias, scale, shift, norm.running_mean, norm.running_var, h, y, mean, inverse,
                batch, norm.momentum, norm.eps, N_IN=n_in, N_OUT=n_out, PRECISION=_precision(), **tile,
            )  # fmt: skip
            kept += [h, mean, inverse, y]
            x = y
        ctx.save_for_backward(*kept, *parameters)
        ctx.depth, ctx.factors = len(norms), _factors[-1] if _factors else None
        return torch.baddbmm(parameters[-1], x, parameters[-2].transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        (x, *kept), parameters = ctx.saved_tensors[: 4 * ctx.depth + 1], ctx.saved_tensors[4 * ctx.depth + 1 :]
        slope, weight = slope.contiguous(), parameters[-2]
        found = [slope.sum(dim=1, keepdim=True), _slope_of(weight, slope, kept[-1], ctx.factors)]
        for layer in reversed(range(ctx.depth)):
            h, mean, inverse, _ = kept[4 * layer : 4 * layer + 4]
            own, _, scale, shift = parameters[4 * layer : 4 * layer + 4]
            models, batch, n_out = h.shape
            back, small = torch.empty_like(h), h.new_empty(3, models, n_out)
            grid, tile = _whole_batch(models, batch, n_out)
            _hidden_back[grid](
                slope, weight, h, scale, shift, mean, inverse, back, *small, batch,
                N_IN=slope.shape[2], N_OUT=n_out, PRECISION=_precision(), **tile,
            )  # fmt: skip
            of_bias, of_scale, of_shift = small
            below = kept[4 * layer - 1] if layer else x
            found += [of_shift, of_scale, of_bias[:, None], _slope_of(own, back, below, ctx.factors)]
            slope, weight = back, own
        return None, None, *reversed(found)


def _whole_batch(models: int, batch: int, features: int) -> tuple[tuple[int, int], dict[str, int]]:
    """One program for some features of a model, and its tile; fewer features where programs would be few."""
    columns = 64 if models * triton.cdiv(features, 64) > _PROGRAMS else 32
    rows = max(16, triton.next_power_of_2(batch))
    tile = {"ROWS": rows, "COLUMNS": columns, "DEPTH": 32, "num_warps": 8 if rows > 64 else 4, "num_stages": 3}
    return (models, triton.cdiv(features, columns)), tile


def _precision() -> str:
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"


@_jit
def _hidden(
    x, weight, bias, scale, shift, running_mean, running_var, h, y, mean, inverse, batch, momentum, eps,
    N_IN: tl.constexpr, N_OUT: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0)
    row, depth = tl.arange(0, ROWS), tl.arange(0, DEPTH)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there = column < N_OUT
    inside = (row[:, None] < batch) & there[None, :]
    x_at = x + (model * batch + row[:, None]) * N_IN + depth[None, :]
    weight_at = weight + (model * N_OUT + column[None, :]) * N_IN + depth[:, None]
    values = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, N_IN, DEPTH):
        left = depth < N_IN - start
        a = tl.load(x_at + start, mask=(row[:, None] < batch) & left[None, :], other=0.0)
        b = tl.load(weight_at + start, mask=there[None, :] & left[:, None], other=0.0)
        values = tl.dot(a, b, values, input_precision=PRECISION)
    at = (model * batch + row[:, None]) * N_OUT + column[None, :]
    own = model * N_OUT + column
    tl.store(h + at, values, mask=inside)
    centre = tl.sum(values, axis=0) / batch  # rows beyond the batch are zero
    apart = tl.where(inside, values - centre[None, :], 0.0)
    variance = tl.sum(apart * apart, axis=0) / batch
    narrow = 1.0 / tl.sqrt(variance + eps)
    w = tl.load(scale + own, mask=there, other=0.0)
    s = tl.load(shift + own, mask=there, other=0.0)
    tl.store(y + at, tl.maximum(apart * (narrow * w)[None, :] + s[None, :], 0.0), mask=inside)
    tl.store(mean + own, centre, mask=there)
    tl.store(inverse + own, narrow, mask=there)
    b = tl.load(bias + own, mask=there, other=0.0)  # moves the mean and nothing else
    old_mean = tl.load(running_mean + own, mask=there, other=0.0)
    old_var = tl.load(running_var + own, mask=there, other=0.0)
    tl.store(running_mean + own, old_mean + momentum * (centre + b - old_mean), mask=there)
    tl.store(running_var + own, old_var + momentum * (variance * batch / (batch - 1) - old_var), mask=there)


@_jit
def _hidden_back(
    slope, weight, h, scale, shift, mean, inverse, back, of_bias, of_scale, of_shift, batch,
    N_IN: tl.constexpr, N_OUT: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """The slope of a layer's product, from that of the next layer's product (N_IN features) and its weight."""
    model = tl.program_id(0)
    row, depth = tl.arange(0, ROWS), tl.arange(0, DEPTH)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there = column < N_OUT
    inside = (row[:, None] < batch) & there[None, :]
    slope_at = slope + (model * batch + row[:, None]) * N_IN + depth[None, :]
    weight_at = weight + (model * N_IN + depth[:, None]) * N_OUT + column[None, :]
    given = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, N_IN, DEPTH):
        left = depth < N_IN - start
        a = tl.load(slope_at + start, mask=(row[:, None] < batch) & left[None, :], other=0.0)
        b = tl.load(weight_at + start * N_OUT, mask=there[None, :] & left[:, None], other=0.0)
        given = tl.dot(a, b, given, input_precision=PRECISION)
    at = (model * batch + row[:, None]) * N_OUT + column[None, :]
    own = model * N_OUT + column
    centre = tl.load(mean + own, mask=there, other=0.0)
    narrow = tl.load(inverse + own, mask=there, other=0.0)
    w = tl.load(scale + own, mask=there, other=0.0)
    s = tl.load(shift + own, mask=there, other=0.0)
    normal = (tl.load(h + at, mask=inside, other=0.0) - centre[None, :]) * narrow[None, :]
    given = tl.where(inside & (normal * w[None, :] + s[None, :] > 0.0), given, 0.0)
    first = tl.sum(given, axis=0)
    second = tl.sum(given * normal, axis=0)
    found = (w * narrow)[None, :] * (given - (first[None, :] + normal * second[None, :]) / batch)
    found = tl.where(inside, found, 0.0)
    tl.store(back + at, found, mask=inside)
    tl.store(of_scale + own, second, mask=there)
    tl.store(of_shift + own, first, mask=there)
    tl.store(of_bias + own, tl.sum(found, axis=0), mask=there)


# -------------------------------------------------------------------- a batch as stored, scaled


def scaled_batch(features: Tensor, selected: Tensor | None, index: Tensor, shift: Tensor, spread: Tensor) -> Tensor:
    """(features[rows] − shift) / spread in float32, with one shift and spread for all models or one for each.

    The rows are those of the index, or `selected` (M, n) at the index.
    """
    (models, batch), width = index.shape, features[0].numel()
    x = torch.empty(models, batch, width, device=features.device)
    block = min(triton.next_power_of_2(width), 1024)
    n = 0 if selected is None else selected.shape[1] if len(selected) > 1 else 0
    _read[(models * batch, triton.cdiv(width, block))](
        features, index if selected is None else selected, index.contiguous(), shift, spread, x, batch, n,
        WIDTH=width, SELECTED=selected is not None, PER_MODEL=int(shift.numel() > 1), BLOCK=block,
    )  # fmt: skip
    return x


@_jit
def _read(
    features, selected, index, shift, spread, x, batch, n,
    WIDTH: tl.constexpr, SELECTED: tl.constexpr, PER_MODEL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    model = row // batch
    place = tl.load(index + row)
    if SELECTED:
        place = tl.load(selected + model.to(tl.int64) * n + place)
    values = tl.load(features + place.to(tl.int64) * WIDTH + column, mask=column < WIDTH, other=0).to(tl.float32)
    own = model * PER_MODEL
    values = tl.math.div_rn(values - tl.load(shift + own), tl.load(spread + own) + tl.zeros_like(values))
    tl.store(x + row.to(tl.int64) * WIDTH + column, values, mask=column < WIDTH)


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
    return candidates.dtype == torch.bool and logits.shape[-1] <= _MOST_CLASSES and usable(logits)


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


def descend_along(
    p: Tensor, factors: tuple[Tensor, Tensor], state: Tensor, rate: Tensor, decay: Tensor, momentum: float
) -> None:
    """The same for a weight whose gradient is a product of factors."""
    slope, x = factors
    models, batch, n_out = slope.shape
    n_in = x.shape[2]
    tile = _part_of(n_out)
    grid = (models, triton.cdiv(n_out, tile["ROWS"]) * triton.cdiv(n_in, tile["COLUMNS"]))
    _descend_along[grid](
        p, slope, x, state, rate, decay, batch, 1 - momentum,
        N_OUT=n_out, N_IN=n_in, STEPS=triton.cdiv(batch, tile["DEPTH"]), PRECISION=_precision(), **tile,
    )  # fmt: skip


def _part_of(n_out: int) -> dict[str, int]:
    """How much of a weight one program updates."""
    rows = max(16, min(triton.next_power_of_2(n_out), 64))
    return {"ROWS": rows, "COLUMNS": 64, "DEPTH": 32, "num_warps": 4, "num_stages": 3}


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
def _descend_along(
    p, slope, x, state, rate, decay, batch, fresh,
    N_OUT: tl.constexpr, N_IN: tl.constexpr, STEPS: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    model, tile = tl.program_id(0), tl.program_id(1)
    across: tl.constexpr = (N_IN + COLUMNS - 1) // COLUMNS
    out = (tile // across) * ROWS + tl.arange(0, ROWS)
    into = (tile % across) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    gradient = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, STEPS * DEPTH, DEPTH):
        example = model * batch + start + depth
        left = start + depth < batch
        a = tl.load(
            slope + example[None, :] * N_OUT + out[:, None], mask=left[None, :] & (out[:, None] < N_OUT), other=0.0
        )
        b = tl.load(
            x + example[:, None] * N_IN + into[None, :], mask=left[:, None] & (into[None, :] < N_IN), other=0.0
        )
        gradient = tl.dot(a, b, gradient, input_precision=PRECISION)
    inside = (out[:, None] < N_OUT) & (into[None, :] < N_IN)
    at = (model * N_OUT + out[:, None]) * N_IN + into[None, :]
    value = tl.load(p + at, mask=inside, other=0.0)
    held = tl.load(state + at, mask=inside, other=0.0)
    held += fresh * (gradient - held)
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
