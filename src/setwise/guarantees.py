"""Guarantees: what is guaranteed, on which premises, and how each premise is known.

Types, the closed vocabulary of premises and their printing; how a premise is judged is in `strategies.judgement`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import Any, Literal

from setwise.findings import format_share

Status = Literal["shown by the data", "refuted by the data", "stated by you", "assumed"]
Event = Literal["truth", "candidates", "overlap", "answer", "accepted", "overall", "found", "figures"]

_EVENTS: dict[Event, str] = {
    "truth": "contains its true label",
    "candidates": "contains all of its candidates",
    "overlap": "contains at least one of its candidates",
    "answer": "contains an answer drawn at random, by weight, from those of its annotators",
}

_DECIDED = {"accepted", "overall", "found", "figures"}

STANDING = {
    "same_source": "new rows come from the same source",
    "same_groups": "new groups and their rows come from the same source",
    "weights": "new rows differ from these only in how often each kind occurs, as the weights say",
    "unseen": "the model did not learn from the calibration rows",
    "same_digits": "the same model computes the new probabilities in the same way",
    "classes": "the true label is one of the {} classes",
    "independent_rows": "the calibration rows are independent of each other",
    "labels_unseen": "neither the model nor the annotators saw the verified labels",
    "unseen_by_annotators": "no annotator saw the verified labels",
}
"""Premises of ordinary sampling and modelling, which void a guarantee only where they are refuted."""

PREMISES = STANDING | {
    "same_candidates": "candidates arise for new rows as they did for these",
    "truth_is_candidate": "the true label is always a candidate",
    "miss_rate": "the true label is missing from at most {} of the candidate sets{}",
    "labels_right": "the labels are right",
    "error_rate": "at most {} of the labels{} are wrong",
    "different_events": "{} of {} calibration rows equal a training row; they are different events",
    "misses_at_random": "whether the true label is missing does not depend on the row or its label",
    "missing_at_random": "whether a row has candidates does not depend on its features or its label",
    "single_by_design": "each row has a single candidate by design",
    "verified_at_random": "the {} verified rows were drawn at random",
    "groups_at_random": "the {} verified groups were drawn at random",
    "verified_right": "the verified labels are right",
    "verified_written": "the verified labels were written into the candidates or votes of their rows",
    "known_chances": "each of the {} verified rows was drawn with the given probability, independently",
    "uniform": "every false label is a candidate with the same probability in every row",
    "class": "which labels are candidates depends on the true class alone",
    "inclusion": "the estimated inclusion probabilities are right",
    "calibrated": "among the candidates, the model's probabilities are right (a calibrated posterior)",
    "truth_below_mean": "in each calibration row the true label is no stranger than the average candidate",
    "certificate": "false candidates cannot push the threshold below that of the true labels",
    "confident_truth": "at least {} of these rows give their true label a probability of {} or more",
    "max_otherwise": "you use max in every draw in which this cannot be guaranteed",
    "same_annotators": "annotators like these would answer the new rows",
    "answers_as_truth": "annotators disagree because rows are ambiguous, and answer as often as each label is true",
    "independent": "annotators err independently of each other, given the true label",
    "who_answers": "who answers a row has nothing to do with its label",
    "recalibrated": "the model's probabilities are right once they are recalibrated on the answers",
    "large_sample": "the calibration sample is large",
    "none_right": "rows with no right label are left out",
}
"""Everything that a guarantee may rest on: each premise has one name and one wording."""

_SEVERAL = {
    "classes": "the right labels are among the {} classes",
    "truth_is_candidate": "the candidates always contain {right}",
    "miss_rate": "all but {} of the candidate sets{} contain {right}",
    "error_rate": "at most {} of the rows{} have a wrong label or lack a right one",
    "labels_right": "the labels are right, and no right label is missing",
    "verified_right": "the verified labels are right, and no right label is missing",
}
"""How premises are worded where several labels of a row may be right."""

REMEDIES = {
    "independent": "Verify at least 50 rows drawn at random: auto then gives a guarantee that rests on them alone"
}
"""What to do where the data contradict a premise."""

_WIDTH, _LABEL = 80, 15  # characters of a printed line, and of the label in front


@dataclass(frozen=True)
class Premise:
    """Something that a claim rests on, by its name in `PREMISES`, and how it is known.

    `values` fill the wording, and `detail` says what the status rests on; `truth` is how many right labels of a row
    a set must contain, where several may be right.
    """

    name: str
    status: Status
    detail: str = ""
    values: tuple[str, ...] = ()
    truth: str = ""

    def __post_init__(self) -> None:
        if self.name not in PREMISES:
            raise ValueError(f"premise: {self.name!r} is not in the vocabulary; use one of {', '.join(PREMISES)}.")

    @property
    def text(self) -> str:
        """The wording."""
        if self.truth and self.name in _SEVERAL:
            return _SEVERAL[self.name].format(*self.values, right=right_labels(self.truth, "the right labels"))
        return PREMISES[self.name].format(*self.values)

    @property
    def standing(self) -> bool:
        """Whether it is one of sampling and modelling, which void a guarantee only where they are refuted."""
        return self.name in STANDING

    def __str__(self) -> str:
        return f"{self.text} ({self.detail})" if self.detail else self.text


@dataclass(frozen=True)
class Claim:
    """A lower bound on the probability of an event for a new row.

    The event ``"accepted"`` is about labels that were accepted unseen, and the probability that they are right;
    ``"overall"`` is about all labels of a finished data set, ``"found"`` about labels that look wrong,
    ``"figures"`` about intervals; `subject` is then the statement.
    `probability` is None where nothing can be said. A premise that is only assumed makes the claim conditional,
    unless it is a standing one; a refuted one voids it. `delta` is None for a probability on average over draws of
    the rows; otherwise the bound holds in a share of at least 1 − `delta` of the draws. `note` is a sentence more.
    `truth` is how many right labels the set contains, where several may be right.
    """

    event: Event
    probability: float | None
    source: str
    premises: tuple[Premise, ...] = ()
    note: str = ""
    delta: float | None = None
    subject: str = "a new row"
    truth: str = ""

    @property
    def contained(self) -> str:
        """What the event says of the set."""
        if self.event == "truth" and self.truth:
            return f"contains {right_labels(self.truth)}"
        return _EVENTS[self.event]

    @property
    def conditions(self) -> tuple[Premise, ...]:
        """The premises, beyond the standing ones, that are only assumed."""
        return tuple(p for p in self.premises if p.status == "assumed" and not p.standing)

    @property
    def refuted(self) -> tuple[Premise, ...]:
        """The premises that the data contradict."""
        return tuple(premise for premise in self.premises if premise.status == "refuted by the data")

    @property
    def promised(self) -> bool:
        """Whether the claim is unconditional: no premise is refuted, and none but standing ones only assumed."""
        return self.probability is not None and not self.conditions and not self.refuted

    @property
    def sentence(self) -> str:
        """The claim without its note."""
        if self.event in {"overall", "found", "figures"}:
            return f"{self.subject}, {self._over('verified')}"
        if self.probability is None:
            about = "accepted labels" if self.event == "accepted" else f"whether the set {self.contained}"
            return f"nothing about {about}"
        least = _decimal(self.probability)
        if self.event == "accepted":
            return f"at most {format_share(1 - float(least))} of {self.subject} are wrong, {self._over('verified')}"
        bound = f"{self.contained} with probability at least {least}"
        over = self._over("calibration")
        if self.subject == "a new row":
            return f"a new row's set {bound}, {over}"
        return f"the set of {self.subject} {bound}. This holds {over}"

    def _over(self, rows: str) -> str:
        """Over which draws the probability is meant."""
        if self.delta is None:
            return f"on average over {rows} rows drawn at random"
        return f"{format_draws(self.delta)} of the {rows} rows"

    def __str__(self) -> str:
        return join_sentences(self.sentence, self.note)


class Printed:
    """Shown by notebooks as it prints."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True)
class Guarantee(Printed):
    """What is guaranteed about prediction sets at one confidence level, or about accepted labels.

    Prints as a headline and a few labelled lines; `to_dict` gives the same as plain data. Where rows were
    calibrated by category, `by_category` holds one guarantee for each and this one has no claims of its own;
    `promised` is then the smallest of theirs.

    Attributes
    ----------
    strategy, conformity_score, confidence_level
        What the sets were made with.
    n, unit, verified
        How many calibration rows (or groups) there are, and how many of the rows are verified.
    claims
        What is guaranteed, each with its premises; the first is the one that the strategy is meant for.
    given_calibration
        What the first claim's probability is in most draws of the calibration rows.
    remarks
        What else there is to know: sentences.
    look_first
        Which rows to look at first, and why.
    caution
        What to know before anything else.
    """

    strategy: str
    conformity_score: str
    n: int
    confidence_level: float
    claims: tuple[Claim, ...]
    given_calibration: str = ""
    remarks: tuple[str, ...] = ()
    category: Any = None
    unit: str = "rows"
    by_category: Mapping[Any, Guarantee] = field(default_factory=dict)
    verified: int = 0
    look_first: str = ""
    caution: str = ""

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
            verified=sum(part.verified for part in own.values()),
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
            if len(deltas) > 1:  # a bound in 19 of 20 draws is, on average, 0.95 of it
                found = [p and p * (1 - (part.delta or 0.0)) for p, part in zip(found, self.parts, strict=True)]
            return None if None in found else min(p for p in found if p is not None)
        best = self._best
        return None if best is None else best.probability

    @property
    def delta(self) -> float | None:
        """In which share of draws `promised` may fail; None where it is an average over draws."""
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
        accepted = [claim for claim in self.claims if claim.event in _DECIDED and claim.promised]
        if accepted:  # what was asked for comes first
            return accepted[0]
        promised = [claim for claim in self.claims if claim.event == "truth" and claim.promised]
        return max(promised, key=lambda claim: claim.probability or 0.0, default=None)

    @property
    def headline(self) -> str:
        """What was made from how much."""
        level = format_share(self.confidence_level, 10)
        if not self.conformity_score:
            return f"{self.strategy}, from {self.n:,} {self.unit}"
        count = f"{self.n:,} calibration {self.unit}"
        if self.category is not None:
            count += f" in category {self.category!r}"
        if self.verified:
            count += f", {self.verified:,} of them verified" if self.verified < self.n else ", all of them verified"
        if self.by_category:
            count += f", in {len(self.by_category):,} categories"
        return f"{level} prediction sets from {count}"

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """What is printed below the headline: labels and texts, what is guaranteed first."""
        lines = [("Warning", self.caution)] if self.caution else []
        lines += [*self._claim_lines, *self._premise_lines]
        if not self.claims or any(not claim.refuted for claim in self.claims):  # else no advice on smaller sets
            lines += [("Note", remark) for remark in self.remarks]
        if self.look_first:
            lines.append(("Look first at", self.look_first))
        return tuple(lines)

    @property
    def _claim_lines(self) -> Iterable[tuple[str, str]]:
        """What is guaranteed, what is guaranteed under conditions, and what the data contradict."""
        first = self.claims[0] if self.claims else None
        texts = {claim: str(claim) for claim in self.claims}
        if first is not None and self.given_calibration:
            texts[first] = join_sentences(first.sentence, self.given_calibration, first.note)
        stand = [claim for claim in self.claims if claim.probability is not None and not claim.refuted]
        promised = [claim for claim in stand if not claim.conditions]
        conditional = [claim for claim in stand if claim.conditions]
        promised.sort(
            key=lambda claim: claim.event == "accepted" and claim.delta is None
        )  # this draw's bound first
        if promised:
            yield "Guaranteed", join_sentences(*(texts[claim] for claim in promised))
        elif first is not None:
            about = "the right labels" if first.truth else "the true label"
            about = "accepted labels" if first.event in _DECIDED else about
            about = "these intervals" if first.event == "figures" else about
            notes = [claim.note for claim in self.claims if claim.probability is None]
            if any(claim.event == "truth" for claim in conditional):
                about += " without the condition below"
            yield "Guaranteed", join_sentences(f"nothing about {about}", *notes)
        for claim in conditional:
            if claim.event != "candidates" or not promised:
                yield "Guaranteed if", join_sentences(_join(claim.conditions), f"then {texts[claim]}")
        if refuted := list(dict.fromkeys(premise for claim in self.claims for premise in claim.refuted)):
            remedies = (REMEDIES.get(premise.name, "") for premise in refuted)
            yield "Contradicted", join_sentences(*map(str, refuted), *remedies)

    @property
    def _premise_lines(self) -> Iterable[tuple[str, str]]:
        """What the claims that stand rest on, beyond their conditions; what is special comes first."""
        standing = [claim for claim in self.claims if not claim.refuted]
        known = dict.fromkeys(p for claim in standing for p in claim.premises if p not in claim.conditions)
        for label, status in _LABELS.items():
            if some := [premise for premise in known if premise.status == status]:
                yield label, f"{_join(some)}."

    @property
    def blocks(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """What is printed, as headings with the labelled texts below them; what categories share comes last."""
        if not self.by_category:
            return [(self.headline, list(self.lines))]
        first, *others = [part.lines for part in self.parts]
        shared = [line for line in first if all(line in lines for lines in others)]
        heading = "Each category" if any(label.startswith("Guaranteed") for label, _ in shared) else ""
        own = [
            (f"Category {part.category!r}: {part.n:,} {part.unit}", [x for x in part.lines if x not in shared])
            for part in self.parts
        ]
        return [(self.headline, []), *own, (heading, shared)]

    def __str__(self) -> str:
        return "\n".join(line for heading, texts in self.blocks for line in [heading, *format_lines(texts)] if line)

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


_LABELS: dict[str, Status] = {
    "Shown": "shown by the data",
    "You state": "stated by you",
    "Assumed": "assumed",
}


def format_draws(delta: float) -> str:
    """In how many draws something holds that may fail with probability `delta`.

    >>> format_draws(0.05)
    'in 19 of 20 draws'
    """
    share = Fraction(1 - delta).limit_denominator(1000)
    return f"in {share.numerator} of {share.denominator} draws"


def right_labels(truth: str, of: str = "its right labels") -> str:
    """How many right labels a set contains, in words.

    >>> right_labels("all"), right_labels("one"), right_labels("0.9")
    ('all of its right labels', 'at least one of its right labels', 'at least 90 % of its right labels')
    """
    share = {"all": "all", "one": "at least one"}.get(truth) or f"at least {format_share(float(truth))}"
    return f"{share} of {of}"


def format_lines(lines: Iterable[tuple[str, str]]) -> list[str]:
    """Labelled texts, each broken into lines of which the later ones are indented."""
    wrapper = textwrap.TextWrapper(
        _WIDTH, subsequent_indent=" " * _LABEL, break_long_words=False, break_on_hyphens=False
    )
    return [wrapper.fill(f"{label + ':':{_LABEL}}{text}") for label, text in lines]


def join_sentences(*parts: str) -> str:
    """Texts as sentences, each with one full stop; all but the first begin with a capital letter."""
    first, *others = [part.removesuffix(".") for part in parts if part] or [""]
    return ". ".join([first, *(part[0].upper() + part[1:] if part[0].isascii() else part for part in others)]) + "."


def _join(premises: Iterable[Premise]) -> str:
    return "; ".join(map(str, premises))


def _decimal(probability: float) -> str:
    """A lower bound, rounded down to four decimals: 0.89999 is 0.8999, and 0.9 is 0.90."""
    down = int(probability * 10**4 + 1e-9) / 10**4
    return f"{down:.2f}" if abs(down * 100 - round(down * 100)) < 1e-9 else f"{down:.4f}".rstrip("0")
