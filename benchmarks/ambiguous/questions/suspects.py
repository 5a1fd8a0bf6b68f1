"""Find wrong labels: flag labels that are probably wrong, with a bounded share of false alarms.

Each row has a given label: the first person's, that of the annotator with most answers, or the benchmark's own. In
each draw some rows are verified at random, and a method flags others. The last words of a setting name what it may use:
votes, probabilities of a network, both, or the label and confidence of one model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise import Votes

QUESTION, TITLE = "suspects", "Find wrong labels"
BETTER = "more"  # of the gain
DRAWS, FAST = 200, 10
ROWS = 10_000  # of larger data sets so many are used
BOUNDS, VERIFIED = (0.1, 0.2), (200, 500)
EVIDENCE = {
    "cifar10n": ("votes", "network", "votes and network"),
    "real": ("model",),
    "dog": ("votes",),
    "llmjudge": ("votes",),
    "media-bias-zero-shot": ("votes",),
    "media-bias-cot": ("votes",),
}
DATA = tuple(EVIDENCE)


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets; it returns a mask of the rows whose given label it flags.

    `given` and `verified` hold positions of labels, the latter −1 where nobody looked. `once` makes what no verified
    label enters, once for all draws.
    """

    given: np.ndarray
    votes: Votes | None
    probabilities: np.ndarray | None
    proposed: np.ndarray | None
    confidence: np.ndarray | None
    verified: np.ndarray
    classes: list
    max_false: float
    seed: int
    once: object

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.given)

    @property
    def known(self) -> np.ndarray:
        """Whether somebody looked at a row."""
        return self.verified >= 0


def settings(data):
    """Bounds, numbers of verified rows, and kinds of evidence."""
    size = min(len(data.y), ROWS)
    return [
        {"setting": f"{bound:.0%} false, {m} verified, {kind}", "verified": m, "max_false": bound, "evidence": kind}
        for kind in EVIDENCE[data.name]
        for bound in BOUNDS
        for m in VERIFIED
        if m <= size // 2
    ]


def task(data, setting, draw, once):
    """One draw, and what the method does not see."""
    rows = np.random.default_rng(0).permutation(len(data.y))[:ROWS]
    kind = setting["evidence"]
    uses = {
        "votes": "votes" in kind,
        "probabilities": "network" in kind,
        "proposed": kind == "model",
        "confidence": kind == "model",
    }
    votes, probabilities, proposed, confidence = (
        once(name, lambda name=name: getattr(data, name)[rows]) if used else None for name, used in uses.items()
    )
    given, truth = once("given", lambda: data.given[rows]), once("truth", lambda: data.y[rows])
    verified = np.full(len(truth), -1)
    looked = np.random.default_rng(draw).permutation(len(truth))[: setting["verified"]]
    verified[looked] = truth[looked]

    def once_here(key, make):
        return once((kind, key), make)

    known = (given, votes, probabilities, proposed, confidence, verified, data.classes)
    return Task(*known, setting["max_false"], draw, once_here), (given != truth, verified >= 0)


def judge(answer, hidden):
    """The share of right labels among those flagged, and the share of wrong ones found."""
    wrong, verified = hidden
    flagged = np.asarray(answer, dtype=bool) & ~verified
    found, count = np.count_nonzero(flagged & wrong), np.count_nonzero(flagged)
    return 1 - found / count if count else 0.0, found / np.count_nonzero(wrong & ~verified)


def summarise(values, setting):
    """What is kept of a method's draws."""
    false, found = np.array(values, dtype=float).T
    error = false.std(ddof=1) / len(false) ** 0.5
    return {
        "measured": false.mean(),
        "error": error,
        "kept": "yes" if false.mean() <= setting["max_false"] + 3 * error else "no",
        "gain": found.mean(),
        "spread": found.std(ddof=1),
    }
