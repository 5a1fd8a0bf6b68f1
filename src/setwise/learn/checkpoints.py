"""A checkpoint file: the trainer's state at an epoch's end, written beside its place and then renamed.

Plain tensors and numbers, read with ``weights_only``: loading one runs no code.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from setwise.learn.trainer import Trainer

_FORMAT = "setwise-training-1"


class Checkpoint:
    """A hook that saves every few epochs, and takes up an earlier run of the same training."""

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path, self.every = Path(path), every

    def __call__(self, trainer: Trainer) -> None:
        """Saves when due, and at the end."""
        if trainer.epoch % self.every == 0 or trainer.epoch == trainer.plan.epochs or trainer.finished:
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Writes the whole file under another name, then renames it: a reader sees the old or the new."""
        content = {"format": _FORMAT, "training": fingerprint(trainer), "state": trainer.state()}
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            with beside.open("wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    def resume(self, trainer: Trainer) -> bool:
        """Restores the trainer from the file if there is one; refuses the file of another training."""
        if not self.path.exists():
            return False
        try:
            content: Any = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise ValueError(
                f"checkpoint: {self.path} cannot be read ({type(error).__name__}); delete it or name another."
            ) from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"checkpoint: {self.path} was not written by setwise; name another file.")
        if content["training"] != fingerprint(trainer):
            raise ValueError(
                f"checkpoint: {self.path} belongs to a training with other data or settings; delete it or "
                "name another file."
            )
        trainer.restore(content["state"])
        return True


def fingerprint(trainer: Trainer) -> str:
    """A digest of what determines a run: plan, seeds, loss, network, scaling and candidates."""
    digest = hashlib.sha256()
    shapes = [(name, tuple(p.shape)) for name, p in trainer.network.named_parameters()]
    loss = (type(trainer.loss).__name__, trainer.loss.beta, trainer.loss.lag)
    hooks = [type(hook).__name__ for hook in trainer.hooks]
    digest.update(repr((trainer.plan, trainer.seeds, shapes, loss, hooks)).encode())
    for tensor in (trainer.given, *trainer.scaling.buffers(), trainer.source.batch(trainer.order[:, :1] * 0)):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
