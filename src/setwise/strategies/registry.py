"""The strategies by name: a new one is a file beside this one and a line here."""

from __future__ import annotations

from typing import Any

from setwise.strategies.auto import Auto
from setwise.strategies.base import Strategy
from setwise.strategies.corrected import Corrected
from setwise.strategies.crowd import Crowd
from setwise.strategies.posterior import Posterior
from setwise.strategies.random_answer import RandomAnswer
from setwise.strategies.rank_strategies import All, Max, Mean, Min, Mixture
from setwise.strategies.rectified import Rectified

STRATEGIES: dict[str, Any] = {
    "auto": Auto,
    "max": Max,
    "all": All,
    "mean": Mean,
    "min": Min,
    "mixture": Mixture,
    "corrected": Corrected,
    "rectified": Rectified,
    "posterior": Posterior,
    "votes": RandomAnswer,
    "crowd": Crowd,
}


def as_strategy(strategy: str | Strategy) -> Strategy:
    """A strategy by name, or the object itself."""
    if isinstance(strategy, str):
        if strategy.lower() not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise ValueError(f"strategy: {strategy!r} is not known; use one of {known}.")
        made: Strategy = STRATEGIES[strategy.lower()]()
        return made
    if isinstance(strategy, type) or not hasattr(strategy, "calibrate"):
        raise TypeError(f"strategy: {strategy!r} is neither a name nor an object with calibrate().")
    return strategy
