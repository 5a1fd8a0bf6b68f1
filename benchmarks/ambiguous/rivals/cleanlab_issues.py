"""cleanlab: label issues by confident learning and by CROWDLAB; it uses no verified row and promises nothing.

`find_label_issues` gets the network's probabilities; without one, those that a model's confidence or the shares of
votes stand for. CROWDLAB flags a given label that is not its consensus.
"""

from __future__ import annotations

from ambiguous.registry import answers
from ambiguous.rivals.doubts import crowdlab, dense

FILTERS = (
    "prune_by_noise_rate", "prune_by_class", "both", "confident_learning", "predicted_neq_given",
    "low_normalized_margin", "low_self_confidence",
)  # fmt: skip


def register(name):
    @answers("suspects", f"cleanlab, {name}", package="cleanlab")
    def issues(task):
        def make():
            from cleanlab.filter import find_label_issues

            return find_label_issues(task.given, dense(task), filter_by=name, n_jobs=1)

        return task.once(f"cleanlab {name}", make)


for _name in FILTERS:
    register(_name)


@answers("suspects", "CROWDLAB, another consensus", needs=["votes"], package="cleanlab")
def by_consensus(task):
    return crowdlab(task)[0] != task.given
