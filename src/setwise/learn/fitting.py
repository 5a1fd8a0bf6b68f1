"""From settings and data to trained networks: defaults filled in, rows held out, architecture chosen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from setwise.learn.checkpoints import Checkpoint
from setwise.learn.cleaning import as_cleaner
from setwise.learn.losses import as_loss
from setwise.learn.networks import build_network
from setwise.learn.order import permutations
from setwise.learn.progress import Progress
from setwise.learn.scaling import BYTES, Scaling, fit_scaling
from setwise.learn.selection import EarlyStopping, approximated_accuracy
from setwise.learn.sources import Source
from setwise.learn.temperature import TemperatureError, fit_temperature
from setwise.learn.trainer import Plan, Trainer

_SMALL = 10_000  # rows below which small batches and a shallow network are the better first choice
_TRIED = 3_000  # rows that choosing an architecture looks at
FEWEST = 20  # rows below which nothing can be held out to choose by

_BY_NETWORK: dict[str, dict[str, Any]] = {
    "linear": {"optimizer": "adam", "learning_rate": 0.1, "weight_decay": 0.0},
    "mlp": {"optimizer": "adamw", "learning_rate": 0.003, "weight_decay": 0.5},
    "cnn": {"optimizer": "adamw", "learning_rate": 0.001, "weight_decay": 0.1},
    "own": {"optimizer": "adam", "learning_rate": 0.001, "weight_decay": 0.0},
}


@dataclass(frozen=True)
class Settings:
    """The parameters of a `PartialLabelClassifier`, with what was left open as None or "auto"."""

    network: Any
    loss: Any
    scale: Any
    hidden_sizes: Sequence[int]
    batch_norm: bool
    dropout: float
    epochs: int
    batch_size: int | None
    optimizer: str | None
    learning_rate: float | None
    weight_decay: float | None
    annealing_epochs: int | None
    shuffle: bool
    precision: str
    ensemble: int
    cleaning: Any
    early_stopping: str | None
    patience: int
    validation_fraction: float
    temperature: bool
    checkpoint: Any
    checkpoint_every: int
    verbose: int

    @property
    def open_questions(self) -> bool:
        """Whether network or scaling are still to be chosen."""
        return any(isinstance(value, str) and value == "auto" for value in (self.network, self.scale))

    def plan(self, n_rows: int, device: torch.device) -> Plan:
        """How to train, with what was left open filled in for this network and size."""
        usual = _BY_NETWORK.get(self.network if isinstance(self.network, str) else "own", _BY_NETWORK["mlp"])
        precision: Any = self.precision
        if precision == "auto":
            precision = "tf32" if device.type == "cuda" else _cpu_precision(self.network, n_rows)
        rate, decay = self.learning_rate, self.weight_decay
        return Plan(
            epochs=self.epochs,
            batch_size=(100 if n_rows < _SMALL else 256) if self.batch_size is None else self.batch_size,
            optimizer=self.optimizer or usual["optimizer"],
            learning_rate=usual["learning_rate"] if rate is None else rate,
            weight_decay=usual["weight_decay"] if decay is None else decay,
            annealing_epochs=self.annealing_epochs,
            shuffle=self.shuffle,
            precision=precision,
        )


@dataclass
class Trained:
    """What training leaves behind."""

    network: nn.Module
    scaling: Scaling
    settings: Settings
    trainer: Trainer
    temperature: float = 1.0
    refusal: TemperatureError | None = None
    choices: dict[str, float] = field(default_factory=dict)


def train(settings: Settings, source: Source, candidates: Tensor, seeds: Sequence[int]) -> Trained:
    """Trains `ensemble` models on the rows of `source` with their candidates (n, K)."""
    choices: dict[str, float] = {}
    if settings.open_questions:
        settings, choices = choose(settings, source, candidates, seeds[0])
    cleaner = as_cleaner(settings.cleaning)
    holds = (settings.early_stopping, getattr(cleaner, "needs_holdout", False), settings.temperature)
    if not any(holds):
        trainer = _make(settings, source, candidates, seeds, [cleaner] if cleaner else [])
        run(trainer, settings, None)
        return Trained(trainer.network, trainer.scaling, settings, trainer, choices=choices)
    kept, held = split(len(candidates), settings.validation_fraction, seeds[0], candidates.device)
    held_source = source.rows(held)
    held_candidates = candidates[held].expand(len(seeds), -1, -1)
    if hasattr(cleaner, "attach"):
        cleaner.attach(held_source, held_candidates)
    hooks = [cleaner] if cleaner else []
    stopper = None
    if settings.early_stopping:
        stopper = EarlyStopping(held_source, held_candidates, settings.early_stopping, settings.patience)
        hooks.append(stopper)
    trainer = _make(settings, source.rows(kept), candidates[kept], seeds, hooks)
    run(trainer, settings, stopper)
    trained = Trained(trainer.network, trainer.scaling, settings, trainer, choices=choices)
    if settings.temperature:
        exact = bool((candidates.sum(dim=-1) == 1).all())
        try:
            trained.temperature = fit_temperature(trainer.logits(held_source), candidates[held], verified=exact)
        except TemperatureError as error:
            trained.refusal = error
    return trained


def resume(
    settings: Settings,
    source: Source,
    candidates: Tensor,
    seeds: Sequence[int],
    earlier: tuple[nn.Module, Scaling, list[Tensor]],
) -> Trained:
    """One more pass over rows at the full rate, from networks and optimizer state of an earlier training."""
    network, scaling, moments = earlier
    settings = replace(settings, epochs=1, annealing_epochs=0, checkpoint=None)
    trainer = _make(settings, source, candidates, seeds, [], network=network, scaling=scaling)
    states = trainer.optimizer.tensors()
    if [s.shape for s in states] == [m.shape for m in moments]:  # not after loading, or with another optimizer
        for tensor, saved in zip(states, moments, strict=True):
            tensor.copy_(saved)
    if (
        trainer.loss.memory is not None
    ):  # rows count as seen by the model so far, or every pass would be a first one
        trainer.loss.memory.copy_(trainer.logits().reshape(trainer.loss.memory.shape))
    run(trainer, settings, None)
    return Trained(trainer.network, trainer.scaling, settings, trainer)


def choose(settings: Settings, source: Source, candidates: Tensor, seed: int) -> tuple[Settings, dict[str, float]]:
    """Network and scaling by approximated accuracy on held-out training rows; needs no truth."""
    options = alternatives(settings, source)
    if len(options) == 1 or len(candidates) < FEWEST:
        return options[0], {}
    kept, held = trial_rows(len(candidates), seed, candidates.device)
    values: dict[str, float] = {}
    for option in options:
        trial = replace(option, cleaning=None, early_stopping=None, checkpoint=None)
        trainer = _make(trial, source.rows(kept), candidates[kept], [seed], [])
        run(trainer, trial, None, doing="trying")
        value = approximated_accuracy(trainer.logits(source.rows(held)), candidates[held][None])
        depth = f"{len(option.hidden_sizes)} hidden, " if option.network == "mlp" else ""
        values[f"{option.network}, {depth}scale {option.scale}"] = float(value)
    best = max(range(len(options)), key=list(values.values()).__getitem__)
    return options[best], values


def trial_rows(n: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Positions to try something on and positions to judge it by, of some thousand rows at most."""
    order = permutations([seed], -2, n, device)[0][:_TRIED]
    kept, held = split(len(order), 0.25, seed, device)
    return order[kept], order[held]


def split(n: int, fraction: float, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Positions to train on and positions held out, at least one of each."""
    if not 0 < fraction < 1:
        raise ValueError(f"validation_fraction: {fraction} is not between 0 and 1.")
    if n < 2:
        raise ValueError(f"X: n_samples = {n} is too few to hold rows out; give more rows.")
    order = permutations([seed], -1, n, device)[0]
    held = min(max(round(n * fraction), 1), n - 1)
    return order[held:].sort().values, order[:held].sort().values


def alternatives(settings: Settings, source: Source) -> list[Settings]:
    """What "auto" stands for here, the fallback first."""
    images = len(source.shape) > 1
    usual: Any = BYTES if source.dtype == torch.uint8 else "standard"
    scales: list[Any] = [usual] if images else [usual, "rows"]
    if not (isinstance(settings.scale, str) and settings.scale == "auto"):
        scales = [settings.scale]
    networks: list[tuple[Any, Sequence[int]]] = [(settings.network, settings.hidden_sizes)]
    if settings.network == "auto" and images:
        networks = [("cnn", settings.hidden_sizes)]
    elif settings.network == "auto":
        depth = 1 if source.n_rows < _SMALL else len(settings.hidden_sizes)
        networks = [("linear", ()), ("mlp", settings.hidden_sizes[:depth])]
    return [
        replace(settings, network=network, hidden_sizes=hidden, scale=scale)
        for network, hidden in networks
        for scale in scales
    ]


def _make(
    settings: Settings,
    source: Source,
    candidates: Tensor,
    seeds: Sequence[int],
    hooks: list[Any],
    *,
    network: nn.Module | None = None,
    scaling: Scaling | None = None,
) -> Trainer:
    n, n_classes = candidates.shape
    if scaling is None:
        scaling = fit_scaling(settings.scale, source.chunks())
    if network is None:
        network = build_network(
            settings.network,
            seeds,
            source.shape,
            n_classes,
            hidden_sizes=settings.hidden_sizes,
            batch_norm=settings.batch_norm,
            dropout=settings.dropout,
        )
    device = candidates.device
    return Trainer(
        network.to(device),
        scaling.to(device),
        as_loss(settings.loss, n, len(seeds)),
        source,
        candidates.expand(len(seeds), -1, -1),
        plan=settings.plan(n, device),
        seeds=seeds,
        hooks=hooks,
    )


def run(trainer: Trainer, settings: Settings, stopper: EarlyStopping | None, *, doing: str = "learning") -> None:
    """Trains to the end, with the checkpoint file and the progress that were asked for."""
    with ExitStack() as stack:
        if settings.checkpoint is not None:
            checkpoint = Checkpoint(settings.checkpoint, settings.checkpoint_every)
            trainer.hooks.append(checkpoint)
            checkpoint.resume(trainer)
        if settings.verbose:
            title = f"{doing} ({settings.loss}, {settings.network})"
            trainer.hooks.append(stack.enter_context(Progress(title, settings.epochs)))
        trainer.fit()
    if stopper is not None:
        stopper.finish(trainer)


def _cpu_precision(network: Any, n_rows: int) -> str:
    """bfloat16 products for networks on many rows where the CPU multiplies them natively: 1.4 times faster."""
    asks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # older versions of torch have neither
    native = any(getattr(torch.cpu, ask, bool)() for ask in asks)
    return "bfloat16" if native and network in ("mlp", "cnn") and n_rows >= _SMALL else "float32"
