"""The paper's tables from one command: `make reproduce`, or `python -m reproduction` with options."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from click import ClickException
from typer.main import get_command

from reproduction import result_plots
from reproduction.cells import NAMES, TABLES, VARIANTS, Cell, cells_of
from reproduction.html_page import page_as_html
from reproduction.record import write_outputs
from reproduction.reproduction_page import page
from reproduction.result_tables import CAPTIONS, shown_rows
from reproduction.results import write_text
from setwise.cli import options as opt
from setwise.cli.screen import Clock, Screen
from setwise.progress_lines import bar_on_stderr
from setwise.streams.engines import engine_of, run_local

if TYPE_CHECKING:
    from reproduction.cell_stacks import Stack
    from reproduction.runner import Todo

_EXAMPLES = (
    "python -m reproduction --table 5 --seeds 5 --out results/",
    "python -m reproduction --engine ray --address 10.0.0.7:6379 --out results/",
)
_SECONDS_BETWEEN_LINES = 10.0


def reproduce(
    out: Annotated[Path, typer.Option("--out", help="The folder of results; what is there is not computed again.")],
    table: Annotated[
        list[int] | None, typer.Option("--table", help="A table of the paper, 1 to 6; repeat it. Default: all.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds; 5 as in the paper, 1 if quick.")
    ] = None,
    device: Annotated[str, opt.DEVICE] = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Few epochs and one seed, to try it out.")] = False,
    protocol: Annotated[
        str, typer.Option("--protocol", help="Image sets: official, resplit (train and test pooled) or both.")
    ] = "official",
    variant: Annotated[
        str,
        typer.Option("--variant", help="paper; to compare, annealed, stretched, text or long; or all of them."),
    ] = "paper",
    engine: Annotated[str, opt.ENGINE] = "local",
    address: Annotated[str | None, opt.ADDRESS] = None,
    docs: Annotated[Path | None, typer.Option("--docs", help="Also write the page of all results here.")] = None,
    write_only: Annotated[
        bool, typer.Option("--write-only", help="Compute nothing; write tables and page from what is there.")
    ] = False,
    quiet: Annotated[bool, opt.QUIET] = False,
    as_json: Annotated[bool, opt.JSON] = False,
) -> None:
    """Computes what is missing of the paper's tables, and writes them beside the paper's own numbers."""
    from reproduction.runner import plan, record, run

    screen, clock = Screen(quiet, as_json), Clock()
    cells = _cells(table, seeds, quick, protocol, variant)
    made: dict[str, Any] = {}
    if not write_only:
        todo = plan(cells, out, device)
        runs = engine_of(engine, address, "cuda" if todo.device.startswith("cuda") else "cpu")
        for name in todo.absent:
            screen.say(f"{NAMES[name]}: data not present (setwise datasets fetch {name})")
        screen.say(f"{todo.finished} cells are there, {todo.cells} to compute on {todo.device}")
        with _progress(screen, todo) as watch:
            made = run(todo, out, watch, None if runs is run_local else runs)
    began = time.perf_counter()
    kept = record(out)
    if not kept.results:
        raise ValueError(f"{out}: holds no finished cell yet.")
    _write(screen, kept, out, docs, table)
    made.setdefault("seconds", {})["tables and plots"] = round(time.perf_counter() - began, 3)
    stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in made["seconds"].items())
    screen.say(f"\nwrote {out}, with {out / 'report.html'}, in {clock} ({stages})")
    screen.emit({"out": str(out), "finished": len(kept.results), **made, "total": round(clock.seconds, 3)})


def _cells(table: list[int] | None, seeds: int | None, quick: bool, protocol: str, variant: str) -> list[Cell]:

    count = (1 if quick else 5) if seeds is None else seeds
    if count < 1:
        raise ValueError(f"--seeds: {count} is not a positive number.")
    protocols: Any = _choice("--protocol", protocol, ("official", "resplit"), "both")
    variants: Any = _choice("--variant", variant, VARIANTS, "all")
    return [
        cell
        for number in table or TABLES
        for cell in cells_of(number, range(count), quick=quick, protocols=protocols, variants=variants)
    ]


def _choice(option: str, given: str, known: tuple[str, ...], every: str) -> tuple[str, ...]:
    if given == every:
        return known
    if given not in known:
        raise ValueError(f"{option}: {given!r} is not known; use {', '.join(known)} or {every}.")
    return (given,)


def _write(screen: Screen, kept: Any, out: Path, docs: Path | None, table: list[int] | None) -> None:
    """Tables, pictures and the page; on the screen the tables that were asked for."""
    from reproduction.runner import runs

    write_outputs(kept, out)
    if not result_plots.can_plot():
        screen.say("no pictures: they need matplotlib, pip install 'setwise[report]'")
    whole = page(kept, runs(out), out / "plots", out)
    write_text(out / "report.html", page_as_html(whole, out, "The paper, reproduced"))
    if docs is not None:
        docs.parent.mkdir(parents=True, exist_ok=True)
        write_text(docs, page(kept, runs(out), out / "plots", docs.parent))
    for number in table or TABLES:
        columns, rows = shown_rows(number, kept.entries(number))
        if columns:
            screen.say(f"\nTable {number}. {CAPTIONS[number]} Ours / the paper's (apart, in standard deviations).")
            screen.table(["", *(NAMES[data] for data in columns)], rows)


# -------------------------------------------------------------------- progress


class _Estimate:
    """How much is done, and how long the rest will take at the pace since the first epoch ended."""

    def __init__(self, todo: Todo) -> None:
        self.total = sum(stack.work * stack.epochs for stack in todo.stacks) or 1.0
        self.of: dict[Stack, float] = {}
        self.first: tuple[float, float] | None = None
        self.left: float | None = None

    def __call__(self, stack: Stack, epoch: int) -> None:
        self.of[stack] = stack.work * epoch
        now, done = time.monotonic(), self.done
        if self.first is None:
            self.first = now, done  # what came before is compilation, not pace
        elif done > self.first[1]:
            self.left = (self.total - done) * (now - self.first[0]) / (done - self.first[1])

    @property
    def done(self) -> float:
        """In the units of `total`."""
        return sum(self.of.values())

    def __str__(self) -> str:
        return "" if self.left is None else f"about {self.left:,.0f} s left"


@contextmanager
def _progress(screen: Screen, todo: Todo) -> Iterator[Any]:
    """A bar for people who watch; for a log, a line now and then."""
    estimate = _Estimate(todo)
    if not screen.shows_progress:
        yield _Lines(estimate, silent=screen.quiet or screen.as_json)
        return
    with bar_on_stderr("preparing", estimate.total) as (bar, task):

        def watch(stack: Stack, epoch: int) -> None:
            estimate(stack, epoch)
            state = f"epoch {epoch}/{stack.epochs}  {estimate}"
            bar.update(task, description=str(stack), completed=estimate.done, state=state)

        yield watch


class _Lines:
    """Where nobody watches: the end of every stack, and a line every few seconds."""

    def __init__(self, estimate: _Estimate, *, silent: bool) -> None:
        self.estimate, self.silent, self.last = estimate, silent, time.monotonic()

    def __call__(self, stack: Stack, epoch: int) -> None:
        self.estimate(stack, epoch)
        now = time.monotonic()
        if self.silent or (epoch < stack.epochs and now - self.last < _SECONDS_BETWEEN_LINES):
            return
        self.last = now
        sys.stderr.write(f"{stack}, epoch {epoch}/{stack.epochs}  {self.estimate}".rstrip() + "\n")
        sys.stderr.flush()


def run(arguments: list[str]) -> int:
    """Runs the command and returns its exit status: 0, or 2 with one line on stderr for a mistake."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(epilog="\n\n".join(["Examples:", *(f"  {line}" for line in _EXAMPLES)]))(reproduce)
    try:
        return int(get_command(app).main(arguments, "python -m reproduction", standalone_mode=False) or 0)
    except (ClickException, ValueError, OSError) as error:
        text = error.format_message() if isinstance(error, ClickException) else str(error)
        sys.stderr.write(f"error: {text}\n")
        return 2


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
