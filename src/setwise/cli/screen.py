"""What a command says: text for people on stdout, or one JSON object, or nothing; progress on stderr."""

from __future__ import annotations

import codecs
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setwise.progress_lines import STEERING, bar_on_stderr, lines_on_stderr, visible


def write_any_text() -> None:
    """Lets standard output and error take every character, whatever their encoding: others are written out."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def to_standard_output() -> Iterator[None]:
    """Names standard output where it takes no more; that nobody reads a pipe any longer is no error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(f"standard output: cannot be written: {error.strerror}.") from None


@dataclass(frozen=True)
class Screen:
    """Where a command's words go."""

    quiet: bool = False
    as_json: bool = False
    out: Path | None = None  # "-" where the result itself goes to standard output

    def __post_init__(self) -> None:
        if self.out == Path("-"):
            if self.as_json:
                raise ValueError("--json: standard output is taken by --out -; name a file with --out.")
            object.__setattr__(self, "quiet", True)
        was_closed = sys.__stdout__ is None  # when the process began
        if was_closed and (self.as_json or self.out == Path("-")):
            raise ValueError("standard output is closed, and the result was to go there; name a file with --out.")

    @property
    def shows_progress(self) -> bool:
        """Bars are for people who watch."""
        return sys.stderr.isatty() and not self.quiet

    def say(self, *lines: str) -> None:
        """Lines for people: each is one line, whatever the names in it hold."""
        if not self.quiet and not self.as_json:
            with to_standard_output():
                sys.stdout.writelines(f"{visible(line)}\n" for line in lines)

    def show(self, found: object) -> None:
        """What the library says of a result, in lines of its own."""
        self.say(*str(found).split("\n"))

    def emit(self, result: dict[str, Any]) -> None:
        """The result for scripts."""
        if self.as_json:
            wide = codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")
            text = json.dumps(result, default=_plain, ensure_ascii=not wide)
            with to_standard_output():
                sys.stdout.write(STEERING.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text) + "\n")

    def table(self, columns: list[str], rows: list[list[str]], wide: int | None = None) -> None:
        """A table for people; the first column and the one numbered `wide` are text, the others numbers."""
        if self.quiet or self.as_json:
            return
        from rich.console import Console  # slow to import, needed here alone
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for number, column in enumerate(columns):
            table.add_column(Text(visible(column)), justify="left" if number in {0, wide} else "right")
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))  # text: brackets are no markup here
        with to_standard_output():
            Console(width=None if sys.stdout.isatty() else 120).print(table)

    @contextmanager
    def working(self, title: str, *, shows_itself: bool = False) -> Iterator[None]:
        """A spinner with a clock while something runs that cannot say how far it is; without a terminal, lines.

        `shows_itself` says that what runs has a bar of its own on a terminal.
        """
        if not self.shows_progress or shows_itself:
            with nullcontext() if self.quiet or self.shows_progress else lines_on_stderr(lambda: title):
                yield
            return
        with bar_on_stderr(title, None) as (bar, _):
            bar.refresh()
            yield

    @contextmanager
    def counting(self, title: str, total: int | None) -> Iterator[Any]:
        """A bar; calls of what it gives move it forward by so many rows."""
        if not self.shows_progress:
            with self.working(title):
                yield lambda _rows: None
            return
        with bar_on_stderr(title, total) as (bar, task):
            yield lambda rows: bar.advance(task, rows)


class Clock:
    """Seconds since it was made, in words."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """So far."""
        return time.perf_counter() - self.start

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s"


def show_claims(screen: Screen, model: Any, confidence_level: float) -> dict[str, Any]:
    """Shows how it was conformalized, and the guarantee; returns both as plain data."""
    parts, made = getattr(model, "calibration_", model).parts, model.guarantee(confidence_level)
    n, asked, used = sum(part.evidence.n for part in parts), parts[0].strategy.name, made.strategy
    screen.say(f"conformalized on {n:,} rows with strategy {asked if asked == used else f'{asked} → {used}'}", "")
    screen.show(made)
    return {"calibrated_on": n, "strategy": {"asked": asked, "used": used}, "guarantee": made.to_dict()}


def _plain(value: Any) -> Any:
    """What JSON does not know: numpy's numbers and arrays, and everything else as text."""
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else str(value)
