"""From evidence to a threshold, and from a threshold to a claim; one file per family of strategies."""

from setwise.strategies.auto import Auto
from setwise.strategies.base import Strategy, StrategyTraits
from setwise.strategies.corrected import Corrected
from setwise.strategies.crowd import Crowd
from setwise.strategies.judgement import Setting
from setwise.strategies.posterior import Posterior
from setwise.strategies.random_answer import RandomAnswer
from setwise.strategies.rank_strategies import All, Max, Mean, Min, Mixture
from setwise.strategies.rectified import Rectified
from setwise.strategies.registry import STRATEGIES, as_strategy
from setwise.strategies.threshold_rules import RankRule, Rule

__all__ = [
    "STRATEGIES",
    "All",
    "Auto",
    "Corrected",
    "Crowd",
    "Max",
    "Mean",
    "Min",
    "Mixture",
    "Posterior",
    "RandomAnswer",
    "RankRule",
    "Rectified",
    "Rule",
    "Setting",
    "Strategy",
    "StrategyTraits",
    "as_strategy",
]
