"""The pictures a reader wants: coverage against size, sizes, coverage against confidence, and what μ does.

One panel for each data set and contamination; curves are means over seeds. Small SVG files, the same bytes for
the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.cells import NAMES
from reproduction.measure import LEVELS, MUS, ORACLE, STRATEGIES
from reproduction.results import Result
from setwise.storage.atomic_files import replacing

_COLOURS = dict(
    zip(
        (*STRATEGIES, ORACLE),
        ("#b2182b", "#ef8a62", "#2166ac", "#67a9cf", "#1b7837", "#7fbf7b", "#c2a5cf", "#000000"),
        strict=True,
    )
)
_TITLES = {
    "random_p0.1": "random, p = 0.1",
    "random_p0.7": "random, p = 0.7",
    "instance_dependent": "instance-dependent",
}


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(results: Sequence[Result], name: str, folder: Path) -> list[Path]:
    """Draws the four pictures of some trained cells; `name` tells them from those of other cells."""
    panels: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        panels.setdefault((result.cell.contamination, result.cell.data), []).append(result)
    if not panels:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, Callable[[Any, list[Result]], None]] = {
        "coverage-size": _coverage_and_size,
        "sizes": _histogram,
        "coverage-confidence": _coverage_and_level,
        "mu": _mixtures,
    }
    return [_figure(panels, paint, folder / f"{name}-{kind}.svg") for kind, paint in pictures.items()]


def _figure(
    panels: dict[tuple[str, str], list[Result]], paint: Callable[[Any, list[Result]], None], path: Path
) -> Path:
    matplotlib: Any = import_module("matplotlib")
    settings = {"svg.hashsalt": "setwise", "svg.fonttype": "none", "font.size": 7, "path.simplify_threshold": 1.0}
    with matplotlib.rc_context({**settings, "axes.spines.top": False, "axes.spines.right": False}):
        figure: Any = import_module("matplotlib.figure").Figure()
        across = min(3, len(panels))
        down = -(-len(panels) // across)
        wide, high = 2.6 * across, 2.0 * down + 0.4
        figure.set_size_inches(wide, high)
        # Fixed margins in inches: measuring every text to lay it out takes longer than drawing.
        edges = {"left": 0.6 / wide, "right": 1 - 0.45 / wide, "bottom": 0.75 / high, "top": 1 - 0.25 / high}
        figure.subplots_adjust(**edges, wspace=0.68, hspace=0.5)
        for number, ((how, data), own) in enumerate(panels.items(), start=1):
            axes = figure.add_subplot(down, across, number)
            axes.set_title(f"{NAMES[data]} {_TITLES.get(how, '')}".strip(), fontsize=7)
            paint(axes, own)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=8, fontsize=6, frameon=False)
        with replacing(path) as beside:
            figure.savefig(beside, format="svg", metadata={"Date": None})
    return path


def _coverage_and_size(axes: Any, results: list[Result]) -> None:
    """A point for each seed, at the paper's level; the line is the level."""
    for strategy, colour in _COLOURS.items():
        found = [result.measured["strategies"][strategy] for result in results]
        sizes, covered = [f["efficiency"] for f in found], [f["coverage"] for f in found]
        axes.plot(sizes, covered, "o", color=colour, label=strategy, markersize=3, markeredgewidth=0)
    axes.axhline(1 - results[0].cell.epsilon, color="grey", linewidth=0.6, linestyle=":")
    axes.set(xlabel="mean size", ylabel="coverage")


def _histogram(axes: Any, results: list[Result]) -> None:
    """The share of test rows with a set of each size."""
    for strategy in ("max", "all", "mean", "min", ORACLE):
        counts = np.mean([result.measured["strategies"][strategy]["sizes"] for result in results], axis=0)
        axes.step(
            np.arange(len(counts)),
            counts / counts.sum(),
            where="mid",
            color=_COLOURS[strategy],
            label=strategy,
            linewidth=0.9,
        )
    axes.set(xlabel="size of the set", ylabel="share of rows")


def _coverage_and_level(axes: Any, results: list[Result]) -> None:
    """Coverage reached against confidence asked for; below the diagonal a strategy undercovers."""
    for strategy, colour in _COLOURS.items():
        covered = np.mean([result.measured["by_level"][strategy]["coverage"] for result in results], axis=0)
        axes.plot(LEVELS, covered, color=colour, label=strategy, linewidth=0.9)
    axes.plot(LEVELS, LEVELS, color="grey", linewidth=0.6, linestyle=":")
    axes.set(xlabel="confidence level", ylabel="coverage")


def _mixtures(axes: Any, results: list[Result]) -> None:
    """Coverage on the left and mean size on the right, from `max` (μ = 0) to `min` (μ = 1)."""
    covered, sizes = (
        np.mean([r.measured["by_mu"][name] for r in results], axis=0) for name in ("coverage", "size")
    )
    axes.plot(MUS, covered, color="#2166ac", label="coverage", linewidth=0.9)
    axes.axhline(1 - results[0].cell.epsilon, color="grey", linewidth=0.6, linestyle=":")
    axes.set(xlabel="μ", ylabel="coverage")
    other = axes.twinx()
    other.plot(MUS, sizes, color="#b2182b", linewidth=0.9)
    axes.plot([], [], color="#b2182b", label="mean size")
    other.set(ylabel="mean size")
    other.spines["right"].set_visible(True)
