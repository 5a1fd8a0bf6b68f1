"""Fits networks: holds rows out, chooses an architecture, and trains several models at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import torch
from torch import Tensor, nn

from setwise.learn.batches import CHUNK, ExampleSource, Resident
from setwise.learn.criteria import approximated_accuracy
from setwise.learn.networks import Single, build_network
from setwise.learn.scaling import Scaling, fit_scaling, stack_scalings
from setwise.learn.seeds import permutations
from setwise.learn.settings import Settings
from setwise.learn.stacks import train_stack
from setwise.learn.trainer import Trainer

_TRIED = 3_000  # the most rows used to choose an architecture
_FOLDS = 5
FEWEST = 20
"""With fewer rows, none are held out to choose by."""


@dataclass(frozen=True, eq=False)
class FittedNetworks:
    """The result of a fit, on the CPU: M networks of one shape.

    Attributes
    ----------
    network, scaling
        The trained models and their scaling.
    settings
        The settings of the training, with the chosen network and scaling.
    epochs
        Number of epochs run.
    choices
        The approximated accuracy of each option that "auto" tried.
    """

    network: nn.Module
    scaling: Scaling
    settings: Settings
    epochs: int
    choices: dict[str, float] = field(default_factory=dict)

    @property
    def n_models(self) -> int:
        """How many models are averaged."""
        return 1 if isinstance(self.network, Single) else len(next(self.network.parameters()))

    @torch.no_grad()
    def logits(self, source: ExampleSource, device: torch.device) -> Tensor:
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


def fit_networks(
    settings: Settings, source: ExampleSource, candidates: Tensor, seeds: Sequence[int]
) -> FittedNetworks:
    """Trains a model for each seed on the rows of `source` with their candidates (n, K)."""
    settings, choices = choose(settings, source, candidates, seeds[0])
    trainer = train_stack(settings, source, candidates.expand(len(seeds), -1, -1), seeds)
    return replace(_take_networks(trainer, settings), choices=choices)


def fit_parts(
    settings: Settings, source: Resident, rows: Tensor, candidates: Tensor, seeds: Sequence[int]
) -> list[FittedNetworks]:
    """One fit for each line of `rows` (M, n), with `candidates` (M, n, K), as if fitted alone on these rows.

    Each chooses its network and scaling from its own rows; those that choose alike train together.
    """
    fitted: dict[int, FittedNetworks] = {}
    alike: dict[tuple[object, ...], list[int]] = {}
    choices: list[tuple[Settings, dict[str, float]]] = []
    for i, seed in enumerate(seeds):
        own, accuracies = choose(settings, source.rows(rows[i]), candidates[i], seed)
        choices.append((own, accuracies))
        alike.setdefault((own.network, str(own.scale), tuple(own.hidden_sizes)), []).append(i)
    for members in alike.values():
        own = choices[members[0]][0]
        stacked = Resident(source.features, rows[members])
        scalings = [fit_scaling(own.scale, stacked.only(place).chunks()) for place in range(len(members))]
        trainer = train_stack(
            own, stacked, candidates[members], [seeds[i] for i in members], scaling=stack_scalings(scalings)
        )
        for place, i in enumerate(members):
            fitted[i] = _member(trainer, place, seeds[i], own, scalings[place], choices[i][1])
    return [fitted[i] for i in range(len(seeds))]


def out_of_sample(settings: Settings, source: ExampleSource, candidates: Tensor, seed: int) -> Tensor:
    """(n, K): each row's probabilities by a network that learned from the other folds."""
    settings = replace(settings, ensemble=1)
    n, device = len(candidates), candidates.device
    order = permutations([seed], -3, n, device)[0]
    folds = order.tensor_split(_FOLDS)
    others = [torch.cat([fold for fold in folds if fold is not held]) for held in folds]
    if settings.stackable and isinstance(source, Resident):
        rows = torch.stack(
            [kept[: n - len(folds[0])] for kept in others]
        )  # all models of a stack see the same number
        fitted = fit_parts(settings, source, rows, candidates[rows], [seed] * _FOLDS)
    else:
        fitted = [fit_networks(settings, source.rows(kept), candidates[kept], [seed]) for kept in others]
    probabilities = torch.empty(candidates.shape, dtype=torch.float64, device=device)
    for held, own in zip(folds, fitted, strict=True):
        probabilities[held] = own.logits(source.rows(held), device)[0].softmax(-1)
    return probabilities


def choose(
    settings: Settings, source: ExampleSource, candidates: Tensor, seed: int
) -> tuple[Settings, dict[str, float]]:
    """Chooses network and scaling by approximated accuracy on held-out training rows, without true labels."""
    options = settings.alternatives(source)
    if len(options) == 1 or len(candidates) < FEWEST:
        return options[0], {}
    chosen, values, _ = compare(options, source, candidates, seed)
    return chosen, values


def compare(
    options: Sequence[Settings], source: ExampleSource, candidates: Tensor, seed: int
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


def try_out(settings: Settings, source: ExampleSource, candidates: Tensor, seed: int) -> Tensor:
    """Trains one plain model on the first part of `trial_rows`; returns its logits (m, K) of the second part."""
    kept, held = trial_rows(len(candidates), seed, candidates.device)
    tried = source.rows(kept), candidates[kept][None], [seed]
    return train_stack(settings.for_trial(len(kept)), *tried, doing="trying").logits(source.rows(held))[0]


def _try_scales(options: list[Settings], source: ExampleSource, candidates: Tensor, seed: int) -> list[Tensor]:
    """Does `try_out` for options that differ only by their scale, and trains them together."""
    kept, held = trial_rows(len(candidates), seed, candidates.device)
    trial, n = options[0].for_trial(len(kept)), len(kept)
    if len(options) == 1 or not (trial.stackable and isinstance(source, Resident)):
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


def _take_networks(trainer: Trainer, settings: Settings) -> FittedNetworks:
    """The models of a finished trainer, moved off its device."""
    return FittedNetworks(trainer.network.cpu(), trainer.scaling.cpu(), settings, trainer.epoch)


def _member(
    trainer: Trainer, place: int, seed: int, settings: Settings, scaling: Scaling, choices: dict[str, float]
) -> FittedNetworks:
    """One model of a stack as a stack of one."""
    network = build_network(
        settings.network,
        [seed],
        trainer.source.shape,
        trainer.n_classes,
        hidden_sizes=settings.hidden_sizes,
        batch_norm=settings.batch_norm,
    )
    state = trainer.network.state_dict()
    network.load_state_dict({name: value[place : place + 1].cpu().clone() for name, value in state.items()})
    return FittedNetworks(network.eval(), scaling.cpu(), settings, trainer.epoch, choices)
