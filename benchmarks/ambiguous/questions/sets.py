"""Cover the truth: prediction sets at confidence 0.90 from candidate sets or votes, with 0, 50 or 200 verified rows.

Each draw calibrates on two thirds of the rows (at most 3,000) and tests on others (at most 2,000). Verified rows are drawn
from the calibration rows. Draws reuse rows, so standard errors describe these data sets only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from setwise import LabelSets, Votes

QUESTION, TITLE = "sets", "Cover the truth"
BETTER = "less"  # of the gain
LEVEL, CALIBRATION, NEW, DRAWS, FAST = 0.9, 3000, 2000, 60, 5
VERIFIED = (0, 50, 200)
FEW_STATED = 0.5  # a method that states its guarantee in fewer draws has withdrawn it
DATA = (
    "cifar10n", "dog", "duck", "llmjudge", "media-bias-zero-shot", "media-bias-cot", "lost", "MSRCv2", "BirdSong",
    "FG-NET", "italian", "fashion_mnist-random", "fashion_mnist-instance", "kmnist-instance",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets; it returns the (n, K) mask of the sets of `new`, or that and whether its guarantee stands.

    `verified` holds the position of the true label of a calibration row, −1 where nobody looked; None where nobody
    looked at any row. `aggregated` makes labels of all rows' votes and probabilities, once for a data set, and returns
    the calibration rows'.
    """

    probabilities: np.ndarray
    votes: Votes | None
    candidates: LabelSets | None
    verified: np.ndarray | None
    new: np.ndarray
    classes: list
    level: float
    seed: int
    by_chance: bool | None
    aggregated: object = None

    @cached_property
    def majority(self) -> np.ndarray:
        """The most frequent answer, or a candidate at random: what stands for labels in libraries that need them."""
        noise = np.random.default_rng(self.seed).random((len(self.probabilities), len(self.classes)))
        known = self.votes.counts if self.votes is not None else self.candidates.to_mask()
        return (known + 0.5 * noise).argmax(axis=1)

    @property
    def unverified(self) -> bool | None:
        """True where nobody looked at any row: what methods need that make no use of verified rows."""
        return True if self.verified is None else None

    @property
    def looked(self) -> np.ndarray:
        """The positions of the verified rows."""
        return np.flatnonzero(self.verified >= 0)


def settings(data):
    """The numbers of verified rows that the data set is large enough for."""
    size = min(2 * len(data.y) // 3, CALIBRATION)
    return [{"setting": f"{m} verified", "verified": m} for m in VERIFIED if m <= size // 2]


def task(data, setting, draw, once):
    """One draw, and what the method does not see."""
    size, m = min(2 * len(data.y) // 3, CALIBRATION), setting["verified"]
    rows = np.random.default_rng(draw).permutation(len(data.y))
    c, t = rows[:size], rows[size : size + NEW]
    verified = np.full(size, -1)
    verified[:m] = data.y[c[:m]]
    votes, candidates = (None if one is None else one[c] for one in (data.votes, data.candidates))
    found = Task(
        data.probabilities[c], votes, candidates, verified if m else None, data.probabilities[t], data.classes,
        LEVEL, draw, data.by_chance or None,
        lambda key, make: once(key, lambda: make(data.votes, data.probabilities))[c],
    )  # fmt: skip
    return found, data.y[t]


def judge(answer, truth):
    """Coverage, mean size, and whether the method itself stands by its guarantee in this draw."""
    mask, stated = answer if isinstance(answer, tuple) else (answer, True)
    mask = np.asarray(mask)
    if mask.dtype != bool or len(mask) != len(truth):
        raise TypeError(f"expected a boolean mask of {len(truth)} rows, got {mask.dtype} of shape {mask.shape}")
    return mask[np.arange(len(truth)), truth].mean(), mask.sum(axis=1).mean(), stated


def summarise(values, setting):  # noqa: ARG001
    """What is kept of a method's draws."""
    covered, sizes, stated = np.array(values, dtype=float).T
    chosen = covered[stated > 0] if stated.mean() >= FEW_STATED else covered
    spread = covered.std(ddof=1)
    error = spread / len(chosen) ** 0.5
    kept = "yes" if chosen.mean() >= LEVEL - 3 * error else "no"
    return {
        "measured": chosen.mean(),
        "error": error,
        "spread": spread,
        "stated": stated.mean(),
        "kept": kept if stated.mean() >= FEW_STATED else "withdrawn",
        "gain": sizes.mean(),
    }
