"""Errors and warnings with remedies: each front end names an argument in Python or an option on the command line.

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
        """The remedy as an argument: ``use missing='full' to let every label be a candidate there``."""
        return f"use {self.argument}={'…' if self.value is None else repr(self.value)} {self.effect}".strip()


@dataclass(frozen=True)
class Omission:
    """An option to leave out; in Python one uses a class that lacks it instead."""

    argument: str
    instead: str

    def in_python(self) -> str:
        """The remedy as a class: ``use ConformalClassifier``."""
        return f"use {self.instead}"


class Advice(Exception):  # noqa: N818 - base of errors and of a warning
    """A problem and its remedies. A remedy is a sentence that holds everywhere, or names an argument."""

    def __init__(self, problem: str, *remedies: Remedy | Omission | str) -> None:
        self.problem = problem.removesuffix(".")
        self.remedies = remedies
        super().__init__(problem, *remedies)

    def format_with(self, word: Callable[[Remedy | Omission], str | None]) -> str:
        """The message, with each argument written by `word`; a remedy for which it gives None is left out."""
        said = [remedy if isinstance(remedy, str) else word(remedy) for remedy in self.remedies]
        ways = ", or ".join(way for way in said if way)
        problem = self.problem.removesuffix(".")
        return f"{problem}; {ways}." if ways else f"{problem}."

    def __str__(self) -> str:
        return self.format_with(lambda remedy: remedy.in_python())


class InputError(Advice, ValueError):
    """An argument cannot be used."""


class MisuseWarning(Advice, UserWarning):
    """The arguments can be used, but they look like a mistake, so that a guarantee may not hold for new rows.

    Training rows serve again for calibration or evaluation, copies of a row lie on both sides of a split, verified
    rows are unlike the others, a verified label is not among its candidates, or row names differ. Or a table looks
    wrong: a label in two spellings, an identifier or the truth among the features. Or an argument seems to mean
    something else, such as a confidence level of 0.1.
    """


class SpellingWarning(MisuseWarning):
    """Labels differ only in how they are written, or look like a missing label."""


class DataError(InputError):
    """A file or a table cannot be used; the message names it, the place in it, and the remedy."""


def refuse_names(others: Mapping[str, Any], **meant: str) -> None:
    """Refuses unknown arguments; `meant` gives the name that setwise uses for an argument of other libraries.

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
    """Refuses an argument whose number of rows differs from what it belongs to.

    >>> check_length("candidates", 3, 4, "rows of probabilities")
    Traceback (most recent call last):
        ...
    setwise.errors.InputError: candidates: 3 rows for 4 rows of probabilities.
    """
    if rows != expected:
        raise InputError(f"{name}: {rows:,} rows for {expected:,} {what}")


@contextmanager
def reading_from(source: str) -> Iterator[None]:
    """Turns a `ValueError` that arises here into a `DataError` that names the file or table."""
    try:
        yield
    except InputError as error:
        raise DataError(f"{source}: {error.problem}", *error.remedies) from None
    except ValueError as error:
        raise DataError(f"{source}: {error}") from None
