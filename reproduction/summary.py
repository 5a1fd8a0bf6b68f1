"""Ours beside the paper's: means and standard deviations over seeds, and how far apart the two are.

The difference is measured in standard deviations, √(ours² + the paper's² + rounding²). The paper prints two
decimals (and so its deviations can be 0.00), which by itself leaves an error of 0.01/√12 in what it prints: where
both deviations are 0.00 that alone is the yardstick.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from reproduction.cells import IMAGES, Cell
from reproduction.measure import ORACLE, STRATEGIES
from reproduction.results import Result

ROUNDING = 0.01 / math.sqrt(12)
"""The standard deviation of an error that is uniform within half a unit of the second decimal."""
FAR = 2.0
"""Differences of more standard deviations than this are explained, or called unexplained."""


@dataclass(frozen=True)
class Value:
    """A mean and a standard deviation over seeds."""

    mean: float
    deviation: float
    n: int = 0

    @classmethod
    def of(cls, values: Iterable[float]) -> Value:
        """Of these values, with the n − 1 in the deviation; 0 for one value.

        >>> Value.of([1.0, 3.0])
        Value(mean=2.0, deviation=1.4142135623730951, n=2)
        """
        array = np.array(list(values), dtype=np.float64)
        return cls(float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else 0.0, len(array))

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


@dataclass(frozen=True)
class Entry:
    """One number of a table: which one, ours, the paper's where it has one."""

    table: int
    data: str
    contamination: str
    strategy: str
    quantity: str
    ours: Value
    paper: Value | None

    @property
    def apart(self) -> float | None:
        """Ours minus the paper's, in standard deviations."""
        return None if self.paper is None else distance(self.ours, self.paper)

    @property
    def far(self) -> bool:
        """Whether the two differ by more than two standard deviations."""
        return self.apart is not None and abs(self.apart) > FAR


def distance(ours: Value, paper: Value) -> float:
    """How far apart two values are, in standard deviations.

    >>> round(distance(Value(9.21, 0.0), Value(9.20, 0.0)), 2)
    3.46
    """
    return (ours.mean - paper.mean) / math.sqrt(ours.deviation**2 + paper.deviation**2 + ROUNDING**2)


@cache
def published() -> dict[str, Any]:
    """The paper's own numbers."""
    content: dict[str, Any] = json.loads(files("reproduction").joinpath("published.json").read_text("utf-8"))
    return content


def entries(table: int, results: Sequence[Result]) -> list[Entry]:
    """The numbers of Tables 2 to 5 for the results of one table, protocol and variant, in the paper's order."""
    found = []
    for data in dict.fromkeys(result.cell.data for result in results):
        own = [result for result in results if result.cell.data == data]
        numbers = [("model", quantity) for quantity in ("train_accuracy", "test_accuracy")]
        numbers += [(s, quantity) for s in (*STRATEGIES, ORACLE) for quantity in ("efficiency", "coverage")]
        for strategy, quantity in numbers:
            ours, paper = value(own, strategy, quantity), paper_value(own[0].cell, strategy, quantity)
            found.append(Entry(table, data, own[0].cell.contamination, strategy, quantity, ours, paper))
    return found


def values(results: Iterable[Result], strategy: str, quantity: str) -> list[float]:
    """A strategy's quantity in each result; that of the model itself for the strategy ``"model"``."""
    measured = [result.measured for result in results]
    return [(m if strategy == "model" else m["strategies"][strategy])[quantity] for m in measured]


def value(results: Iterable[Result], strategy: str, quantity: str) -> Value:
    """A strategy's quantity over the seeds of these results."""
    return Value.of(values(results, strategy, quantity))


def sizes_and_supermodels(results: Sequence[Result]) -> tuple[list[Entry], list[Entry]]:
    """The numbers of Tables 1 and 6, from every result that describes candidate sets."""
    sizes, models = [], []
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault((result.cell.contamination, result.cell.data), []).append(result.measured["sets"])
    for (how, data), own in groups.items():
        mean = published()["average_size"].get(how, {}).get(data)
        paper = None if mean is None else Value(mean, 0.0)
        sizes.append(Entry(1, data, how, "sets", "average_size", Value.of(s["average_size"] for s in own), paper))
        if how != "instance_dependent" or data not in IMAGES:
            continue
        for part in ("train", "test"):
            ours = Value.of(s["supermodel_accuracy"][part] for s in own)
            paper = Value(published()["supermodel_accuracy"][data][part], 0.0)
            models.append(Entry(6, data, how, "supermodel", f"{part}_accuracy", ours, paper))
    return sizes, models


def paper_value(cell: Cell, strategy: str, quantity: str) -> Value | None:
    """What the paper prints, where it does."""
    known = published()["results"].get(cell.contamination, {}).get(strategy, {}).get(quantity, {}).get(cell.data)
    return None if known is None else Value(known[0], known[1], n=5)
