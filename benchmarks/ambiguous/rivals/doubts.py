"""How doubtful each given label is, for rules that take one score per row; no verified label enters."""

from __future__ import annotations

import numpy as np

from ambiguous.rivals.proposals import answer_matrix, posterior, shares


def of(table, task):
    """One less the support of the given label."""
    return 1 - np.asarray(table, dtype=float)[np.arange(task.n), task.given]


def dense(task):
    """(n, K) probabilities: the network's; one model's confidence, with equal parts of the rest; or shares of other votes."""

    def make():
        if task.probabilities is not None:
            return task.probabilities
        if task.confidence is not None:
            k = len(task.classes)
            table = np.repeat((1 - task.confidence)[:, None] / (k - 1), k, axis=1)
            table[np.arange(task.n), task.proposed] = task.confidence
            return table
        return other_shares(task)

    return task.once("dense", make)


def other_shares(task):
    """The shares of votes without one for the given label, and with one more spread over all labels."""
    counts = task.votes.counts + 1 / len(task.classes)
    counts[np.arange(task.n), task.given] = np.maximum(counts[np.arange(task.n), task.given] - 1, 0)
    return counts / counts.sum(axis=1, keepdims=True)


def by_probability(task):
    """One less the probability of the given label (cleanlab: self-confidence)."""
    return of(dense(task), task)


def by_margin(task):
    """The largest probability of another label, less that of the given one (cleanlab: normalized margin)."""
    return task.once("margin", lambda: margin(dense(task), task))


def margin(table, task):
    """The largest value of another label, less that of the given one."""
    table = np.array(table, dtype=float)
    own = table[np.arange(task.n), task.given].copy()
    table[np.arange(task.n), task.given] = -1
    return table.max(axis=1) - own


def by_votes(task):
    """One less the share of the answers that are the given label."""
    return of(shares(task.votes), task)


def dawid_skene(task):
    """The posterior by Dawid and Skene's model, as crowd-kit fits it."""
    return task.once("dawid-skene table", lambda: posterior(task.votes))


def by_dawid_skene(task):
    """One less the posterior of the given label."""
    return of(dawid_skene(task), task)


def by_margin_of_votes(task):
    """The largest share of another label, less that of the given one."""
    return margin(shares(task.votes), task)


def by_mean(task):
    """The margin of the mean of posterior and shares of votes."""
    return margin((dawid_skene(task) + shares(task.votes)) / 2, task)


def by_product(task):
    """The margin of posterior times the network's probabilities."""
    table = dawid_skene(task) * task.probabilities
    return margin(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300), task)


def crowdlab(task):
    """CROWDLAB's consensus and the mean quality of the given label's annotators, as cleanlab computes them."""

    def make():
        from cleanlab.multiannotator import get_label_quality_multiannotator

        matrix = answer_matrix(task.votes)
        found = get_label_quality_multiannotator(matrix, dense(task), return_annotator_stats=False, verbose=False)
        quality = found["detailed_label_quality"].to_numpy()
        same = matrix.to_numpy() == task.given[:, None]
        mean = np.where(same, quality, 0).sum(axis=1) / np.maximum(same.sum(axis=1), 1)
        return found["label_quality"]["consensus_label"].to_numpy(dtype=int), 1 - mean

    return task.once("crowdlab", make)


def by_crowdlab(task):
    """One less CROWDLAB's quality of the given label."""
    return crowdlab(task)[1]


SOURCES = {
    "probability of the label": (by_probability, ("probabilities",), None),
    "margin": (by_margin, ("probabilities",), None),
    "a model's confidence": (by_margin, ("confidence",), None),
    "share of votes": (by_votes, ("votes",), None),
    "margin of votes": (by_margin_of_votes, ("votes",), None),
    "Dawid and Skene": (by_dawid_skene, ("votes",), "crowd-kit"),
    "mean of Dawid and Skene and votes": (by_mean, ("votes",), "crowd-kit"),
    "Dawid and Skene times the network": (by_product, ("votes", "probabilities"), "crowd-kit"),
    "CROWDLAB": (by_crowdlab, ("votes",), "cleanlab"),
}
"""Where doubt comes from: the function, what it needs, and of which package it is."""
