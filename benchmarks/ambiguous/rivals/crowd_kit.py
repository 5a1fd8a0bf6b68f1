"""crowd-kit: labels aggregated from the votes of all rows, then split conformal prediction by hand.

Each aggregator has its defaults, and runs once for a data set; its seconds are not counted in those of a draw.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from ambiguous.registry import answers
from ambiguous.split import lac

AGGREGATORS = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MMSR", "Wawa", "GLAD", "MACE")
SLOW = {"GLAD", "MACE"}


def aggregated(votes, _probabilities, name):
    """The label of each row that has votes, by one aggregator."""
    from crowdkit import aggregation

    frame = pd.DataFrame({"task": votes.row, "worker": votes.who, "label": votes.label})
    return getattr(aggregation, name)().fit_predict(frame).reindex(range(len(votes))).to_numpy(dtype=int)


def register(name):
    @answers("sets", f"crowd-kit {name}", needs=["votes", "unverified"], package="crowd-kit", slow=name in SLOW)
    def sets(task):
        return lac(task, task.probabilities, task.aggregated(("crowd-kit", name), partial(aggregated, name=name)))


for aggregator in AGGREGATORS:
    register(aggregator)
