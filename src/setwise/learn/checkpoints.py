"""A checkpoint file: the trainer's state at an epoch's end, written beside its place and then renamed.

Plain tensors and numbers, read with ``weights_only``: loading one runs no code.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from setwise.storage.atomic_files import replacing

if TYPE_CHECKING:
    from setwise.learn.trainer import Trainer

_FORMAT = "setwise-training-2"


class Checkpoint:
    """A hook that saves every few epochs, and continues an earlier run of the same training."""

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path, self.every = Path(path), every

    def __call__(self, trainer: Trainer) -> None:
        """Saves when due, and at the end."""
        if trainer.epoch % self.every == 0 or trainer.epoch == trainer.plan.epochs:
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Writes the file in one step: a reader sees the old or the new."""
        with replacing(self.path) as beside:
            torch.save({"format": _FORMAT, "training": fingerprint(trainer), "state": trainer.state()}, beside)

    def resume(self, trainer: Trainer) -> bool:
        """Restores the trainer from the file if there is one; refuses the file of another training."""
        if not self.path.exists():
            return False
        try:
            content: Any = torch.load(self.path, map_location="cpu", weights_only=True)
            known = content["format"] == _FORMAT
        except Exception as error:
            problem = f"checkpoint: {self.path} cannot be read, or was not written by setwise ({error!r})"
            raise ValueError(f"{problem}; name another file.") from error
        if not known or content["training"] != fingerprint(trainer):
            raise ValueError(
                f"checkpoint: {self.path} belongs to a training with other data or settings; delete it or "
                "name another file."
            )
        trainer.restore(content["state"])
        return True


def fingerprint(trainer: Trainer) -> str:
    """A digest of what determines a run: plan, seeds, loss, network, scaling, features and candidates."""
    digest = hashlib.sha256()
    shapes = [(name, tuple(p.shape)) for name, p in trainer.network.named_parameters()]
    settings = {n: v for n, v in vars(trainer.loss).items() if isinstance(v, (int, float, str, type(None)))}
    loss = type(trainer.loss).__name__, sorted(settings.items())
    digest.update(repr((trainer.plan, trainer.seeds, repr(trainer.network), shapes, loss)).encode())
    for tensor in (trainer.candidates, *trainer.scaling.buffers(), *_features(trainer)):
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _features(trainer: Trainer) -> list[torch.Tensor]:
    """All resident features, or 64 rows spread over a data set that is read as needed."""
    if trainer.source.resident:
        return list(trainer.source.chunks())
    spread = torch.linspace(0, trainer.n_rows - 1, min(64, trainer.n_rows)).long()
    return [trainer.source.batch(spread.expand(trainer.n_models, -1).to(trainer.device))]
