"""Networks for M models at once: every parameter carries a leading model dimension.

Inputs have shape (M, batch, …), logits (M, batch, K); one model is M = 1 of the same code. Model m draws its
first weights from its own generator, so that it starts where it would start alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from setwise.errors import InputError, Remedy

Generators = Sequence[torch.Generator]
_MODELS = 10_000  # the most in one file
_PLAIN = Remedy("network", "mlp", "for rows of features")
_IMAGES = Remedy("X", None, "of shape (rows, height, width) or (rows, channels, height, width), channels first")


class StackedLinear(nn.Module):
    """M affine maps as one batched matrix product."""

    def __init__(self, generators: Generators, n_in: int, n_out: int, *, glorot: bool = False) -> None:
        super().__init__()
        bound = (6 / (n_in + n_out)) ** 0.5 if glorot else n_in**-0.5
        self.weight = nn.Parameter(_uniform(generators, (n_out, n_in), bound))
        self.bias = nn.Parameter(_uniform(generators, (1, n_out), 0.0 if glorot else bound))

    def forward(self, x: Tensor) -> Tensor:
        """(M, batch, in) to (M, batch, out); one model's (batch, in) as a plain product."""
        if x.ndim == 2:
            return functional.linear(x, self.weight.squeeze(0), self.bias.flatten())
        return torch.baddbmm(self.bias, x, self.weight.transpose(1, 2))


class StackedConvolution(nn.Module):
    """M convolutions as one grouped convolution on (batch, M·channels, height, width)."""

    def __init__(self, generators: Generators, n_in: int, n_out: int, size: int = 3) -> None:
        super().__init__()
        bound = (n_in * size * size) ** -0.5
        self.weight = nn.Parameter(_uniform(generators, (n_out, n_in, size, size), bound))
        self.bias = nn.Parameter(_uniform(generators, (n_out,), bound))

    def forward(self, x: Tensor) -> Tensor:
        """Keeps height and width."""
        groups, size = len(self.weight), self.weight.shape[-1]
        return functional.conv2d(
            x, self.weight.flatten(0, 1), self.bias.flatten(), padding=size // 2, groups=groups
        )


class StackedBatchNorm(nn.Module):
    """Batch normalisation of M models on (batch, M·features, …): each feature of each model for itself."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, n_models: int, n_features: int, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(n_models, n_features))
        self.bias = nn.Parameter(torch.zeros(n_models, n_features))
        self.register_buffer("running_mean", torch.zeros(n_models, n_features))
        self.register_buffer("running_var", torch.ones(n_models, n_features))

    def forward(self, x: Tensor) -> Tensor:
        """Statistics of the batch in training, unless it is one value; the running ones otherwise."""
        return functional.batch_norm(
            x,
            self.running_mean.view(-1),
            self.running_var.view(-1),
            self.weight.flatten(),
            self.bias.flatten(),
            training=self.training and x.numel() > x.shape[1],
            momentum=self.momentum,
            eps=self.eps,
        )


class Linear(nn.Module):
    """Softmax regression."""

    def __init__(self, generators: Generators, shape: Sequence[int], n_classes: int) -> None:
        super().__init__()
        self.output = StackedLinear(generators, _size(shape), n_classes, glorot=True)

    def forward(self, x: Tensor) -> Tensor:
        """(M, batch, …) to (M, batch, K)."""
        return _apart(self.output(_together(x.flatten(2))))


class MLP(nn.Module):
    """Hidden layers with batch normalisation (unless turned off), ReLU and dropout (if any)."""

    def __init__(
        self,
        generators: Generators,
        shape: Sequence[int],
        n_classes: int,
        hidden_sizes: Sequence[int],
        *,
        batch_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        sizes = [_size(shape), *hidden_sizes]
        pairs = list(pairwise(sizes))
        self.hidden = nn.ModuleList(StackedLinear(generators, a, b) for a, b in pairs)
        self.norms = nn.ModuleList(
            StackedBatchNorm(len(generators), b) if batch_norm else nn.Identity() for b in sizes[1:]
        )
        self.output = StackedLinear(generators, sizes[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """(M, batch, …) to (M, batch, K)."""
        x = _together(x.flatten(2))
        for linear, norm in zip(self.hidden, self.norms, strict=True):
            x = torch.relu_(_by_model(norm, linear(x)))
            if self.dropout and self.training:
                x = _dropout(x, self.dropout)
        return _apart(self.output(x))


class CNN(nn.Module):
    """Two convolutions with batch normalisation, ReLU and pooling, then a linear map: small images."""

    def __init__(
        self, generators: Generators, shape: Sequence[int], n_classes: int, channels: Sequence[int] = (32, 64)
    ) -> None:
        super().__init__()
        self.shape = image_shape(shape)
        planes, height, width = self.shape
        sizes = [planes, *channels]
        pairs = list(pairwise(sizes))
        self.convolutions = nn.ModuleList(StackedConvolution(generators, a, b) for a, b in pairs)
        self.norms = nn.ModuleList(StackedBatchNorm(len(generators), b) for b in channels)
        reduced = 2 ** len(channels)
        if min(height, width) < reduced:
            raise InputError(f"network: images of {height} × {width} are too small for 'cnn'", _PLAIN, _IMAGES)
        self.output = StackedLinear(generators, channels[-1] * (height // reduced) * (width // reduced), n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """(M, batch, …) to (M, batch, K)."""
        m, b = x.shape[:2]
        planes, height, width = self.shape
        x = x.reshape(m, b, planes, height, width).transpose(0, 1).flatten(1, 2)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = functional.max_pool2d(torch.relu(norm(convolution(x))), 2)
        return _apart(self.output(_together(x.reshape(b, m, -1).transpose(0, 1))))


class Single(nn.Module):
    """A module of your own, (batch, …) to (batch, K) or to an object with `logits`, as M = 1."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        """(1, batch, …) to (1, batch, K)."""
        return module_logits(self.module, x.squeeze(0))[None]


def module_logits(module: nn.Module, x: Tensor) -> Tensor:
    """The logits that a module returns, which Hugging Face modules put in the attribute `logits` of an object.

    One of those that embeds tokens gets integers, whatever the type of x.
    """
    embeds = getattr(module, "get_input_embeddings", None)
    if x.is_floating_point() and embeds is not None and isinstance(embeds(), nn.Embedding):
        tokens = x.long()
        if not torch.equal(tokens.to(x.dtype), x):
            raise InputError("network: it reads tokens, but X holds other numbers", "use scale=None", "check X")
        x = tokens
    output = module(x)
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor):
        kind = type(output).__name__
        raise TypeError(f"network: it returned {kind}; return logits, or an object that holds them as `logits`.")
    return logits


def build_network(
    network: str | Callable[[], nn.Module],
    seeds: Sequence[int],
    shape: Sequence[int],
    n_classes: int,
    *,
    hidden_sizes: Sequence[int] = (300, 300, 300, 300),
    batch_norm: bool = True,
    dropout: float = 0.0,
) -> nn.Module:
    """M = len(seeds) models of one shape, by name or from a callable that returns a module (M = 1).

    Dropout draws from torch's own generator, for all models together.

    >>> network = build_network("mlp", seeds=[0, 1], shape=(8,), n_classes=3, hidden_sizes=(16,))
    >>> network(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 3])
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    if network == "linear":
        return Linear(generators, shape, n_classes)
    if network == "mlp":
        return MLP(generators, shape, n_classes, hidden_sizes, batch_norm=batch_norm, dropout=dropout)
    if network == "cnn":
        return CNN(generators, shape, n_classes)
    if isinstance(network, str):
        raise ValueError(f"network: {network!r} is not known; use auto, linear, mlp or cnn.")  # noqa: TRY004
    if not callable(network) or isinstance(network, nn.Module):
        kind = type(network).__name__
        raise TypeError(f"network: expected a name or a callable that returns a new torch module, got {kind}.")
    if len(seeds) != 1:
        raise ValueError("network: a module of your own is trained one at a time; use ensemble=1.")
    with torch.random.fork_rng():
        torch.manual_seed(seeds[0])
        module: Any = network()
    if not isinstance(module, nn.Module):
        raise TypeError(f"network: the callable returned {type(module).__name__}, not a torch module.")
    return Single(module)


def network_of_weights(
    weights: Mapping[str, Tensor],
    network: str,
    n_models: int,
    shape: Sequence[int],
    n_classes: int,
    *,
    hidden_sizes: Sequence[int],
    batch_norm: bool,
) -> nn.Module:
    """The network that a description and its weights define, ready to predict.

    A description may state any size, so every size is compared with the weights before it is used, and the network
    is built without memory of its own.
    """
    entries = sum(tensor.numel() for tensor in weights.values())
    sizes = [n_models, *shape, n_classes, *(hidden_sizes if network == "mlp" else ())]
    plain = isinstance(network, str) and isinstance(batch_norm, bool) and n_models <= _MODELS
    if not plain or any(type(size) is not int or not 0 < size <= entries for size in sizes):
        raise ValueError("its sizes are not those of the weights")
    with torch.device("meta"):
        module = build_network(
            network, [0] * n_models, shape, n_classes, hidden_sizes=hidden_sizes, batch_norm=batch_norm
        )
    wanted = {name: tensor.shape for name, tensor in module.state_dict().items()}
    if wanted != {name: tensor.shape for name, tensor in weights.items()}:
        raise ValueError("its layers are not those of the weights")
    module.load_state_dict(dict(weights), assign=True)
    return module.eval()


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """(channels, height, width) of one example; flat rows of a square number are square grey images.

    >>> image_shape((784,))
    (1, 28, 28)
    """
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 2:
        return 1, shape[0], shape[1]
    side = round(shape[0] ** 0.5)
    if side * side != shape[0]:
        raise InputError(f"network: 'cnn' needs images, but {shape[0]} features are not a square", _PLAIN, _IMAGES)
    return 1, side, side


def _dropout(x: Tensor, share: float) -> Tensor:
    """Sets a share of the values to zero; on a CPU from 16 random bits each, three times as fast as torch's own."""
    if x.device.type != "cpu":
        return functional.dropout(x, share)
    drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = drawn.view(torch.int16)[: x.numel()].view(x.shape) >= round(share * 2**16) - 2**15
    return x * kept.to(x.dtype).div_(1 - share)


def _together(x: Tensor) -> Tensor:
    """One model's (1, batch, features) as (batch, features): fewer and plainer operations."""
    return x.squeeze(0) if len(x) == 1 else x


def _apart(logits: Tensor) -> Tensor:
    """Restores the leading model dimension."""
    return logits if logits.ndim == 3 else logits.unsqueeze(0)


def _by_model(norm: nn.Module, x: Tensor) -> Tensor:
    """A norm on (batch, M·features) applied to (M, batch, features)."""
    if x.ndim == 2:
        return norm(x)  # type: ignore[no-any-return]
    m, b, f = x.shape
    return norm(x.transpose(0, 1).reshape(b, m * f)).view(b, m, f).transpose(0, 1)  # type: ignore[no-any-return]


def _uniform(generators: Generators, shape: tuple[int, ...], bound: float) -> Tensor:
    if torch.get_default_device().type == "meta":  # a shape without numbers, which weights will fill
        return torch.empty(len(generators), *shape)
    return torch.stack([bound * (2 * torch.rand(shape, generator=g) - 1) for g in generators])


def _size(shape: Sequence[int]) -> int:
    return int(torch.Size(shape).numel())
