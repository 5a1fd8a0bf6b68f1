"""setwise's decisions, by its public functions, as its guides use them."""

from __future__ import annotations

import numpy as np

import setwise
from ambiguous.registry import OF_ACCEPTED, OF_ALL, OF_FLAGGED, ON_AVERAGE, answers
from ambiguous.rivals.own import labels


def votes_of(task):
    """The votes; of one model, its label with its confidence in each row; None where there is neither."""
    if task.votes is not None or task.confidence is None:
        return task.votes
    names = np.array(task.classes, dtype=object)
    table = {"item": np.arange(task.n), "label": names[task.proposed], "confidence": task.confidence}
    return task.once(
        "proposals",
        lambda: setwise.Votes.from_table(table, annotator=None, weight="confidence", classes=task.classes),
    )


def decide(task, mode):
    if task.mode != mode:
        return None
    found = setwise.triage(
        votes_of(task),
        labels(task),
        task.probabilities,
        max_error=task.max_error,
        mode=mode,
        random_state=task.seed,
    )
    place = {name: i for i, name in enumerate(task.classes)}
    label, accepted = np.full(task.n, -1), np.zeros(task.n, dtype=bool)
    label[found.rows] = [place[name] for name in found.labels.tolist()]
    accepted[found.rows] = found.accepted
    return label, accepted


@answers("keep", "triage", guarantee=OF_ALL, package="setwise")
def overall(task):
    return decide(task, "overall")


@answers("keep", "triage, accepted", guarantee=OF_ACCEPTED, package="setwise")
def accepted(task):
    return decide(task, "accepted")


@answers("keep", "triage, average", guarantee=ON_AVERAGE, package="setwise")
def average(task):
    return decide(task, "average")


@answers("suspects", "suspects", guarantee=OF_FLAGGED, package="setwise")
def suspicious(task):
    found = setwise.suspects(
        np.array(task.classes, dtype=object)[task.given],
        labels(task),
        votes_of(task),
        task.probabilities,
        max_false=task.max_false,
        classes=task.classes,
        random_state=task.seed,
    )
    flagged = np.zeros(task.n, dtype=bool)
    flagged[found.rows] = True
    return flagged
