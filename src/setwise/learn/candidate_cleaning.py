"""Removes unlikely candidates during training, with any loss: POP and conformal cleaning.

Both are hooks of the `Trainer`: called after an epoch, they replace its working candidates. Every set keeps
at least its most probable candidate, and the user's candidates are never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from setwise.conformal.conformalize import conformalize
from setwise.learn.batches import ExampleSource
from setwise.learn.losses import masked_softmax

if TYPE_CHECKING:
    from setwise.learn.trainer import Trainer


class Purification:
    """POP: drops candidates whose averaged weight is small beside their set's largest.

    From epoch `start` on, a candidate is dropped where w̄ / max w̄ < threshold, with w̄ its mean weight over the
    last `window` epochs; while fewer than `few` of the rows lose one, the threshold grows by `growth`.
    """

    def __init__(
        self, start: int = 20, window: int = 5, threshold: float = 1e-3, growth: float = 0.1, few: float = 0.01
    ) -> None:
        self.start, self.window, self.growth, self.few = start, window, growth, few
        self.made_with = {"start": start, "window": window, "threshold": threshold, "growth": growth, "few": few}
        self.threshold = torch.tensor(threshold, dtype=torch.float64)
        self.recent: list[Tensor] = []

    def __call__(self, trainer: Trainer) -> None:
        """Remembers this epoch's weights; from `start` on, drops candidates."""
        if trainer.epoch <= self.start - self.window:
            return
        weights = masked_softmax(trainer.logits(), trainer.candidates)
        self.recent = [*(earlier.to(weights.device) for earlier in self.recent), weights][-self.window :]
        self.threshold = self.threshold.to(weights.device).expand(trainer.n_models, 1, 1)
        if trainer.epoch < self.start:
            return
        mean = torch.stack(self.recent).mean(dim=0)
        keep = mean >= self.threshold * mean.amax(dim=-1, keepdim=True)
        before = trainer.candidates.clone()
        trainer.candidates.copy_(_never_empty(before & keep, before, mean))
        lost = (before != trainer.candidates).any(dim=-1).double().mean(dim=-1)[:, None, None]
        grown = (self.threshold * (1 + self.growth)).clamp_max(0.5)
        self.threshold = torch.where(lost < self.few, grown, self.threshold)  # each model for itself

    def state(self) -> dict[str, Any]:
        """The state that a checkpoint stores."""
        return {"threshold": self.threshold.cpu(), "recent": [w.cpu() for w in self.recent]}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a state from a checkpoint."""
        self.threshold, self.recent = state["threshold"], list(state["recent"])


class ConformalCleaning:
    """Keeps candidates whose conformal p-value exceeds α + β.

    The p-values come from held-out rows, calibrated with their most probable candidate (strategy ``min``);
    β is the mean probability outside the candidate sets there, which bounds how wrong those pseudo-labels
    are. Each epoch starts from the original sets, so a candidate can come back. `attach` gives it the
    held-out rows.
    """

    needs_holdout = True

    def __init__(self, alpha: float = 0.05, start: int = 10, every: int = 1) -> None:
        self.alpha, self.start, self.every = alpha, start, every
        self.source: ExampleSource | None = None
        self.heldout: Tensor | None = None
        self.original: Tensor | None = None

    def attach(self, source: ExampleSource, candidates: Tensor) -> None:
        """Sets the held-out rows (M, n, K) on which p-values are calibrated."""
        self.source, self.heldout = source, candidates

    def __call__(self, trainer: Trainer) -> None:
        """From `start` on, cleans the original sets by the p-values of this epoch's model."""
        if self.source is None or self.heldout is None:
            raise ValueError("ConformalCleaning: call attach(source, candidates) with held-out rows first.")
        if self.original is None:
            self.original = trainer.candidates.clone()
        if trainer.epoch < self.start or (trainer.epoch - self.start) % self.every:
            return
        logits = trainer.logits()
        inside, outside = (z.double().softmax(-1) for z in (logits, trainer.logits(self.source)))
        for m in range(trainer.n_models):
            held = self.heldout[m]
            slack = float((outside[m] * ~held).sum(-1).mean())
            calibration = conformalize(outside[m].cpu().numpy(), held.cpu().numpy(), "min")
            p_values = torch.as_tensor(calibration.predict_p(inside[m].cpu().numpy()))
            keep = p_values.to(held.device) > self.alpha + slack
            mine = self.original[m]
            trainer.candidates[m] = _never_empty(mine & keep, mine, logits[m])

    def state(self) -> dict[str, Any]:
        """The state that a checkpoint stores."""
        return {"original": None if self.original is None else self.original.cpu()}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a state from a checkpoint."""
        if state["original"] is not None and self.heldout is not None:
            self.original = state["original"].to(self.heldout.device)


CLEANERS = {"pop": Purification, "conformal": ConformalCleaning}


def as_cleaner(cleaning: Any) -> Any:
    """A fresh cleaner from a name, from a callable that makes one, or None."""
    if cleaning is None:
        return None
    if isinstance(cleaning, str):
        if cleaning not in CLEANERS:
            raise ValueError(f"cleaning: {cleaning!r} is not known; use 'pop', 'conformal' or None.")
        return CLEANERS[cleaning]()
    if callable(cleaning) and not isinstance(cleaning, (Purification, ConformalCleaning)):
        return cleaning()
    raise TypeError("cleaning: pass a name, None, or a callable such as functools.partial(Purification, start=5).")


def _never_empty(kept: Tensor, candidates: Tensor, preference: Tensor) -> Tensor:
    """Sets that would be empty keep their most probable candidate."""
    best = preference.masked_fill(~candidates, -torch.inf).argmax(dim=-1, keepdim=True)
    return kept | (torch.zeros_like(kept).scatter_(-1, best, True) & ~kept.any(dim=-1, keepdim=True))
