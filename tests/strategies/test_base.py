"""What a strategy says of itself unless it says otherwise."""

from setwise.strategies import Setting
from setwise.strategies.base import StrategyTraits


def test_of_a_strategy_of_ones_own_nothing_is_taken_for_granted():
    class Own(StrategyTraits):
        columns = ("every",)

    assert tuple(Own().needs(Setting("lac", 3))) == ("every",)
    traits = (
        "pooled",
        "covers_candidates",
        "allows_for_misses",
        "models_annotators",
        "uses_verified_rows",
        "adapts",
    )
    assert not any(getattr(Own(), trait) for trait in traits)
