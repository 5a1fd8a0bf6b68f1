"""From evidence to a threshold, and from a threshold to a claim; one file per family of strategies."""

from setwise.strategies.auto import STRATEGIES, Auto, as_strategy
from setwise.strategies.paper import All, Max, Mean, Min, Mixture
from setwise.strategies.rules import Rule, Setting, Strategy

__all__ = [
    "STRATEGIES",
    "All",
    "Auto",
    "Max",
    "Mean",
    "Min",
    "Mixture",
    "Rule",
    "Setting",
    "Strategy",
    "as_strategy",
]
