"""Progress of training: a bar if rich is installed, otherwise plain lines on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

from setwise.learn.criteria import covering_rate
from setwise.progress_lines import bar_on_stderr

if TYPE_CHECKING:
    from setwise.learn.trainer import Trainer

_SECONDS_BETWEEN_LINES = 2.0


class Progress(ExitStack):
    """A hook that shows epoch, loss and covering rate; use it as a context manager."""

    def __init__(self, title: str, epochs: int) -> None:
        super().__init__()
        self.title, self.epochs, self.last = title, epochs, 0.0
        self.bar: Any = None

    def __enter__(self) -> Self:
        with suppress(ImportError):
            self.bar, self.task = self.enter_context(bar_on_stderr(self.title, self.epochs, transient=False))
        return self

    def __call__(self, trainer: Trainer) -> None:
        """Shows the state after an epoch; plain lines appear every few seconds and at the end."""
        now, last = time.monotonic(), trainer.epoch == self.epochs
        if not last and now - self.last < (_SECONDS_BETWEEN_LINES if self.bar is None else 0.1):
            return
        self.last = now
        state = f"epoch {trainer.epoch}/{self.epochs}  loss {float(trainer.losses.mean()):.4f}"
        if trainer.loss.memory is not None:
            logits = trainer.loss.memory.view(trainer.candidates.shape)
            state += f"  covering rate {float(covering_rate(logits, trainer.candidates).mean()):.3f}"
        if self.bar is None:
            sys.stderr.write(f"{self.title}  {state}\n")
        else:
            self.bar.update(self.task, completed=trainer.epoch, state=state)
