"""`conformalize` probabilities on candidate sets; ask the `Calibration` for sets, p-values and claims."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Literal, TypeVar

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, frozen
from setwise.calibration_file import read_parts, write_parts
from setwise.candidates import as_candidates, read_sets
from setwise.evidence import Evidence, gather
from setwise.guarantees import Guarantee
from setwise.inclusion import check_separable, estimate_inclusion
from setwise.inputs import as_assumption, categories, chances, codes_of, present_rows, verified_codes, weights
from setwise.labels import LabelSets
from setwise.noise import draw_seed, uniforms
from setwise.probabilities import as_probabilities, column_names
from setwise.ranks import as_fraction, as_level, dkw_band
from setwise.scores import Score, as_score
from setwise.strategies import RankRule, Rule, Setting, Strategy, as_strategy
from setwise.vocabulary import MISSING, UNKNOWN, Vocabulary

_T = TypeVar("_T")


class SmallCalibrationWarning(UserWarning):
    """There are too few calibration examples for the level asked for: every label is in the set."""


def conformalize(
    probabilities: Any,
    candidates: Any,
    strategy: str | Strategy = "auto",
    score: str | Score = "lac",
    *,
    classes: Iterable[Hashable] | None = None,
    by: Any = None,
    verified: Any = None,
    miss_rate: float = 0.0,
    assume: Any = "nothing",
    sample_weight: Any = None,
    groups: Any = None,
    row_ids: Any = None,
    random_state: Any = None,
    missing: Literal["error", "full", "drop"] = "error",
    verified_probability: Any = None,
) -> Calibration:
    """Calibrates prediction sets on rows whose labels are known only as candidate sets.

    Parameters
    ----------
    probabilities
        (n, K) class probabilities of a model that was not trained on these rows.
    candidates
        One set of labels a row: `LabelSets`, a boolean mask, a label vector, lists of labels. Labels other
        than 0..K−1 need a declared vocabulary.
    strategy
        ``"auto"``, ``"max"``, ``"all"``, ``"mean"``, ``"min"``, ``"mixture"``, ``"corrected"``, ``"rectified"``,
        ``"posterior"``, ``"classwise"``, or an object such as ``Mixture(mu=0.3)``.
    score
        ``"lac"``, ``"aps"``, ``"raps"``, ``"saps"``, ``"margin"``, or an object.
    classes
        The K labels in the order of the columns.
    by
        A category per row; each category is calibrated for itself (Mondrian), and promised for itself.
        ``"predicted"`` takes the most probable label, ``"size"`` the number of candidates (new rows then need
        candidates of their own).
    verified
        The true label where somebody checked, None or NaN elsewhere. Passing it declares that the rows to
        check were chosen at random.
    miss_rate
        How often the true label may be absent from a candidate set (with weights: among new examples).
    assume
        What you declare about how false labels become candidates: ``"nothing"``; ``"uniform"``, each with the
        same probability; ``"class"``, with probabilities that depend on the true class alone (estimated), or
        these as a K × K matrix M_kl = P(l ∈ S | y = k).
    sample_weight
        How much likelier each row is among new examples (covariate shift).
    groups
        Which rows belong together (frames of one film, visits of one patient). New rows are then taken to
        come from new groups, and groups, not rows, are what the rank counts.
    row_ids
        Integers or strings that seed the noise of randomised scores; default is the row's probabilities.
    random_state
        Seeds that noise; None draws a seed and keeps it.
    missing
        Rows without candidates: ``"error"``, ``"full"`` (every label, always valid), or ``"drop"`` (valid if
        whether a row lacks candidates has nothing to do with it, which then stands among the premises).
    verified_probability
        With which probability each row was to be verified, where it was not the same for all.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], size=500)
    >>> S = P > rng.random((500, 3)) / 2
    >>> cal = setwise.conformalize(P, S | (P == P.max(axis=1, keepdims=True)))
    >>> cal.predict_set([[0.97, 0.02, 0.01]], confidence_level=0.8).to_lists()
    [[0]]
    """
    the_score, the_strategy = as_score(score), as_strategy(strategy)
    rate = as_fraction(miss_rate, "miss_rate")
    if not 0 <= rate < 1:
        raise ValueError(f"miss_rate: {miss_rate} is not in [0, 1).")
    matrix = as_probabilities(probabilities, the_score.domain)
    n, k = matrix.shape
    if n == 0:
        raise ValueError("probabilities: no rows; calibration needs at least one.")
    declared = as_assumption(assume, k)
    sets = _on_columns_of(probabilities, candidates, k, classes)
    if len(sets) != n:
        raise ValueError(f"candidates: {len(sets)} rows for {n} rows of probabilities.")
    if column_names(probabilities) is not None:
        matrix = as_probabilities(probabilities, the_score.domain, k, classes=sets.classes)
    sets, kept = present_rows(sets, missing)
    seed = draw_seed(random_state)
    u = uniforms(matrix, seed, row_ids) if the_score.randomized or row_ids is not None else None
    checked = verified_codes(verified, sets.vocabulary, n)
    chance = chances(verified_probability, n)
    weight = weights(sample_weight, n)
    category = None if by is None else _categories_of(by, matrix, sets)
    group = None if groups is None else codes_of(categories(groups, n, "groups"))
    if group is not None and weight is not None:
        raise ValueError("groups: not together with sample_weight; rows of a group share one unit of weight.")
    if kept is not None:
        matrix = matrix[kept]
        u = None if u is None else u[kept]
        checked = None if checked is None else checked[kept]
        weight = None if weight is None else weight[kept]
        chance = None if chance is None else chance[kept]
        category = None if category is None else category[kept]
        group = None if group is None else group[kept]
    setting = Setting(
        the_score.name,
        k,
        rate,
        dropped=n - len(sets),
        single=sets.single,
        assume=declared,
        checked=0 if checked is None else int((checked != MISSING).sum()),
        seed=seed,
    )
    needs = the_strategy.needs(setting)
    if "table" in needs and declared.kind == "class":
        if declared.matrix is None:
            found = estimate_inclusion(matrix, sets, miss_rate=float(rate))
            declared = replace(declared, matrix=frozen(found))
            setting = replace(setting, assume=declared)
        check_separable(declared.matrix, sets.classes.tolist())
    evidence = gather(the_score, matrix, sets, u=u, needs=needs, verified=checked)
    if "every" in needs and the_score.name == "lac" and the_score.domain == "simplex":
        setting = replace(setting, largest_sum=float(matrix.sum(axis=1, dtype=np.float64).max()))
    known = None if category is None else Vocabulary.infer(category)
    return Calibration(
        the_score,
        the_strategy,
        sets.vocabulary,
        replace(evidence, weight=weight, group=group, chance=chance),
        setting,
        known,
        None if category is None or known is None else frozen(known.encode(category)),
        by if isinstance(by, str) else "given",
    )


def _categories_of(by: Any, matrix: Floats, sets: LabelSets) -> Array:
    """One category a row: as given, the label predicted, or the number of candidates."""
    if not isinstance(by, str):
        return categories(by, len(matrix))
    if by == "predicted":
        return sets.classes[matrix.argmax(axis=1)]
    if by == "size":
        return sets.sizes
    raise ValueError(f"by: {by!r} is not known; use 'predicted', 'size', or one category a row.")


def _on_columns_of(probabilities: Any, candidates: Any, k: int, classes: Iterable[Hashable] | None) -> LabelSets:
    """The candidates on the columns of the probabilities; a frame's column names declare the classes."""
    names = column_names(probabilities)
    if classes is None and names is not None and len(set(names)) == k:
        read = read_sets(candidates)
        if not read.vocabulary.declared and not read.vocabulary.holds_numbers:
            return as_candidates(read, k, names)
        candidates = read
    return as_candidates(candidates, k, classes)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """What calibration found: asks for a confidence level, answers with sets, p-values and claims.

    Made by `conformalize` or `Calibration.load`. Every question may be asked at any level, afterwards and
    repeatedly; a list of levels gives a list of answers.
    """

    score: Score
    strategy: Strategy
    vocabulary: Vocabulary
    evidence: Evidence
    setting: Setting
    categories: Vocabulary | None = None
    category: Ints | None = None
    by: str = "given"
    rules: tuple[Rule, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = [self.evidence]
        if self.categories is not None and self.category is not None:
            parts = [
                self.evidence.rows(np.flatnonzero(self.category == code)) for code in range(len(self.categories))
            ]
        rules = tuple(self.strategy.calibrate(part, self.setting) for part in parts)
        object.__setattr__(self, "rules", rules)

    @property
    def classes(self) -> Array:
        """The labels, in the order of the probability columns."""
        return self.vocabulary.classes

    @property
    def seed(self) -> int:
        """What seeds the noise of randomised scores."""
        return self.setting.seed

    @property
    def rank_rule(self) -> RankRule:
        """The one rule whose thresholds are order statistics of one score a row."""
        (rule,) = self.rules
        if not isinstance(rule, RankRule):
            raise TypeError(f"strategy: {self.strategy.name!r} has no score a row, so its folds cannot be pooled.")
        return rule

    # ---------------------------------------------------------------- questions

    def threshold(self, confidence_level: Any = 0.9, *, sample_weight: Any = None) -> Any:
        """The critical score q on its published scale (LAC: labels with 1 − f ≤ q are in the set).

        +inf where there are too few examples. With `by` a dictionary, one entry a category. With weighted
        rows it depends on the new row's weight, which must be given.
        """
        if self.evidence.weight is not None and sample_weight is None:
            raise ValueError(
                "threshold: calibrated with sample_weight, the threshold depends on the weight of the new "
                "row; pass sample_weight=… (one number, or one a row)."
            )
        self._check_weighted(sample_weight)
        weight = None if sample_weight is None else weights(np.atleast_1d(sample_weight), None)

        def answer(level: Fraction) -> Any:
            self._warn_if_short(level)
            found = [self._shown(rule.threshold(level, weight)) for rule in self.rules]
            if sample_weight is not None and np.ndim(sample_weight) == 0:
                found = [float(t[0]) for t in found]  # type: ignore[index]
            return self._per_category(found)

        return each_level(confidence_level, answer)

    def predict_set(
        self,
        probabilities: Any,
        confidence_level: Any = 0.9,
        *,
        by: Any = None,
        candidates: Any = None,
        sample_weight: Any = None,
        row_ids: Any = None,
        allow_empty: bool = True,
    ) -> Any:
        """The prediction sets of new rows, as `LabelSets`.

        Where new rows come with `candidates` of their own the answer is the part of the set inside them, which
        keeps the promise if these candidates hold the truth.
        ``allow_empty=False`` puts the most probable label (among the candidates) into an empty set.
        """
        own = None
        if candidates is not None:
            own = as_candidates(candidates, len(self.vocabulary), self.classes).filled()
        matrix, weight, codes = self._new_rows(probabilities, by, sample_weight, own)
        u = self._noise(matrix, row_ids)
        inside = None if own is None else own.to_mask()

        def answer(level: Fraction) -> LabelSets:
            self._warn_if_short(level, codes)
            limits = np.asarray(self._limits(level, weight, codes))
            by_label = limits.ndim == 2
            mask = self.score.score(matrix, u=u) <= limits if by_label else self.score.below(matrix, limits, u=u)
            if inside is not None:
                mask &= inside
            if not allow_empty:
                _fill_empty(mask, matrix, inside)
            return LabelSets(self.vocabulary, len(mask), _mask=frozen(mask))

        return each_level(confidence_level, answer)

    def predict_p(
        self,
        probabilities: Any,
        *,
        by: Any = None,
        sample_weight: Any = None,
        row_ids: Any = None,
    ) -> Floats:
        """The (n, K) p-values: at level 1−ε a label is in the set exactly where its p-value exceeds ε."""
        matrix, weight, codes = self._new_rows(probabilities, by, sample_weight)
        scores = self.score.score(matrix, u=self._noise(matrix, row_ids))
        if codes is None:
            return self.rules[0].p_values(scores, weight)
        values = np.ones(matrix.shape)
        for code, rule in enumerate(self.rules):
            rows = np.flatnonzero(codes == code)
            values[rows] = rule.p_values(scores[rows], None if weight is None else weight[rows])
        return values

    def count_below(self, probabilities: Any, *, row_ids: Any = None) -> Ints:
        """For each label of new rows, (n, K), how many calibration scores lie strictly below its own."""
        matrix, _, _ = self._new_rows(probabilities, None, None)
        scores = self.score.score(matrix, u=self._noise(matrix, row_ids))
        return np.searchsorted(np.sort(self.rank_rule.scores), scores, side="left")

    def guarantee(self, confidence_level: Any = 0.9) -> Any:
        """What may be claimed at this level, and why; prints as a short paragraph."""

        def answer(level: Fraction) -> Guarantee | dict[Any, Guarantee]:
            claims = [rule.claim(level) for rule in self.rules]
            if self.categories is not None:
                names = self.categories.classes.tolist()
                claims = [replace(c, category=name) for c, name in zip(claims, names, strict=True)]
            made: Guarantee | dict[Any, Guarantee] = self._per_category(claims)
            return made

        return each_level(confidence_level, answer)

    def bracket(self, confidence_level: Any = 0.9, delta: float = 0.05) -> Any:
        """(lower, upper): where the coverage of these sets lies, as far as candidates alone can prove it.

        F_max(t) − band − η ≤ P(y ∈ T) ≤ F_min(t) + band + η with the empirical distributions of the
        largest and smallest candidate score, the Dvoretzky–Kiefer–Wolfowitz–Massart band at level `delta`
        and the miss rate η. It needs independent rows and no true label.
        """
        as_level(delta, "delta")
        if self.evidence.shares is not None:
            raise ValueError("bracket: not available for weighted or grouped rows, which are not independent.")

        def answer(level: Fraction) -> Any:
            limits = [np.asarray(rule.threshold(level)) for rule in self.rules]
            if any(limit.ndim for limit in limits):
                raise ValueError("bracket: not available where every label has its own threshold.")
            pairs = zip(self.rules, limits, strict=True)
            return self._per_category([_bracket(rule, float(limit), delta) for rule, limit in pairs])

        return each_level(confidence_level, answer)

    # ---------------------------------------------------------------- a file, a picture

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the calibration as one file: a zip of arrays and a JSON header, without pickle.

        ``docs/calibration-file.md`` describes it. It is written beside its place and then renamed.
        """
        write_parts(path, **{part.name: getattr(self, part.name) for part in fields(self) if part.init})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """Reads what `save` wrote; refuses anything else, and files of a newer format, by name."""
        return cls(**read_parts(path))

    def __repr__(self) -> str:
        parts = f", {len(self.rules)} categories" if self.categories is not None else ""
        return (
            f"Calibration(strategy={self.strategy.name!r}, score={self.score.name!r}, "
            f"{self.evidence.n:,} examples, {len(self.vocabulary):,} classes{parts})"
        )

    def _repr_html_(self) -> str:
        shown = self.guarantee()
        claims = list(shown.values()) if isinstance(shown, dict) else [shown]
        return "".join(claim._repr_html_() for claim in claims)

    # ---------------------------------------------------------------- helpers

    def _new_rows(
        self, probabilities: Any, by: Any, sample_weight: Any, own: LabelSets | None = None
    ) -> tuple[Floats, Floats | None, Ints | None]:
        matrix = as_probabilities(
            probabilities, self.score.domain, len(self.vocabulary), classes=self.vocabulary.classes
        )
        if own is not None and len(own) != len(matrix):
            raise ValueError(f"candidates: {len(own)} rows for {len(matrix)} rows of probabilities.")
        if self.by == "size" and own is None and by is None:
            raise ValueError("candidates: calibrated by the number of candidates, so new rows need theirs too.")
        if self.by != "given" and by is None:
            by = self.classes[matrix.argmax(axis=1)] if self.by == "predicted" else own.sizes  # type: ignore[union-attr]
        if (by is None) != (self.categories is None):
            raise ValueError(
                "by: calibrated by category, so new rows need theirs too; pass by=…"
                if by is None
                else "by: calibrated without categories; pass by to conformalize first."
            )
        self._check_weighted(sample_weight)
        codes = None
        if by is not None and self.categories is not None:
            codes = self.categories.encode(categories(by, len(matrix)))
        return matrix, weights(sample_weight, len(matrix)), codes

    def _check_weighted(self, sample_weight: Any) -> None:
        if (sample_weight is None) != (self.evidence.weight is None):
            raise ValueError(
                "sample_weight: calibrated with weights, so new rows need theirs too."
                if sample_weight is None
                else "sample_weight: calibrated without weights; pass sample_weight to conformalize first."
            )

    def _noise(self, matrix: Floats, row_ids: Any) -> Floats | None:
        needed = self.score.randomized or row_ids is not None
        return uniforms(matrix, self.seed, row_ids) if needed else None

    def _limits(self, level: Fraction, weight: Floats | None, codes: Ints | None) -> Any:
        """The stored threshold, or one a row where it depends on category or weight."""
        if codes is None:
            return self.rules[0].threshold(level, weight)
        found = [rule.threshold(level) if weight is None else math.inf for rule in self.rules]
        limits = np.full((len(codes), *np.shape(found[0])[1:]), math.inf)
        for code, rule in enumerate(self.rules):
            rows = np.flatnonzero(codes == code)
            limits[rows] = found[code] if weight is None else rule.threshold(level, weight[rows])
        return limits

    def _warn_if_short(self, level: Fraction, codes: Ints | None = None) -> None:
        """One warning where every label is in every set, for the categories that were asked about."""
        asked = range(len(self.rules)) if codes is None else np.unique(codes[codes >= 0]).tolist()
        reasons = {i: reason for i in asked if (reason := self.rules[i].shortage(level))}
        unseen = 0 if codes is None else int((codes == UNKNOWN).sum())
        if reasons:
            worst = min(reasons, key=lambda i: self.rules[i].n)
            where = "" if self.categories is None else f" in {len(reasons)} of {len(self.rules)} categories"
            text = f"every label is in the set{where}: {reasons[worst]}."
        elif unseen:
            text = f"every label is in the set for {unseen} rows of categories without calibration examples."
        else:
            return
        warnings.warn(text, SmallCalibrationWarning, stacklevel=4)

    def _shown(self, threshold: Any) -> Any:
        """A threshold on its published scale; one per label as a dictionary."""
        if np.ndim(threshold) == 2:
            return dict(zip(self.classes.tolist(), (threshold[0] + self.score.offset).tolist(), strict=True))
        return threshold + self.score.offset

    def _per_category(self, answers: list[Any]) -> Any:
        if self.categories is None:
            return answers[0]
        return dict(zip(self.categories.classes.tolist(), answers, strict=True))


def each_level(confidence_level: Any, answer: Callable[[Fraction], _T]) -> _T | list[_T]:
    """One level, one answer; a list of levels, a list of answers."""
    if isinstance(confidence_level, (list, tuple, np.ndarray)):
        return [answer(level) for level in [as_level(level) for level in confidence_level]]
    return answer(as_level(confidence_level))


def _bracket(rule: Rule, threshold: float, delta: float) -> tuple[float, float]:
    if math.isinf(threshold):
        return 1.0, 1.0  # every label is in the set
    band = dkw_band(rule.evidence.n, delta) + float(rule.setting.miss_rate)
    lower = float((rule.evidence.high <= threshold).mean()) - band
    upper = float((rule.evidence.low <= threshold).mean()) + band
    return max(lower, 0.0), min(upper, 1.0)


def _fill_empty(mask: Bools, matrix: Floats, own: Bools | None) -> None:
    empty = np.flatnonzero(~mask.any(axis=1))
    allowed = matrix[empty] if own is None else np.where(own[empty], matrix[empty], -1)
    mask[empty, allowed.argmax(axis=1)] = True
