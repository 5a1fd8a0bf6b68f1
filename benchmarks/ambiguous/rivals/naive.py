"""What people do without a library: they trust the majority, or confidences above one less the error."""

from __future__ import annotations

import numpy as np

from ambiguous.registry import answers
from ambiguous.rivals.proposals import SOURCES, of_majority


@answers("keep", "accept the majority", needs=["votes"])
def majority(task):
    return of_majority(task)[0], np.ones(task.n, dtype=bool)


@answers("suspects", "the majority says something else", needs=["votes"])
def minority(task):
    return of_majority(task)[0] != task.given


def register(name, source, needs, package):
    @answers("keep", f"accept confidence ≥ 1 − error, {name}", needs=needs, package=package)
    def sure(task):
        label, confidence = source(task)
        return label, np.asarray(confidence) >= 1 - task.max_error


for _name, _source in SOURCES.items():
    register(_name, *_source)
