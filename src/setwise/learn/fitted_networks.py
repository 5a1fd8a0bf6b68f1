"""Fits networks: holds rows out, and chooses an architecture."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import torch
from torch import Tensor, nn

from setwise.learn.batches import CHUNK, Resident
from setwise.learn.criteria import approximated_accuracy
from setwise.learn.networks import Single
from setwise.learn.scaling import Scaling, fit_scaling
from setwise.learn.seeds import permutations
from setwise.learn.settings import Settings
from setwise.learn.stacks import train_stack

_TRIED = 3_000  # the most rows used to choose an architecture
_FOLDS = 5
FEWEST = 20
"""With fewer rows, none are held out to choose by."""


@dataclass(frozen=True, eq=False)
class FittedNetworks:
    """The result of a fit, on the CPU: M networks of one shape."""

    network: nn.Module
    scaling: Scaling
    settings: Settings  # with the chosen network and scaling
    epochs: int  # that were run
    choices: dict[str, float] = field(default_factory=dict)  # the approximated accuracy of each option tried

    @property
    def n_models(self) -> int:
        """How many models are averaged."""
        return 1 if isinstance(self.network, Single) else len(next(self.network.parameters()))

    @torch.no_grad()
    def logits(self, source: Resident, device: torch.device) -> Tensor:
        """(M, n, K); in float64 for our own networks, so that batches do not matter."""
        network, scaling = copy.deepcopy(self.network).to(device).eval(), copy.deepcopy(self.scaling).to(device)
        if not isinstance(network, Single):
            network, scaling.dtype = network.double(), torch.float64
        parts = []
        for start in range(0, source.n_rows, CHUNK):
            index = torch.arange(start, min(start + CHUNK, source.n_rows), device=device)
            batch = scaling(source.batch(index[None]))
            parts.append(network(batch.expand(self.n_models, *batch.shape[1:])).double())
        return torch.cat(parts, dim=1)


def fit_networks(settings: Settings, source: Resident, candidates: Tensor, seeds: Sequence[int]) -> FittedNetworks:
    """Trains a model for each seed on the rows of `source` with their candidates (n, K)."""
    settings, choices = choose(settings, source, candidates, seeds[0])
    trainer = train_stack(settings, source, candidates.expand(len(seeds), -1, -1), seeds)
    return FittedNetworks(trainer.network.cpu(), trainer.scaling.cpu(), settings, trainer.epoch, choices)


def out_of_sample(settings: Settings, source: Resident, candidates: Tensor, seed: int) -> Tensor:
    """(n, K): each row's probabilities by a network that learned from the other folds."""
    settings = replace(settings, ensemble=1)
    n, device = len(candidates), candidates.device
    order = permutations([seed], -3, n, device)[0]
    folds = order.tensor_split(_FOLDS)
    probabilities = torch.empty(candidates.shape, dtype=torch.float64, device=device)
    for held in folds:
        kept = torch.cat([fold for fold in folds if fold is not held])
        own = fit_networks(settings, source.rows(kept), candidates[kept], [seed])
        probabilities[held] = own.logits(source.rows(held), device)[0].softmax(-1)
    return probabilities


def choose(
    settings: Settings, source: Resident, candidates: Tensor, seed: int
) -> tuple[Settings, dict[str, float]]:
    """Chooses network and scaling by approximated accuracy on held-out training rows, without true labels."""
    options = settings.alternatives(source)
    if len(options) == 1 or len(candidates) < FEWEST:
        return options[0], {}
    chosen, values, _ = compare(options, source, candidates, seed)
    return chosen, values


def compare(
    options: Sequence[Settings], source: Resident, candidates: Tensor, seed: int
) -> tuple[Settings, dict[str, float], Tensor]:
    """The option with the largest approximated accuracy, the accuracy of each, and the best one's logits.

    The logits are those of the second part of `trial_rows`.
    """
    held = trial_rows(len(candidates), seed, candidates.device)[1]
    groups = groupby(options, key=lambda option: (option.network, *option.hidden_sizes))
    logits = [trial for _, alike in groups for trial in _try_scales(list(alike), source, candidates, seed)]
    values: dict[str, float] = {}
    for option, trial in zip(options, logits, strict=True):
        depth = f"{len(option.hidden_sizes)} hidden, " if option.network == "mlp" else ""
        value = approximated_accuracy(trial[None], candidates[held][None])
        values[f"{option.network}, {depth}scale {option.scale}"] = float(value)
    best = max(range(len(options)), key=list(values.values()).__getitem__)
    return options[best], values, logits[best]


def try_out(settings: Settings, source: Resident, candidates: Tensor, seed: int) -> Tensor:
    """Trains one plain model on the first part of `trial_rows`; returns its logits (m, K) of the second part."""
    kept, held = trial_rows(len(candidates), seed, candidates.device)
    tried = source.rows(kept), candidates[kept][None], [seed]
    return train_stack(settings.for_trial(len(kept)), *tried, doing="trying").logits(source.rows(held))[0]


def _try_scales(options: list[Settings], source: Resident, candidates: Tensor, seed: int) -> list[Tensor]:
    """Does `try_out` for options that differ only by their scale, and trains them together."""
    kept, held = trial_rows(len(candidates), seed, candidates.device)
    trial, n = options[0].for_trial(len(kept)), len(kept)
    if len(options) == 1 or not trial.stackable:
        return [try_out(option, source, candidates, seed) for option in options]
    scalings = [fit_scaling(option.scale, source.rows(kept).chunks()) for option in options]
    plain = source.batch(torch.cat([kept, held])[None])
    scaled = torch.cat([scaling.to(plain.device)(plain)[0] for scaling in scalings])
    place = torch.arange(len(scaled), device=scaled.device).view(len(options), -1)
    both = candidates[kept].expand(len(options), -1, -1)
    seeds = [seed] * len(options)
    trainer = train_stack(replace(trial, scale=None), Resident(scaled, place[:, :n]), both, seeds, doing="trying")
    return list(trainer.logits(Resident(scaled, place[:, n:])))


def trial_rows(n: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Positions to train a trial on and positions to judge it by, of some thousand rows at most."""
    order = permutations([seed], -2, n, device)[0][:_TRIED]
    # once more in another order, in which the first quarter is held out
    kept, held = permutations([seed], -1, len(order), device)[0].tensor_split([round(len(order) / 4)])[::-1]
    return order[kept.sort().values], order[held.sort().values]
