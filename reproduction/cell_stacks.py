"""Cells of one shape, which train together as a stack of models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from reproduction.cells import Cell
from setwise.datasets import available

_SHARED = ("network", "loss", "hidden_sizes", "optimizer", "batch_size", "epochs", "annealing_epochs", "shuffle")
_TOGETHER = {"cpu": 9, "cuda": 128}
"""Models of a stack: on a CPU more of them are no faster, and a killed run would lose more."""
_STEP = 2e7  # what a step costs beside its products, in products


@dataclass(frozen=True)
class Stack:
    """Cells of one shape: as many rows, features and classes, one network, one number of epochs."""

    cells: tuple[Cell, ...]

    @property
    def epochs(self) -> int:
        """Of each of its models; 0 where nothing is learned."""
        return self.cells[0].epochs if self.cells[0].preset else 0

    @property
    def work(self) -> float:
        """A measure of what an epoch costs, to estimate the time left: products, and something for each step."""
        if not self.epochs:
            return 0.0
        learner = self.cells[0].learner()
        rows, features, classes = _sizes()[self.cells[0].data]
        widths: list[int] = [features, *learner.get("hidden_sizes", ()), classes]
        products = sum(a * b for a, b in pairwise(widths))
        batch: int = learner["batch_size"]
        return rows * (len(self.cells) * products + _STEP / batch)

    def __str__(self) -> str:
        names = ", ".join(names_of(self.cells))
        return f"{names}: {len(self.cells)} {'models' if self.epochs else 'contaminations'}"


def stacks(cells: Iterable[Cell], device: str) -> list[Stack]:
    """Cells grouped by shape, cheap groups first."""
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        groups.setdefault((_sizes()[cell.data], _shape(cell)) if cell.preset else None, []).append(cell)
    limit = _TOGETHER["cuda" if device.startswith("cuda") else "cpu"]
    made = []
    for members in groups.values():
        size = limit if members[0].preset else len(members)
        made += [Stack(tuple(members[start : start + size])) for start in range(0, len(members), size)]
    return sorted(made, key=lambda stack: stack.work * stack.epochs)


def absent(cells: Iterable[Cell]) -> list[str]:
    """The data sets of these cells that are not on this machine."""
    here = {entry.name for entry in available() if entry.found is not None}
    return [name for name in dict.fromkeys(cell.data for cell in cells) if name not in here]


def names_of(cells: Iterable[Cell]) -> tuple[str, ...]:
    """The data sets of these cells, each once, in one order."""
    return tuple(sorted({cell.data for cell in cells}))


def _shape(cell: Cell) -> tuple[Any, ...]:
    """What models of one stack have in common; they may differ in scaling, learning rate and weight decay."""
    learner = cell.learner()
    scale = learner["scale"]
    return *(learner.get(name) for name in _SHARED), scale if isinstance(scale, str) else "pair"


@cache
def _sizes() -> dict[str, tuple[int, int, int]]:
    return {entry.name: (entry.rows, entry.features, entry.classes) for entry in available()}
