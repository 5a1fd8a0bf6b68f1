"""What a reproduction must reach: requirements, each of which the results meet or miss."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reproduction.cells import NAMES
from reproduction.measure import ORACLE
from reproduction.record import Record
from reproduction.results import Result
from reproduction.summary import Entry, value
from setwise.ranks import as_level, rank

REQUIREMENTS = """\
- Test accuracies at most 1.5 points below the paper's on the image sets, and within 2.5 points on the real ones.
- On random contamination, sizes of `mean`, `min` and μ within 0.15 of the paper's, and coverages within 0.02.
- On an exchangeable split, the oracle covers the level within three standard errors, and `max` never less.
"""
_CLOSE = {"efficiency": 0.15, "coverage": 0.02}
_LOWER = {2: 1.5, 3: 1.5, 4: 1.5, 5: 2.5}  # points of accuracy below the paper's


@dataclass(frozen=True)
class Check:
    """One requirement and the result; `entry` is its number, if it is one of a table."""

    text: str
    holds: bool
    entry: Entry | None = None


def checks(record: Record) -> list[Check]:
    """Every requirement for which there are results."""
    found = []
    for table in (2, 3, 4, 5):
        for entry in record.entries(table):
            if entry.paper is not None:
                found += [*_accuracy(entry), *_closeness(entry)]
    for table in (2, 3, 4):
        own = record.learned(table, "resplit")
        for data in dict.fromkeys(result.cell.data for result in own):
            found += _exchangeable([result for result in own if result.cell.data == data])
    return found


def standard_error(results: list[Result]) -> float:
    """Standard error of the mean coverage over seeds, each of which follows a Beta–binomial law."""
    total = 0.0
    for result in results:
        n, m = result.measured["n_calibration"], result.measured["n_test"]
        a = rank(n, as_level(round(1 - result.cell.epsilon, 12)))
        b = n + 1 - a
        total += a * b * (a + b + m) / ((a + b) ** 2 * (a + b + 1) * m)
    return math.sqrt(total) / len(results)


def place(entry: Entry) -> str:
    """Table, data set, strategy and quantity of a number."""
    what = entry.quantity.replace("_", " ")
    strategy = "" if entry.strategy in {"model", "sets"} else f", {entry.strategy}"
    how = f", {entry.contamination.replace('_', ' ')}" if entry.table == 1 else ""
    return f"Table {entry.table}, {NAMES[entry.data]}{how}{strategy}, {what}"


def _accuracy(entry: Entry) -> list[Check]:
    if entry.quantity != "test_accuracy" or entry.paper is None:
        return []
    lower = entry.paper.mean - _LOWER[entry.table]
    upper = entry.paper.mean + _LOWER[entry.table] if entry.table == 5 else math.inf
    bound = f"within {_LOWER[entry.table]} of" + ("" if entry.table == 5 else " or above")
    text = f"{place(entry)}: {entry.ours.mean:.2f}, required: {bound} {entry.paper.mean:.2f}"
    return [Check(text, lower <= entry.ours.mean <= upper, entry)]


def _closeness(entry: Entry) -> list[Check]:
    if entry.table not in {2, 3} or entry.strategy in {"model", "max", "all", ORACLE} or entry.paper is None:
        return []
    bound, apart = _CLOSE[entry.quantity], entry.ours.mean - entry.paper.mean
    text = f"{place(entry)}: {entry.ours.mean:.3f}, required: within {bound} of {entry.paper.mean:.2f}"
    return [Check(text, abs(apart) <= bound, entry)]


def _exchangeable(results: list[Result]) -> list[Check]:
    cell = results[0].cell
    name, level = f"{NAMES[cell.data]}, {cell.contamination.replace('_', ' ')}, re-split", 1 - cell.epsilon
    oracle, error = value(results, ORACLE, "coverage"), standard_error(results)
    least = min(result.measured["strategies"]["max"]["coverage"] for result in results)
    return [
        Check(
            f"{name}: the oracle covers {oracle.mean:.4f}, required: within {3 * error:.4f} of {level:g}",
            abs(oracle.mean - level) <= 3 * error,
        ),
        Check(
            f"{name}: max covers at least {least:.4f} in every seed, required: at least {level:g}", least >= level
        ),
    ]
