"""crowd-kit: labels aggregated from votes, skills of annotators, and split conformal prediction by hand from the labels.

Each aggregator has its defaults. For sets it runs once for a data set, and its seconds are not counted in a draw's.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from ambiguous.registry import answers
from ambiguous.split import lac

AGGREGATORS = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MMSR", "Wawa", "ZeroBasedSkill", "GLAD", "MACE")
SLOW = {"GLAD", "MACE"}
BY_SKILL = {"Wawa", "ZeroBasedSkill", "GoldMajorityVote"}
WITH_VERIFIED = ("DawidSkene", "GoldMajorityVote")
WITH_SKILLS = ("OneCoinDawidSkene", "Wawa", "ZeroBasedSkill")


def fitted(votes, name, *truth):
    """An aggregation of all rows, and the label of each, by its position."""
    from crowdkit import aggregation

    frame = pd.DataFrame({"task": votes.row, "worker": votes.who, "label": votes.label})
    made = getattr(aggregation, name)()
    if name in BY_SKILL:  # their own `predict` does this, and fails with scikit-learn from 1.6 on
        skills = made.fit(frame, *truth).skills_
        weighed = aggregation.MajorityVote(on_missing_skill="value", default_skill=skills.mean())
        found = weighed.fit_predict(frame, skills)
    else:
        found = made.fit_predict(frame, *truth)
    return made, found.reindex(range(len(votes))).to_numpy(dtype=int)


def aggregated(votes, _probabilities, name):
    """The label of each row that has votes, by one aggregator."""
    return fitted(votes, name)[1]


def with_model(task, *truth):
    """Labels from the votes and from the most probable labels of the model, as those of one more annotator."""
    from crowdkit.aggregation import DawidSkene

    who, n = task.votes.who, len(task.votes)
    row = np.append(task.votes.row, np.arange(n))
    label = np.append(task.votes.label, task.model.argmax(axis=1))
    columns = {"task": row, "worker": np.append(who, np.full(n, who.max() + 1)), "label": label}
    return DawidSkene().fit_predict(pd.DataFrame(columns), *truth).reindex(range(n)).to_numpy(dtype=int)


def register(name):
    """Registers an aggregation of answers alone, as labels and as what stands for labels when sets are calibrated."""
    slow = name in SLOW

    @answers("sets", f"crowd-kit {name}", needs=["votes", "unverified"], package="crowd-kit", slow=slow)
    def sets(task):
        return lac(task, task.probabilities, task.aggregated(("crowd-kit", name), partial(aggregated, name=name)))

    @answers("consensus", f"crowd-kit {name}", needs=["unverified"], package="crowd-kit", slow=slow)
    def consensus(task):
        return fitted(task.votes, name)[1]


def register_verified(name):
    """Registers an aggregation that takes verified labels."""

    @answers("consensus", f"crowd-kit {name}, verified", needs=["verified"], package="crowd-kit")
    def consensus(task):
        return fitted(task.votes, name, pd.Series(task.verified[task.looked], index=task.looked))[1]


def register_figures(name):
    """Registers labels and skills as shares and accuracies, without intervals; NaN where it knows no skill."""

    @answers("estimates", f"crowd-kit {name} as the truth", needs=["unverified"], package="crowd-kit")
    def figures(task):
        (made, lead), found = fitted(task.votes, name), np.full((len(task.figures), 3), np.nan)
        places = {person: place for place, person in enumerate(task.votes.annotators.tolist())}
        for place, figure in enumerate(task.figures):
            if figure.what == "share" or figure.name == "consensus":
                found[place, 0] = np.mean(lead[figure.rows] == figure.said)
            else:
                found[place, 0] = made.skills_.get(places[figure.name], np.nan)
        return found


@answers(
    "consensus",
    "crowd-kit DawidSkene, the model as an annotator",
    needs=["unverified", "model"],
    package="crowd-kit",
)
def modelled(task):
    return with_model(task)


@answers(
    "consensus",
    "crowd-kit DawidSkene, the model as an annotator, verified",
    needs=["verified", "model"],
    package="crowd-kit",
)
def modelled_verified(task):
    return with_model(task, pd.Series(task.verified[task.looked], index=task.looked))


for aggregator in AGGREGATORS:
    register(aggregator)
for aggregator in WITH_VERIFIED:
    register_verified(aggregator)
for aggregator in WITH_SKILLS:
    register_figures(aggregator)


@answers("consensus", "crowd-kit KOS", needs=["unverified", "two"], package="crowd-kit")
def kos(task):
    return fitted(task.votes, "KOS")[1]
