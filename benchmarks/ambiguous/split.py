"""Split conformal prediction as the libraries have it: by hand, and registered for the labels that they can use."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ambiguous.registry import ANY_DATA, answers

Sets = Callable[..., np.ndarray]
"""Of a task, the probabilities and the labels of calibration rows: the mask of the sets of `task.new`."""


def critical(scores: np.ndarray, level: float, n: int | None = None) -> float:
    """The ⌈(|scores| + 1)·level⌉-th smallest score; infinite where the n rows are too few."""
    written, n = Fraction(str(level)), len(scores) if n is None else n
    if math.ceil((n + 1) * written) > n:
        return math.inf
    return np.sort(scores)[math.ceil((len(scores) + 1) * written) - 1]


def of_true(task) -> np.ndarray:
    """The scores −f of the true labels of the verified rows."""
    return -task.probabilities[task.looked, task.verified[task.looked]]


def lac(task, probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Split conformal prediction by hand, with the score −f."""
    return -task.new <= critical(-probabilities[np.arange(len(labels)), labels], task.level)


def both(name: str, sets: Sets, package: str | None) -> None:
    """Registers sets that need one label per row: for majority labels, and for the verified rows alone."""

    @answers("sets", f"{name}, majority", needs=["unverified"], package=package)
    def majority(task):
        return sets(task, task.probabilities, task.majority)

    @answers("sets", f"{name}, verified", guarantee=ANY_DATA, needs=["verified"], package=package)
    def verified(task):
        return sets(task, task.probabilities[task.looked], task.verified[task.looked])
