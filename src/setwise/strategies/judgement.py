"""What a strategy knows, and how each premise of a claim is judged: once, from all that is known of rows.

A premise is shown, refuted, stated by the user or assumed; "not refuted" is never "shown". Parts of a calibration
(its categories, the rows a fallback is left with) share one `Judgement`, so that what the verified rows of one part
refute no other part promises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from setwise._arrays import Ints
from setwise._lazy import lazy
from setwise.contamination.assumption import NOTHING, Assumption
from setwise.contamination.diagnose import Diagnosis, examine
from setwise.crowd.dependence import Dependence, dependence
from setwise.evidence.evidence import Evidence
from setwise.evidence.score_table import check_unchanged
from setwise.findings import Finding, format_p_value
from setwise.guarantees import Claim, Event, Premise, Status
from setwise.ranks import clopper_pearson, mean_exceeds
from setwise.scores import Domain

DELTA = 0.05
"""Bounds from verified rows may fail for this share of samples of verified rows."""


@dataclass(frozen=True)
class Setting:
    """What a strategy is told beyond the evidence: the score, and what the user declared."""

    conformity_score: str
    """The name of the score."""
    n_classes: int
    miss_rate: Fraction = Fraction(0)
    dropped: int = 0
    """How many rows without candidates were left out."""
    single: bool = False
    """Whether rows have one label by design."""
    assume: Assumption = NOTHING
    checked: int = 0
    """How many rows are verified."""
    seed: int = 0
    """For strategies that draw."""
    domain: Domain = "simplex"
    """What the score's probabilities are."""
    filled: bool = False
    """Whether rows without candidates were given every label."""
    written: bool = False
    """Whether the verified labels were written into the candidates of their rows."""
    novel: int = 0
    """How many rows carry labels that no learning row has, where the labels were inferred."""
    equal: int = 0
    """How many rows equal a training row, as different events may."""
    seen: Finding | None = None
    """What shows that the model was trained on these rows."""
    votes: bool = False
    """Whether candidates come from votes."""
    named: bool = False
    """Whether rows have ids, from which the noise of randomised scores is drawn."""
    chosen: Finding | None = None
    """What shows that the verified rows were not chosen at random."""
    differs: Finding | None = None
    """What shows that the new rows that are asked about are not like these."""
    scope: str = ""
    """Of which sets the miss rate is declared, where it is not all: those of each category."""
    by: str = "given"
    """Where categories come from: "given", "predicted", "size"; none with "label", a threshold for each class."""
    precision: str = "float64"
    """The floating type of the probabilities, as numpy names it."""
    top: int = 0
    """How many labels of each row have a probability of their own, where not all have; else 0."""
    truth: str = ""
    """How many right labels of a row a set must contain, where several may be right; see `right_labels`."""
    empty: int = -1
    """How many rows without a right label were left out; −1 where such rows are not."""
    sampled: int = 0
    """Of how many rows these are a random sample; 0 where they are all that were given."""
    judged: Judgement | None = None
    """The judgement of all rows, where the evidence is a part of them."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """How the premises of claims about these rows are known.

    `classes` names the labels in what is printed; `category` is that of each row, where rows are promised by it.
    """

    evidence: Evidence
    setting: Setting
    classes: tuple[Any, ...] | None = None
    category: Ints | None = None

    def premise(self, name: str) -> Premise:
        """A premise that needs nothing but the rows to be judged, by its name in the vocabulary."""
        if name == "truth_is_candidate":
            return self.truth_is_candidate
        if name == "contamination":
            return self.contamination
        if name == "classes":
            return Premise(name, "assumed", values=(f"{self.setting.n_classes:,}",))
        if name == "different_events":
            counts = (f"{self.setting.equal:,}", f"{self.evidence.n:,}")
            return Premise(name, "stated by you", values=counts)
        if name == "unseen" and self.setting.seen:
            return Premise(name, "refuted by the data", self.setting.seen.sentence)
        if name in {"same_source", "same_groups"} and self.setting.differs:
            return Premise(name, "refuted by the data", self.setting.differs.sentence)
        declared = {"weights", "missing_at_random", "misses_at_random", "none_right"}
        dropped = {"missing_at_random": self.setting.dropped, "none_right": self.setting.empty}
        detail = f"{dropped[name]:,} dropped" if name in dropped else ""
        return Premise(name, "stated by you" if name in declared else "assumed", detail)

    def claim(
        self, event: Event, probability: float | None, source: str, *needs: str | Premise, **options: Any
    ) -> Claim:
        """A claim that rests on the premises named, and on those that every claim rests on.

        ``"verified"`` names those of verified rows.
        """
        own: list[Premise] = []
        for need in needs:
            if need == "verified":
                own += self.verification
            else:
                own.append(self.premise(need) if isinstance(need, str) else need)
        named = {premise.name for premise in own}
        standing = [premise for premise in self.standing if premise.name not in named]
        if self.setting.empty >= 0:
            options.setdefault("subject", "a new row with a right label")
        if self.evidence.group is not None:
            options.setdefault("subject", "a row of a random new group")
        elif self.setting.novel:  # exact: ranks count all rows, and labels not learned have the largest scores
            known = f"one of the {self.setting.n_classes:,} classes"
            options.setdefault("subject", f"a new row whose true label is {known}")
        truth = self.setting.truth
        premises = tuple(replace(premise, truth=truth) for premise in (*standing, *own))
        return Claim(event, probability, source, premises, **options, truth=truth)

    @property
    def caution(self) -> str:
        """What to know before anything else; mostly nothing."""
        if not self.setting.novel:
            return ""
        rows = f"{self.setting.novel:,} of {self.evidence.n:,} calibration rows"
        return f"{rows} have a label the model has never seen. Declare all classes."

    @lazy
    def standing(self) -> tuple[Premise, ...]:
        """What every claim about these rows rests on."""
        names = ["same_source"]
        if self.evidence.weight is not None:
            names = ["weights"]
        elif self.evidence.group is not None:
            names = ["same_groups"]
        names += ["unseen", "same_digits", "classes"]
        names += ["same_candidates"] if self.setting.by == "size" else []
        names += ["different_events"] if self.setting.equal else []
        names += ["missing_at_random"] if self.setting.dropped else []
        names += ["none_right"] if self.setting.empty >= 0 else []
        return tuple(map(self.premise, names))

    @lazy
    def truth_is_candidate(self) -> Premise:
        """That the true label is a candidate (an exact label is right), in all rows but the miss rate."""
        rate = float(self.setting.miss_rate)
        scope = " of a random group" if self.evidence.group is not None else self.setting.scope
        exact = self.setting.single and self.evidence.precise
        names = ("error_rate", "labels_right") if exact else ("miss_rate", "truth_is_candidate")
        name, values = (names[0], (f"{rate:g}", scope)) if rate else (names[1], ())
        m, missed = self.verification_counts
        if m == 0:
            return Premise(name, "stated by you", "", values)
        lacking = "wrong" if exact else "too few" if self.setting.truth else "missing"
        detail = f"{lacking} in {missed} of {m} verified rows"
        if missed and not rate:
            return Premise(name, "refuted by the data", detail, values)
        parts = self._parts if missed else []
        for part in parts:
            if _misses_exceed(part, rate, DELTA / len(parts), random=not self.setting.chosen):
                m, missed = Judgement(part, self.setting).verification_counts
                where = " of one category" if self.category is not None else ""
                detail = f"{lacking} in {missed} of {m} verified rows{where}"
                return Premise(name, "refuted by the data", detail, values)
        return Premise(name, "stated by you", detail, values)

    @property
    def _parts(self) -> list[Evidence]:
        """The evidence of each category, of which the miss rate is declared; all of it where there are none."""
        if self.category is None:
            return [self.evidence]
        return [self.evidence.rows(np.flatnonzero(self.category == code)) for code in np.unique(self.category)]

    @property
    def truth_refuted(self) -> bool:
        """Whether verified rows refute that the true label is a candidate as often as declared."""
        return self.truth_is_candidate.status == "refuted by the data"

    @lazy
    def verification_counts(self) -> tuple[int, int]:
        """How many rows are verified, and how many of these lack their truth among the candidates."""
        checked, held = self.evidence.verified, self.evidence.held
        if self.setting.written:  # they say nothing of the candidates that new rows would have
            return 0, 0
        return int(checked.sum()), 0 if held is None else int((checked & ~held).sum())

    @property
    def verification(self) -> tuple[Premise, ...]:
        """How rows were chosen to be verified, and that their labels are right."""
        count, finding = self.setting.checked, self.setting.chosen
        name = "verified_at_random" if self.evidence.chance is None else "known_chances"
        if self.evidence.verified_by_group:
            name, count = "groups_at_random", self.evidence.verified_instances
        values = (f"{count:,}",)
        chosen = Premise(name, "stated by you", values=values)
        if finding:
            chosen = Premise(name, "refuted by the data", finding.sentence, values)
        premises = chosen, Premise("verified_right", "stated by you", truth=self.setting.truth)
        return (*premises, Premise("verified_written", "stated by you")) if self.setting.written else premises

    @property
    def selection(self) -> str:
        """Why these rows are no random choice of those of their source; empty where nothing shows that."""
        if not self.setting.sampled or not self.setting.checked or not self.setting.chosen:
            return ""
        return "verified rows, which were not chosen at random, were all kept, and of the others a sample"

    @lazy
    def diagnosis(self) -> Diagnosis:
        """What the data say of the contamination that was declared."""
        if self.evidence.table is None or self.evidence.named is None:
            raise ValueError("the declared contamination is examined on evidence gathered with needs={'table'}.")
        declared, rate = self.setting.assume, float(self.setting.miss_rate)
        return examine(
            check_unchanged(self.evidence.table), self.evidence.named, declared, rate, classes=self.classes
        )

    @property
    def contamination(self) -> Premise:
        """The contamination that was declared, which the data may refute."""
        p, kind = format_p_value(self.diagnosis.p_value), self.setting.assume.kind
        if self.diagnosis.refuted:
            return Premise(kind, "refuted by the data", p)
        return Premise(kind, "stated by you", f"the data do not contradict it, {p}")

    @lazy
    def dependence(self) -> Dependence | None:
        """How pairs of answers agree beside independence; None where too few rows have two answers to tell."""
        if self.evidence.excess is None or self.evidence.agreed is None:
            return None
        return dependence(self.evidence.agreed, self.evidence.excess)

    @lazy
    def independence(self) -> Premise:
        """That annotators err independently: pairs of answers then agree as often as the annotator model says.

        What no data can contradict is assumed, also where it is declared.
        """
        declared: Status = "stated by you" if self.setting.assume.kind == "independent" else "assumed"
        found = self.dependence
        if found is None:
            return Premise("independent", "assumed", "too few rows with two answers to tell")
        detail = (
            f"two answers to a row agree in {found.agreed:.1%} of cases, independent ones would in "
            f"{found.agreed - found.excess:.1%}"
        )
        refuted: Status = "refuted by the data" if found.refuted else declared
        return Premise("independent", refuted, f"{detail}; {format_p_value(found.p_value)}")


def _misses_exceed(evidence: Evidence, rate: float, delta: float, *, random: bool) -> bool:
    """Whether the verified rows refute that at most this share of candidate sets lacks the truth.

    Rows that were not chosen at random show only how many rows at least lack it. Of groups the shares that each
    misses count. With w the weight of a row over its chance to be verified, w·(missed − rate) has no mean above 0.
    """
    checked = np.flatnonzero(evidence.verified)
    missed = np.zeros(len(checked)) if evidence.held is None else 1.0 - evidence.held[checked]
    if evidence.shares is None and evidence.chance is None:
        trials = len(checked) if random else evidence.n
        return clopper_pearson(int(missed.sum()), trials, 2 * delta)[0] > rate
    if not random:
        return False
    if evidence.group is not None:
        _, which, sizes = np.unique(evidence.group[checked], return_inverse=True, return_counts=True)
        return mean_exceeds(np.bincount(which, missed) / sizes, rate, delta)
    weight = np.ones(evidence.n) if evidence.weight is None else evidence.weight
    weight = weight if evidence.chance is None else weight / evidence.chance
    return mean_exceeds(rate + weight[checked] / weight.max() * (missed - rate), rate, delta)


def judgement(evidence: Evidence, setting: Setting) -> Judgement:
    """The judgement of all rows where there is one, else of this evidence."""
    return setting.judged or Judgement(evidence, setting)
