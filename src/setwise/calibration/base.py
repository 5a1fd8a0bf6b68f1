"""`BaseCalibration`: gives sets, p-values and guarantees at any confidence level.

`Calibration` (in `conformal`), which users see, also compares, watches and decides new rows.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, Never, Self, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Floats, Ints, blocks, is_tensor, on_device
from setwise._lazy import lazy
from setwise._types import Candidates, Column, NewRowOptions, ProbabilityRows
from setwise.calibration.calibration_file import FORMAT, read_parts, write_parts
from setwise.calibration.new_rows import RowReader
from setwise.crowd.annotator_model import AnnotatorParameters
from setwise.errors import InputError, Remedy, refuse_names
from setwise.evidence.evidence import Evidence
from setwise.evidence.row_facts import weights
from setwise.findings import Finding
from setwise.guarantees import Guarantee
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import UNKNOWN, Vocabulary
from setwise.probabilities.base import Probabilities
from setwise.probabilities.dense import DenseRows
from setwise.ranks import Level, Levels, as_level, dkw_band, each_level, upper_bound
from setwise.scores import Score, fill_gaps
from setwise.storage.container import reading_untrusted
from setwise.storage.directory import Source
from setwise.strategies import Rule, Setting, Strategy
from setwise.strategies.by_label import calibrate_by_label, vote_rule_by_label
from setwise.strategies.judgement import Judgement
from setwise.strategies.new_row_votes import vote_rule

_LEVELS = 64  # at which thresholds are kept


class SmallCalibrationWarning(UserWarning):
    """There are too few calibration rows for the confidence level: every label is in the set."""


@dataclass(frozen=True, eq=False)
class RulesAtLevel:
    """What the rules of all categories say at one level about rows without weights: found once."""

    rules: tuple[Rule, ...]
    level: Fraction

    @lazy
    def thresholds(self) -> list[Any]:
        """The stored threshold of each rule."""
        return [rule.threshold(self.level) for rule in self.rules]

    @lazy
    def shortages(self) -> dict[int, str]:
        """Of which rules every label is in every set, and why."""
        reasons = {code: rule.shortage(self.level) for code, rule in enumerate(self.rules)}
        return {code: reason for code, reason in reasons.items() if reason}

    def limits(self, weight: Floats | None, codes: Ints | None) -> Any:
        """The stored threshold, or one per row where it depends on category or weight."""
        if codes is None:
            return self.thresholds[0] if weight is None else self.rules[0].threshold(self.level, weight)
        found = self.thresholds if weight is None else [math.inf] * len(self.rules)
        limits = np.full((len(codes), *np.shape(found[0])[1:]), math.inf)
        for code, rule in enumerate(self.rules):
            rows = np.flatnonzero(codes == code)
            limits[rows] = found[code] if weight is None else rule.threshold(self.level, weight[rows])
        return limits


@dataclass(frozen=True, eq=False, repr=False)
class BaseCalibration:
    """A calibration: gives sets, p-values and guarantees at any confidence level.

    You may ask it repeatedly and at any level; a list of levels gives a list of answers.
    """

    conformity_score: Score
    strategy: Strategy
    vocabulary: Vocabulary
    evidence: Evidence
    setting: Setting
    categories: Vocabulary | None = None
    category: Ints | None = None
    annotators: AnnotatorParameters | None = None
    rules: tuple[Rule, ...] = field(init=False)

    def __post_init__(self) -> None:
        calibrate = partial(calibrate_by_label, self.strategy) if self._by_label else self.strategy.calibrate
        object.__setattr__(self, "rules", self._calibrate_categories(calibrate))

    def _calibrate_categories(self, calibrate: Callable[[Evidence, Setting], Rule]) -> tuple[Rule, ...]:
        """One rule for each category."""
        parts = [self.evidence]
        if self.categories is not None and self.category is not None:
            parts = [
                self.evidence.rows(np.flatnonzero(self.category == code)) for code in range(len(self.categories))
            ]
        setting, rules = replace(self.setting, judged=self.judgement), list[Rule]()
        for name, part in zip(self.category_names, parts, strict=True):
            try:
                rules.append(calibrate(part, setting))
            except ValueError as error:
                if self.categories is not None:
                    error.add_note(f"This is category {name!r} of by.")
                raise
        return tuple(rules)

    @property
    def classes(self) -> Array:
        """The labels, in the order of the probability columns."""
        return self.vocabulary.classes

    @property
    def category_names(self) -> list[Any]:
        """The categories, in the order of `rules`; one None without categories."""
        return [None] if self.categories is None else list(self.categories.classes.tolist())

    @lazy
    def reader(self) -> RowReader:
        """Reads new rows as these were read."""
        weighted = self.evidence.weight is not None
        return RowReader(
            self.conformity_score, self.vocabulary, self.setting, self.categories, weighted, self.annotators
        )

    @lazy
    def judgement(self) -> Judgement:
        """How the premises of guarantees are known, from all rows."""
        names = tuple(self.vocabulary.classes.tolist())
        return Judgement(self.evidence, self.setting, names, self.category)

    @property
    def parts(self) -> tuple[Self, ...]:
        """The calibrations that answer: this one."""
        return (self,)

    # ---------------------------------------------------------------- questions

    def threshold(
        self, confidence_level: Level | Levels = 0.9, *, by: Hashable = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """The critical score q on its published scale (LAC: labels with 1 − f ≤ q are in the set).

        It is +inf where there are too few calibration rows. If rows were calibrated by category, `by` names one
        category. With weighted rows the threshold depends on the new row's weight: pass one number, or one per row.
        With ``by="label"`` there is one threshold per class, in the order of `classes`.
        """
        if self.evidence.weight is not None and sample_weight is None:
            raise ValueError(
                "threshold: calibrated with sample_weight, the threshold depends on the weight of the new "
                "row; pass sample_weight=… (one number, or one per row)."
            )
        self.reader.check_weighted(sample_weight)
        weight = None if sample_weight is None else weights(np.atleast_1d(sample_weight), None)
        code = self._category_code(by)

        def answer(level: Fraction) -> Any:
            self._warn_if_short(self._at(level, self.rules), np.array([code]))
            found: Any = self.rules[code].threshold(level, weight) + self.conformity_score.offset
            one = np.ndim(found) == 2 or (sample_weight is not None and np.ndim(sample_weight) == 0)
            return found[0] if one else found

        return each_level(confidence_level, answer)

    @overload
    def predict_set(
        self, probabilities: ProbabilityRows, confidence_level: Level = 0.9, **given: Unpack[NewRowOptions]
    ) -> LabelSets: ...
    @overload
    def predict_set(
        self, probabilities: ProbabilityRows, confidence_level: Levels, **given: Unpack[NewRowOptions]
    ) -> list[LabelSets]: ...
    def predict_set(
        self,
        probabilities: ProbabilityRows,
        confidence_level: Level | Levels = 0.9,
        *,
        by: Column = None,
        candidates: Candidates = None,
        sample_weight: Column = None,
        row_ids: Column = None,
        allow_empty: bool = True,
        **others: Never,
    ) -> LabelSets | list[LabelSets]:
        """The prediction sets of new rows, as `LabelSets`.

        Where new rows have `candidates` of their own, the answer is the part of the set inside them, which keeps
        the guarantee if these candidates contain the true label. `Votes` do more, where calibration rows had votes
        and some were verified: they change the probability of each label, nothing is cut off, and the guarantee is
        ``guarantee(…, votes=True)``. With ``allow_empty=False`` an empty set gets the most probable label (among
        the candidates).
        """
        refuse_names(others, alpha="confidence_level")
        given = {"by": by, "candidates": candidates, "sample_weight": sample_weight, "row_ids": row_ids}
        rows, masks = self._masks(probabilities, **given, allow_empty=allow_empty, device=on_device(probabilities))
        return each_level(confidence_level, lambda level: rows.as_sets(masks(level), self.vocabulary))

    def predict_mask(
        self,
        probabilities: ProbabilityRows,
        confidence_level: Level | Levels = 0.9,
        *,
        by: Column = None,
        candidates: Candidates = None,
        sample_weight: Column = None,
        row_ids: Column = None,
        allow_empty: bool = True,
    ) -> Any:
        """The same sets as an (n, K) boolean mask: a tensor on its device for torch tensors, else an array.

        >>> import numpy as np, setwise
        >>> P = np.random.default_rng(0).dirichlet([1, 1, 1], size=500)
        >>> setwise.conformalize(P, P.argmax(axis=1)).predict_mask([[0.97, 0.02, 0.01]])
        array([[ True, False, False]])
        """
        self.reader.need_all_labels("predict_mask")
        given = {"by": by, "candidates": candidates, "sample_weight": sample_weight, "row_ids": row_ids}
        _, masks = self._masks(probabilities, **given, allow_empty=allow_empty, device=is_tensor(probabilities))
        return each_level(confidence_level, masks)

    def _masks(
        self, probabilities: Any, *, allow_empty: bool, device: bool, **given: Any
    ) -> tuple[Probabilities, Callable[[Fraction], Any]]:
        """New rows, and a function that gives their mask at a level; on their device if `device`."""
        rows = self.reader.read(probabilities, device=device, **given)
        if rows.candidates is not None and rows.votes is None:
            self._refuse_doubtful_candidates()
        inside, codes, weight, u = rows.candidates, rows.codes, rows.weight, rows.noise
        score, rules, probabilities, off = self.conformity_score, self.rules, rows.probabilities, rows.off
        if rows.votes is not None:
            inside, rules, probabilities = None, self._vote_rules, DenseRows(rows.posterior)
            off = rows.posterior_off

        def answer(level: Fraction) -> Any:
            at = self._at(level, rules)
            self._warn_if_short(at, codes)
            limits = np.asarray(at.limits(weight, codes)) + off
            return probabilities.mask(score, limits, u, inside, allow_empty=allow_empty)

        return probabilities, answer

    def _refuse_doubtful_candidates(self) -> None:
        """Refuses to cut sets down to the candidates of new rows where these may lack the true label."""
        self._refuse_part("candidates: sets cut down to those of new rows")
        without = (
            "leave them out" if self.setting.by != "size" else "pass by=…, how many each row has, in their place"
        )
        less = "so that sets cut down to them would contain it less often than guaranteed"
        if (rate := float(self.setting.miss_rate)) and not self.strategy.allows_for_misses:
            raise InputError(
                f"candidates: with a miss rate of {rate:g} those of new rows may lack the true label, {less}",
                without,
            )
        if self.judgement.truth_refuted:
            raise InputError(
                f"candidates: those of new rows may lack the true label as these do "
                f"({self.judgement.truth_is_candidate.detail}), {less}",
                without,
            )

    def _refuse_part(self, what: str) -> None:
        """Refuses what needs every right label to be a candidate where some of several suffice."""
        if self.setting.truth not in {"", "all"}:
            problem = f"{what} are not defined where some of several right labels suffice"
            raise InputError(problem, Remedy("truth", "all", "when you calibrate"))

    def predict_p(
        self,
        probabilities: ProbabilityRows,
        *,
        by: Column = None,
        sample_weight: Column = None,
        row_ids: Column = None,
    ) -> Floats:
        """The (n, K) p-values: at level 1−ε a label is in the set exactly where its p-value exceeds ε."""
        self.reader.need_all_labels("predict_p")
        rows = self.reader.read(probabilities, by=by, sample_weight=sample_weight, row_ids=row_ids)
        matrix, codes, weight, u = rows.matrix, rows.codes, rows.weight, rows.noise
        values = np.empty(matrix.shape)
        if codes is not None:
            values[codes == UNKNOWN] = 1.0
        for code, rule in enumerate(self.rules):
            own = None if codes is None else np.flatnonzero(codes == code)
            for block in blocks(values if own is None else values[: len(own)], 4):
                some: Any = block if own is None else own[block]
                scores = self.conformity_score.score(matrix[some], u=None if u is None else u[some])
                scores -= rows.off
                found = rule.p_values(scores, None if weight is None else weight[some])
                values[some] = -fill_gaps(self.conformity_score, -found)
        return values

    @overload
    def guarantee(self, confidence_level: Level = 0.9, *, votes: bool = False) -> Guarantee: ...
    @overload
    def guarantee(self, confidence_level: Levels, *, votes: bool = False) -> list[Guarantee]: ...
    def guarantee(
        self, confidence_level: Level | Levels = 0.9, *, votes: bool = False, **others: Never
    ) -> Guarantee | list[Guarantee]:
        """What is guaranteed at this level, and on which premises; prints as a short paragraph.

        With ``votes=True`` it is about new rows whose votes are passed to `predict_set` as candidates.
        """
        refuse_names(others, alpha="confidence_level")
        rules = self._vote_rules if votes else self.rules

        def answer(level: Fraction) -> Guarantee:
            claims = [self._add_remarks(rule.claim(level)) for rule in rules]
            if self.categories is None:
                return claims[0]
            return Guarantee.of_categories(dict(zip(self.category_names, claims, strict=True)))

        return each_level(confidence_level, answer)

    @overload
    def bracket(
        self, confidence_level: Level = 0.9, delta: float = 0.05, *, by: Hashable = None
    ) -> tuple[float, float]: ...
    @overload
    def bracket(
        self, confidence_level: Levels, delta: float = 0.05, *, by: Hashable = None
    ) -> list[tuple[float, float]]: ...
    def bracket(
        self, confidence_level: Level | Levels = 0.9, delta: float = 0.05, *, by: Hashable = None
    ) -> tuple[float, float] | list[tuple[float, float]]:
        """(lower, upper): the bounds on the coverage of these sets that candidates alone can prove.

        F_max(t) − band − η ≤ P(y ∈ T) ≤ F_min(t) + band + η with the empirical distributions of the largest and
        smallest candidate score, the Dvoretzky–Kiefer–Wolfowitz–Massart band at level `delta` and the miss rate η;
        where verified rows refute that rate, their upper bound on it takes its place. For votes η must be passed,
        as the true label need not be among the answers. The bounds need independent rows and no true label; where
        rows were sampled and some are verified, these must have been drawn at random. The upper bound also needs
        new rows whose probabilities are not rounded more than these, because sets would be larger. If rows were
        calibrated by category, `by` names one category.
        """
        as_level(delta, "delta")
        self._refuse_part("bracket: bounds from candidates")
        if self.evidence.shares is not None:
            raise ValueError("bracket: not available for weighted or grouped rows, which are not independent.")
        if self.setting.novel:
            raise ValueError("bracket: not available where rows carry labels that no learning row has.")
        if self.setting.votes and not self.setting.miss_rate:
            raise InputError(
                "bracket: the true label need not be among the answers of votes",
                Remedy("miss_rate", None, "for how often it may be missing"),
                "pass votes.candidates() if it always is",
            )
        if self.setting.seen is not None:
            raise ValueError(f"bracket: not available for rows that the model has seen: {self.setting.seen}.")
        if self.judgement.selection:
            raise InputError(
                f"bracket: {self.judgement.selection}", "hold all rows, with CalibrationRows(memory_limit=…)"
            )
        if self.setting.differs is not None:
            raise ValueError(f"bracket: not available for rows that differ from these: {self.setting.differs}.")
        code = self._category_code(by)
        rule = self.rules[code]
        part = self.evidence if self.category is None else self.evidence.rows(np.flatnonzero(self.category == code))

        def answer(level: Fraction) -> tuple[float, float]:
            limit = rule.threshold(level)
            if np.ndim(limit):
                raise ValueError("bracket: not available where every label has its own threshold.")
            return _bracket(part, float(limit), *_miss_rate(part, self.setting, self.judgement, delta))

        return each_level(confidence_level, answer)

    def withdraw(self, finding: Finding) -> Self:
        """The same calibration for new rows that a finding shows to differ from these: it guarantees nothing."""
        return replace(self, setting=replace(self.setting, differs=finding))

    # ---------------------------------------------------------------- a file, a picture

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the calibration as one file: a zip of arrays and a JSON header, without pickle.

        ``docs/calibration-file.md`` describes the format. An interrupted save leaves no broken file behind.
        """
        write_parts(path, **{part.name: getattr(self, part.name) for part in fields(self) if part.init})

    @classmethod
    def load(cls, path: Source) -> Self:
        """Reads what `save` wrote; refuses other, damaged and newer files with an error that names them."""
        parts = read_parts(path)
        with reading_untrusted(path, FORMAT):
            try:
                return cls(**parts)
            except InputError as error:  # the input comes from the file, so that its remedy does not apply
                raise ValueError(error.problem) from error

    def __repr__(self) -> str:
        parts = f", {len(self.rules)} categories" if self.categories is not None else ""
        return (
            f"Calibration(strategy={self.strategy.name!r}, conformity_score={self.conformity_score.name!r}, "
            f"{self.evidence.n:,} rows, {len(self.vocabulary):,} classes{parts})"
        )

    def _repr_html_(self) -> str:
        return self.guarantee()._repr_html_()

    # ---------------------------------------------------------------- helpers

    def _add_remarks(self, made: Guarantee) -> Guarantee:
        """The guarantee with remarks on sampled rows, and on labels that have no probability of their own."""
        remarks, top, sampled = list(made.remarks), self.setting.top, self.setting.sampled
        if sampled:
            kept, checked = self.evidence.n + self.setting.dropped, self.setting.checked
            sample = f"a random sample of {kept - checked:,} of the {sampled - checked:,}"
            rows = f"the {checked:,} verified rows and {sample} other rows" if checked else f"{sample} rows"
            remarks.append(f"Calibrated on {rows}.")
        if top:
            remarks.append(
                f"Labels outside the {top:,} that a row stores share the remaining probability equally. "
                "Where one of them is in a set, all are."
            )
        return replace(made, remarks=tuple(remarks), caution=self.judgement.caution)

    @lazy
    def _vote_rules(self) -> tuple[Rule, ...]:
        """The rules for new rows with votes of their own, one for each category."""
        return self._calibrate_categories(vote_rule_by_label if self._by_label else vote_rule)

    @property
    def _by_label(self) -> bool:
        return self.setting.by == "label"

    @lazy
    def _known(self) -> dict[tuple[Fraction, bool], RulesAtLevel]:
        return {}

    def _at(self, level: Fraction, rules: tuple[Rule, ...]) -> RulesAtLevel:
        """What the rules say at a level, kept for the next rows: those of a server come one at a time."""
        key = level, rules is self.rules
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _LEVELS:
                self._known.clear()
            found = self._known[key] = RulesAtLevel(rules, level)
        return found

    def _warn_if_short(self, at: RulesAtLevel, codes: Ints | None = None) -> None:
        """Warns once if every label is in every set of some of these categories."""
        reasons, unseen = at.shortages, 0
        if codes is not None:
            reasons = {code: reasons[code] for code in np.unique(codes).tolist() if code in reasons}
            unseen = int((codes == UNKNOWN).sum())
        if reasons:
            worst = min(reasons, key=lambda code: at.rules[code].n)
            where = "" if self.categories is None else f" in {len(reasons)} of {len(at.rules)} categories"
            text = f"every label is in the set{where}: {reasons[worst]}."
        elif unseen:
            text = f"every label is in the set for {unseen} rows of categories without calibration rows."
        else:
            return
        warnings.warn(text, SmallCalibrationWarning, stacklevel=4)

    def _category_code(self, by: Any) -> int:
        """The position of the rule for one category; 0 without categories."""
        if self.categories is None:
            if by is not None:
                raise ValueError(self.reader.without_categories)
            return 0
        known = self.category_names
        if not isinstance(by, Hashable) or by not in known:
            raise ValueError(f"by: calibrated by category; name one of them: {', '.join(map(repr, known[:8]))}.")
        return known.index(by)


def _miss_rate(part: Evidence, setting: Setting, judged: Judgement, delta: float) -> tuple[float, float]:
    """A bound on how often the truth is no candidate, and the share of δ that remains."""
    if not judged.truth_refuted:
        return float(setting.miss_rate), delta
    if part.chance is not None:
        raise ValueError(
            "bracket: verified rows refute the miss rate, but with unequal probabilities they cannot bound it."
        )
    if judged.verification[0].status == "refuted by the data":
        raise ValueError(
            f"bracket: verified rows refute the miss rate, and cannot bound it: {judged.verification[0].detail}."
        )
    m, missed = Judgement(part, setting).verification_counts
    return upper_bound(missed, m, delta / 2), delta / 2


def _bracket(part: Evidence, threshold: float, miss_rate: float, delta: float) -> tuple[float, float]:
    if math.isinf(threshold):
        return 1.0, 1.0  # every label is in the set
    band = dkw_band(part.n, delta) + miss_rate
    lower = float((part.high <= threshold).mean()) - band
    upper = float((part.low <= threshold).mean()) + band
    return max(lower, 0.0), min(upper, 1.0)
