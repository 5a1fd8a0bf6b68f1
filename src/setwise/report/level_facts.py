"""What holds at each confidence level of the slider: the verdict, the guarantee, sizes, coverage."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from setwise._arrays import Ints
from setwise.conformal.calibration import Calibration
from setwise.guarantees import Guarantee
from setwise.report.label_entry_levels import DELTA, Sweep
from setwise.report.verdict import guarantees, independent_examples, judge, promise_of

GuaranteeAt = Callable[[Any], Guarantee]
"""A level in, its guarantee out."""

_MARKS = {"kept": "✓", "open": "✓", "broken": "✕", "short": "!", "unpromised": "!", "unseen": "?", "nothing": "?"}
_SINGLE_BINS = 30  # up to so many classes every size has its own bar


def level_facts(
    sweep: Sweep, calibration: Calibration | None, guarantee_at: GuaranteeAt | None
) -> list[dict[str, Any]]:
    """One dictionary per level: texts as they are shown, and numbers for the charts."""
    hits, known = sweep.hits()
    truth = np.empty(0, np.intp) if sweep.truth is None else sweep.truth
    rows, (starts, _) = np.flatnonzero(truth >= 0), size_bins(sweep.n_classes)
    examples = None if calibration is None else independent_examples(calibration)
    facts = []
    for i, level in enumerate(sweep.levels):
        sizes = sweep.sizes[:, i]
        bracket = None if calibration is None else _bracket(calibration, level)
        promise = promise_of([] if guarantee_at is None else guarantees(guarantee_at(level)))
        interval = sweep.interval(rows, truth[rows] <= i) if known else None
        beside: dict[str, Any] = {"calibrated_on": examples, "bracket": bracket, "interval": interval}
        verdict = judge(promise, int(hits[i]), known, sets=len(sizes), **beside)
        mean = float(sizes.mean())
        vague = sweep.n_classes > 2 and mean > sweep.n_classes / 2  # sets are too large to say much
        marked = [name for name, holds in (("conditional", promise.conditions), ("vague", vague)) if holds]
        fact = {
            "level": float(level),
            "text": f"{float(level):.2f}" if (level * 100).denominator == 1 else f"{float(level):.12g}",
            "mean": mean,
            "mean_size": f"{mean:.2f}",
            "single": f"{(sizes == 1).mean():.1%}",
            "empty": f"{(sizes == 0).mean():.1%}",
            "promise": promise.text,
            "bound": promise.bound,
            "promised": promise.probability,
            "look": " ".join([verdict.status, *marked]),
            "mark": _MARKS[verdict.status],
            "headline": verdict.headline,
            "sentence": verdict.sentence + " The sets are too large to say much." * vague,
            "histogram": histogram(sizes, starts),
        }
        if known:
            fact |= {
                "coverage": f"{hits[i] / known:.1%}",
                "interval": interval_text(interval),
                "seen": [tidy(hits[i] / known), *map(tidy, interval or (math.nan, math.nan))],
            }
            fact |= _wrong_alone(sweep, i)
        if bracket is not None:
            fact |= {"bracket": f"{bracket[0]:.1%} to {bracket[1]:.1%}", "proved": [tidy(x) for x in bracket]}
        facts.append(fact)
    return facts


def _wrong_alone(sweep: Sweep, i: int) -> dict[str, str]:
    """How often a set of one label is wrong, which coverage does not tell."""
    assert sweep.truth is not None  # noqa: S101 - some truth is known
    alone = np.flatnonzero((sweep.sizes[:, i] == 1) & (sweep.truth >= 0))
    if not len(alone):
        return {"wrong": "", "wrong_interval": "no set of one label with a known truth"}
    wrong = sweep.truth[alone] > i
    interval = interval_text(sweep.interval(alone, wrong))
    return {"wrong": f"{wrong.mean():.1%}", "wrong_interval": f"{interval} (95%)"}


def interval_text(interval: tuple[float, float] | None) -> str:
    """An interval as it is shown."""
    return "unknown" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}"


def size_bins(n_classes: int) -> tuple[Ints, list[str]]:
    """Where the bars of a histogram of sizes start, and what they are called.

    >>> size_bins(3)[1]
    ['0', '1', '2', '3']
    >>> size_bins(200)[1][-4:]
    ['11–20', '21–50', '51–100', '101–200']
    """
    if n_classes <= _SINGLE_BINS:
        starts = list(range(n_classes + 1))
    else:
        tens = (step * 10**power + 1 for power in range(1, 12) for step in (1, 2, 5))
        starts = [start for start in (*range(7), *tens) if start <= n_classes]
    ends = [*(start - 1 for start in starts[1:]), n_classes]
    names = [f"{a}" if a == b else f"{a:,}–{b:,}" for a, b in zip(starts, ends, strict=True)]
    return np.array(starts), names


def histogram(sizes: Ints, starts: Ints) -> list[int]:
    """How many sizes lie in each bin."""
    counts: list[int] = np.bincount(
        np.searchsorted(starts, sizes, side="right") - 1, minlength=len(starts)
    ).tolist()
    return counts


def tidy(value: float) -> float | None:
    """A number for a chart: six digits, and None where there is none."""
    number = float(value)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _bracket(calibration: Calibration, level: Fraction) -> tuple[float, float] | None:
    """The bracket that holds in every category at once; None where none is known (see `Calibration.bracket`)."""
    by_label = any(np.ndim(rule.threshold(level)) for rule in calibration.rules)
    if calibration.evidence.shares is not None or by_label:
        return None
    names = calibration.category_names
    try:
        pairs = [calibration.bracket(level, DELTA / len(names), by=name) for name in names]
    except ValueError:  # a premise of it is refuted; the guarantee says which
        return None
    return min(low for low, _ in pairs), max(high for _, high in pairs)
