"""Guarantees: what is claimed, on which premises, and how each premise is known.

Types, the closed vocabulary of premises and their printing; how a premise is judged is in `strategies.judgement`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, Literal

Status = Literal["shown by the data", "refuted by the data", "declared by you", "not knowable here"]
Event = Literal["truth", "candidates", "overlap", "answer", "accepted"]

_EVENTS: dict[Event, str] = {
    "truth": "contains the true label",
    "candidates": "contains all of its candidate labels",
    "overlap": "contains at least one of its candidate labels",
    "answer": "contains an answer drawn at random, by weight, from those of its annotators",
    "accepted": "is right",
}

STANDING = {
    "same_examples": "new examples come from the same source as these",
    "same_groups": "new groups and their rows come from the same source as these",
    "weights": "new examples differ from these only in how often each kind occurs, by the weights given",
    "classes": "the true label is one of these {} classes",
    "unseen": "the model was not trained on these rows",
    "same_digits": "the probabilities of new examples are computed and written as those of these were",
    "independent_rows": "the calibration rows are independent of each other",
    "labels_unseen": "neither model nor annotators have seen the verified labels",
}
"""Premises of ordinary sampling and modelling, which void a promise only where they are refuted."""

PREMISES = STANDING | {
    "same_candidates": "candidates arise for new examples as they did here",
    "truth_is_candidate": "the true label is always a candidate",
    "miss_rate": "the true label is missing from at most {} of the candidate sets{}",
    "misses_at_random": "whether the true label is missing has nothing to do with the example or its label",
    "missing_at_random": "whether a row lacks candidates has nothing to do with its features or its label",
    "single_by_design": "every row has a single candidate by design, as all of these have",
    "random_checks": "the verified rows were chosen at random",
    "known_chances": "rows were verified independently of each other, with the probabilities given",
    "uniform": "every false label is a candidate with the same probability, whatever the example",
    "class": "labels are candidates with probabilities that depend on the true class alone",
    "inclusion": "the inclusion probabilities estimated from these rows are right",
    "calibrated": "among the candidates the model's probabilities are right (a calibrated posterior)",
    "truth_below_mean": "the true label of every calibration row is no stranger than its average candidate",
    "certificate": "false candidates cannot push the threshold below that of the true labels",
    "confident_truth": "at least {} of these rows give their true label a probability of {} or more",
    "max_otherwise": "you would use max in every sample in which this claim could not be made",
    "same_annotators": "new examples would be answered by annotators like these",
    "answers_as_truth": "answers differ because examples are ambiguous: each is distributed as the true label",
    "independent": "annotators err independently of each other, given the true label",
    "recalibrated": "once recalibrated on the answers, the model's probabilities are right",
    "large_sample": "the calibration sample is large",
}
"""Everything that a claim may rest on: each premise has one name and one wording."""


@dataclass(frozen=True)
class Premise:
    """Something a claim rests on, by its name in `PREMISES`, and how it is known.

    `values` fill the wording, and `detail` says what the status rests on.
    """

    name: str
    status: Status
    detail: str = ""
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in PREMISES:
            raise ValueError(f"premise: {self.name!r} is not in the vocabulary; use one of {', '.join(PREMISES)}.")

    @property
    def text(self) -> str:
        """The premise in words."""
        return PREMISES[self.name].format(*self.values)

    @property
    def standing(self) -> bool:
        """Whether it is one of sampling and modelling, which void a promise only where they are refuted."""
        return self.name in STANDING

    def __str__(self) -> str:
        return f"{self.text} ({self.status}{': ' + self.detail if self.detail else ''})"


@dataclass(frozen=True)
class Claim:
    """A lower bound on the probability of an event for a new example.

    The event ``"accepted"`` is about labels that were accepted unseen, and the probability that they are right.
    `probability` is None where nothing can be said. A premise that cannot be known makes the claim conditional,
    unless it is a standing one; a refuted one voids it. `delta` is None for a probability on average over
    calibration samples; otherwise the bound holds in a share of at least 1 − `delta` of samples.
    """

    event: Event
    probability: float | None
    source: str
    premises: tuple[Premise, ...] = ()
    note: str = ""
    delta: float | None = None
    subject: str = "a new example"

    @property
    def conditions(self) -> tuple[Premise, ...]:
        """The premises, beyond the standing ones, that cannot be known here."""
        return tuple(p for p in self.premises if p.status == "not knowable here" and not p.standing)

    @property
    def refuted(self) -> tuple[Premise, ...]:
        """The premises that the data contradict."""
        return tuple(premise for premise in self.premises if premise.status == "refuted by the data")

    @property
    def promised(self) -> bool:
        """Whether the claim is unconditional: no premise is refuted, and none but standing ones unknowable."""
        return self.probability is not None and not self.conditions and not self.refuted

    def __str__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        if self.event == "accepted":
            return f"{self._accepted()}{note}"
        if self.probability is None:
            return f"nothing is promised about whether the set {_EVENTS[self.event]}{note}"
        over = "on average over calibration samples"
        if self.delta is not None:
            over = f"in at least {100 * (1 - self.delta):g} of 100 calibration samples"
        bound = f"with probability at least {_decimal(self.probability)}"
        return f"the set of {self.subject} {_EVENTS[self.event]} {bound} ({self.source}, {over}){note}"

    def _accepted(self) -> str:
        """The claim as a bound on the share of wrong labels."""
        if self.probability is None:
            return "nothing is promised about accepted labels"
        over = "on average over samples of checks"
        if self.delta is not None:
            over = f"in at least {100 * (1 - self.delta):g} of 100 samples of checks"
        wrong = f"{1 - float(_decimal(self.probability)):.4f}".rstrip("0").rstrip(".")
        return f"of {self.subject} at most {wrong} are wrong ({self.source}, {over})"


@dataclass(frozen=True)
class Guarantee:
    """What may be claimed about prediction sets at one confidence level, or about accepted labels.

    Prints as a short paragraph; `to_dict` gives the same as plain data. Where rows were calibrated by category,
    `by_category` holds one guarantee for each and this one has no claims of its own; `promised` is then the
    smallest of theirs.
    """

    strategy: str
    conformity_score: str
    n: int
    confidence_level: float
    claims: tuple[Claim, ...]
    given_calibration: str = ""
    remarks: tuple[str, ...] = ()
    category: Any = None
    unit: str = "examples"
    by_category: Mapping[Any, Guarantee] = field(default_factory=dict)

    @classmethod
    def of_categories(cls, parts: Mapping[Any, Guarantee]) -> Guarantee:
        """One guarantee from those of the categories."""
        own = {name: replace(part, category=name) for name, part in parts.items()}
        first = next(iter(own.values()))
        used = ", ".join(dict.fromkeys(part.strategy for part in own.values()))
        n = sum(part.n for part in own.values())
        return replace(
            first,
            strategy=used,
            n=n,
            claims=(),
            given_calibration="",
            remarks=(),
            category=None,
            by_category=own,
        )

    @property
    def parts(self) -> tuple[Guarantee, ...]:
        """The guarantees of the categories, or this one where there are none."""
        return tuple(self.by_category.values()) or (self,)

    @property
    def promised(self) -> float | None:
        """The largest unconditional probability for the true label (or of accepted labels to be it), else None."""
        if self.by_category:
            found = [part.promised for part in self.by_category.values()]
            deltas = {part.delta or 0.0 for part in self.by_category.values()}
            if len(deltas) > 1:  # a bound in 95 of 100 samples is, on average, 0.95 of it
                found = [p and p * (1 - (part.delta or 0.0)) for p, part in zip(found, self.parts, strict=True)]
            return None if None in found else min(p for p in found if p is not None)
        best = self._best
        return None if best is None else best.probability

    @property
    def delta(self) -> float | None:
        """In which share of calibration samples `promised` may fail; None where it is an average over samples."""
        if self.by_category:
            first, *others = {part.delta for part in self.by_category.values()}
            return None if others else first
        return None if self._best is None else self._best.delta

    @property
    def premises(self) -> tuple[Premise, ...]:
        """What all claims rest on."""
        first, *others = [claim.premises for claim in self.claims] or [()]
        return tuple(premise for premise in first if all(premise in other for other in others))

    @property
    def _best(self) -> Claim | None:
        """The unconditional claim about the true label with the largest probability."""
        accepted = [claim for claim in self.claims if claim.event == "accepted" and claim.promised]
        if accepted:  # what was asked for comes first
            return accepted[0]
        promised = [claim for claim in self.claims if claim.event == "truth" and claim.promised]
        return max(promised, key=lambda claim: claim.probability or 0.0, default=None)

    def __str__(self) -> str:
        if self.by_category:
            return "\n\n".join(map(str, self.by_category.values()))
        where = "" if self.category is None else f" in category {self.category!r}"
        head, basis = self.strategy, f"{self.n:,} {self.unit}"
        if self.conformity_score:
            head = f"Strategy {self.strategy} with score {self.conformity_score.upper()}"
            basis = f"{self.n:,} calibration {self.unit}{where}"
        lines = [f"{head}, {basis}."]
        promised = [claim for claim in self.claims if claim.promised or claim.probability is None]
        lines.append(f"Promise: {'; '.join(map(str, promised))}." if promised else "No unconditional guarantee.")
        for claim in self.claims:
            if claim.refuted:
                lines.append(f"Void: {claim.source}, because a premise fails: {_join(claim.refuted)}.")
            elif claim.conditions and claim.probability is not None:
                lines.append(f"If {_join(claim.conditions)}: {claim}.")
        known = [
            p for claim in self.claims if not claim.refuted for p in claim.premises if p not in claim.conditions
        ]
        if known:
            lines.append(f"Rests on: {_join(dict.fromkeys(known))}.")
        lines += [line for line in (self.given_calibration, *self.remarks) if line]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in str(self).split("\n") if line)

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as plain data, ready for JSON."""
        plain = asdict(replace(self, by_category={}))
        plain["by_category"] = {name: part.to_dict() for name, part in self.by_category.items()}
        for claim, made in zip(plain["claims"], self.claims, strict=True):
            for premise, own in zip(claim["premises"], made.premises, strict=True):
                premise["text"] = own.text
        plain["premises"] = [asdict(premise) | {"text": premise.text} for premise in self.premises]
        plain["promised"], plain["delta"] = self.promised, self.delta
        plain["text"] = str(self)
        return plain


def _join(premises: Iterable[Premise]) -> str:
    return "; ".join(map(str, premises))


def _decimal(probability: float) -> str:
    """A lower bound, rounded down to four decimals: 0.89999 is 0.8999, and 0.9 is 0.90."""
    down = int(probability * 10**4 + 1e-9) / 10**4
    return f"{down:.2f}" if abs(down * 100 - round(down * 100)) < 1e-9 else f"{down:.4f}".rstrip("0")
