"""Criteria that judge a model by candidates alone, without true labels."""

from __future__ import annotations

import torch
from torch import Tensor

from setwise.learn.losses import masked_softmax


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
