"""Estimate shares and accuracies: 95 % intervals from 50, 200 or 500 rows verified at random without replacement.

The quantities are the share of each class, the accuracy of the consensus, and that of each annotator of whom at least ten
verified rows are expected. That the intervals of `estimate` hold for any number of verified rows is not proved but computed, in
thousands of designs (`benchmarks/estimates.py`). All methods judge the same consensus, which setwise finds without verified labels, and may use it.
A guarantee is not kept if mean coverage lies three standard errors below 0.95. Nor is it if a single quantity is covered too
seldom, at the same level with a Bonferroni correction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binom, norm

from setwise import Votes
from setwise.crowd.consensus import find_consensus
from setwise.crowd.rectified_shares import single_answers

QUESTION, TITLE = "estimates", "Estimate shares and accuracies"
BETTER = "less"  # of the gain
LEVEL, DRAWS, FAST = 0.95, 200, 10
VERIFIED = (50, 200, 500)
FEWEST = 10  # verified rows that a figure is expected to have
DATA = ("llmjudge", "media-bias-zero-shot", "media-bias-cot", "dog", "duck", "cifar10n")


@dataclass(frozen=True, eq=False)
class Figure:
    """How often `said` is right: the code of a label for each of these rows.

    `likely` and `sure` are proxies: whether the consensus says the same, and how sure it is of that. Where it judges
    itself, `likely` is whether it is more sure than in half of the rows, or whether the model says the same.
    """

    what: str
    name: object
    rows: np.ndarray
    said: np.ndarray
    likely: np.ndarray
    sure: np.ndarray


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets; it returns value, lower and upper of each figure, NaN where it has none.

    `verified` holds the position of the true label, −1 where nobody looked; None where nobody looked at any row.
    `once` keeps what does not depend on the draw, by a name.
    """

    figures: list[Figure]
    votes: Votes
    model: np.ndarray | None
    classes: list
    verified: np.ndarray | None
    seed: int
    once: object

    @property
    def unverified(self) -> bool | None:
        """True where nobody looked at any row: what methods need that make no use of verified rows."""
        return True if self.verified is None else None

    def hits(self, figure):
        """Of the rows of a figure, 1 where the true label is what was said, 0 where not, NaN where nobody looked."""
        truth = self.verified[figure.rows]
        return np.where(truth < 0, np.nan, truth == figure.said)

    def counts(self):
        """Of all figures: hits, verified rows, and rows."""
        hits = [self.hits(figure) for figure in self.figures]
        return np.array([(np.nansum(one), (~np.isnan(one)).sum(), len(one)) for one in hits], dtype=int).T


def figures(data):
    """All figures of a data set. No true label takes part."""
    votes, n = data.votes, len(data.votes)
    support = find_consensus(votes, data.probabilities if data.learned else None).confidence
    lead, most, every = support.argmax(axis=1), support.max(axis=1), np.arange(n)
    found = [
        Figure("share", name, every, np.full(n, code), lead == code, support[:, code])
        for code, name in enumerate(data.classes)
    ]
    firm = data.probabilities.argmax(axis=1) == lead if data.learned else most >= np.median(most)
    found.append(Figure("accuracy", "consensus", every, lead, firm, most))
    row, who, label = single_answers(votes)
    agree = lead[row] == label
    for one, name in enumerate(votes.annotators.tolist()):
        mine = who == one
        rows, said = row[mine], label[mine]
        found.append(Figure("accuracy", name, rows, said, agree[mine], support[rows, said]))
    return found


def settings(data):
    """The numbers of verified rows that leave half of the rows, and none."""
    some = [{"setting": f"{m} verified", "verified": m} for m in VERIFIED if 2 * m <= len(data.y)]
    return [{"setting": "none verified", "verified": 0, "draws": 1}, *some]


def task(data, setting, draw, once):
    """One draw; hidden are the figures of all rows, and the widths of Clopper–Pearson."""
    n, m = len(data.y), setting["verified"]
    known = once("figures", lambda: figures(data))
    known = [figure for figure in known if len(figure.rows) * m >= FEWEST * n or not m]
    verified = None
    if m:
        verified = np.full(n, -1)
        chosen = np.random.default_rng(draw).permutation(n)[:m]
        verified[chosen] = data.y[chosen]
    found = Task(
        known, data.votes, data.probabilities if data.learned else None, data.classes, verified, draw, once
    )
    true = np.array([np.mean(data.y[figure.rows] == figure.said) for figure in known])
    alone = np.ones(len(known)) if verified is None else np.subtract(*clopper_pearson(*found.counts()[:2])[::-1])
    return found, (true, alone)


def clopper_pearson(hits, seen):
    """Both ends of the exact binomial interval."""
    tail = (1 - LEVEL) / 2
    lower = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1), seen - hits + 1), 0.0)
    upper = np.where(hits < seen, beta.ppf(1 - tail, hits + 1, np.maximum(seen - hits, 1)), 1.0)
    return lower, upper


def judge(answer, hidden):
    """Of each figure: how far off, whether the interval holds, its width and Clopper–Pearson's, and whether it exists."""
    (true, alone), (value, lower, upper) = hidden, np.array(answer, dtype=float).T
    stated = ~np.isnan(lower) & (upper - lower < 1)
    lower, upper = (
        np.where(np.isnan(lower), 0.0, np.maximum(lower, 0)),
        np.where(np.isnan(upper), 1.0, np.minimum(upper, 1)),
    )
    if (lower > upper).any():
        raise ValueError("an interval ends before it begins")
    holds = (lower <= true + 1e-9) & (true <= upper + 1e-9)
    return np.abs(value - true), holds, np.maximum(upper - lower, 0.0), alone, stated


def summarise(values, setting):  # noqa: ARG001
    """What is kept of a method's draws."""
    off, holds, width, alone, stated = np.swapaxes(np.array(values, dtype=float), 0, 1)
    draws, count = holds.shape
    found = {"note": f"estimates are off by {np.nanmean(off):.3f}", "stated": stated.mean()}
    if not stated.any():
        return found | {"kept": "no interval"}
    fewest = binom.ppf(norm.sf(3) / count, draws, LEVEL)
    error = holds.mean(axis=1).std(ddof=1) / draws**0.5 if draws > 1 else 0.0
    kept = holds.sum(axis=0).min() >= fewest and holds.mean() >= LEVEL - 3 * error
    return found | {
        "measured": holds.mean(),
        "error": error,
        "spread": holds.mean(axis=0).min(),
        "kept": "yes" if kept else "no",
        "gain": (width.mean(axis=0) / alone.mean(axis=0)).mean(),
    }
