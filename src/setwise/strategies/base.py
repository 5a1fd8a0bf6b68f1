"""What strategies share: evidence in, a rule out, and what a strategy states of itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Protocol

from setwise.evidence.evidence import Evidence
from setwise.strategies.judgement import Setting
from setwise.strategies.threshold_rules import Rule


class Strategy(Protocol):
    """Evidence in, a rule out."""

    @property
    def name(self) -> str:
        """How it is called in `conformalize` and in print."""

    def needs(self, setting: Setting) -> Collection[str]:
        """The columns of `Evidence` that it needs beyond the extremes."""

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The rule that this evidence supports."""

    pooled: ClassVar[bool]
    """Whether it has a cross-conformal form: one score per row, whose ranks may be pooled over folds."""
    covers_candidates: ClassVar[bool]
    """Whether its sets are to hold whole candidate sets."""
    allows_for_misses: ClassVar[bool]
    """Whether its level makes up for candidate sets that lack the truth, as often as declared."""
    models_annotators: ClassVar[bool]
    """Whether it believes the annotator model."""
    uses_verified_rows: ClassVar[bool]
    """Whether its promise rests on verified rows, where there are any."""
    several: ClassVar[bool]
    """Whether several labels of a row may be right."""
    adapts: ClassVar[bool]
    """Whether it chooses among strategies by what is known of the rows."""


class StrategyTraits:
    """What a strategy says of itself unless it says otherwise; see `Strategy`."""

    pooled: ClassVar[bool] = False
    covers_candidates: ClassVar[bool] = False
    allows_for_misses: ClassVar[bool] = False
    models_annotators: ClassVar[bool] = False
    uses_verified_rows: ClassVar[bool] = False
    several: ClassVar[bool] = False
    adapts: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ()

    def needs(self, setting: Setting) -> Collection[str]:  # noqa: ARG002 - some ask what the setting is
        """The `columns` of `Evidence` that it needs beyond the extremes."""
        return self.columns
