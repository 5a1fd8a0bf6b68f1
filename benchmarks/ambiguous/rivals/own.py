"""setwise, by its public functions, as its guides use them."""

from __future__ import annotations

import warnings

import numpy as np

import setwise
from ambiguous.registry import ANY_DATA, CANDIDATES, CHANCE, INDEPENDENT, LARGE_SAMPLE, answers


def labels(task):
    """The verified labels by name, None where nobody looked."""
    if task.verified is None:
        return None
    found = np.full(len(task.verified), None)
    looked = task.verified >= 0
    found[looked] = np.array(task.classes, dtype=object)[task.verified[looked]]
    return found


def conformalized(task, strategy="auto", score="lac", **stated_by):
    """The calibration on votes or candidate sets, and its sets for the new rows."""
    ids = np.arange(len(task.probabilities) + len(task.new))
    known, new = (
        (ids[: len(task.probabilities)], ids[len(task.probabilities) :]) if score != "lac" else (None, None)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", setwise.MisuseWarning)  # one draw in a hundred looks chosen
        made = setwise.conformalize(
            task.probabilities, task.candidates if task.votes is None else task.votes, strategy, score,
            classes=task.classes, verified=labels(task), random_state=task.seed, row_ids=known, **stated_by,
        )  # fmt: skip
        claims = [claim for claim in made.guarantee(task.level).claims if claim.event == "truth"]
        stated = [claim for claim in claims if claim.probability is not None and not claim.refuted]
        if assume := stated_by.get("assume"):
            stated = [claim for claim in stated if assume in {premise.name for premise in claim.premises}]
        return made.predict_set(task.new, task.level, row_ids=new).to_mask(), bool(stated)


@answers("sets", "auto, verified", guarantee=ANY_DATA, needs=["verified"], package="setwise")
def auto_verified(task):
    return conformalized(task)


def auto_with(score):
    """Registers `auto` with a score that has noise of its own for each row."""

    @answers("sets", f"auto with {score}, verified", guarantee=ANY_DATA, needs=["verified"], package="setwise")
    def sets(task):
        return conformalized(task, score=score)


for randomised in ("ties", "aps", "raps", "saps"):
    auto_with(randomised)


@answers("sets", "rectified, verified", guarantee=LARGE_SAMPLE, needs=["verified"], package="setwise")
def rectified(task):
    return conformalized(task, "rectified")


@answers("sets", "auto, candidates", guarantee=CANDIDATES, needs=["candidates", "unverified"], package="setwise")
def auto_candidates(task):
    return conformalized(task)


@answers("sets", "max of the answers", guarantee=CANDIDATES, needs=["votes", "unverified"], package="setwise")
def widest(task):
    return conformalized(task, "max")


@answers("sets", "votes: a random answer", needs=["votes", "unverified"], package="setwise")
def votes(task):
    return conformalized(task, "votes")


@answers(
    "sets", "crowd, independence stated", guarantee=INDEPENDENT, needs=["votes", "unverified"], package="setwise"
)
def crowd(task):
    return conformalized(task, "crowd", assume="independent")


@answers(
    "sets",
    "auto, chance stated",
    guarantee=CHANCE,
    needs=["candidates", "by_chance", "unverified"],
    package="setwise",
)
def corrected(task):
    return conformalized(task, assume="uniform")


@answers("estimates", "estimate", guarantee=ANY_DATA, needs=["verified"], package="setwise")
def estimated(task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", setwise.MisuseWarning)  # one draw in a hundred looks chosen
        found = setwise.estimate(task.votes, labels(task), probabilities=task.model)
    ends = np.stack([found.value, found.lower, found.upper], axis=1)
    place = {key: row for row, key in enumerate(zip(found.what, found.name, strict=True))}
    return ends[[place[figure.what, figure.name] for figure in task.figures]]


@answers("estimates", "the consensus as the truth", needs=["unverified"], package="setwise")
def as_truth(task):
    lead = setwise.annotators(task.votes, probabilities=task.model).confidence.argmax(axis=1)
    value = [np.mean(lead[figure.rows] == figure.said) for figure in task.figures]
    return np.column_stack([value, np.full((len(value), 2), np.nan)])


def consensus(task, probabilities):
    """The labels that `annotators` settles on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", setwise.MisuseWarning)  # one draw in a hundred looks chosen
        return setwise.annotators(task.votes, labels(task), probabilities=probabilities).confidence.argmax(axis=1)


@answers("consensus", "annotators", needs=["unverified"], package="setwise")
def by_votes(task):
    return consensus(task, None)


@answers("consensus", "annotators, with a model", needs=["model", "unverified"], package="setwise")
def by_votes_and_model(task):
    return consensus(task, task.model)


@answers("consensus", "annotators, verified", needs=["verified"], package="setwise")
def by_votes_verified(task):
    return consensus(task, None)


@answers("consensus", "annotators, verified, with a model", needs=["verified", "model"], package="setwise")
def by_votes_and_model_verified(task):
    return consensus(task, task.model)
