"""Several fits at once: one estimator on different rows, trained as a stack of models where their shapes agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from torch import Tensor, nn

from setwise._arrays import Ints
from setwise.learn.fitting import Settings, choose, run
from setwise.learn.inputs import read_candidates
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.scaling import Scaling, fit_scaling
from setwise.learn.sources import Resident, read_source
from setwise.learn.trainer import Trainer

if TYPE_CHECKING:
    from setwise.learn.classifier import PartialLabelClassifier


def fit_many(
    estimator: PartialLabelClassifier,
    X: Any,
    y: Any,
    parts: Sequence[Ints],
    seeds: Sequence[int],
    device: torch.device,
) -> list[PartialLabelClassifier]:
    """A fitted clone for each part of the rows, as if fitted alone on it.

    Parts are cut to the size of the smallest, since models of a stack see as many rows (the parts of a
    cross-validation differ by one). Each part chooses its network and scaling from its own rows; parts that
    choose alike train together. What needs held-out rows, dropout, a file or a module of one's own is fitted in
    turn.
    """
    settings = estimator.settings()
    sets = read_candidates(y, missing=estimator.missing)
    fitted = [clone(estimator) for _ in parts]
    source = read_source(fitted[0], X, device, reset=True)
    holds = (settings.cleaning, settings.early_stopping, settings.temperature)
    if (
        any(holds)
        or settings.dropout
        or settings.checkpoint is not None
        or settings.ensemble > 1
        or not isinstance(settings.network, str)
        or not isinstance(source, Resident)
    ):
        return [model.fit(_safe_indexing(X, part), sets[part]) for model, part in zip(fitted, parts, strict=True)]
    size = min(len(part) for part in parts)
    rows = torch.as_tensor(np.stack([part[:size] for part in parts]), device=device)
    masks = torch.as_tensor(np.array(sets.to_mask()), device=device)[rows]
    alike: dict[Any, list[int]] = {}
    choices = []
    for i, seed in enumerate(seeds):
        own: Settings = settings
        found: dict[str, float] = {}
        if settings.open_questions:
            own, found = choose(settings, source.rows(rows[i]), masks[i], seed)
        choices.append((own, found))
        alike.setdefault((own.network, str(own.scale), tuple(own.hidden_sizes)), []).append(i)
    for members in alike.values():
        own = choices[members[0]][0]
        trainer, scalings = _trained(own, source, rows[members], masks[members], [seeds[i] for i in members])
        for place, i in enumerate(members):
            network = _alone(trainer, own, place, seeds[i])
            moments = [_slice(tensor, place, len(members)).cpu() for tensor in trainer.optimizer.tensors()]
            _keep(fitted[i], fitted[0], np.array(sets.classes), network, scalings[place], trainer.epoch, moments)
            fitted[i].choices_ = choices[i][1]
            fitted[i]._settled = {name: getattr(own, name) for name in ("network", "scale", "hidden_sizes")}
    return fitted


def _trained(
    settings: Settings, source: Resident, rows: Tensor, masks: Tensor, seeds: Sequence[int]
) -> tuple[Trainer, list[Scaling]]:
    """The stack, trained, and each model's own scaling."""
    m, n, k = masks.shape
    scalings = [fit_scaling(settings.scale, source.rows(own).chunks()) for own in rows]
    network = build_network(
        settings.network, seeds, source.shape, k, hidden_sizes=settings.hidden_sizes, batch_norm=settings.batch_norm
    )
    trainer = Trainer(
        network.to(masks.device),
        _stacked(scalings).to(masks.device),
        as_loss(settings.loss, n, m),
        Resident(source.features, rows),
        masks,
        plan=settings.plan(n, masks.device),
        seeds=seeds,
    )
    run(trainer, settings, None)
    return trainer, scalings


def _stacked(scalings: Sequence[Scaling]) -> Scaling:
    first = scalings[0]
    if first.shift is None or first.spread is None or first.shift.ndim == 0:
        return first
    shift, spread = (torch.stack([getattr(s, name) for s in scalings])[:, None] for name in ("shift", "spread"))
    return Scaling(shift, spread, rows=first.rows, dtype=first.dtype)


def _alone(trainer: Trainer, settings: Settings, place: int, seed: int) -> nn.Module:
    """One model of the stack as a stack of one."""
    network = build_network(
        settings.network,
        [seed],
        trainer.source.shape,
        trainer.n_classes,
        hidden_sizes=settings.hidden_sizes,
        batch_norm=settings.batch_norm,
    )
    state = {name: value[place : place + 1].cpu().clone() for name, value in trainer.network.state_dict().items()}
    network.load_state_dict(state)
    return network.eval()


def _slice(tensor: Tensor, place: int, n_models: int) -> Tensor:
    stacked = tensor.ndim > 0 and len(tensor) == n_models
    return tensor[place : place + 1].clone() if stacked else tensor.clone()


def _keep(
    model: PartialLabelClassifier,
    read: PartialLabelClassifier,
    classes: Any,
    network: nn.Module,
    scaling: Scaling,
    epochs: int,
    moments: list[Tensor],
) -> None:
    model.classes_, model.network_, model.scaling_ = classes, network, scaling.cpu()
    model.n_iter_, model.temperature_, model._moments = epochs, 1.0, moments
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(read, name):
            setattr(model, name, getattr(read, name))
