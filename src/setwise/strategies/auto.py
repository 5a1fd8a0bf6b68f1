"""The default: whatever is justified by what is known, and `max` when nothing more is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from setwise.evidence import Evidence
from setwise.strategies.paper import All, Max, Mean, Min, Mixture
from setwise.strategies.rules import Rule, Setting, Strategy


@dataclass(frozen=True)
class Auto:
    """Chooses by what was declared and verified; nothing known means `max`."""

    name: ClassVar[str] = "auto"
    every: ClassVar[bool] = False

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The rule of the strategy that is chosen, which also states the claim."""
        return Max().calibrate(evidence, setting)


STRATEGIES: dict[str, Any] = {
    "auto": Auto,
    "max": Max,
    "all": All,
    "mean": Mean,
    "min": Min,
    "mixture": Mixture,
}


def as_strategy(strategy: str | Strategy) -> Strategy:
    """A strategy by name, or the object itself."""
    if isinstance(strategy, str):
        if strategy.lower() not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise ValueError(f"strategy: {strategy!r} is not known; use one of {known}, or an object.")
        made: Strategy = STRATEGIES[strategy.lower()]()
        return made
    if isinstance(strategy, type) or not hasattr(strategy, "calibrate"):
        raise TypeError(f"strategy: {strategy!r} is neither a name nor an object with calibrate().")
    return strategy
