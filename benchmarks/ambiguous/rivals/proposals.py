"""The label that is proposed for each row and how sure it is, for rules that take these and nothing else.

No verified label enters. Equal confidences are put in random order, which does most such rules good.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def of_model(task):
    """The label and the confidence of the one model."""
    return task.proposed, task.confidence


def of_majority(task):
    """The most frequent answer, and its share."""

    def count():
        found = shares(task.votes)
        return most_sure(found + 1e-9 * np.random.default_rng(0).random(found.shape))

    return task.once("majority", count)


def of_network(task):
    """The most probable label and its probability."""
    return task.once("network", lambda: most_sure(task.probabilities))


def of_dawid_skene(task):
    """Label and posterior by Dawid and Skene's model, as crowd-kit fits it."""
    return task.once("dawid-skene", lambda: most_sure(posterior(task.votes)))


def of_mean(task):
    """The mean of that posterior and the shares of votes."""
    return task.once("mean", lambda: most_sure((posterior(task.votes) + shares(task.votes)) / 2))


def of_product(task):
    """That posterior times the network's probabilities."""

    def make():
        table = posterior(task.votes) * task.probabilities
        return most_sure(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300))

    return task.once("product", make)


def of_one_coin(task):
    """The same with one accuracy per annotator."""
    return task.once("one-coin", lambda: most_sure(posterior(task.votes, "OneCoinDawidSkene")))


def of_crowdlab(task):
    """Label and quality by CROWDLAB, from answers and probabilities, as cleanlab computes them."""
    return task.once("crowdlab", lambda: of_cleanlab(task.votes, task.probabilities))


SOURCES = {
    "a model's confidence": (of_model, ("confidence",), None),
    "share of votes": (of_majority, ("votes",), None),
    "the network's confidence": (of_network, ("probabilities",), None),
    "Dawid and Skene": (of_dawid_skene, ("votes",), "crowd-kit"),
    "mean of Dawid and Skene and votes": (of_mean, ("votes",), "crowd-kit"),
    "Dawid and Skene times the network": (of_product, ("votes", "probabilities"), "crowd-kit"),
    "one-coin Dawid and Skene": (of_one_coin, ("votes",), "crowd-kit"),
    "CROWDLAB": (of_crowdlab, ("votes", "probabilities"), "cleanlab"),
}
"""Where label and confidence come from: the function, what it needs, and of which package it is."""


def most_sure(table):
    """The position and the value of the largest number of each row."""
    label = table.argmax(axis=1)
    return label, table[np.arange(len(table)), label]


def shares(votes):
    """The share of each label in a row's votes."""
    return votes.counts / votes.counts.sum(axis=1, keepdims=True)


def posterior(votes, name="DawidSkene"):
    """(n, K): the probabilities of one of crowd-kit's aggregations."""
    from crowdkit import aggregation

    columns = {"task": votes.row, "worker": votes.who, "label": votes.label}
    found = getattr(aggregation, name)(n_iter=100).fit_predict_proba(pd.DataFrame(columns))
    table = found.reindex(index=range(len(votes)), columns=range(votes.n_classes), fill_value=0.0)
    return table.fillna(0.0).to_numpy()


def answer_matrix(votes):
    """One column per annotator, NaN where they did not answer."""
    table = np.full((len(votes), len(votes.annotators)), np.nan)
    table[votes.row, votes.who] = votes.label
    return pd.DataFrame(table, columns=[f"a{i}" for i in range(table.shape[1])])


def of_cleanlab(votes, probabilities):
    """Consensus label and its quality by CROWDLAB."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    told = {"return_detailed_quality": False, "return_annotator_stats": False, "verbose": False}
    found = get_label_quality_multiannotator(answer_matrix(votes), probabilities, **told)["label_quality"]
    return found["consensus_label"].to_numpy(dtype=int), found["consensus_quality_score"].to_numpy()


def in_order(task, source):
    """Labels, the rows without a verified label, and where verified rows stand, all most sure first.

    Returns the labels, the unverified rows, for each of them how many verified rows and how many wrong ones of these
    are at least as sure, and for each verified row in the order of the draw its place among the verified wrong ones
    (a large number where it is right).
    """
    label, confidence = source(task)
    noise = np.random.default_rng((task.seed, 1)).random(task.n)
    order = np.lexsort((noise, -np.asarray(confidence)))
    checked = task.verified[order] >= 0
    wrong = checked & (task.verified != label)[order]
    above, wrong_above = np.cumsum(checked)[~checked], np.cumsum(wrong)[~checked]
    place = np.full(task.n, np.iinfo(int).max)
    place[order[wrong]] = np.arange(np.count_nonzero(wrong))
    return label, order[~checked], above, wrong_above, place[task.looked]


def first(task, label, rows, count):
    """The answer that accepts so many of the surest rows."""
    accepted = np.zeros(task.n, dtype=bool)
    accepted[rows[:count]] = True
    return label, accepted
