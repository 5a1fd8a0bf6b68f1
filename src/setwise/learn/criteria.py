"""Criteria that judge a model by candidates alone, without true labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from setwise.learn.batches import ExampleSource
from setwise.learn.losses import masked_softmax

if TYPE_CHECKING:
    from setwise.learn.trainer import Trainer


def covering_rate(logits: Tensor, candidates: Tensor) -> Tensor:
    """How often the most probable label is a candidate.

    >>> covering_rate(torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([[True, False], [True, False]]))
    tensor(0.5000)
    """
    top = logits.argmax(dim=-1, keepdim=True)
    return candidates.gather(-1, top).float().mean(dim=(-2, -1))


def approximated_accuracy(logits: Tensor, candidates: Tensor) -> Tensor:
    """The mean weight w ∝ 1{S}·p of the most probable label: the accuracy if w were the truth's posterior.

    Weights in place of a mask are that posterior already: p would only confirm itself.

    >>> approximated_accuracy(torch.tensor([[0.0, 0.0, -9.0]]), torch.tensor([[True, True, False]]))
    tensor(0.5000)
    """
    top = logits.argmax(dim=-1, keepdim=True)
    own = logits if candidates.dtype == torch.bool else torch.zeros_like(logits)
    return masked_softmax(own, candidates).gather(-1, top).mean(dim=(-2, -1))


CRITERIA = {"covering": covering_rate, "approximate": approximated_accuracy}


class EarlyStopping:
    """Keeps each model's best weights by a criterion on held-out rows; stops when none improves any more.

    A hook for the `Trainer`. After training, `finish` puts the best weights back.
    """

    def __init__(self, source: ExampleSource, candidates: Tensor, criterion: str, patience: int) -> None:
        if criterion not in CRITERIA:
            raise ValueError(f"early_stopping: {criterion!r} is not known; use 'covering' or 'approximate'.")
        self.source, self.candidates = source, candidates
        self.criterion, self.patience = CRITERIA[criterion], patience
        self.best = torch.full((len(candidates),), -1.0, device=candidates.device)
        self.since = torch.zeros(len(candidates), dtype=torch.int64, device=candidates.device)
        self.kept: list[Tensor] = []

    def __call__(self, trainer: Trainer) -> None:
        """Compares this epoch with the best one so far, model by model."""
        value = self.criterion(trainer.logits(self.source), self.candidates)
        better = value > self.best
        self.best = torch.where(better, value, self.best)
        self.since = torch.where(better, 0, self.since + 1)
        now = _weights(trainer)
        if not self.kept:
            self.kept = [tensor.clone() for tensor in now]
        for kept, tensor in zip(self.kept, now, strict=True):
            chosen = better.view(-1, *[1] * (tensor.ndim - 1)) if tensor.ndim else better[0]
            kept.copy_(torch.where(chosen, tensor, kept))
        trainer.finished = bool((self.since >= self.patience).all())

    @torch.no_grad()
    def finish(self, trainer: Trainer) -> None:
        """Gives every model its best weights."""
        for kept, tensor in zip(self.kept, _weights(trainer), strict=False):
            tensor.copy_(kept)

    def state(self) -> dict[str, Any]:
        """The state that a checkpoint stores."""
        return {"best": self.best, "since": self.since, "kept": self.kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a state from a checkpoint."""
        device = self.candidates.device
        self.best, self.since = state["best"].to(device), state["since"].to(device)
        self.kept = [tensor.to(device) for tensor in state["kept"]]


def _weights(trainer: Trainer) -> list[Tensor]:
    return [t.detach() for t in (*trainer.network.parameters(), *trainer.network.buffers())]
