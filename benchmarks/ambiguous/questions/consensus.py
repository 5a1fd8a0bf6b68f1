"""Aggregate votes: one label for each row, without verified rows or with 50 or 200.

Verified rows are not scored, and ties count as partly right. Some data sets have probabilities of a model; methods may use them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise import Votes

QUESTION, TITLE = "consensus", "Aggregate votes"
BETTER = "more"  # of the gain
DRAWS, FAST = 20, 2
VERIFIED = (0, 50, 200)
DATA = ("cifar10n", "dog", "duck", "llmjudge", "media-bias-zero-shot", "media-bias-cot")


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets; it returns the position of each row's label, or an (n, K) table whose largest entries count.

    `verified` holds the position of the true label, −1 where nobody looked; None where nobody looked at any row.
    `two` is None where there are more than two classes.
    """

    votes: Votes
    model: np.ndarray | None
    classes: list
    verified: np.ndarray | None
    seed: int
    two: bool | None

    @property
    def unverified(self) -> bool | None:
        """True where nobody looked at any row: what methods need that make no use of verified rows."""
        return True if self.verified is None else None

    @property
    def looked(self) -> np.ndarray:
        """The positions of the verified rows."""
        return np.flatnonzero(self.verified >= 0)


def settings(data):
    """The numbers of verified rows that leave half of the rows; without any all draws are alike."""
    found = [{"setting": f"{m} verified", "verified": m} for m in VERIFIED if 2 * m <= len(data.y)]
    found[0] |= {"setting": "none verified", "draws": 3}
    return found


def task(data, setting, draw, once):  # noqa: ARG001
    """One draw, and the true labels, −1 where they are not scored."""
    m, verified, hidden = setting["verified"], None, data.y.copy()
    if m:
        verified = np.full(len(data.y), -1)
        chosen = np.random.default_rng(draw).permutation(len(data.y))[:m]
        verified[chosen], hidden[chosen] = data.y[chosen], -1
    model, two = data.probabilities if data.learned else None, len(data.classes) == 2 or None
    return Task(data.votes, model, data.classes, verified, draw, two), hidden


def judge(answer, truth):
    """The share of right labels, and how many were scored."""
    answer, scored = np.asarray(answer), np.flatnonzero(truth >= 0)
    if answer.ndim == 1:
        return (answer == truth)[scored].mean(), len(scored)
    top = answer >= answer.max(axis=1, keepdims=True) - 1e-12
    return (top[scored, truth[scored]] / top[scored].sum(axis=1)).mean(), len(scored)


def summarise(values, setting):  # noqa: ARG001
    """What is kept of a method's draws. Without a guarantee there is none to keep."""
    right, scored = np.array(values, dtype=float).T
    share = right.mean()
    return {
        "gain": share,
        "error": (share * (1 - share) / scored.mean()) ** 0.5,
        "spread": right.std(ddof=1) if len(right) > 1 else 0.0,
    }
