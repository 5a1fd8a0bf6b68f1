"""Progress of training: a bar if rich is installed, otherwise plain lines on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Self

from setwise.learn.criteria import covering_rate

if TYPE_CHECKING:
    from setwise.learn.trainer import Trainer

_SECONDS_BETWEEN_LINES = 2.0


class Progress:
    """A hook that shows epoch, loss and covering rate; use it as a context manager."""

    def __init__(self, title: str, epochs: int) -> None:
        self.title, self.epochs, self.last = title, epochs, 0.0
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Self:
        try:
            from rich import progress  # optional
            from rich.console import Console
        except ImportError:
            return self
        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("epoch {task.completed}/{task.total}  {task.fields[state]}"),
            progress.TimeElapsedColumn(),
        )
        self.bar = progress.Progress(*columns, console=Console(stderr=True))
        self.task = self.bar.add_task(self.title, total=self.epochs, state="")
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, trainer: Trainer) -> None:
        """Shows the state after an epoch; plain lines appear every few seconds and at the end."""
        now, last = time.monotonic(), trainer.epoch == self.epochs or trainer.finished
        if not last and now - self.last < (_SECONDS_BETWEEN_LINES if self.bar is None else 0.1):
            return
        self.last = now
        state = f"loss {float(trainer.losses.mean()):.4f}"
        if trainer.loss.memory is not None:
            logits = trainer.loss.memory.view(trainer.candidates.shape)
            state += f"  covering rate {float(covering_rate(logits, trainer.given).mean()):.3f}"
        if self.bar is None:
            sys.stderr.write(f"{self.title}  epoch {trainer.epoch}/{self.epochs}  {state}\n")
        else:
            self.bar.update(self.task, completed=trainer.epoch, state=state)
