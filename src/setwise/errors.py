"""Errors and warnings with remedies, worded by each front end: an argument in Python, an option on a command line.

>>> error = InputError("row 3 has no labels", Remedy("missing", "full", "to let every label be a candidate there"))
>>> str(error)
"row 3 has no labels; use missing='full' to let every label be a candidate there."
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remedy:
    """An argument to pass, the value to give it (None: the user's own), and what that does."""

    argument: str
    value: Any = None
    effect: str = ""

    def in_python(self) -> str:
        """As an argument: ``use missing='full' to let every label be a candidate there``."""
        return f"use {self.argument}={'…' if self.value is None else repr(self.value)} {self.effect}".strip()


@dataclass(frozen=True)
class Omission:
    """An argument to leave out; in Python the class that lacks it is used instead."""

    argument: str
    instead: str

    def in_python(self) -> str:
        """By the class: ``use ConformalClassifier``."""
        return f"use {self.instead}"


class Advice(Exception):  # noqa: N818 - errors and a warning are made of it
    """What is wrong, and the ways out of it: a remedy is a sentence that holds everywhere, or names an argument."""

    def __init__(self, problem: str, *remedies: Remedy | Omission | str) -> None:
        self.problem = problem.removesuffix(".")
        self.remedies = remedies
        super().__init__(problem, *remedies)

    def format_with(self, word: Callable[[Remedy | Omission], str | None]) -> str:
        """The message with each argument as `word` says it; None leaves that remedy out."""
        said = [remedy if isinstance(remedy, str) else word(remedy) for remedy in self.remedies]
        ways = ", or ".join(way for way in said if way)
        problem = self.problem.removesuffix(".")
        return f"{problem}; {ways}." if ways else f"{problem}."

    def __str__(self) -> str:
        return self.format_with(lambda remedy: remedy.in_python())


class InputError(Advice, ValueError):
    """Something passed cannot be used."""


class MisuseWarning(Advice, UserWarning):
    """What was passed can be used, but the rows suggest that a guarantee will not hold for new rows.

    Rows that were learned from serve again for calibration or evaluation, copies of rows lie on both sides of a
    split, verified rows are unlike the others, a verified label is not among its candidates, or row names differ;
    a table looks wrong: a label in two spellings, an identifier or the truth among the features; or an argument
    seems to mean something else, as a confidence level of 0.1 does.
    """


class SpellingWarning(MisuseWarning):
    """Labels differ only in how they are written, or look like a missing label."""


class DataError(InputError):
    """Something is wrong with a file or a table; the message names it, the place, and the remedy."""


def refuse_names(others: Mapping[str, Any], **meant: str) -> None:
    """Refuses arguments that a function does not have; `meant` says what takes the place of other libraries' ones.

    >>> refuse_names({"alpha": 0.1}, alpha="confidence_level")
    Traceback (most recent call last):
        ...
    TypeError: alpha: not an argument here; use confidence_level=0.9.
    """
    for name, value in others.items():
        use = meant.get(name)
        if name == "alpha" and use == "confidence_level":
            use = f"{use}={1 - value:.12g}" if isinstance(value, (int, float)) else f"{use}=1 - alpha"
        raise TypeError(f"{name}: not an argument here" + (f"; use {use}." if use else "."))


def check_length(name: str, rows: int, expected: int, what: str) -> None:
    """Refuses an argument with another number of rows than there are of what it belongs to.

    >>> check_length("candidates", 3, 4, "rows of probabilities")
    Traceback (most recent call last):
        ...
    setwise.errors.InputError: candidates: 3 rows for 4 rows of probabilities.
    """
    if rows != expected:
        raise InputError(f"{name}: {rows:,} rows for {expected:,} {what}")


@contextmanager
def reading_from(source: str) -> Iterator[None]:
    """Makes a `ValueError` that arises here a `DataError` about a file or table, which is named first."""
    try:
        yield
    except InputError as error:
        raise DataError(f"{source}: {error.problem}", *error.remedies) from None
    except ValueError as error:
        raise DataError(f"{source}: {error}") from None
