"""Losses for candidate sets: small torch objects, the same for one model and for many.

Naive averaging, CC, β-merit, PRODEN and RC are one family: the cross-entropy −Σ w log p to weights
w ∝ 1{S}·p^β, where p is this forward pass (`fresh`), the last one that saw the example (`forward`,
PRODEN) or one made after the step (`step`, RC). The loss remembers the logits of an example, zero at first.
The weights w are a masked softmax of β times these: the first weights are uniform, and no candidate is ever
lost to underflow.

Every loss is called as ``loss(logits, candidates, index)`` with logits of shape (batch, K) or
(models, batch, K), a boolean mask of the same shape, and the positions of the batch's examples (needed
where something is remembered). The value is the mean over the batch, summed over models, so that each
model gets the gradient it would get alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, softplus

Lag = Literal["fresh", "forward", "step"]


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """The softmax over the entries of each row's mask; exact zeros elsewhere, and in rows without any.

    Weights in place of a mask multiply the exponentials.

    >>> masked_softmax(torch.tensor([[1e4, 0.0, 0.0]]), torch.tensor([[False, True, True]]))
    tensor([[0.0000, 0.5000, 0.5000]])
    """
    inside = logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask.log()
    top = inside.amax(dim=-1, keepdim=True)
    weights = torch.exp(inside - top.masked_fill(top == -torch.inf, 0.0))
    return weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-30)


class CandidateLoss(nn.Module):
    """The cross-entropy to weights w ∝ 1{S}·p^β: naive, CC, merit, PRODEN and RC by its settings.

    Parameters
    ----------
    beta
        How far the model's own probabilities shape the weights: 0 not at all, 1 fully.
    lag
        Whose probabilities: ``"fresh"`` of this forward pass, ``"forward"`` of the last one that saw the
        example, ``"step"`` of one made after the optimizer's step (call `update` with its logits).
    relative
        Subtract the entropy of the weights. Gradients stay; with β = 1 and fresh weights the value is then
        the negative log-likelihood −log Σ_S p.
    n_examples, n_models
        The size of the memory, for lagged weights.

    Examples
    --------
    >>> loss = CandidateLoss(beta=0.0)
    >>> loss(torch.zeros(1, 4), torch.tensor([[True, True, False, False]]))
    tensor(1.3863)
    """

    memory: Tensor | None

    def __init__(
        self,
        n_examples: int | None = None,
        n_models: int = 1,
        *,
        beta: float = 1.0,
        lag: Lag = "fresh",
        relative: bool = False,
    ) -> None:
        super().__init__()
        if lag not in {"fresh", "forward", "step"}:
            raise ValueError(f"lag: {lag!r} is not known; use 'fresh', 'forward' or 'step'.")
        self.beta, self.lag, self.relative = beta, lag, relative
        self.n_examples, self.n_models = n_examples, n_models
        self.register_buffer("memory", None)

    @property
    def weighs(self) -> bool:
        """Whether candidates may have weights."""
        return type(self).per_example in {CandidateLoss.per_example, GCELoss.per_example}

    @property
    def remembers(self) -> bool:
        """Whether something is kept per example, so that calls need `index`."""
        return self.lag != "fresh"

    def forward(self, logits: Tensor, candidates: Tensor, index: Tensor | None = None) -> Tensor:
        """The mean loss of the batch, summed over models."""
        value = self.value(logits, candidates, self.recall(logits, index)).sum()
        if self.lag != "step":
            self.update(logits, index)
        return value

    def value(self, logits: Tensor, candidates: Tensor, remembered: Tensor | None) -> Tensor:
        """The mean loss of each model, from logits, candidates and what was remembered: a pure function."""
        logits = _full_precision(logits)
        return self.per_example(logits, candidates, remembered).mean(dim=-1)

    def slopes(self, logits: Tensor, candidates: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        """The mean loss of each model, and its slope along the logits; remembers these unless `lag` is "step".

        `candidates` (M, n, K) are those of all rows.
        """
        _, n, k = candidates.shape
        chosen = candidates.view(-1, k).index_select(0, _places(index, n)).view(logits.shape)
        free = logits.detach().requires_grad_()
        values = self.value(free, chosen, self.recall(free, index))
        (slope,) = torch.autograd.grad(values.sum(), free)
        if self.lag != "step":
            self.update(free, index)
        return values.detach(), slope

    def per_example(self, logits: Tensor, candidates: Tensor, remembered: Tensor | None) -> Tensor:
        """The loss of each example."""
        source = logits.detach() if remembered is None else remembered
        weights = masked_softmax(self.beta * source, candidates)
        value = -(weights * log_softmax(logits, dim=-1)).sum(dim=-1)
        return value + torch.xlogy(weights, weights).sum(dim=-1) if self.relative else value

    def recall(self, logits: Tensor, index: Tensor | None) -> Tensor | None:
        """What was remembered of these examples, shaped like the logits."""
        if not self.remembers:
            return None
        memory = self.open_memory(logits)
        return memory.index_select(0, self._positions(logits, index)).view(logits.shape)

    def update(self, logits: Tensor, index: Tensor | None) -> None:
        """Remembers these logits for the next time the examples are seen."""
        if self.remembers:
            memory = self.open_memory(logits)
            fresh = logits.detach().to(memory.dtype).reshape(-1, logits.shape[-1])
            memory.index_copy_(0, self._positions(logits, index), fresh)

    def open_memory(self, logits: Tensor) -> Tensor:
        """The memory, made on first use for logits like these."""
        if self.memory is None:
            if self.n_examples is None:
                raise ValueError(
                    f"{type(self).__name__}: remembers something per example and must know their number; "
                    "construct it with n_examples=…"
                )
            rows = self.n_models * self.n_examples
            self.memory = _full_precision(logits.detach()).new_zeros(rows, logits.shape[-1])
        return self.memory

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Opens the memory for a state that has one."""
        saved = state_dict.get(f"{prefix}memory")
        if saved is not None and self.memory is None:
            self.memory = torch.zeros_like(saved)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _positions(self, logits: Tensor, index: Tensor | None) -> Tensor:
        if index is None:
            raise ValueError(f"{type(self).__name__}: pass index, the positions of the batch's examples.")
        if index.shape != logits.shape[:-1]:
            raise ValueError(
                f"index: shape {tuple(index.shape)} for logits of {tuple(logits.shape)}; give one position "
                "an example."
            )
        return _places(index, self.n_examples or 0)


class ProdenLoss(CandidateLoss):
    """PRODEN: weights from the last forward pass that saw the example, uniform at first.

    >>> loss = ProdenLoss(n_examples=5)
    >>> logits, candidates = torch.tensor([[4.0, 0.0, 0.0]]), torch.tensor([[True, True, False]])
    >>> [round(float(loss(logits, candidates, torch.tensor([3]))), 3) for _ in range(2)]
    [2.036, 0.108]
    """

    def __init__(self, n_examples: int | None = None, n_models: int = 1) -> None:
        super().__init__(n_examples, n_models, lag="forward")


class RCLoss(CandidateLoss):
    """RC: weights from a forward pass made after the step; the loop calls ``loss.update(logits, index)``."""

    def __init__(self, n_examples: int | None = None, n_models: int = 1) -> None:
        super().__init__(n_examples, n_models, lag="step")


class CCLoss(CandidateLoss):
    """CC: the candidates' likelihood, −log Σ_S p.

    >>> CCLoss()(torch.zeros(1, 4), torch.tensor([[True, True, False, False]]))
    tensor(0.6931)
    """

    def __init__(self, n_examples: int | None = None, n_models: int = 1) -> None:
        super().__init__(n_examples, n_models, relative=True)


class NaiveLoss(CandidateLoss):
    """The average cross-entropy over the candidates."""

    def __init__(self, n_examples: int | None = None, n_models: int = 1) -> None:
        super().__init__(n_examples, n_models, beta=0.0)


class MeritLoss(CandidateLoss):
    """β-merit: w ∝ 1{S}·p^β, between averaging (β = 0) and the likelihood's gradient (β = 1)."""

    def __init__(
        self, n_examples: int | None = None, n_models: int = 1, *, beta: float = 0.8, lag: Lag = "fresh"
    ) -> None:
        super().__init__(n_examples, n_models, beta=beta, lag=lag)


class OSLLoss(CandidateLoss):
    """The optimistic superset loss, −max_S log p (equation 4 of the paper)."""

    def per_example(self, logits: Tensor, candidates: Tensor, remembered: Tensor | None) -> Tensor:  # noqa: ARG002
        """The cross-entropy of the best candidate."""
        inside = candidates | ~candidates.any(dim=-1, keepdim=True)  # without candidates every label is one
        return -log_softmax(logits, dim=-1).masked_fill(~inside, -torch.inf).amax(dim=-1)


class GCELoss(CandidateLoss):
    """Generalised cross-entropy (1 − p^q)/q averaged over the candidates: bounded, so robust to y ∉ S."""

    def __init__(self, n_examples: int | None = None, n_models: int = 1, *, q: float = 0.7) -> None:
        super().__init__(n_examples, n_models)
        self.q = q

    def per_example(self, logits: Tensor, candidates: Tensor, remembered: Tensor | None) -> Tensor:  # noqa: ARG002
        """The average over candidates, with p^q as exp(q·log p)."""
        losses = -torch.expm1(self.q * log_softmax(logits, dim=-1)) / self.q
        return (masked_softmax(torch.zeros_like(logits), candidates) * losses).sum(dim=-1)


class LWSLoss(CandidateLoss):
    """Leveraged weighted sigmoid loss: Σ_S w ψ(z) + β Σ_{not S} w ψ(−z) with ψ(z) = sigmoid(−z).

    The weights are the remembered probabilities, normalised inside S and outside S separately.
    """

    def __init__(self, n_examples: int | None = None, n_models: int = 1, *, leverage: float = 1.0) -> None:
        super().__init__(n_examples, n_models, lag="forward")
        self.leverage = leverage

    def per_example(self, logits: Tensor, candidates: Tensor, remembered: Tensor | None) -> Tensor:
        """The candidates' part, and `leverage` times the others'."""
        source = logits.detach() if remembered is None else remembered
        inside = masked_softmax(source, candidates) * torch.sigmoid(-logits)
        outside = masked_softmax(source, ~candidates) * torch.sigmoid(logits)
        return (inside + self.leverage * outside).sum(dim=-1)


class CAVLLoss(CandidateLoss):
    """Class activation values: the cross-entropy to argmax_S z·|1 − z|; naive when first seen."""

    def __init__(self, n_examples: int | None = None, n_models: int = 1) -> None:
        super().__init__(n_examples, n_models, lag="forward")

    def per_example(self, logits: Tensor, candidates: Tensor, remembered: Tensor | None) -> Tensor:
        """Uniform weights for examples not seen before, else one candidate."""
        z = logits.detach()
        activation = (z * (1 - z).abs()).masked_fill(~candidates, -torch.inf)
        hard = torch.zeros_like(z).scatter_(-1, activation.argmax(dim=-1, keepdim=True), 1.0)
        if remembered is not None:
            unseen = (remembered == 0).all(dim=-1, keepdim=True)
            hard = torch.where(unseen, masked_softmax(torch.zeros_like(z), candidates), hard)
        return -(hard * log_softmax(logits, dim=-1)).sum(dim=-1)


class InclusionLoss(CandidateLoss):
    """Σ_y of the binary cross-entropies of 1{y ∈ S}: sigmoid(z_y) learns P(y ∈ S | x), not a class posterior.

    >>> InclusionLoss()(torch.zeros(1, 4), torch.tensor([[True, True, False, False]])) / 4
    tensor(0.6931)
    """

    def per_example(self, logits: Tensor, candidates: Tensor, remembered: Tensor | None) -> Tensor:  # noqa: ARG002
        """log(1 + e^∓z), summed over the labels."""
        return softplus(torch.where(candidates, -logits, logits)).sum(dim=-1)


LOSSES: dict[str, Callable[..., CandidateLoss]] = {
    "proden": ProdenLoss,
    "rc": RCLoss,
    "cc": CCLoss,
    "naive": NaiveLoss,
    "osl": OSLLoss,
    "merit": MeritLoss,
    "gce": GCELoss,
    "lws": LWSLoss,
    "cavl": CAVLLoss,
}


def as_loss(loss: Any, n_examples: int, n_models: int) -> CandidateLoss:
    """A loss with memory for these examples, from a name or from a callable ``(n_examples, n_models)``."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ValueError(f"loss: {loss!r} is not known; use one of {', '.join(LOSSES)}.")
        return LOSSES[loss](n_examples, n_models)
    if callable(loss) and not isinstance(loss, nn.Module):
        instance = loss(n_examples, n_models)
        if isinstance(instance, CandidateLoss):
            return instance
    raise TypeError(
        "loss: expected a name or a callable (n_examples, n_models) that returns a CandidateLoss, such as "
        "functools.partial(MeritLoss, beta=0.5)."
    )


def _places(index: Tensor, n: int) -> Tensor:
    """The positions of examples (M, batch) among those of all models, with n examples each."""
    if index.ndim == 1 or len(index) == 1:
        return index.reshape(-1)
    return (index + n * torch.arange(len(index), device=index.device)[:, None]).view(-1)


def _full_precision(logits: Tensor) -> Tensor:
    """float16 and bfloat16 as float32: sums of exponentials need the digits."""
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
