"""Keep labels with a bounded error: accept as many labels as possible without review.

In each draw some rows are verified at random. A method accepts proposed labels of the others, and somebody reviews the rest;
verified and reviewed labels are right. A setting bounds one of three errors: the share of wrong labels among all rows, in
95 of 100 draws; the same among the accepted rows; or the expected share among the accepted rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from setwise import Votes

QUESTION, TITLE = "keep", "Keep labels with a bounded error"
BETTER = "more"  # of the gain
DELTA, DRAWS, FAST = 0.05, 300, 10
ROWS = 10_000  # of larger data sets so many are used
OVERALL, ACCEPTED, AVERAGE = "overall", "accepted", "average"
WORDS = {OVERALL: "of all labels", ACCEPTED: "of the accepted", AVERAGE: "of the accepted, on average"}
CELLS = {
    "stance": ((0.05, 500), (0.05, 150), (0.05, 40)),
    "imagenetv2": ((0.05, 1000), (0.05, 500), (0.05, 40)),
    "real": ((0.05, 500), (0.02, 500)),
    "cifar10n": ((0.05, 100), (0.02, 500)),
    "llmjudge": ((0.2, 200), (0.1, 500)),
    "media-bias-zero-shot": ((0.1, 200), (0.05, 500)),
    "media-bias-cot": ((0.1, 200),),
    "dog": ((0.05, 200), (0.1, 100)),
}
OF_ACCEPTED = {  # one cell for each of the two other errors
    "stance": (0.1, 500),
    "imagenetv2": (0.1, 500),
    "real": (0.05, 500),
    "cifar10n": (0.05, 200),
    "llmjudge": (0.3, 500),
    "media-bias-zero-shot": (0.1, 500),
    "media-bias-cot": (0.1, 500),
    "dog": (0.1, 200),
}
DATA = tuple(CELLS)


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets; it returns the position of each row's label, and a mask of the rows that keep it.

    `verified` holds the position of the true label, −1 where nobody looked. `proposed` and `confidence` are those of
    one model where there is one; otherwise there are `votes`, and `probabilities` of a network where it saw the rows.
    `once` makes what no verified label enters, once for all draws.
    """

    votes: Votes | None
    probabilities: np.ndarray | None
    proposed: np.ndarray | None
    confidence: np.ndarray | None
    verified: np.ndarray
    classes: list
    max_error: float
    mode: str
    seed: int
    once: object

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.verified)

    @property
    def looked(self) -> np.ndarray:
        """The positions of the verified rows, in the order in which they were drawn."""
        return np.random.default_rng(self.seed).permutation(self.n)[: np.count_nonzero(self.verified >= 0)]


def settings(data):
    """Errors and numbers of verified rows."""
    cells = [(OVERALL, *cell) for cell in CELLS[data.name]]
    cells += [(mode, *OF_ACCEPTED[data.name]) for mode in (ACCEPTED, AVERAGE)]
    return [
        {"setting": f"{error:.0%} {WORDS[mode]}, {m} verified", "verified": m, "max_error": error, "mode": mode}
        for mode, error, m in cells
    ]


def task(data, setting, draw, once):
    """One draw, and what the method does not see."""
    rows = np.random.default_rng(0).permutation(len(data.y))[:ROWS]
    votes, proposed, confidence, probabilities = (
        None if one is None else once(name, lambda one=one: one[rows])
        for name, one in {
            "votes": data.votes,
            "proposed": data.proposed,
            "confidence": data.confidence,
            "probabilities": data.probabilities if data.learned else None,
        }.items()
    )
    truth = once("truth", lambda: data.y[rows])
    verified = np.full(len(truth), -1)
    looked = np.random.default_rng(draw).permutation(len(truth))[: setting["verified"]]
    verified[looked] = truth[looked]
    known = (votes, probabilities, proposed, confidence, verified, data.classes)
    found = Task(*known, setting["max_error"], setting["mode"], draw, once)
    return found, (truth, verified >= 0, setting["mode"], setting["max_error"])


def judge(answer, hidden):
    """The error that counts, and whether it breaks the bound; the share that nobody looks at, and how many they do."""
    labels, accepted = answer
    truth, verified, mode, max_error = hidden
    accepted = np.asarray(accepted, dtype=bool) & ~verified
    wrong, taken = np.count_nonzero(accepted & (labels != truth)), np.count_nonzero(accepted)
    exact = Fraction(str(max_error))
    limit = math.floor(exact * (len(truth) if mode == OVERALL else taken))
    error = wrong / max(taken, 1) if mode == AVERAGE else wrong > limit
    return error, taken / np.count_nonzero(~verified), len(truth) - taken


def summarise(values, setting):
    """What is kept of a method's draws."""
    errors, shares, looked_at = np.array(values, dtype=float).T
    draws = len(errors)
    if setting["mode"] == AVERAGE:
        error, limit = errors.std(ddof=1) / draws**0.5, setting["max_error"]
        slack = error
    else:
        error, limit = (errors.mean() * (1 - errors.mean()) / draws) ** 0.5, DELTA
        slack = (DELTA * (1 - DELTA) / draws) ** 0.5
    return {
        "measured": errors.mean(),
        "error": error,
        "kept": "yes" if errors.mean() <= limit + 3 * slack else "no",
        "gain": shares.mean(),
        "spread": shares.std(ddof=1),
        "looked_at": looked_at.mean(),
    }
