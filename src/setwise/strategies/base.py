"""What strategies share: evidence in, a rule out, and what a strategy states of itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Protocol

from setwise.evidence.evidence import Evidence
from setwise.strategies.judgement import Setting
from setwise.strategies.threshold_rules import Rule


class StrategyTraits(Protocol):
    """What a strategy says of itself, unless it says otherwise."""

    pooled: ClassVar[bool] = False
    """Whether it has a cross-conformal form: one score per row, whose ranks may be pooled over folds."""
    covers_candidates: ClassVar[bool] = False
    """Whether its sets are to hold whole candidate sets."""
    allows_for_misses: ClassVar[bool] = False
    """Whether its level makes up for candidate sets that lack the truth, as often as declared."""
    models_annotators: ClassVar[bool] = False
    """Whether it believes the annotator model."""
    uses_verified_rows: ClassVar[bool] = False
    """Whether its promise rests on verified rows, where there are any."""
    several: ClassVar[bool] = False
    """Whether several labels of a row may be right."""
    adapts: ClassVar[bool] = False
    """Whether it chooses among strategies by what is known of the rows."""
    columns: ClassVar[tuple[str, ...]] = ()
    """The columns of `Evidence` that it needs beyond the extremes."""

    def needs(self, setting: Setting) -> Collection[str]:  # noqa: ARG002 - some ask what the setting is
        """Its `columns`, or those that it needs in this setting."""
        return self.columns


class Strategy(StrategyTraits, Protocol):
    """Evidence in, a rule out."""

    @property
    def name(self) -> str:
        """How it is called in `conformalize` and in print."""

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The rule that this evidence supports."""
