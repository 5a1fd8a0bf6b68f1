"""`Calibration`: what calibration found; asks for a level, answers with sets, p-values and claims."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, Never, overload

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, blocks, frozen, is_tensor, on_device
from setwise._lazy import lazy
from setwise.calibration.calibration_file import FORMAT, read_parts, write_parts
from setwise.container import believing_nothing
from setwise.contamination.annotator_model import AnnotatorParameters
from setwise.decisions.comparison import Comparison, compared
from setwise.decisions.monitor import Monitor
from setwise.decisions.triage import Brought, Mode, Triage, new_rows, own_rows
from setwise.errors import InputError, Remedy, refuse_names
from setwise.evidence.evidence import Evidence
from setwise.evidence.proposals import Proposals, among_candidates, most_probable
from setwise.evidence.row_facts import categories, weights
from setwise.evidence.row_index import check_row_names
from setwise.evidence.top_probabilities import TopK
from setwise.guarantees import Guarantee
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import UNKNOWN, Vocabulary
from setwise.labels.votes import Votes
from setwise.parts import Source
from setwise.probabilities import as_probabilities, in_precision, precision_of
from setwise.ranks import Level, Levels, as_level, dkw_band, each_level, upper_bound
from setwise.row_noise import uniforms
from setwise.scores import Score
from setwise.strategies import Rule, Setting, Strategy
from setwise.strategies.answered import answered_rule, check_answered
from setwise.strategies.premises import Judgement


class SmallCalibrationWarning(UserWarning):
    """There are too few calibration examples for the level asked for: every label is in the set."""


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """What calibration found: asks for a confidence level, answers with sets, p-values and claims.

    Made by `conformalize` or `Calibration.load`. Every question may be asked at any level, afterwards and
    repeatedly; a list of levels gives a list of answers.
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
        object.__setattr__(self, "rules", self._calibrated(self.strategy.calibrate))

    def _calibrated(self, calibrate: Callable[[Evidence, Setting], Rule]) -> tuple[Rule, ...]:
        """One rule for each category."""
        parts = [self.evidence]
        if self.categories is not None and self.category is not None:
            parts = [
                self.evidence.rows(np.flatnonzero(self.category == code)) for code in range(len(self.categories))
            ]
        told = replace(self.setting, judged=self._judged)
        return tuple(self._noted(code, calibrate, part, told) for code, part in enumerate(parts))

    def _noted(self, code: int, calibrate: Callable[..., Rule], part: Evidence, told: Setting) -> Rule:
        try:
            return calibrate(part, told)
        except ValueError as error:
            if self.categories is not None:
                error.add_note(f"This is category {self.category_names[code]!r} of by.")
            raise

    @property
    def classes(self) -> Array:
        """The labels, in the order of the probability columns."""
        return self.vocabulary.classes

    @property
    def by(self) -> str:
        """Where categories come from: ``"given"``, ``"predicted"`` or ``"size"``."""
        return self.setting.by

    @property
    def seed(self) -> int:
        """What seeds the noise of randomised scores."""
        return self.setting.seed

    @property
    def selection(self) -> str:
        """Why these rows are no random choice of those of their source; empty where nothing shows that."""
        return self._judged.selection

    @property
    def category_names(self) -> list[Any]:
        """The categories, in the order of `rules`; one None without categories."""
        return [None] if self.categories is None else list(self.categories.classes.tolist())

    @property
    def asks(self) -> tuple[str, ...]:
        """The arguments without which `predict_set` gives no sets: what was known of these rows, of new ones."""
        known = {
            "by": self.by == "given" and self.categories is not None,
            "candidates": self.by == "size",
            "sample_weight": self.evidence.weight is not None,
            "row_ids": self.setting.named and self.conformity_score.randomized,
        }
        return tuple(name for name, holds in known.items() if holds)

    @property
    def parts(self) -> tuple[Calibration, ...]:
        """The calibrations that answer: this one."""
        return (self,)

    # ---------------------------------------------------------------- questions

    @overload
    def threshold(self, confidence_level: Level = 0.9, *, by: Any = None, sample_weight: Any = None) -> Any: ...
    @overload
    def threshold(self, confidence_level: Levels, *, by: Any = None, sample_weight: Any = None) -> list[Any]: ...
    def threshold(self, confidence_level: Any = 0.9, *, by: Any = None, sample_weight: Any = None) -> Any:
        """The critical score q on its published scale (LAC: labels with 1 − f ≤ q are in the set).

        +inf where there are too few examples. Calibrated by category, `by` names one category. With weighted
        rows the threshold depends on the new row's weight, which must be given: one number, or one per row.
        `classwise` has one threshold per class, in the order of `classes`.
        """
        if self.evidence.weight is not None and sample_weight is None:
            raise ValueError(
                "threshold: calibrated with sample_weight, the threshold depends on the weight of the new "
                "row; pass sample_weight=… (one number, or one per row)."
            )
        self._check_weighted(sample_weight)
        weight = None if sample_weight is None else weights(np.atleast_1d(sample_weight), None)
        code = self._category_code(by)

        def answer(level: Fraction) -> Any:
            self._warn_if_short(level, np.array([code]))
            found: Any = self.rules[code].threshold(level, weight) + self.conformity_score.offset
            one = np.ndim(found) == 2 or (sample_weight is not None and np.ndim(sample_weight) == 0)
            return found[0] if one else found

        return each_level(confidence_level, answer)

    @overload
    def predict_set(
        self,
        probabilities: Any,
        confidence_level: Level = 0.9,
        *,
        by: Any = None,
        candidates: Any = None,
        sample_weight: Any = None,
        row_ids: Any = None,
        allow_empty: bool = True,
    ) -> LabelSets: ...
    @overload
    def predict_set(
        self,
        probabilities: Any,
        confidence_level: Levels,
        *,
        by: Any = None,
        candidates: Any = None,
        sample_weight: Any = None,
        row_ids: Any = None,
        allow_empty: bool = True,
    ) -> list[LabelSets]: ...
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
        **others: Never,
    ) -> Any:
        """The prediction sets of new rows, as `LabelSets`.

        Where new rows come with `candidates` of their own the answer is the part of the set inside them, which
        keeps the promise if these candidates hold the truth. `Votes` do more, where calibration rows had votes and
        some were verified: they say how probable each label is, nothing is cut off, and the promise is
        ``guarantee(…, votes=True)``.
        ``allow_empty=False`` puts the most probable label (among the candidates) into an empty set.
        """
        refuse_names(others, alpha="confidence_level")
        given = {"by": by, "candidates": candidates, "sample_weight": sample_weight, "row_ids": row_ids}
        masks = self._masks(probabilities, **given, allow_empty=allow_empty, device=on_device(probabilities))
        return each_level(confidence_level, lambda level: sets_of(masks(level), self.vocabulary))

    def predict_mask(
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
        """The same sets as an (n, K) boolean mask: of a torch tensor as a tensor on its device, else as an array.

        >>> import numpy as np, setwise
        >>> P = np.random.default_rng(0).dirichlet([1, 1, 1], size=500)
        >>> setwise.conformalize(P, P.argmax(axis=1)).predict_mask([[0.97, 0.02, 0.01]])
        array([[ True, False, False]])
        """
        self._need_all("predict_mask")
        given = {"by": by, "candidates": candidates, "sample_weight": sample_weight, "row_ids": row_ids}
        masks = self._masks(probabilities, **given, allow_empty=allow_empty, device=is_tensor(probabilities))
        return each_level(confidence_level, masks)

    def _masks(
        self,
        probabilities: Any,
        *,
        by: Any,
        candidates: Any,
        sample_weight: Any,
        row_ids: Any,
        allow_empty: bool,
        device: bool,
    ) -> Callable[[Fraction], Any]:
        """What gives the mask of new rows at a level; on their device if asked."""
        check_row_names(probabilities=probabilities, candidates=candidates, row_ids=row_ids)
        own = own_candidates(candidates, self.vocabulary)
        rate = float(self.setting.miss_rate)
        without = "leave them out" if self.by != "size" else "pass by=…, how many each row has, in their place"
        voted = isinstance(candidates, Votes)
        if own is not None and not voted and rate and self.strategy.name != "max":
            raise InputError(
                f"candidates: with a miss rate of {rate:g} the truth may be outside those of new rows as often, "
                "and sets cut down to them cover less than promised",
                without,
            )
        if own is not None and not voted and self._judged.truth_refuted:
            raise InputError(
                f"candidates: those of new rows may lack the true label as these do "
                f"({self._judged.truth_is_candidate.detail}), and sets cut down to them cover less than promised",
                without,
            )
        if voted and device:
            raise InputError("candidates: votes are weighed on the host", "pass probabilities.cpu().numpy()")
        matrix, off, weight, codes = self._new_rows(probabilities, by, sample_weight, own, device=device)
        u = self._noise(matrix, row_ids, off)
        score, rules = self.conformity_score, self.rules
        if voted:
            own, rules = None, self._answered
            matrix = self._posterior(candidates, matrix, precision_of(probabilities))

        def answer(level: Fraction) -> Any:
            self._warn_if_short(level, codes, rules)
            limits = np.asarray(_limits(rules, level, weight, codes)) + off
            if not isinstance(matrix, np.ndarray):
                return matrix.mask(score, limits, u, own, allow_empty=allow_empty)
            by_label = limits.ndim == 2
            mask = score.score(matrix, u=u) <= limits if by_label else score.below(matrix, limits, u=u)
            return finished_mask(mask, matrix, own, allow_empty=allow_empty)

        return answer

    def predict_p(
        self,
        probabilities: Any,
        *,
        by: Any = None,
        sample_weight: Any = None,
        row_ids: Any = None,
    ) -> Floats:
        """The (n, K) p-values: at level 1−ε a label is in the set exactly where its p-value exceeds ε."""
        check_row_names(probabilities=probabilities, row_ids=row_ids)
        self._need_all("predict_p")
        matrix, off, weight, codes = self._new_rows(probabilities, by, sample_weight)
        u, values = self._noise(matrix, row_ids, off), np.empty(matrix.shape)
        if codes is not None:
            values[codes == UNKNOWN] = 1.0
        for code, rule in enumerate(self.rules):
            own = None if codes is None else np.flatnonzero(codes == code)
            for block in blocks(values if own is None else values[: len(own)], 4):
                rows: Any = block if own is None else own[block]
                scores = self.conformity_score.score(matrix[rows], u=None if u is None else u[rows])
                scores -= off
                values[rows] = rule.p_values(scores, None if weight is None else weight[rows])
        return values

    @overload
    def guarantee(self, confidence_level: Level = 0.9, *, votes: bool = False) -> Guarantee: ...
    @overload
    def guarantee(self, confidence_level: Levels, *, votes: bool = False) -> list[Guarantee]: ...
    def guarantee(self, confidence_level: Any = 0.9, *, votes: bool = False, **others: Never) -> Any:
        """What may be claimed at this level, and why; prints as a short paragraph.

        With ``votes=True`` of new rows whose votes are passed to `predict_set` as candidates.
        """
        refuse_names(others, alpha="confidence_level")
        rules = self._answered if votes else self.rules

        def answer(level: Fraction) -> Guarantee:
            claims = [self._remarked(rule.claim(level)) for rule in rules]
            if self.categories is None:
                return claims[0]
            return Guarantee.of_categories(dict(zip(self.category_names, claims, strict=True)))

        return each_level(confidence_level, answer)

    def triage(
        self,
        probabilities: Any = None,
        candidates: Any = None,
        max_error: float = 0.05,
        mode: Mode = "rate",
        *,
        random_state: Any = None,
        comparison: Comparison | None = None,
    ) -> Triage:
        """Which rows may be accepted with the label proposed for them, and which go to review.

        Without new rows it decides the calibration rows that nobody checked, which needs no more than that the
        verified rows were chosen at random. The label of a row is the most probable one by its votes and the model
        (of candidate sets, the most probable candidate; without either, what the model says). Categories make no
        difference here.

        Parameters
        ----------
        probabilities
            (n, K) class probabilities of new rows.
        candidates
            Votes or candidate sets of the new rows, if the calibration rows had them too. Passing them declares
            that they arise as those did.
        max_error
            How many of the accepted labels may be wrong.
        mode
            ``"rate"``: on average over samples of checks, where one in which nothing is accepted counts as zero; at
            least 3/`max_error` checks are needed. ``"confident"``: in 95 of 100 samples of checks.
        random_state
            Seeds the noise that breaks ties between confidences; default is the calibration's own seed.
        comparison
            What `compare` found of the new rows: where they differ from the calibration rows nothing is promised.
            By default they are compared here, by what the model says of them.
        """
        if probabilities is None:
            if candidates is not None:
                raise InputError("candidates: those of new rows", Remedy("probabilities", None, "for these rows"))
            return own_rows(self._judged, self.classes, max_error, mode, random_state)
        proposed, brought = self.proposed(probabilities, candidates)
        if comparison is None and len(proposed) and not self.setting.differs:
            comparison = compared(self._undivided, probabilities)
        return self.decided(proposed, brought, max_error, mode, random_state=random_state, comparison=comparison)

    def proposed(self, probabilities: Any, candidates: Any = None) -> tuple[Proposals, Brought]:
        """The labels that `triage` proposes for new rows, and what these brought along; batches may follow."""
        check_row_names(probabilities=probabilities, candidates=candidates)
        self._need_all("triage")
        matrix, _ = self._in_precision(probabilities)
        precision = precision_of(probabilities)
        self._same_precision(precision, "so that near ties change the predicted label")
        own = own_candidates(candidates, self.vocabulary)
        brought: Brought = "nothing"
        _check_rows(own, matrix)
        proposed = most_probable(matrix)
        if isinstance(candidates, Votes):
            proposed, brought = most_probable(self._posterior(candidates, matrix, precision)), "votes"
        elif own is not None:
            proposed, brought = among_candidates(matrix, own), "candidates"
        if self.evidence.noise is not None and not self.setting.named:
            proposed = replace(proposed, noise=uniforms(matrix, self.seed))
        return proposed, brought

    def decided(
        self,
        proposed: Proposals,
        brought: Brought,
        max_error: float,
        mode: Mode,
        *,
        random_state: Any = None,
        comparison: Comparison | None = None,
    ) -> Triage:
        """The triage of new rows, all of them, with the labels that `proposed` gave."""
        judged = self._judged
        if comparison is not None and not judged.setting.differs:
            judged = replace(judged, setting=replace(judged.setting, differs=comparison.differs))
        return new_rows(judged, self.classes, proposed, brought, max_error, mode, random_state)

    @overload
    def bracket(
        self, confidence_level: Level = 0.9, delta: float = 0.05, *, by: Any = None
    ) -> tuple[float, float]: ...
    @overload
    def bracket(
        self, confidence_level: Levels, delta: float = 0.05, *, by: Any = None
    ) -> list[tuple[float, float]]: ...
    def bracket(self, confidence_level: Any = 0.9, delta: float = 0.05, *, by: Any = None) -> Any:
        """(lower, upper): where the coverage of these sets lies, as far as candidates alone can prove it.

        F_max(t) − band − η ≤ P(y ∈ T) ≤ F_min(t) + band + η with the empirical distributions of the
        largest and smallest candidate score, the Dvoretzky–Kiefer–Wolfowitz–Massart band at level `delta`
        and the miss rate η; where verified rows refute that rate, their upper bound on it takes its place. Of votes
        η must be given, as answers need not hold the truth. It needs independent rows and no true label (of sampled
        rows among which some are verified, that these were chosen at random); the upper
        end, new rows whose probabilities are not rounded more than these, for then sets may be larger. Calibrated
        by category, `by` names one category.
        """
        as_level(delta, "delta")
        if self.evidence.shares is not None:
            raise ValueError("bracket: not available for weighted or grouped rows, which are not independent.")
        if self.setting.novel:
            raise ValueError("bracket: not available where rows carry labels that no learning row has.")
        if self.setting.votes and not self.setting.miss_rate:
            raise InputError(
                "bracket: votes do not say that the true label is among the answers",
                Remedy("miss_rate", None, "for how often it may not be"),
                "pass votes.candidates() if it always is",
            )
        if self.setting.seen:
            raise ValueError(f"bracket: not available for rows that the model has seen: {self.setting.seen}.")
        if self.selection:
            raise InputError(f"bracket: {self.selection}", "hold all rows, with CalibrationRows(memory_limit=…)")
        if self.setting.differs:
            raise ValueError(f"bracket: not available for rows that differ from these: {self.setting.differs}.")
        code = self._category_code(by)
        rule = self.rules[code]
        part = self.evidence if self.category is None else self.evidence.rows(np.flatnonzero(self.category == code))

        def answer(level: Fraction) -> tuple[float, float]:
            limit = rule.threshold(level)
            if np.ndim(limit):
                raise ValueError("bracket: not available where every label has its own threshold.")
            return _bracket(part, float(limit), *_miss_rate(part, self.setting, self._judged, delta))

        return each_level(confidence_level, answer)

    # ---------------------------------------------------------------- new rows beside these

    def compare(
        self, probabilities: Any, *, by: Any = None, candidates: Any = None, groups: Any = None
    ) -> Comparison:
        """Whether new rows are like the calibration rows, by the most probable label and its probability.

        Parameters
        ----------
        probabilities
            The model's probabilities of the new rows.
        by, candidates
            As in `predict_set`: calibrated by category, rows are compared within each.
        groups
            Rows that belong together, where the calibration rows have groups.

        Examples
        --------
        >>> import numpy as np, setwise
        >>> rng = np.random.default_rng(0)
        >>> P = rng.dirichlet([1, 1, 1], size=900)
        >>> cal = setwise.conformalize(P[:500], P[:500].argmax(axis=1))
        >>> cal.compare(P[500:]).refuted
        False
        >>> print(cal.compare(P[500:] ** 2 / (P[500:] ** 2).sum(axis=1, keepdims=True)))
        The 400 new rows differ from the 500 calibration rows: the largest probability of a row is 0.758 ...
        """
        return compared(self, probabilities, by=by, candidates=candidates, groups=groups)

    def monitor(
        self,
        delta: float = 0.05,
        *,
        random_state: Any = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Monitor:
        """Watches new rows that arrive in time, and raises an alarm where they are no longer like these.

        Parameters
        ----------
        delta
            The probability of an alarm, at any time, as long as rows come from the source of the calibration rows.
        random_state
            Seeds what breaks ties.
        resume
            A file that `Monitor.save` wrote, to go on from; its `delta` and seed count.

        Examples
        --------
        >>> import numpy as np, setwise
        >>> rng = np.random.default_rng(0)
        >>> P = rng.dirichlet([1, 1, 1], size=900)
        >>> cal = setwise.conformalize(P[:500], P[:500].argmax(axis=1))
        >>> monitor = cal.monitor(random_state=0)
        >>> monitor.update(P[500:]).alarm
        False
        >>> print(monitor.update(rng.dirichlet([9, 9, 9], size=200)))
        Alarm at row ...: rows are no longer like the calibration rows; what differs is the largest probability ...
        """
        return Monitor(self, delta=delta, random_state=random_state, resume=resume)

    def differing(self, differs: str) -> Calibration:
        """The same calibration asked about rows that differ from its own, in words: it promises them nothing."""
        return replace(self, setting=replace(self.setting, differs=differs))

    def observed(
        self, probabilities: Any, *, by: Any = None, candidates: Any = None
    ) -> tuple[Floats, float, Ints | None]:
        """New rows' probabilities in the precision of the calibration, how far they may be off, and categories."""
        self._need_all("compare")
        own = own_candidates(candidates, self.vocabulary)
        matrix, off, _, codes = self._new_rows(probabilities, by, None, own)
        return matrix, off, codes

    # ---------------------------------------------------------------- a file, a picture

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the calibration as one file: a zip of arrays and a JSON header, without pickle.

        ``docs/calibration-file.md`` describes it. It is written beside its place and then renamed.
        """
        write_parts(path, **{part.name: getattr(self, part.name) for part in fields(self) if part.init})

    @classmethod
    def load(cls, path: Source) -> Calibration:
        """Reads what `save` wrote; refuses anything else, damaged files, and files of a newer format, by name."""
        parts = read_parts(path)
        with believing_nothing(path, FORMAT):
            try:
                return cls(**parts)
            except InputError as error:  # nobody gave this input but the file
                raise ValueError(error.problem) from error

    def __repr__(self) -> str:
        parts = f", {len(self.rules)} categories" if self.categories is not None else ""
        return (
            f"Calibration(strategy={self.strategy.name!r}, conformity_score={self.conformity_score.name!r}, "
            f"{self.evidence.n:,} examples, {len(self.vocabulary):,} classes{parts})"
        )

    def _repr_html_(self) -> str:
        return self.guarantee()._repr_html_()

    def scored(self, probabilities: Any, *, row_ids: Any = None) -> tuple[Floats, Floats]:
        """New rows' probabilities in the precision of the calibration, and the scores of all labels."""
        self._need_all("scores")
        matrix, off = self._in_precision(probabilities)
        return matrix, self._scores(matrix, off, row_ids)

    def check_predicted(self, probabilities: Any) -> None:
        """Refuses probabilities of another type where the most probable label is the category."""
        if self.by == "predicted":
            self._same_precision(precision_of(probabilities), "so that near ties change the predicted label")

    # ---------------------------------------------------------------- helpers

    def _need_all(self, what: str) -> None:
        if self.setting.top:
            raise InputError(
                f"{what}: not defined where only the top {self.setting.top} labels have probabilities",
                "calibrate on the probabilities of all labels",
            )

    @lazy
    def _judged(self) -> Judgement:
        """How premises are known, from all rows."""
        names = tuple(self.vocabulary.classes.tolist())
        return Judgement(self.evidence, self.setting, names, self.category)

    @property
    def _undivided(self) -> Calibration:
        """The same without categories."""
        if self.categories is None:
            return self
        return replace(self, categories=None, category=None, setting=replace(self.setting, by="given"))

    def _remarked(self, made: Guarantee) -> Guarantee:
        """With what is said of sampled rows, and of labels that have no probability of their own."""
        remarks, top, sampled = list(made.remarks), self.setting.top, self.setting.sampled
        if sampled:
            kept, checked = self.evidence.n + self.setting.dropped, self.setting.checked
            told = f"a random sample of {kept - checked:,} of the {sampled - checked:,}"
            also = f"the {checked:,} verified rows and {told} other" if checked else told
            remarks.append(f"Calibrated on {also} rows given.")
        if top:
            remarks.append(
                f"A label outside the {top:,} that a row stores counts as if it had an equal share of the "
                "remaining probability; where one of them is in a set, all are."
            )
        return replace(made, remarks=tuple(remarks))

    def _scores(self, matrix: Floats, off: float, row_ids: Any) -> Floats:
        scores: Floats = self.conformity_score.score(matrix, u=self._noise(matrix, row_ids, off)) - off
        return scores

    def _in_precision(self, probabilities: Any, *, device: bool = False) -> tuple[Any, float]:
        """Probabilities in the precision of the calibration, and how far scores are off."""
        domain, k, top = self.conformity_score.domain, len(self.vocabulary), self.setting.top
        given = probabilities.k if isinstance(probabilities, TopK) else 0
        if given != top or (given and probabilities.n_classes != k):
            raise InputError(
                f"probabilities: calibrated with those of {f'the top {top}' if top else 'all'} labels out of "
                f"{k:,}, got {f'the top {given}' if given else 'a column for each'}",
                f"pass TopK.of(probabilities, k={top})" if top else "pass the probabilities of all labels",
            )
        matrix: Any
        if given:
            matrix = probabilities
        elif device:
            from setwise.evidence.device_rows import DeviceRows  # noqa: PLC0415 - torch, for tensors alone

            matrix = DeviceRows.read(probabilities, domain, k)
        else:
            matrix = as_probabilities(probabilities, domain, k, classes=self.vocabulary.classes)
        return in_precision(matrix, precision_of(probabilities), self.setting.precision)

    def _new_rows(
        self,
        probabilities: Any,
        by: Any,
        sample_weight: Any,
        own: LabelSets | None = None,
        *,
        device: bool = False,
    ) -> tuple[Any, float, Floats | None, Ints | None]:
        """Probabilities in the precision of the calibration, how far scores are off, weights and categories."""
        check_row_names(probabilities=probabilities, by=by, sample_weight=sample_weight)
        matrix, off = self._in_precision(probabilities, device=device)
        _check_rows(own, matrix)
        if by is None:
            self.check_predicted(probabilities)
        if self.by == "size" and own is None and by is None:
            raise ValueError(
                "by: calibrated by the number of candidates, so new rows need theirs too; pass candidates=… to "
                "predict_set, or by=…, how many each row has."
            )
        if self.by != "given" and by is None:
            by = automatic_categories(self.by, matrix, self.classes, own)
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
        return matrix, off, weights(sample_weight, len(matrix)), codes

    def _check_weighted(self, sample_weight: Any) -> None:
        if (sample_weight is None) != (self.evidence.weight is None):
            raise ValueError(
                "sample_weight: calibrated with weights, so new rows need theirs too."
                if sample_weight is None
                else "sample_weight: calibrated without weights; pass sample_weight to conformalize first."
            )

    def _noise(self, matrix: Any, row_ids: Any, off: float) -> Floats | None:
        """The uniform number of each row; its bits decide, and where these are lost the smallest one is valid."""
        randomized = self.conformity_score.randomized
        if randomized and (row_ids is not None) != self.setting.named:
            raise InputError(
                "row_ids: calibrated with ids, so new rows need theirs too, from which their noise is drawn"
                if self.setting.named
                else "row_ids: calibrated without ids, from which the noise of new rows cannot be drawn then",
                "give ids to calibration and new rows alike, or to neither",
            )
        if not randomized and row_ids is None:
            return None
        if off and row_ids is None:
            return np.zeros(len(matrix))
        drawn = partial(uniforms, matrix) if isinstance(matrix, np.ndarray) else matrix.uniforms
        return np.asarray(drawn(self.seed, row_ids))

    @lazy
    def _answered(self) -> tuple[Rule, ...]:
        """The rules for new rows with votes of their own, one for each category."""
        return self._calibrated(answered_rule)

    def _posterior(self, votes: Votes, matrix: Floats, precision: str) -> Floats:
        """How probable each label of new rows is given their votes."""
        check_answered(self.evidence)
        self._same_precision(precision, "a difference that answers magnify")
        assert self.annotators is not None  # noqa: S101 - there are answers
        return self.annotators.posterior(votes.recoded(self.vocabulary), matrix)

    def _same_precision(self, given: str, why: str) -> None:
        ours = self.setting.precision
        if given != ours:
            problem = f"probabilities: {given}, and those of the calibration were {ours}, {why}"
            raise InputError(problem, f"pass them as {ours}, which Parquet and Arrow files keep and text does not")

    def _warn_if_short(
        self, level: Fraction, codes: Ints | None = None, rules: tuple[Rule, ...] | None = None
    ) -> None:
        """One warning where every label is in every set, for the categories that were asked about."""
        rules = rules or self.rules
        asked = range(len(rules)) if codes is None else np.unique(codes[codes >= 0]).tolist()
        reasons = {i: reason for i in asked if (reason := rules[i].shortage(level))}
        unseen = 0 if codes is None else int((codes == UNKNOWN).sum())
        if reasons:
            worst = min(reasons, key=lambda i: rules[i].n)
            where = "" if self.categories is None else f" in {len(reasons)} of {len(rules)} categories"
            text = f"every label is in the set{where}: {reasons[worst]}."
        elif unseen:
            text = f"every label is in the set for {unseen} rows of categories without calibration examples."
        else:
            return
        warnings.warn(text, SmallCalibrationWarning, stacklevel=4)

    def _category_code(self, by: Any) -> int:
        """The position of the rule for one category; 0 without categories."""
        if self.categories is None:
            if by is not None:
                raise ValueError("by: calibrated without categories; pass by to conformalize first.")
            return 0
        known = self.category_names
        if not isinstance(by, Hashable) or by not in known:
            raise ValueError(f"by: calibrated by category; name one of them: {', '.join(map(repr, known[:8]))}.")
        return known.index(by)


def _limits(rules: tuple[Rule, ...], level: Fraction, weight: Floats | None, codes: Ints | None) -> Any:
    """The stored threshold, or one per row where it depends on category or weight."""
    if codes is None:
        return rules[0].threshold(level, weight)
    found = [rule.threshold(level) if weight is None else math.inf for rule in rules]
    limits = np.full((len(codes), *np.shape(found[0])[1:]), math.inf)
    for code, rule in enumerate(rules):
        rows = np.flatnonzero(codes == code)
        limits[rows] = found[code] if weight is None else rule.threshold(level, weight[rows])
    return limits


def own_candidates(candidates: Any, vocabulary: Vocabulary) -> LabelSets | None:
    """The candidates that new rows bring along; every label where a row brings none."""
    if candidates is None:
        return None
    if on_device(candidates):
        from setwise.evidence.device_rows import read_candidates  # noqa: PLC0415 - torch, for tensors alone

        candidates = read_candidates(candidates)
    return as_candidates(candidates, len(vocabulary), vocabulary.classes).filled()


def _check_rows(own: LabelSets | None, matrix: Floats) -> None:
    if own is not None and len(own) != len(matrix):
        raise ValueError(f"candidates: {len(own)} rows for {len(matrix)} rows of probabilities.")


def sets_of(mask: Any, vocabulary: Vocabulary) -> LabelSets:
    """The sets of a mask, an array or a tensor on a device; of many classes they are sets already, by position."""
    if isinstance(mask, LabelSets):
        return mask.named(vocabulary)
    if isinstance(mask, np.ndarray):
        return LabelSets(vocabulary, len(mask), _mask=frozen(mask))
    from setwise.evidence.device_rows import label_sets  # noqa: PLC0415 - torch, for tensors alone

    return label_sets(mask, vocabulary)


def finished_mask(mask: Bools, matrix: Floats, own: LabelSets | None, *, allow_empty: bool) -> Bools:
    """Sets cut down to the rows' own candidates; empty ones filled with the most probable label where asked."""
    inside = None if own is None else own.to_mask()
    if inside is not None:
        mask &= inside
    if not allow_empty:
        empty = np.flatnonzero(~mask.any(axis=1))
        allowed = matrix[empty] if inside is None else np.where(inside[empty], matrix[empty], -1)
        mask[empty, allowed.argmax(axis=1)] = True
    return mask


def automatic_categories(by: str, matrix: Any, classes: Array, sets: LabelSets | None) -> Array:
    """The label predicted for each row, or the number of its candidates: alike for calibration and new rows."""
    if by == "predicted":
        return np.asarray(classes[matrix.argmax(axis=1)])
    if by == "size" and sets is not None:
        return np.asarray(sets.sizes)
    raise ValueError(f"by: {by!r} is not known; use 'predicted', 'size', or one category per row.")


def _miss_rate(part: Evidence, setting: Setting, judged: Judgement, delta: float) -> tuple[float, float]:
    """A bound on how often the truth is no candidate, and the share of δ that is left beside it."""
    if not judged.truth_refuted:
        return float(setting.miss_rate), delta
    if part.chance is not None:
        raise ValueError(
            "bracket: verified rows refute the miss rate, and verified with unequal probabilities do not bound it."
        )
    if judged.checks.status == "refuted by the data":
        raise ValueError(
            f"bracket: verified rows refute the miss rate, and do not bound it: {judged.checks.detail}."
        )
    m, missed = Judgement(part, setting).verified_and_missed
    return upper_bound(missed, m, delta / 2), delta / 2


def _bracket(part: Evidence, threshold: float, miss_rate: float, delta: float) -> tuple[float, float]:
    if math.isinf(threshold):
        return 1.0, 1.0  # every label is in the set
    band = dkw_band(part.n, delta) + miss_rate
    lower = float((part.high <= threshold).mean()) - band
    upper = float((part.low <= threshold).mean()) + band
    return max(lower, 0.0), min(upper, 1.0)
