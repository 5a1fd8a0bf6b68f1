"""Cells of one shape as one training of many models, each with its own rows, scaling, rate and decay.

Softmax regressions are trained in double precision: it costs nothing, and their results do not depend on the
machine. Networks are trained as fast as the device can (TF32 on a GPU); all of them predict in double precision.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise._arrays import Floats
from setwise.learn import Plan, Resident, Trainer, build_network, fit_scaling
from setwise.learn.losses import as_loss
from setwise.learn.scaling import Scaling

_AT_ONCE = 2**15  # rows of all models together that are predicted at once


def precision_of(learner: dict[str, Any], device: torch.device) -> str:
    """In which arithmetic a learner is trained on a device."""
    if learner["network"] == "linear":
        return "float64"
    return "tf32" if device.type == "cuda" else "float32"


def train_stack(
    learners: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    features: Tensor,
    rows: Tensor,
    candidates: Tensor,
    hook: Callable[[Trainer], None],
) -> Trainer:
    """Trains a model for each learner on its `rows` (M, n) of `features` with `candidates` (M, n, K)."""
    first, device = learners[0], candidates.device
    m, n, k = candidates.shape
    exact = precision_of(first, device) == "float64"
    dtype = torch.float64 if exact else torch.float32
    hidden = first.get("hidden_sizes", ())
    network = build_network(first["network"], seeds, features.shape[1:], k, hidden_sizes=hidden).to(dtype)
    scales = [learner["scale"] for learner in learners]
    scaling = stacked_scaling(scales, [Resident(features, own[None]) for own in rows], dtype)
    precision: Any = "float32" if exact else precision_of(first, device)
    trainer = Trainer(
        network.to(device),
        scaling.to(device),
        as_loss(first["loss"], n, m),
        Resident(features, rows),
        candidates,
        plan=Plan(
            epochs=first["epochs"],
            batch_size=first["batch_size"],
            optimizer=first["optimizer"],
            learning_rate=[learner["learning_rate"] for learner in learners],
            weight_decay=[learner["weight_decay"] for learner in learners],
            annealing_epochs=first.get("annealing_epochs"),
            shuffle=first["shuffle"],
            precision=precision,
            compiled=None if hidden else False,  # a graph alone serves one product
        ),
        seeds=seeds,
        hooks=[hook],
    )
    return trainer.fit()


@torch.no_grad()
def exact_logits(trainer: Trainer, source: Resident) -> Floats:
    """The logits (M, n, K) of all models in double precision."""
    network, scaling = copy.deepcopy(trainer.network).double().eval(), copy.deepcopy(trainer.scaling)
    scaling.dtype = torch.float64
    size = max(_AT_ONCE // trainer.n_models, 1)
    parts = []
    for start in range(0, source.n_rows, size):
        index = torch.arange(start, min(start + size, source.n_rows), device=trainer.device)
        parts.append(network(scaling(source.batch(index.expand(trainer.n_models, -1)))))
    logits: Floats = torch.cat(parts, dim=1).cpu().numpy()
    return logits


def accuracies(trainer: Trainer, labels: Tensor) -> list[float]:
    """The accuracy of each model on the rows it was trained on, in percent, against their labels (M, n)."""
    right = trainer.logits().argmax(dim=-1) == labels
    return [100 * float(share) for share in right.double().mean(dim=1).cpu().numpy()]


def stacked_scaling(
    scales: Sequence[Any], sources: Sequence[Resident] = (), dtype: torch.dtype = torch.float32
) -> Scaling:
    """The scaling of each model as one: fixed pairs, or statistics of each model's own rows."""
    chunks = [source.chunks() for source in sources] or [iter(()) for _ in scales]
    own: list[Scaling] = [fit_scaling(scale, part, dtype) for scale, part in zip(scales, chunks, strict=True)]
    if own[0].shift is None:
        return own[0]
    shift, spread = (
        torch.stack([getattr(scaling, name).reshape(1, -1) for scaling in own]) for name in ("shift", "spread")
    )
    return Scaling(shift, spread, rows=own[0].rows, dtype=dtype)


@contextmanager
def few_threads(learner: dict[str, Any]) -> Iterator[None]:
    """One thread for softmax regressions, whose products are small, unless the user said how many."""
    before = torch.get_num_threads()
    if learner["network"] == "linear" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def masks(candidates: Sequence[Any], rows: Sequence[Any], device: torch.device) -> Tensor:
    """The candidates of each model's rows as one tensor (M, n, K)."""
    return torch.as_tensor(np.stack([sets[own].to_mask() for sets, own in zip(candidates, rows, strict=True)])).to(
        device
    )
