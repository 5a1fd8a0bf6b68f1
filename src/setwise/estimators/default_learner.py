"""What learns where no estimator is given."""

from __future__ import annotations

from typing import Any

from setwise.scores import LAC, as_score
from setwise.strategies import as_strategy


def default_learner(strategy: Any, conformity_score: Any, assume: Any, checked: int, *, votes: bool = False) -> Any:
    """What learns where no estimator is given: one that learns to cover whole candidate sets, or the plain one."""
    from setwise.learn import CoveringClassifier, PartialLabelClassifier  # torch is optional

    covers = covers_whole_sets(strategy, conformity_score, assume, checked, votes=votes)
    return CoveringClassifier() if covers else PartialLabelClassifier()


def covers_whole_sets(
    strategy: Any, conformity_score: Any, assume: Any, checked: int, *, votes: bool = False
) -> bool:
    """Whether prediction sets must cover whole candidate sets: `max`, `all`, or `auto` with nothing to go by."""
    asked = as_strategy(strategy)
    told = votes or checked > 0 or not (isinstance(assume, str) and assume == "nothing")
    return as_score(conformity_score) == LAC() and (asked.covers_candidates or (asked.adapts and not told))
