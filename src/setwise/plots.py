"""Plots on matplotlib axes: coverage over levels and by class, set sizes, inclusion by rank, the sets themselves.

Each takes ``ax=`` and returns the axes, so that plots can share a figure or axes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from setwise._types import Candidates, Column, ProbabilityRows
from setwise.calibration.base import SmallCalibrationWarning
from setwise.conformal.calibration import Calibration
from setwise.contamination.assumption import AssumptionLike
from setwise.contamination.diagnose import diagnose
from setwise.labels.coerce import as_candidates, as_label_sets
from setwise.labels.vocabulary import label_vector
from setwise.metrics import evaluate, groups_of_new_rows

_LEVELS = tuple(level / 100 for level in (*range(50, 95, 5), 95, 97, 99))
_ALL_LABELS = 30  # up to so many classes the sets are drawn with every label
_LINE = 0.2  # inches that the name of a row or label needs
_LONGEST = 24  # characters of a name
_LARGEST = 24  # inches of a figure


def plot_coverage(
    calibration: Calibration,
    probabilities: ProbabilityRows,
    y: Column = None,
    *,
    levels: Sequence[float] = _LEVELS,
    label: str | None = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Coverage over confidence levels with exact 95 % intervals, beside the line where it equals the level.

    Parameters
    ----------
    calibration, probabilities
        The calibration, and a model's probabilities for new rows.
    y
        True labels of the new rows. Without them the plot shows the interval that candidates alone prove for the
        coverage (see `Calibration.bracket`), one for each category of a calibration by category.
    levels
        Confidence levels.
    label
        A name for the legend; the strategy's unless given.
    ax
        Axes to draw on; new ones unless given.
    **options
        As in `Calibration.predict_set`: `by`, `sample_weight`, `row_ids`.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], size=400)
    >>> y = (P.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    >>> cal = setwise.conformalize(P[:200], y[:200])
    >>> setwise.plot_coverage(cal, P[200:], y[200:]).get_ylabel()
    'coverage'
    """
    ax = _axes(ax)
    wanted = np.asarray(levels, dtype=float)
    name = calibration.strategy.name if label is None else label
    if not any(line.get_label() == "level" for line in ax.get_lines()):
        ax.plot([wanted.min(), wanted.max()], [wanted.min(), wanted.max()], ls="--", color="grey", label="level")
    if y is None:
        for category in calibration.category_names:
            low, high = np.transpose(calibration.bracket(wanted.tolist(), by=category))
            shown = name if category is None else f"{name}, {category}"
            ax.fill_between(wanted, low, high, alpha=0.25, label=f"{shown}: bracket")
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallCalibrationWarning)
            sets = calibration.predict_set(probabilities, wanted.tolist(), **options)
        grouped = calibration.evidence.group is not None
        groups = groups_of_new_rows(None, len(sets[0]), calibrated=grouped)
        found = [evaluate(each, y, groups=groups) for each in sets]
        coverage = [each["coverage"] for each in found]
        (line,) = ax.plot(wanted, coverage, marker="o", label=name)
        if not grouped:
            low, high = np.transpose([each["coverage_interval"] for each in found])
            ax.fill_between(wanted, low, high, alpha=0.2, color=line.get_color(), linewidth=0)
    return _label_axes(ax, "confidence level", "coverage")


def plot_coverage_by_class(
    sets: Candidates,
    y: Column,
    *,
    confidence_level: float | None = None,
    classes: Any = 25,
    label: str | None = None,
    ax: Any = None,
) -> Any:
    """How often prediction sets contain the true label, class by class, with exact 95 % intervals.

    The class with the lowest coverage is on top. To compare several sets, draw them on the same axes with the same
    list of `classes`.

    Parameters
    ----------
    sets
        Prediction sets: `LabelSets`, or what they can be read from.
    y
        True labels; None or NaN where unknown.
    confidence_level
        Where to draw a dashed line: the coverage that the sets were made for.
    classes
        How many of the classes with the lowest coverage to draw, or a list of labels.
    label
        A name for the legend.
    ax
        Axes to draw on; new ones, high enough for the classes, unless given.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from setwise import LabelSets, plot_coverage_by_class
    >>> sets = LabelSets.from_lists([["cat"], ["cat", "dog"], ["dog"]])
    >>> ax = plot_coverage_by_class(sets, ["cat", "dog", "cat"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['cat', 'dog']
    """
    found: dict[Any, Any] = evaluate(as_label_sets(sets, name="sets"), y)["by_class"]
    if isinstance(classes, int):
        shown = list(found)[:classes]
    else:
        shown = np.asarray(classes).tolist()
        if unseen := [name for name in shown if name not in found]:
            raise ValueError(f"classes: {unseen[0]!r} is the true label of no row; leave it out.")
    if not shown:
        raise ValueError("classes: none to draw.")
    ax = _axes(ax, height=1 + _LINE * len(shown))
    first = not ax.containers
    coverage = np.array([found[name]["coverage"] for name in shown])
    low, high = np.transpose([found[name]["coverage_interval"] for name in shown])
    errors = np.maximum([coverage - low, high - coverage], 0)
    # Names are categories of the axis: what is drawn later finds its class.
    ax.errorbar(coverage, [str(name) for name in shown], xerr=errors, fmt="o", capsize=2, label=label)
    if first:
        whole = ax.yaxis.get_major_formatter()
        ax.yaxis.set_major_formatter(lambda value, place: _shorten(whole(value, place)))
        ax.invert_yaxis()
        ax.set_xlim(right=1.02)
        ax.margins(y=min(0.05, 1 / len(shown)))
    if confidence_level is not None:
        ax.axvline(confidence_level, ls="--", color="grey")
    rest = f" ({len(shown):,} of {len(found):,}, lowest coverage first)" if len(shown) < len(found) else ""
    return _thin_ticks(_label_axes(ax, "coverage", f"true class{rest}", legend=label is not None), ax.yaxis)


def plot_sizes(sets: Candidates, *, label: str | None = None, ax: Any = None) -> Any:
    """The share of sets of each size, of candidate sets or of prediction sets.

    Bars are translucent, so that several calls can share axes.

    Parameters
    ----------
    sets
        `LabelSets`, or what they can be read from: a mask, lists of labels, a label vector.
    label
        A name for the legend.
    ax
        Axes to draw on; new ones unless given.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from setwise import LabelSets, plot_sizes
    >>> ax = plot_sizes(LabelSets.from_lists([["cat"], ["cat", "dog"], ["dog"]]))
    >>> ax.patches[0].get_data().values.round(2).tolist()
    [0.0, 0.67, 0.33]
    """
    ax = _axes(ax)
    sizes = as_label_sets(sets, name="sets").sizes
    if len(sizes) == 0:
        raise ValueError("sets: no rows to draw.")
    shares = np.bincount(sizes) / len(sizes)
    ax.stairs(shares, np.arange(len(shares) + 1) - 0.5, fill=True, alpha=0.5, label=label)
    return _label_axes(ax, "labels in the set", "share of rows", counts=True, legend=label is not None)


def plot_inclusion(
    probabilities: ProbabilityRows,
    candidates: Candidates,
    assume: AssumptionLike = "uniform",
    *,
    ranks: int = 20,
    label: str | None = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """How often the label that a model ranks first, second, … is a candidate, with exact 95 % intervals.

    The dashed line is the floor under the assumed contamination: a rate below it speaks against the assumption.
    `diagnose` tests it.

    Parameters
    ----------
    probabilities, candidates
        A model's probabilities for rows it was not trained on, and their candidate sets.
    assume, **options
        As in `diagnose`: what is assumed about the contamination; `classes`, `miss_rate`.
    ranks
        How many ranks to show.
    label
        A name for the legend.
    ax
        Axes to draw on; new ones unless given.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, setwise
    >>> P = np.random.default_rng(0).dirichlet([1, 1, 1], size=100)
    >>> setwise.plot_inclusion(P, P > 0.3).get_xlabel()
    'rank of the label by the model'
    """
    ax = _axes(ax)
    found = diagnose(probabilities, candidates, assume, **options)
    at = np.arange(1, min(ranks, found.n_classes) + 1)
    rate, low, high = (np.array(part[: len(at)]) for part in (found.rate, found.lower, found.upper))
    line = ax.errorbar(at, rate, yerr=[rate - low, high - rate], marker="o", capsize=2, label=label)
    ax.plot(at, found.floor[: len(at)], ls="--", color=line.lines[0].get_color(), alpha=0.7)
    ax.set_ylim(0, 1.02)
    y_label = "share of rows in which it is a candidate"
    return _label_axes(ax, "rank of the label by the model", y_label, counts=True, legend=label is not None)


def plot_sets(
    sets: Candidates,
    y: Column = None,
    *,
    candidates: Candidates = None,
    rows: Any = 20,
    ax: Any = None,
) -> Any:
    """The sets row by row: a filled cell for each label in the set, a frame around candidates, a dot on the truth.

    Of more than 30 classes, those are drawn that occur in these rows.

    Parameters
    ----------
    sets
        `LabelSets`, or what they can be read from.
    y
        True labels; None or NaN where unknown.
    candidates
        Candidate sets of the same rows.
    rows
        How many of the first rows to draw, or which ones.
    ax
        Axes to draw on; new ones unless given.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from setwise import LabelSets, plot_sets
    >>> ax = plot_sets(LabelSets.from_lists([["cat"], ["cat", "dog"]]), ["cat", "dog"])
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['cat', 'dog']
    """
    given = as_label_sets(sets, name="sets")
    chosen = np.arange(min(rows, len(given))) if isinstance(rows, int) else np.asarray(rows)
    if len(chosen) == 0:
        raise ValueError("rows: none to draw.")
    mask = given[chosen].to_mask()
    own, codes = np.zeros_like(mask), np.full(len(chosen), -1)
    if candidates is not None:
        own = as_candidates(candidates, given.n_classes, given.classes)[chosen].to_mask()
    if y is not None:
        codes = given.vocabulary.encode(label_vector(y, "y")[chosen])
    known = np.flatnonzero(codes >= 0)
    columns = np.arange(given.n_classes)
    if given.n_classes > _ALL_LABELS:
        occurs = (mask | own).any(axis=0)
        occurs[codes[known]] = True
        columns = np.flatnonzero(occurs) if occurs.any() else columns[:1]
    ax = _axes(ax, height=1.5 + _LINE * len(chosen), width=1.5 + _LINE * len(columns))
    ax.imshow(mask[:, columns], cmap="Blues", vmin=0, vmax=1.6, aspect="auto", interpolation="nearest")
    if candidates is not None:
        at, k = np.nonzero(own[:, columns])
        side = min(9.5, 60 * _inches(ax.xaxis) / len(columns), 60 * _inches(ax.yaxis) / len(chosen))
        ax.scatter(k, at, marker="s", s=side**2, facecolors="none", edgecolors="tab:orange", label="candidate")
    if y is not None:
        place = np.searchsorted(columns, codes[known])
        ax.scatter(place, known, marker="o", s=18, color="black", label="true label")
    ax.set_xticks(np.arange(len(columns)), [_shorten(label) for label in given.classes[columns].tolist()])
    ax.set_yticks(np.arange(len(chosen)), [str(row) for row in chosen.tolist()])
    if len(columns) > 8:
        ax.tick_params(axis="x", labelrotation=90)
    if candidates is not None or y is not None:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    rest = f" ({len(columns):,} of {given.n_classes:,} occur)" if len(columns) < given.n_classes else ""
    return _thin_ticks(_label_axes(ax, f"label{rest}", "row", legend=False), ax.xaxis, ax.yaxis)


def _label_axes(ax: Any, x: str, y: str, *, counts: bool = False, legend: bool = True) -> Any:
    """The axes with their titles, a legend if wanted, and whole numbers on the x-axis where it shows counts."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if counts:
        ax.xaxis.get_major_locator().set_params(integer=True)
    if legend:
        ax.legend()
    return ax


def _shorten(label: Any) -> str:
    """A label as the name of a tick."""
    name = str(label)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _inches(axis: Any) -> float:
    """The length of an axis."""
    box, figure = axis.axes.get_window_extent(), axis.get_figure(root=True)
    return float((box.width if axis.axis_name == "x" else box.height) / figure.dpi)


def _thin_ticks(ax: Any, *along: Any) -> Any:
    """Keeps every second, third, … tick of some axis where there is no room for the names of all."""
    ax.get_figure(root=True).draw_without_rendering()  # the layout decides how long each axis is
    for axis in along:
        names = [text.get_text() for text in axis.get_ticklabels()]
        step = math.ceil(0.8 * _LINE * len(names) / _inches(axis))
        if step > 1:
            axis.set_ticks(axis.get_ticklocs()[::step], names[::step])
    return ax


def _axes(ax: Any, *, height: float = 0, width: float = 0) -> Any:
    """The axes given, or those of a new figure, at least so many inches high and wide."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt  # optional, and heavy
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plots need matplotlib: pip install 'setwise[report]'.", name=error.name
        ) from error
    size = np.maximum(plt.rcParams["figure.figsize"], np.minimum([width, height], _LARGEST))
    return plt.subplots(figsize=size, layout="constrained")[1]
