"""How doubtful each given label is, for rules that take one score per row; no verified label enters."""

from __future__ import annotations

import numpy as np

from ambiguous.rivals.proposals import answer_matrix


def of(table, task):
    """One less the support of the given label."""
    return 1 - np.asarray(table, dtype=float)[np.arange(task.n), task.given]


def dense(task):
    """(n, K) probabilities: the network's; one model's confidence, with equal parts of the rest; or shares of votes."""

    def make():
        if task.probabilities is not None:
            return task.probabilities
        if task.confidence is not None:
            k = len(task.classes)
            table = np.repeat((1 - task.confidence)[:, None] / (k - 1), k, axis=1)
            table[np.arange(task.n), task.proposed] = task.confidence
            return table
        return task.votes.counts / task.votes.counts.sum(axis=1, keepdims=True)

    return task.once("dense", make)


def by_probability(task):
    """One less the probability of the given label (cleanlab: self-confidence)."""
    return of(dense(task), task)


def by_margin(task):
    """The largest probability of another label, less that of the given one (cleanlab: normalized margin)."""

    def make():
        table = np.array(dense(task), dtype=float)
        own = table[np.arange(task.n), task.given].copy()
        table[np.arange(task.n), task.given] = -1
        return table.max(axis=1) - own

    return task.once("margin", make)


def by_votes(task):
    """One less the share of the answers that are the given label."""
    counts = task.votes.counts
    return of(counts / counts.sum(axis=1, keepdims=True), task)


def by_dawid_skene(task):
    """One less the posterior of the given label by Dawid and Skene's model, as crowd-kit fits it."""

    def make():
        import pandas as pd
        from crowdkit.aggregation import DawidSkene

        columns = {"task": task.votes.row, "worker": task.votes.who, "label": task.votes.label}
        found = DawidSkene(n_iter=100).fit_predict_proba(pd.DataFrame(columns))
        labels = range(task.votes.n_classes)
        return found.reindex(index=range(task.n), columns=labels, fill_value=0.0).fillna(0.0).to_numpy()

    return of(task.once("dawid-skene", make), task)


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
    "Dawid and Skene": (by_dawid_skene, ("votes",), "crowd-kit"),
    "CROWDLAB": (by_crowdlab, ("votes",), "cleanlab"),
}
"""Where doubt comes from: the function, what it needs, and of which package it is."""
