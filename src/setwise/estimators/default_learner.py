"""The learner that is used where no estimator is passed."""

from __future__ import annotations

from typing import Any

from setwise.scores import LAC, as_score
from setwise.strategies import as_strategy


def default_learner(
    strategy: Any, conformity_score: Any, assume: Any, n_verified: int, *, votes: bool = False
) -> Any:
    """The default learner: one that learns to cover whole candidate sets, or the plain one."""
    from setwise.learn import CoveringClassifier, PartialLabelClassifier  # torch is optional

    covers = covers_whole_sets(strategy, conformity_score, assume, n_verified, votes=votes)
    return CoveringClassifier() if covers else PartialLabelClassifier()


def covers_whole_sets(
    strategy: Any, conformity_score: Any, assume: Any, n_verified: int, *, votes: bool = False
) -> bool:
    """Whether prediction sets must cover whole candidate sets: `max`, `all`, or `auto` without further facts."""
    rule = as_strategy(strategy)
    informed = votes or n_verified > 0 or not (isinstance(assume, str) and assume == "nothing")
    return as_score(conformity_score) == LAC() and (rule.covers_candidates or (rule.adapts and not informed))
