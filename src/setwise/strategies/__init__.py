"""From evidence to a threshold, and from a threshold to a claim; one file per family of strategies."""

from setwise.strategies.auto import Auto
from setwise.strategies.base import RankRule, Rule, Strategy
from setwise.strategies.classwise import Classwise
from setwise.strategies.corrected import Corrected
from setwise.strategies.posterior import Posterior
from setwise.strategies.premises import Setting
from setwise.strategies.rank_based import All, Max, Mean, Min, Mixture
from setwise.strategies.rectified import Rectified
from setwise.strategies.registry import STRATEGIES, as_strategy

__all__ = [
    "STRATEGIES",
    "All",
    "Auto",
    "Classwise",
    "Corrected",
    "Max",
    "Mean",
    "Min",
    "Mixture",
    "Posterior",
    "RankRule",
    "Rectified",
    "Rule",
    "Setting",
    "Strategy",
    "as_strategy",
]
