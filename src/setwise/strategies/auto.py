"""The default: whatever is justified by what was verified and declared, and `max` when nothing was."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

from setwise.contamination.diagnose import AssumptionRefuted
from setwise.evidence.evidence import Evidence
from setwise.strategies.base import Rule, Strategy
from setwise.strategies.corrected import Corrected
from setwise.strategies.premises import Setting
from setwise.strategies.rank_based import Max
from setwise.strategies.rectified import Rectified

ENOUGH = 20
"""From this number of verified rows on `auto` uses them."""


def uses_checks(strategy: Strategy, checked: int) -> bool:
    """Whether a strategy rests on so many verified rows: `rectified`, or `auto` with enough of them."""
    return checked > 0 and (strategy.name == "rectified" or (strategy.name == "auto" and checked >= ENOUGH))


@dataclass(frozen=True)
class Auto:
    """Verified rows: `rectified`; a declared contamination that the data do not refute: `corrected`; else `max`.

    It never adopts an assumption that was not declared.
    """

    name: ClassVar[str] = "auto"
    pooled: ClassVar[bool] = True

    def needs(self, setting: Setting) -> Collection[str]:
        """What the strategy needs that is tried first."""
        if setting.checked >= ENOUGH:
            return Rectified().needs(setting)
        return () if setting.assume.kind == "nothing" else Corrected().needs(setting)

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """The rule of the strategy that is chosen, which also states the claim."""
        plain = evidence.shares is None
        checked = int(evidence.verified.sum())
        if plain and checked >= ENOUGH and evidence.share is not None:
            return _explained(Rectified().calibrate(evidence, setting), f"{checked:,} rows are verified")
        if (
            plain
            and not setting.filled
            and setting.assume.kind != "nothing"
            and evidence.table is not None
            and evidence.n > 1
        ):
            try:
                rule = Corrected().calibrate(evidence, setting)
            except AssumptionRefuted as refuted:
                return _explained(Max().calibrate(evidence, setting), f"of this: {refuted.diagnosis.sentence}")
            return _explained(rule, "the data do not refute the contamination that you declared")
        return Max().calibrate(evidence, setting)


def _explained(rule: Rule, why: str) -> Rule:
    remark = f"Chosen by auto because {why.removesuffix('.')}."
    explained: Rule = replace(rule, remarks=(remark, *rule.remarks))  # type: ignore[type-var]
    return explained
