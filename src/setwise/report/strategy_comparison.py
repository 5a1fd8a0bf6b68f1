"""Strategies side by side: what else the same evidence would support, and at what size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from setwise.conformal.calibration import Calibration
from setwise.report.label_entry_levels import Sweep
from setwise.report.level_facts import tidy_all
from setwise.report.verdict import guarantees, promise_of
from setwise.strategies import STRATEGIES, as_strategy

_LEFT_OUT = {"auto", "all", "mean", "min", "mixture", "posterior"}  # unless they are chosen or given
_WORTH = 0.95  # sets smaller than this share of the chosen ones are worth mentioning


@dataclass(frozen=True, eq=False)
class Alternative:
    """A strategy by the name that its guarantee gives it."""

    name: str
    calibration: Calibration
    chosen: bool = False


def alternatives(
    calibration: Calibration, others: Iterable[Calibration], level: Fraction
) -> tuple[list[Alternative], list[dict[str, str]]]:
    """The chosen strategy, the others given, those that its evidence supports; and why the rest are not there.

    With exact labels, and by label, all strategies give the same sets, so that there is nothing to compare.
    """
    compared = [Alternative(_name(calibration, level), calibration, chosen=True)]
    absent: dict[str, list[str]] = {}
    for other in others:
        _add(compared, other, level)
    exact = calibration.evidence.sizes is not None and bool((calibration.evidence.sizes == 1).all())
    for name in [] if exact or calibration.setting.by == "label" else STRATEGIES:
        if name in _LEFT_OUT or any(one.name.split("(")[0] == name for one in compared):
            continue
        strategy = as_strategy(name)
        if calibration.setting.truth and not strategy.several:
            continue
        if not set(strategy.needs(calibration.setting)) <= set(calibration.evidence.to_arrays()):
            reason = "looking at more of each calibration row than was kept; calibrate with it to see it here"
            absent.setdefault(reason, []).append(name)
            continue
        try:
            _add(compared, replace(calibration, strategy=strategy), level)
        except (ValueError, TypeError) as error:
            absent.setdefault(str(error).removesuffix("."), []).append(name)
    return compared, [{"names": ", ".join(names), "reason": reason} for reason, names in absent.items()]


def comparison_facts(compared: list[Alternative], sweeps: list[Sweep], level: Fraction) -> list[dict[str, Any]]:
    """One dictionary per strategy: curves over the levels for the chart, and how its guarantee differs in words."""
    facts, usual = [], guarantees(compared[0].calibration.guarantee(level))[0].lines
    for one, swept in zip(compared, sweeps, strict=True):
        lines = guarantees(one.calibration.guarantee(level))[0].lines
        hits, known = swept.hits()
        at = swept.levels.index(level)
        promises = [promise_of(guarantees(one.calibration.guarantee(each))) for each in swept.levels]
        means = swept.mean_sizes
        facts.append(
            {
                "name": one.name,
                "chosen": one.chosen,
                "means": tidy_all(means),
                "coverages": tidy_all(hits / known) if known else None,
                "mean_sizes": [f"{mean:.2f}" for mean in means],
                "coverage_texts": [f"{hit / known:.1%}" for hit in hits] if known else None,
                "promises": [promise.text for promise in promises],
                "bound": promises[at].bound,
                "at": at,
                "lines": [line for line in lines if line not in usual and line[0] != "Note"],
            }
        )
    return facts


def advice(strategies: list[dict[str, Any]], *, known: Any) -> list[str]:
    """What would allow smaller sets, or show how many contain the true label."""
    lines = []
    for other in strategies[1:]:
        chosen, at = strategies[0], other["at"]
        if (
            other["promises"][at] == chosen["bound"] != "nothing"
            and other["means"][at] < _WORTH * chosen["means"][at]
        ):
            sizes = f"{other['mean_sizes'][at]} labels per set instead of {chosen['mean_sizes'][at]}"
            lines.append(f"The strategy {other['name']} guarantees as much with {sizes}.")
    if not known:
        lines.append(
            "Give the true labels of some of these rows to measure coverage: 100 of them show it to within about 7 "
            "points, 1,000 to within about 2."
        )
    return lines


def _add(compared: list[Alternative], calibration: Calibration, level: Fraction) -> None:
    name = _name(calibration, level)
    if all(one.name != name for one in compared):
        compared.append(Alternative(name, calibration))


def _name(calibration: Calibration, level: Fraction) -> str:
    return guarantees(calibration.guarantee(level))[0].strategy
