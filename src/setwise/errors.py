"""Errors with remedies, which each front end words for itself: an argument in Python, an option on a command line.

>>> error = InputError("row 3 has no labels", Remedy("missing", "full", "to let every label be a candidate there"))
>>> str(error)
"row 3 has no labels; use missing='full' to let every label be a candidate there."
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remedy:
    """An argument to pass, the value to give it (None: the user's own), and what that does."""

    argument: str
    value: Any = None
    effect: str = ""

    def in_python(self) -> str:
        """As an argument: ``missing='full' to let every label be a candidate there``."""
        return f"{self.argument}={'…' if self.value is None else repr(self.value)} {self.effect}".strip()


class InputError(ValueError):
    """Something passed cannot be used: what is wrong, and the ways out of it.

    A remedy is a sentence that holds everywhere, or a `Remedy`, which names an argument.
    """

    def __init__(self, problem: str, *remedies: Remedy | str) -> None:
        self.problem = problem
        self.remedies = remedies
        super().__init__(problem, *remedies)

    def worded(self, word: Callable[[Remedy], str | None]) -> str:
        """The message with each `Remedy` as `word` says it; None leaves it out."""
        said = [
            remedy if isinstance(remedy, str) else None if (way := word(remedy)) is None else f"use {way}"
            for remedy in self.remedies
        ]
        ways = ", or ".join(way for way in said if way)
        problem = self.problem.removesuffix(".")
        return f"{problem}; {ways}." if ways else f"{problem}."

    def __str__(self) -> str:
        return self.worded(Remedy.in_python)


class InputTypeError(InputError, TypeError):
    """The same where the kind of thing is wrong, not its value."""
