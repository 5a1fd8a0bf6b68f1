"""cleanlab: labels that it finds or leaves, and split conformal prediction by hand from these.

CROWDLAB finds a label of all answers and the probabilities, once for a data set. Of one label per row, the majority or
a candidate at random, `find_label_issues` says which are doubtful, and these rows are left out.
"""

from __future__ import annotations

import numpy as np

from ambiguous.registry import answers
from ambiguous.split import lac


def consensus(votes, probabilities, method="majority_vote"):
    """The consensus of CROWDLAB, of one column per annotator."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    table = np.full((len(votes), votes.who.max() + 1), np.nan)
    table[votes.row, votes.who] = votes.label
    table = table[:, ~np.isnan(table).all(axis=0)]
    found = get_label_quality_multiannotator(
        table,
        probabilities,
        consensus_method=method,
        return_detailed_quality=False,
        return_annotator_stats=False,
        verbose=False,
    )
    return found["label_quality"]["consensus_label"].to_numpy(dtype=int)


@answers("sets", "cleanlab CROWDLAB", needs=["votes", "unverified"], package="cleanlab")
def crowdlab(task):
    return lac(task, task.probabilities, task.aggregated("cleanlab", consensus))


@answers("sets", "cleanlab without issues", needs=["unverified"], package="cleanlab")
def pruned(task):
    from cleanlab.filter import find_label_issues

    sound = ~find_label_issues(task.majority, task.probabilities, n_jobs=1)
    return lac(task, task.probabilities[sound], task.majority[sound])


@answers("consensus", "cleanlab CROWDLAB", needs=["unverified"], package="cleanlab")
def best_quality(task):
    """By the highest quality; without a model, shares of a row's votes and of one more, spread over all labels."""
    probabilities = task.model
    if probabilities is None:
        counts = task.votes.counts + 1 / task.votes.n_classes
        probabilities = counts / counts.sum(axis=1, keepdims=True)
    return consensus(task.votes, probabilities, "best_quality")
