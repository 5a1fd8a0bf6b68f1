"""Rules whose evidence is a step function of the threshold in every row.

Row i contributes N_i(t), a sum of signed weights of the labels whose score is at most t, and a number d_i, made
such that E N_i(t) = G(t)·E d_i for every t, where G(t) = P(s(x, y) ≤ t) is the coverage wanted. The level
certified at t is the largest L for which mean(N(t) − L·d) stays above its margin:

    none     0; the new row is counted as one more that is missed, so that precise labels give exact ranks; the
             bias of looking up a threshold in a noisy curve is taken off
    finite   sd·√(2 ln(2/δ)/n) + 7·R·ln(2/δ)/(3(n−1)), the empirical Bernstein bound of Maurer and Pontil
             (COLT 2009) for independent rows with values in an interval of length R

L is the root of a quadratic equation (as in Fieller's theorem for a ratio of means), so ΣN, ΣN² and ΣN·d at every
score answer every level. The certified level is not monotone in t.
Without a margin the first threshold that reaches L comes too early on average and the last one too late, and the
mean of the two monotone curves counts. With a margin, a threshold counts only if every larger one is certified too:
as G is monotone, the pointwise bound at the largest t with G(t) < L then suffices, and G(threshold) ≥ L with
probability at least 1 − δ. Where no threshold counts, every label is in the set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtr

from setwise._arrays import Floats
from setwise._lazy import lazy
from setwise.errors import InputError, Remedy
from setwise.evidence.evidence import Evidence
from setwise.evidence.score_table import check_unchanged
from setwise.guarantees import Guarantee, Premise
from setwise.ranks import Ascending, instances_needed
from setwise.strategies.base import StrategyTraits
from setwise.strategies.judgement import DELTA, Setting, judgement
from setwise.strategies.step_function_sums import Steps, step_sums, sums_at
from setwise.strategies.threshold_rules import remarks_on

Margin = Literal["none", "finite"]

_CELLS = 400  # of the unit interval, for integrals over the coverage
_MIDDLES = (np.arange(_CELLS) + 0.5) / _CELLS


@dataclass(frozen=True)
class WithMargin(StrategyTraits):
    """The parameters of a strategy that estimates a curve; `delta` is how often its margin may fail."""

    margin: Margin = "none"
    delta: float = DELTA

    def __post_init__(self) -> None:
        if self.margin not in get_args(Margin):
            raise ValueError(f"margin: {self.margin!r} is not known; use one of {', '.join(get_args(Margin))}.")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta: {self.delta} is not between 0 and 1.")


@dataclass(frozen=True)
class Levels:
    """The level certified at each threshold, both in order and increasing; 0 before the first."""

    thresholds: Floats
    levels: Floats

    @classmethod
    def of(cls, steps: Steps, margin: Margin, delta: float) -> Levels:
        """Those that the step functions of rows certify."""
        if margin == "none":
            thresholds, levels = _on_average(steps)
        else:
            thresholds, levels = _certify(steps, delta)
            levels = np.minimum.accumulate(levels[::-1])[::-1]
        # Rounded, so that a level that is reached exactly, as 9 of 10 rows are 0.9, is not missed by a last bit.
        levels = np.clip(levels, 0.0, 1.0).round(12)
        first = np.append(True, levels[1:] > levels[:-1])  # of equal levels the smallest threshold says it all
        return cls(thresholds[first].astype(np.float64), levels[first])

    def threshold(self, level: Fraction) -> float:
        """The smallest threshold at which the level is certified, +∞ where it is nowhere."""
        first = int(np.searchsorted(self.levels, float(level), side="left"))
        return float(self.thresholds[first]) if first < len(self.levels) else math.inf

    def p_values(self, scores: Floats) -> Floats:
        """One minus the level certified just below each score."""
        ascending, values = self._ascending
        return values.take(ascending.count_below(scores))

    @lazy
    def _ascending(self) -> tuple[Ascending, Floats]:
        """The thresholds, and one minus the level by how many of them lie strictly below."""
        return Ascending(self.thresholds), (1 - np.append(0.0, self.levels)).round(12)


@dataclass(frozen=True)
class Curve:
    """The levels that the step functions of rows certify, and how sure they are."""

    steps: Steps
    margin: Margin = "none"
    delta: float = DELTA

    def __post_init__(self) -> None:
        self.certified  # noqa: B018 - now, while the rows are those that were given

    @lazy
    def certified(self) -> Levels:
        """The level certified at each threshold."""
        return Levels.of(self.steps, self.margin, self.delta)

    def standard_error(self, level: Fraction) -> float:
        """The standard error of the coverage estimated at the threshold of a level."""
        steps, limit = self.steps, np.float64(self.certified.threshold(level))
        check_unchanged(steps.table)
        parts = steps.parts(ordered=False)
        reached = np.concatenate([(jumps * (scores <= limit)).sum(axis=1) for _, scores, jumps in parts])
        mean_d = float(steps.d.mean())
        if mean_d <= 0:
            return math.inf
        error = reached - reached.mean() / mean_d * steps.d
        return math.sqrt(float(np.square(error).sum()) / max(steps.n - 1, 1) / steps.n) / mean_d


def _on_average(steps: Steps) -> tuple[Floats, Floats]:
    """Thresholds in order, and the coverage that each has on average over samples, non-decreasing.

    Let T be the threshold of L. Were the error of the estimate a smooth normal process, with variance V(g) where
    the coverage is g, then P(G(T) ≤ g) = Φ((g − L)/√V(g)), and E G(T) = ∫ Φ((L − g)/√V(g)) dg. That differs from L
    where V is not constant, and V falls to zero at g = 1. For precise labels V(g) = g(1 − g)·new/Σd, and counting
    the new row as missed is exact; elsewhere the difference between the two integrals is added to the level.
    """
    all_d = float(steps.d.sum())
    if all_d <= 0:  # candidates say next to nothing: no level is certified
        return np.zeros(1), np.zeros(1)
    thresholds, (total,) = step_sums(steps)
    level = np.maximum.accumulate(total)
    level += np.minimum.accumulate(total[::-1])[::-1]
    level /= 2 * (all_d + steps.new)
    level = level.clip(0.0, 1.0).round(12)  # so that equal levels are equal, in whatever order they were summed
    rises = np.append(level[1:] > level[:-1], True)
    kept = rises | np.append(True, rises[:-1])  # nothing is lost between
    thresholds, total, level = thresholds[kept], total[kept], level[kept]
    at = np.linspace(0.0, 1.0, _CELLS // 2 + 1)
    gained = _mean_coverage(at, *_noise(steps, thresholds, level, total, all_d))
    return thresholds, np.maximum.accumulate(level + np.interp(level, at, gained))


def _noise(
    steps: Steps, thresholds: Floats, level: Floats, total: Floats, all_d: float
) -> tuple[Floats, Floats, Floats]:
    """The levels around the middles of the unit interval's cells, the variance at each, and that of precise labels.

    ΣN² is looked up where these levels are reached, and just before: there the end of a level is.
    """
    reached = np.searchsorted(level, _MIDDLES, side="right")  # the first level above each cell
    used = np.unique(np.append(reached, reached - 1))
    used = used[(used >= 0) & (used < len(level))]
    before = np.nextafter(np.append(thresholds, math.inf)[used + 1], -math.inf)
    squares, ends = sums_at(steps, np.where(np.isin(used, reached), thresholds[used], before))
    g = np.clip(total[used] / all_d, 0.0, 1.0)
    exact = g * (1 - g) * steps.new / all_d
    noise = (squares[:-1] - 2 * g * ends[:-1] + g**2 * ends[-1]) / all_d**2
    return level[used], np.where(np.isclose(noise, exact, rtol=1e-9, atol=1e-15), exact, noise), exact


def _mean_coverage(at: Floats, level: Floats, noise: Floats, exact: Floats) -> Floats:
    """The integral of Φ((L − g)/√V(g)) over g at each L in `at`, less the same for precise labels."""

    def mean(variance: Floats) -> Floats:
        known = np.interp(_MIDDLES, np.append(0.0, level), np.append(0.0, variance), right=0.0)
        deviation = np.sqrt(np.maximum(known, 1e-18))
        found: Floats = ndtr((at[:, None] - _MIDDLES) / deviation).mean(axis=1)
        return found

    return mean(noise) - mean(exact)


def _certify(steps: Steps, delta: float) -> tuple[Floats, Floats]:
    """Thresholds in order, and the level certified at each with a margin."""
    n, d, free = steps.n, float(steps.d.mean()), max(steps.n - 1, 1)
    c, less = _factors(steps, delta)
    v_dd = float(np.square(steps.d - d).sum()) / free
    lead = d**2 - c**2 * v_dd
    if d <= 0 or lead <= 0:
        return np.zeros(1), np.zeros(1)

    thresholds, (total, squares, products) = step_sums(steps, products=True)
    v_nn, v_nd = (squares - total**2 / n) / free, (products - total * d) / free
    a = total / n - less
    half = a * d - c**2 * v_nd
    return thresholds, (half - np.sqrt(np.maximum(half**2 - lead * (a**2 - c**2 * v_nn), 0.0))) / lead


def _factors(steps: Steps, delta: float) -> tuple[float, float]:
    """What multiplies the standard deviation, and what is taken off besides."""
    log = math.log(2 / delta)
    return math.sqrt(2 * log / steps.n), 7 * steps.spread * log / (3 * max(steps.n - 1, 1))


@dataclass(frozen=True)
class CurveRule:
    """A calibrated curve, and what its claim states.

    `fewest` counts the rows that the rank rule would count (all of them, or the verified ones), `unit` names them.
    A level must be certified by `also` too, where there is one. `looks` is the δ of all looks together, where the
    curve has the part of it that one look spends. `fitted` names the model whose parameters come from these very
    rows, where there is one.
    """

    name: str
    evidence: Evidence
    setting: Setting
    curve: Curve
    basis: str
    needs: tuple[str | Premise, ...]
    fewest: int
    unit: str = "calibration rows"
    also: Curve | None = None
    looks: float | None = None
    fitted: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.evidence.n

    def threshold(self, level: Fraction, new_weight: Floats | None = None) -> float:  # noqa: ARG002 - unweighted
        """The stored score up to which labels are in the set."""
        if 1 - level < self._smallest:
            return math.inf
        return max(curve.certified.threshold(level) for curve in self._curves)

    @property
    def _smallest(self) -> Fraction:
        """The smallest ε for so few rows: that of the rank rule."""
        return Fraction(1, self.fewest + 1)

    @property
    def _curves(self) -> tuple[Curve, ...]:
        return (self.curve,) if self.also is None else (self.curve, self.also)

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:  # noqa: ARG002 - unweighted
        """One minus the level certified just below a label's score, and never below what so few rows can say."""
        values: Floats = np.max([curve.certified.p_values(scores) for curve in self._curves], axis=0)
        return np.maximum(values, float(self._smallest), out=values)

    def claim(self, level: Fraction) -> Guarantee:
        """The level, for large samples or with the margin's confidence."""
        judged, curve = judgement(self.evidence, self.setting), self.curve
        sample: str | Premise = "independent_rows"
        said: dict[str, Any] = {"delta": curve.delta}
        if curve.margin == "none":
            besides = f", besides that of the {self.fitted}" if self.fitted else ""
            error = f"standard error of the coverage {curve.standard_error(level):.3f}{besides}"
            sample, said = Premise("large_sample", "assumed", error), {"note": "This is approximate"}
        if self.looks is not None:
            said = {"delta": self.looks, "note": "This holds at whichever look you stop"}
        claim = judged.claim("truth", float(level), self.basis, *self.needs, sample, **said)
        return Guarantee(
            self.name,
            self.setting.conformity_score,
            self.n,
            float(level),
            (claim,),
            remarks=(*remarks_on(self.shortage(level)), *self.remarks),
            verified=int(self.evidence.verified.sum()),
        )

    def shortage(self, level: Fraction) -> str:
        """Why every label is in every set; empty where this is not so."""
        if 1 - level < self._smallest:
            needs = f"confidence {float(level):.12g} needs at least {instances_needed(level):,} {self.unit}"
            return f"{needs}, and there are {self.fewest:,}"
        if math.isinf(self.threshold(level)):
            return f"with margin {self.curve.margin!r} these rows justify no smaller set at {float(level):.12g}"
        return ""


def not_filled(setting: Setting, name: str) -> None:
    """Refuses rows that were given every label, where labels are weighed."""
    if setting.filled:
        raise InputError(
            f"strategy {name!r} weighs candidates, and rows without any were given every label (missing='full')",
            Remedy("missing", "drop", "if whether a row lacks candidates has nothing to do with it"),
            Remedy("strategy", "max"),
        )


def refuse_weights(evidence: Evidence, name: str) -> None:
    """Refuses weights and groups, for which these curves are not defined."""
    if evidence.shares is not None:
        raise InputError(
            f"strategy {name!r} is not defined for weighted or grouped rows", Remedy("strategy", "max")
        )
