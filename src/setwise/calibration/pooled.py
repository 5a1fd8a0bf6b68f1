"""`BasePooledCalibration`: the folds of a cross-conformal classifier, which answer as one calibration.

Row i is scored by the model of the fold it was left out of. A label y of a new row x gets

    p(y) = (1 + Σ_k #{i in fold k: e_i ≥ s_k(x, y)}) / (n + 1)

where s_k is the score under the model of fold k, and is in the set where p(y) > ε. With e_i the largest score
over a row's candidates (`max`) the set contains the one that true labels would give, so that it covers with
probability at least 1 − 2ε less the term of Barber, Candès, Ramdas and Tibshirani (2021, Theorem 4):
min{2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)}.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Never, NoReturn, Self, Unpack, overload

import numpy as np

from setwise._arrays import Array, Floats, Ints
from setwise._types import Candidates, Column, OwnRowOptions, ProbabilityRows
from setwise.calibration.base import (
    BaseCalibration,
    SmallCalibrationWarning,
)
from setwise.calibration.new_rows import fill_candidates
from setwise.contamination.assumption import AssumptionLike
from setwise.errors import InputError, Omission, Remedy, check_length, refuse_names
from setwise.evidence.evidence import Evidence
from setwise.findings import Finding
from setwise.guarantees import Guarantee
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.labels.votes import Votes
from setwise.probabilities.dense import DenseRows
from setwise.ranks import Level, Levels, each_level, rank
from setwise.scores import fill_gaps
from setwise.strategies import Max, RankRule, Strategy, as_strategy


def check_poolable(strategy: str | Strategy, assume: AssumptionLike = "nothing") -> None:
    """Refuses what has no cross-conformal form."""
    chosen = as_strategy(strategy)
    if not chosen.pooled:
        raise InputError(
            f"strategy: {chosen.name!r} has no cross-conformal form, which needs one score per row",
            Remedy("strategy", "max"),
            Omission("cv", "ConformalClassifier"),
        )
    if not (isinstance(assume, str) and assume == "nothing"):
        raise InputError(
            "assume: no cross-conformal method uses it", "leave it out", Omission("cv", "ConformalClassifier")
        )


@dataclass(frozen=True, eq=False, repr=False)
class BasePooledCalibration:
    """The calibrations of several folds as one: `probabilities` are one matrix per fold, from the fold's model."""

    parts: tuple[BaseCalibration, ...]

    def __post_init__(self) -> None:
        if not np.array_equal(np.sort(self._position), np.arange(self.n)):
            raise ValueError("folds: every row must be in exactly one of them")

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels, and whether their order is declared."""
        return self.parts[0].vocabulary

    @property
    def classes(self) -> Array:
        """The labels, in the order of the probability columns."""
        return self.vocabulary.classes

    @property
    def n(self) -> int:
        """The number of calibration rows in all folds."""
        return sum(part.evidence.n for part in self.parts)

    @property
    def evidence(self) -> Evidence:
        """The evidence of all rows, in the order in which they were passed."""
        return functools.reduce(Evidence.merge, (part.evidence for part in self.parts)).rows(
            np.argsort(self._position)
        )

    def predict_p(self, probabilities: Sequence[ProbabilityRows], *, row_ids: Column = None) -> Floats:
        """The (n, K) p-values: at level 1−ε a label is in the set exactly where its p-value exceeds ε."""
        below, _ = self._below(probabilities, row_ids)
        values: Floats = (self.n + 1 - below) / (self.n + 1) + float(self._rule.slack)
        return np.minimum(values, 1.0)

    @overload
    def predict_set(
        self,
        probabilities: Sequence[ProbabilityRows],
        confidence_level: Level = 0.9,
        **given: Unpack[OwnRowOptions],
    ) -> LabelSets: ...
    @overload
    def predict_set(
        self, probabilities: Sequence[ProbabilityRows], confidence_level: Levels, **given: Unpack[OwnRowOptions]
    ) -> list[LabelSets]: ...
    def predict_set(
        self,
        probabilities: Sequence[ProbabilityRows],
        confidence_level: Level | Levels = 0.9,
        *,
        candidates: Candidates = None,
        row_ids: Column = None,
        allow_empty: bool = True,
        **others: Never,
    ) -> LabelSets | list[LabelSets]:
        """The prediction sets of new rows; options as in `Calibration.predict_set`."""
        refuse_names(others, alpha="confidence_level")
        if isinstance(candidates, Votes):
            raise InputError("candidates: no cross-conformal method uses votes", "leave them out")
        own = fill_candidates(candidates, self.vocabulary)
        below, mean = self._below(probabilities, row_ids)
        if own is not None:
            check_length("candidates", len(own), len(mean), "rows of probabilities")
        rows = DenseRows(mean)

        def answer(level: Fraction) -> LabelSets:
            position = rank(self.n, level + self._rule.slack)
            if position > self.n:
                text = f"every label is in the set: {self.n} rows are too few for confidence {float(level):.12g}."
                warnings.warn(text, SmallCalibrationWarning, stacklevel=4)
            mask = rows.finish(below < position, own, allow_empty=allow_empty)
            return rows.as_sets(mask, self.vocabulary)

        return each_level(confidence_level, answer)

    @overload
    def guarantee(self, confidence_level: Level = 0.9) -> Guarantee: ...
    @overload
    def guarantee(self, confidence_level: Levels) -> list[Guarantee]: ...
    def guarantee(self, confidence_level: Level | Levels = 0.9) -> Guarantee | list[Guarantee]:
        """What is guaranteed, and on which premises: for `max`, 1 − 2ε minus a small term."""
        rule, n, k = self._rule, self.n, len(self.parts)
        novel, equal = (sum(getattr(part.setting, name) for part in self.parts) for name in ("novel", "equal"))
        judged = rule.judged
        if novel or equal:
            setting = replace(rule.setting, novel=novel, equal=equal)
            judged = replace(judged, evidence=self.evidence, setting=setting)

        def answer(level: Fraction) -> Guarantee:
            term = min(2 * (1 - 1 / k) / (n / k + 1), (1 - k / n) / (k + 1))
            note = "Only max has a cross-conformal guarantee"
            claim = judged.claim("truth", None, "cross-conformal", note=note)
            if isinstance(rule.claimant, Max):
                promised = max(0.0, float(1 - 2 * (1 - level)) - term)
                note = f"In practice it is near {float(level):.12g}"
                claim = judged.claim(
                    "truth", promised, "cross-conformal prediction", "truth_is_candidate", note=note
                )
            name, score = f"{rule.claimant.name} over {k} folds", rule.setting.conformity_score
            return Guarantee(name, score, n, float(level), (claim,), caution=judged.caution)

        return each_level(confidence_level, answer)

    def withdraw(self, finding: Finding) -> Self:
        """The same for new rows that differ from the calibration rows, as in `BaseCalibration.withdraw`."""
        return replace(self, parts=tuple(part.withdraw(finding) for part in self.parts))

    def threshold(self, *_: Any, **__: Any) -> NoReturn:
        """Not defined: every fold scores a new row with a model of its own."""
        raise ValueError("threshold: folds score a row with models of their own, so there is none; use predict_p.")

    def bracket(self, *_: Any, **__: Any) -> NoReturn:
        """Not available: rows scored by models that share training rows are not independent."""
        raise ValueError("bracket: not available for cross-conformal sets, whose rows are not independent.")

    def __repr__(self) -> str:
        strategy, score = self.parts[0].strategy.name, self.parts[0].conformity_score.name
        return (
            f"PooledCalibration(strategy={strategy!r}, conformity_score={score!r}, "
            f"{self.n:,} rows in {len(self.parts)} folds, {len(self.vocabulary):,} classes)"
        )

    def _repr_html_(self) -> str:
        return self.guarantee()._repr_html_()

    @property
    def _position(self) -> Ints:
        """The position of each row among those that were passed, fold after fold."""
        known = [part.evidence.position for part in self.parts]
        return np.concatenate([np.empty(0, dtype=int), *(position for position in known if position is not None)])

    @property
    def _rule(self) -> RankRule:
        return _rank_rule(self.parts[0])

    def _below(self, probabilities: Sequence[ProbabilityRows], row_ids: Any) -> tuple[Ints, Floats]:
        """For each label the calibration scores strictly below its own, over all folds; and the mean matrix."""
        if len(probabilities) != len(self.parts):
            raise ValueError(f"probabilities: {len(probabilities)} matrices for {len(self.parts)} folds.")
        below: Any = 0
        mean: Any = 0.0
        for part, given in zip(self.parts, probabilities, strict=True):
            rows = part.reader.read(given, row_ids=row_ids)
            below = below + _rank_rule(part).count_below(rows.scores)
            mean = mean + rows.matrix / len(self.parts)
        return fill_gaps(self.parts[0].conformity_score, below), mean


def _rank_rule(part: BaseCalibration) -> RankRule:
    (rule,) = part.rules
    assert isinstance(rule, RankRule)  # noqa: S101 - check_poolable() ensures it
    return rule


AnyCalibration = BaseCalibration | BasePooledCalibration
"""One calibration, or those of several folds as one: `parts` holds them."""
