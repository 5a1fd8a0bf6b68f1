"""`PooledCalibration`: the folds of a cross-conformal classifier, which answer as one calibration.

Row i is scored by the model of the fold it was left out of. A label y of a new row x gets

    p(y) = (1 + Σ_k #{i in fold k: e_i ≥ s_k(x, y)}) / (n + 1)

where s_k is the score under the model of fold k, and is in the set where p(y) > ε. With e_i the largest score
over a row's candidates (`max`) the set contains the one that true labels would give, so that it covers with
probability at least 1 − 2ε less the term of Barber, Candès, Ramdas and Tibshirani (2021, Theorem 4):
min{2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)}.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Never, NoReturn, overload

import numpy as np

from setwise._arrays import Array, Floats, Ints
from setwise.calibration.calibration import (
    Calibration,
    SmallCalibrationWarning,
    finished_mask,
    own_candidates,
    sets_of,
)
from setwise.contamination.assumption import NOTHING
from setwise.decisions.comparison import Comparison, compared
from setwise.decisions.monitor import Monitor
from setwise.decisions.triage import Mode, Triage, own_rows
from setwise.errors import InputError, Omission, Remedy, refuse_names
from setwise.evidence.evidence import Evidence
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.verified_rows import checks_differ, warned_of
from setwise.guarantees import Guarantee
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, Vocabulary
from setwise.labels.votes import Votes
from setwise.ranks import Level, Levels, each_level, rank
from setwise.strategies import RankRule, Strategy, as_strategy
from setwise.strategies.base import with_novel_labels
from setwise.strategies.premises import Judgement


def check_poolable(strategy: str | Strategy, assume: Any = "nothing") -> None:
    """Refuses what has no cross-conformal form."""
    asked = as_strategy(strategy)
    if not asked.pooled:
        raise InputError(
            f"strategy: {asked.name!r} has no cross-conformal form, which needs one score per row",
            Remedy("strategy", "max"),
            Omission("cv", "ConformalClassifier"),
        )
    if not (isinstance(assume, str) and assume == "nothing"):
        raise InputError(
            "assume: no cross-conformal method uses it", "leave it out", Omission("cv", "ConformalClassifier")
        )


@dataclass(frozen=True, eq=False, repr=False)
class PooledCalibration:
    """Calibrations of folds, asked together: `probabilities` are one matrix per fold, from the fold's model."""

    parts: tuple[Calibration, ...]

    def __post_init__(self) -> None:
        first = _shared(self.parts[0])
        if any(_shared(part) != first for part in self.parts):
            raise ValueError("folds: they differ in strategy, score, labels or what was declared")
        for part in self.parts:
            _check_fold(part)
        if not np.array_equal(np.sort(self._position), np.arange(self.n)):
            raise ValueError("folds: not every row is in one of them, and in one alone")

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels, and that their order is declared."""
        return self.parts[0].vocabulary

    @property
    def classes(self) -> Array:
        """The labels, in the order of the probability columns."""
        return self.vocabulary.classes

    @property
    def n(self) -> int:
        """How many calibration rows there are, over all folds."""
        return sum(part.evidence.n for part in self.parts)

    @property
    def fold(self) -> Ints:
        """The fold of each row, in the order in which rows were given."""
        sizes = [part.evidence.n for part in self.parts]
        return np.repeat(np.arange(len(sizes)), sizes)[np.argsort(self._position)]

    def predict_p(self, probabilities: Sequence[Any], *, row_ids: Any = None) -> Floats:
        """The (n, K) p-values: at level 1−ε a label is in the set exactly where its p-value exceeds ε."""
        below, _ = self._below(probabilities, row_ids)
        values: Floats = (self.n + 1 - below) / (self.n + 1) + float(self._rule.slack)
        return np.minimum(values, 1.0)

    @overload
    def predict_set(
        self,
        probabilities: Sequence[Any],
        confidence_level: Level = 0.9,
        *,
        candidates: Any = None,
        row_ids: Any = None,
        allow_empty: bool = True,
    ) -> LabelSets: ...
    @overload
    def predict_set(
        self,
        probabilities: Sequence[Any],
        confidence_level: Levels,
        *,
        candidates: Any = None,
        row_ids: Any = None,
        allow_empty: bool = True,
    ) -> list[LabelSets]: ...
    def predict_set(
        self,
        probabilities: Sequence[Any],
        confidence_level: Any = 0.9,
        *,
        candidates: Any = None,
        row_ids: Any = None,
        allow_empty: bool = True,
        **others: Never,
    ) -> Any:
        """The prediction sets of new rows; options as in `Calibration.predict_set`."""
        refuse_names(others, alpha="confidence_level")
        if isinstance(candidates, Votes):
            raise InputError("candidates: no cross-conformal method uses votes", "leave them out")
        own = own_candidates(candidates, self.vocabulary)
        below, mean = self._below(probabilities, row_ids)
        if own is not None and len(own) != len(mean):
            raise ValueError(f"candidates: {len(own)} rows for {len(mean)} rows of probabilities.")

        def answer(level: Fraction) -> LabelSets:
            position = rank(self.n, level + self._rule.slack)
            if position > self.n:
                text = f"every label is in the set: {self.n} rows are too few for confidence {float(level):g}."
                warnings.warn(text, SmallCalibrationWarning, stacklevel=4)
            return sets_of(finished_mask(below < position, mean, own, allow_empty=allow_empty), self.vocabulary)

        return each_level(confidence_level, answer)

    @overload
    def guarantee(self, confidence_level: Level = 0.9) -> Guarantee: ...
    @overload
    def guarantee(self, confidence_level: Levels) -> list[Guarantee]: ...
    def guarantee(self, confidence_level: Any = 0.9) -> Any:
        """What may be claimed, and why: 1 − 2ε less a small term, for `max`."""
        rule, n, k = self._rule, self.n, len(self.parts)

        def answer(level: Fraction) -> Guarantee:
            term = min(2 * (1 - 1 / k) / (n / k + 1), (1 - k / n) / (k + 1))
            judged = rule.judged
            note = "only max has a cross-conformal guarantee"
            claim = judged.claim("truth", None, "cross-conformal", note=note)
            if rule.claimant.name == "max":
                promised = max(0.0, float(1 - 2 * (1 - level)) - term)
                note = f"1 − 2ε less {term:.4f}, and in practice near 1 − ε"
                claim = judged.claim(
                    "truth", promised, "cross-conformal prediction", "truth_is_candidate", note=note
                )
            name, score = f"{rule.claimant.name} over {k} folds", rule.setting.conformity_score
            told = replace(rule.setting, novel=sum(part.setting.novel for part in self.parts))
            claims = with_novel_labels((claim,), told, n, level + rule.slack)
            return Guarantee(name, score, n, float(level), claims)

        return each_level(confidence_level, answer)

    def triage(
        self,
        probabilities: Any = None,
        candidates: Any = None,
        max_error: float = 0.05,
        mode: Mode = "rate",
        *,
        verified: Any = None,
        random_state: Any = None,
    ) -> Triage:
        """Which of its own rows may be accepted, as in `Calibration.triage`; of new rows nothing is known.

        Parameters
        ----------
        verified
            The true label of each row, in the order in which they were given, None or NaN where nobody checked.
        """
        if probabilities is not None or candidates is not None:
            problem = "triage: folds score new rows and their own rows with different models"
            raise InputError(problem, "leave new rows out", Omission("cv", "ConformalClassifier"))
        evidence = functools.reduce(Evidence.merge, (part.evidence for part in self.parts))
        evidence = evidence.rows(np.argsort(self._position))
        labels = RowFacts.read(self.n, self.vocabulary, verified=verified).verified
        truth = None if labels is None else np.where(labels == MISSING, np.nan, evidence.low)
        evidence = replace(evidence, label=labels, truth=truth)
        setting = replace(self.parts[0].setting, chosen=warned_of(checks_differ(evidence)))
        return own_rows(Judgement(evidence, setting), self.classes, max_error, mode, random_state)

    def compare(self, probabilities: Sequence[Any]) -> Comparison:
        """Whether new rows are like the calibration rows: those of each fold, by the model of the fold."""
        return compared(self, probabilities)

    def monitor(
        self, delta: float = 0.05, *, random_state: Any = None, resume: str | os.PathLike[str] | None = None
    ) -> Monitor:
        """Watches new rows that arrive in time; as `Calibration.monitor`."""
        return Monitor(self, delta=delta, random_state=random_state, resume=resume)

    def differing(self, differs: str) -> PooledCalibration:
        """The same calibration asked about rows that differ from its own, in words: it promises them nothing."""
        return PooledCalibration(tuple(part.differing(differs) for part in self.parts))

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
            f"{self.n:,} examples in {len(self.parts)} folds, {len(self.vocabulary):,} classes)"
        )

    def _repr_html_(self) -> str:
        return self.guarantee()._repr_html_()

    @property
    def _position(self) -> Ints:
        """The number of each row as it was given, fold after fold."""
        known = [part.evidence.position for part in self.parts]
        return np.concatenate([np.empty(0, dtype=int), *(position for position in known if position is not None)])

    @property
    def _rule(self) -> RankRule:
        return _rank_rule(self.parts[0])

    def _below(self, probabilities: Sequence[Any], row_ids: Any) -> tuple[Ints, Floats]:
        """For each label the calibration scores strictly below its own, over all folds; and the mean matrix."""
        if len(probabilities) != len(self.parts):
            raise ValueError(f"probabilities: {len(probabilities)} matrices for {len(self.parts)} folds.")
        below: Any = 0
        mean: Any = 0.0
        for part, given in zip(self.parts, probabilities, strict=True):
            matrix, scores = part.scored(given, row_ids=row_ids)
            below = below + _rank_rule(part).count_below(scores)
            mean = mean + matrix / len(self.parts)
        return below, mean


def _shared(part: Calibration) -> tuple[Any, ...]:
    """What the folds of one classifier have in common: all but their rows, and labels new to their models."""
    told = replace(part.setting, novel=0, assume=NOTHING)
    held = {field.name for field in fields(part.evidence) if getattr(part.evidence, field.name) is not None}
    return part.strategy, part.conformity_score, part.classes.tolist(), told, held


def _check_fold(part: Calibration) -> None:
    """Refuses what no cross-conformal method uses."""
    known = {name: getattr(part.evidence, name) for name in ("weight", "group", "chance", "truth")}
    odd = [name for name, value in (known | {"category": part.category}).items() if value is not None]
    if odd or part.setting.assume.kind != "nothing":
        raise ValueError(f"folds: no cross-conformal method uses {', '.join(odd) or 'assume'}")
    if not part.strategy.pooled or not isinstance(part.rules[0], RankRule):
        raise ValueError(f"folds: {part.strategy.name} has no cross-conformal form")


def _rank_rule(part: Calibration) -> RankRule:
    (rule,) = part.rules
    assert isinstance(rule, RankRule)  # noqa: S101 - as _check_fold() saw
    return rule
