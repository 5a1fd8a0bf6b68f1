"""Training settings: the parameters of a `PartialLabelClassifier`, with those left open filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from setwise.learn.batches import Resident
from setwise.learn.scaling import BYTES
from setwise.learn.trainer import Plan

_SMALL = 10_000  # rows below which small batches and a shallow network are the better first choice
_EPOCHS, _FEWEST_EPOCHS, _TRIAL_EPOCHS = 100, 5, 40
_FEW, _EPOCHS_OF_FEW = 2_000, 25  # rows below which more passes improve neither trials nor inclusion models
_ROWS_SEEN = 1_000_000  # over all epochs on a CPU: more rows need fewer passes, and a fit should take a minute

_BY_NETWORK: dict[str, dict[str, Any]] = {
    "linear": {"optimizer": "adam", "learning_rate": 0.1, "weight_decay": 0.0},
    "mlp": {"optimizer": "adamw", "learning_rate": 0.003, "weight_decay": 0.5},
    "cnn": {"optimizer": "adamw", "learning_rate": 0.001, "weight_decay": 0.1},
    "own": {"optimizer": "adam", "learning_rate": 0.001, "weight_decay": 0.0},
}


@dataclass(frozen=True)
class Settings:
    """The parameters of a `PartialLabelClassifier`; what is left open is None or "auto"."""

    network: Any
    loss: Any
    scale: Any
    hidden_sizes: Sequence[int]
    batch_norm: bool
    dropout: float
    epochs: int | None
    batch_size: int | None
    optimizer: str | None
    learning_rate: float | None
    weight_decay: float | None
    annealing_epochs: int | None
    shuffle: bool
    precision: str
    ensemble: int
    verbose: int

    @property
    def stackable(self) -> bool:
        """Whether trials that differ by their scale can train at once: no dropout, ensemble or own module."""
        return not self.dropout and self.ensemble == 1 and isinstance(self.network, str)

    def for_trial(self, n_rows: int) -> Settings:
        """One plain model, with as many epochs as it takes to compare settings on few rows."""
        most = _EPOCHS_OF_FEW if n_rows < _FEW else _TRIAL_EPOCHS
        epochs = most if self.epochs is None else min(self.epochs, most)
        return replace(self, epochs=epochs, ensemble=1)

    def alternatives(self, source: Resident) -> list[Settings]:
        """What "auto" stands for with these rows, the fallback first."""
        images = len(source.shape) > 1
        usual: Any = BYTES if source.dtype == torch.uint8 else "standard"
        scales: list[Any] = [usual] if images else [usual, "rows"]
        if not (isinstance(self.scale, str) and self.scale == "auto"):
            scales = [self.scale]
        networks: list[tuple[Any, Sequence[int]]] = [(self.network, self.hidden_sizes)]
        if self.network == "auto" and images:
            networks = [("cnn", self.hidden_sizes)]
        elif self.network == "auto":
            depth = 1 if source.n_rows < _SMALL else len(self.hidden_sizes)
            networks = [("linear", ()), ("mlp", self.hidden_sizes[:depth])]
        return [
            replace(self, network=network, hidden_sizes=hidden, scale=scale)
            for network, hidden in networks
            for scale in scales
        ]

    def plan(self, n_rows: int, device: torch.device) -> Plan:
        """How to train, with what was left open filled in for this network and size."""
        usual = _BY_NETWORK.get(self.network if isinstance(self.network, str) else "own", _BY_NETWORK["mlp"])
        precision: Any = self.precision
        if precision == "auto":
            precision = "tf32" if device.type == "cuda" else "float32"
        rate, decay = self.learning_rate, self.weight_decay
        return Plan(
            epochs=usual_epochs(n_rows, device) if self.epochs is None else self.epochs,
            batch_size=(100 if n_rows < _SMALL else 256) if self.batch_size is None else self.batch_size,
            optimizer=self.optimizer or usual["optimizer"],
            learning_rate=usual["learning_rate"] if rate is None else rate,
            weight_decay=usual["weight_decay"] if decay is None else decay,
            annealing_epochs=self.annealing_epochs,
            shuffle=self.shuffle,
            precision=precision,
        )


def usual_epochs(n_rows: int, device: torch.device) -> int:
    """The default number of epochs: 100, and on a CPU fewer where 100 would show more than a million rows.

    >>> [usual_epochs(n, torch.device("cpu")) for n in (800, 10_000, 80_000, 1_000_000)]
    [100, 100, 12, 5]
    """
    if device.type != "cpu":
        return _EPOCHS
    return min(_EPOCHS, max(_ROWS_SEEN // max(n_rows, 1), _FEWEST_EPOCHS))


def inclusion_epochs(n_rows: int, device: torch.device) -> int:
    """The default number of epochs of an inclusion model: half of the usual one, fewer with few rows.

    >>> [inclusion_epochs(n, torch.device("cpu")) for n in (800, 5_000, 80_000)]
    [25, 50, 6]
    """
    return _EPOCHS_OF_FEW if n_rows < _FEW else max(usual_epochs(n_rows, device) // 2, 1)
