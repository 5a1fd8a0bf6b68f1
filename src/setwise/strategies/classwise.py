"""`classwise`: a threshold for each class, promised for the rows of each true class.

Without assumptions, through singletons: S = {k} implies y = k, and y = k implies k ∈ S, so that

    P(s_k > t | y = k)  ≤  P(s_k > t, k ∈ S) / P(S = {k}).

Both probabilities are bounded by exact binomial bounds at δ/2 each. With a declared contamination the weights a_ik
of `corrected`, which have mean c·1{y = k}, give the share of class k within t as mean(a_k·1{s_k ≤ t}) / mean(a_k).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv

from setwise._arrays import Bools, Floats, Ints, blocks
from setwise._lazy import lazy
from setwise.contamination.diagnose import AssumptionRefuted
from setwise.evidence.evidence import Evidence
from setwise.evidence.score_table import check_unchanged
from setwise.guarantees import Guarantee, Premise
from setwise.strategies.corrected import check_declared, contamination_needs, corrected_steps, settings_between
from setwise.strategies.curves import (
    Levels,
    Margin,
    WithMargin,
    margin_needs,
    not_filled,
    over,
    refuse_weights,
)
from setwise.strategies.judgement import Setting, judgement
from setwise.strategies.step_function_sums import Steps
from setwise.strategies.threshold_rules import Rule

_PASSES = 8  # over the rows, to have the scores of each class by themselves
_GROUP_BYTES = 2**23  # of classes that one pass may hold in any case


@dataclass(frozen=True)
class Classwise(WithMargin):
    """Promises the level for each true class by itself, in a share 1−`delta` of calibration samples per class.

    Parameters
    ----------
    margin
        With a declared contamination, as for `Corrected`; the bounds through singletons are always exact.
    delta
        How often a bound may fail, for each class.
    """

    margin: Margin = "normal"
    name: ClassVar[str] = "classwise"
    columns: ClassVar[tuple[str, ...]] = ("table",)

    def calibrate(self, evidence: Evidence, setting: Setting) -> Rule:
        """Bounds through singletons, or a curve for each class where a contamination is declared."""
        refuse_weights(evidence, self.name)
        if evidence.table is None or evidence.named is None:
            raise ValueError("strategy 'classwise' needs evidence gathered with needs={'table'}.")
        if setting.assume.kind == "nothing":
            return _Singletons(self, evidence, setting)
        check_declared(setting, self.name)
        not_filled(setting, self.name)
        judged = judgement(evidence, setting)
        if judged.diagnosis.refuted:
            raise AssumptionRefuted(judged.diagnosis)
        made = tuple(corrected_steps(evidence, told) for told in settings_between(setting))
        return _Curves(self, evidence, setting, made, tuple(map(self._by_class, made)))

    def _by_class(self, made: Steps) -> tuple[Levels, ...]:
        """The levels of each class, of some classes at a time: blocks of rows hold all."""
        n, k = made.table.shape
        width = min(max(math.ceil(k / _PASSES), _GROUP_BYTES // (16 * n)), k)
        scores, weights = np.empty((width, n), dtype=made.table[:1].dtype), np.empty((width, n))
        found: list[Levels] = []
        for start in range(0, k, width):
            some = slice(start, min(start + width, k))
            scores, weights = scores[: some.stop - start], weights[: some.stop - start]
            for rows, *parts in made.parts(ordered=False):
                scores[:, rows], weights[:, rows] = (part[:, some].T for part in parts)
            for s, w in zip(scores, weights, strict=True):
                steps = Steps(s[:, None], w[:, None].__getitem__, w, made.spread, made.new)
                found.append(Levels.of(steps, self.margin, self.delta))
        return tuple(found)


class _ByClass(ABC):
    """What both kinds share: K thresholds, and a claim about the rows of any one class."""

    strategy: Classwise
    evidence: Evidence
    setting: Setting
    remarks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return self.evidence.n

    @abstractmethod
    def _limits(self, level: Fraction) -> Floats:
        """The K thresholds."""

    def threshold(self, level: Fraction, new_weight: Floats | None = None) -> Floats:  # noqa: ARG002 - unweighted
        return self._limits(level)[None, :]

    def shortage(self, level: Fraction) -> str:
        return "no class has enough rows" if np.isinf(self._limits(level)).all() else ""

    def _guarantee(self, level: Fraction, basis: str, *needs: str | Premise, **options: Any) -> Guarantee:
        without = int(np.isinf(self._limits(level)).sum())
        remark = f"{without} of {self.setting.n_classes} classes have too few rows, and are in every set."
        subject = "a new row of any one true class"
        judged = judgement(self.evidence, self.setting)
        claim = judged.claim("truth", float(level), basis, *needs, subject=subject, **options)
        return Guarantee(
            self.strategy.name,
            self.setting.conformity_score,
            self.n,
            float(level),
            (claim,),
            remarks=(*self.remarks, *((remark,) if without else ())),
            verified=int(self.evidence.verified.sum()),
        )


@dataclass(frozen=True)
class _Singletons(_ByClass):
    strategy: Classwise
    evidence: Evidence
    setting: Setting

    def _limits(self, level: Fraction) -> Floats:
        """For each class the score above which at most as many rows name it as the bound allows."""
        allowed = self._allowance(float(1 - level))
        limits = np.full(self.setting.n_classes, math.inf)
        for k in np.flatnonzero(allowed >= 0).tolist():
            own = self._ascending[k][::-1]
            limits[k] = own[allowed[k]] if allowed[k] < len(own) else -math.inf
        return limits

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:  # noqa: ARG002 - unweighted
        values = np.ones(scores.shape)
        for k, (floor, own) in enumerate(zip(self._floor.tolist(), self._ascending, strict=True)):
            if floor > 0:
                above = len(own) - np.searchsorted(own, scores[:, k], side="left")
                values[:, k] = np.minimum((_upper(above, self.n, self._share) + self._rate) / floor, 1.0)
        return values

    def claim(self, level: Fraction) -> Guarantee:
        needs = ("truth_is_candidate", "independent_rows")
        return self._guarantee(level, "singletons", *needs, delta=self.strategy.delta)

    @lazy
    def _ascending(self) -> list[Floats]:
        """The scores of each class in the rows that name it, in order."""
        table, named = check_unchanged(self.evidence.table), self._named
        ends = np.cumsum(named.sum(axis=0))
        first, found = np.append(0, ends[:-1]), np.empty(ends[-1], dtype=table[:1].dtype)
        for rows in blocks(table):
            labels, inside = np.nonzero(named[rows].T)
            counts = np.bincount(labels, minlength=len(ends))
            place = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(len(labels))
            found[place] = table[rows][inside, labels]
            first += counts
        columns = np.split(found, ends[:-1])
        for column in columns:
            column.sort()
        return columns

    @property
    def _named(self) -> Bools:
        assert self.evidence.named is not None  # noqa: S101 - checked when calibrated
        return self.evidence.named

    @property
    def _share(self) -> float:
        return self.strategy.delta / 2

    @property
    def _rate(self) -> float:
        return float(self.setting.miss_rate)

    @lazy
    def _floor(self) -> Floats:
        """A lower bound on P(S = {k}, y = k)."""
        alone = self._named[self.evidence.sizes == 1].sum(axis=0)
        lower = np.where(alone > 0, betaincinv(np.maximum(alone, 1), self.n - alone + 1, self._share), 0.0)
        return lower - self._rate

    def _allowance(self, epsilon: float) -> Ints:
        """How many rows may name a class above its threshold; −1 where not even zero passes."""
        counts = np.arange(self.n + 1)
        bounds = _upper(counts, self.n, self._share) + self._rate
        return np.searchsorted(bounds, epsilon * self._floor, side="right") - 1


def _upper(counts: Ints, n: int, delta: float) -> Floats:
    """The exact one-sided upper bound on a probability from counts out of n."""
    return np.where(counts < n, betaincinv(counts + 1, np.maximum(n - counts, 1), 1 - delta), 1.0)


@dataclass(frozen=True)
class _Curves(_ByClass):
    strategy: Classwise
    evidence: Evidence
    setting: Setting
    steps: tuple[Steps, ...]
    """For each miss rate to be served."""
    certified: tuple[tuple[Levels, ...], ...]
    """For each miss rate the levels of each class."""
    remarks: tuple[str, ...] = ()

    def _limits(self, level: Fraction) -> Floats:
        limits: Floats = np.max([_thresholds(levels, level) for levels in self.certified], axis=0)
        return limits

    def p_values(self, scores: Floats, new_weight: Floats | None = None) -> Floats:  # noqa: ARG002 - unweighted
        found = [[one.p_values(scores[:, k]) for k, one in enumerate(levels)] for levels in self.certified]
        values: Floats = np.max(found, axis=0).T
        return values

    def claim(self, level: Fraction) -> Guarantee:
        margin, delta = self.strategy.margin, self.strategy.delta
        needs = (*contamination_needs(self.setting), *margin_needs(margin, partial(self.standard_error, level)))
        return self._guarantee(level, "corrected for contamination", *needs, **over(margin, delta))

    def standard_error(self, level: Fraction) -> float:
        """The largest of those of the classes."""
        made, limits = self.steps[0], _thresholds(self.certified[0], level)
        check_unchanged(made.table)
        k = len(limits)
        d, d_squared, reached, squared = np.zeros((4, k))
        for _, scores, weights in made.parts(ordered=False):
            inside, squares = scores <= limits, np.square(weights)
            d += weights.sum(axis=0)
            d_squared += squares.sum(axis=0)
            reached += (weights * inside).sum(axis=0)
            squared += (squares * inside).sum(axis=0)
        if (d <= 0).any():
            return math.inf
        share = reached / d
        # N is d or 0: ΣN² = ΣN·d, and this is Σ(N − share·d)².
        errors = np.maximum(squared * (1 - 2 * share) + share**2 * d_squared, 0.0)
        return float((np.sqrt(errors * made.n / max(made.n - 1, 1)) / d).max())


def _thresholds(levels: Sequence[Levels], level: Fraction) -> Floats:
    """The threshold of each class."""
    return np.array([one.threshold(level) for one in levels])
