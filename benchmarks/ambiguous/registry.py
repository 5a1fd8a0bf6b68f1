"""Methods: functions in the files of `rivals/`, each with the question that it answers and what it guarantees."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import setwise

ANY_DATA = "any number of verified rows"
"""A guarantee that rests on verified rows drawn at random alone."""

LARGE_SAMPLE = "large samples of verified rows"
"""The same, but for an error that vanishes as verified rows become many."""

CANDIDATES = "if candidates contain the truth"
INDEPENDENT = "if annotators err independently"
CHANCE = "if false candidates enter by chance"
OF_ALL = "of all labels, in 95 of 100 draws"
ALL_FOR_MANY = "of all labels, in 95 of 100 draws, large samples"
OF_ACCEPTED = "of accepted labels, in 95 of 100 draws"
ON_AVERAGE = "of accepted labels, on average"
OF_FLAGGED = "of flagged labels, on average"
NONE = "none"
"""No guarantee about the true label."""


@dataclass(frozen=True)
class Method:
    """One way to answer a question.

    `guarantee` is what it promises of the true label, in its own documentation or paper; methods are compared where
    that is the same. `needs` are names of what a task must have: "votes", "candidates", "probabilities", "verified".
    `package` is the distribution whose version is kept; None for what is written from formulas. A `slow` method is left
    out of runs with few draws.
    """

    question: str
    name: str
    guarantee: str
    needs: tuple[str, ...]
    package: str | None
    function: Callable[[Any], Any]
    slow: bool = False

    @property
    def own(self) -> bool:
        """Whether it is a method of setwise."""
        return self.package == "setwise"

    def applies(self, task: Any) -> bool:
        """Whether the task has all that the method needs."""
        return all(getattr(task, name) is not None for name in self.needs)

    @property
    def version(self) -> str:
        """Of the package; empty for what is written from formulas."""
        if self.own:
            return setwise.__version__  # it need not be installed
        return "" if self.package is None else importlib.metadata.version(self.package)

    @property
    def installed(self) -> bool:
        """Whether the package is here."""
        try:
            return self.version is not None
        except importlib.metadata.PackageNotFoundError:
            return False


METHODS: list[Method] = []


def answers(
    question: str,
    name: str,
    *,
    guarantee: str = NONE,
    needs: Sequence[str] = (),
    package: str | None = None,
    slow: bool = False,
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Registers a function as a method."""

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        METHODS.append(Method(question, name, guarantee, tuple(needs), package, function, slow))
        return function

    return register


def methods(question: str) -> list[Method]:
    """The methods of all files of `rivals/` that answer a question, setwise's first."""
    rivals = importlib.import_module("ambiguous.rivals")
    for module in pkgutil.iter_modules(rivals.__path__):
        importlib.import_module(f"ambiguous.rivals.{module.name}")
    found = [method for method in METHODS if method.question == question]
    return sorted(found, key=lambda method: not method.own)
