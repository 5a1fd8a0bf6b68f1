"""Guarantees: what is claimed, on which premises, and how each premise is known.

Types and their printing only; the mathematics is in the strategies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, Literal

Status = Literal["shown by the data", "refuted by the data", "declared by you", "not knowable here"]
Event = Literal["truth", "candidates", "overlap"]

_EVENTS: dict[Event, str] = {
    "truth": "contains the true label",
    "candidates": "contains all of its candidate labels",
    "overlap": "contains at least one of its candidate labels",
}


@dataclass(frozen=True)
class Premise:
    """Something a claim rests on, and how it is known."""

    text: str
    status: Status
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.status}{': ' + self.detail if self.detail else ''})"


@dataclass(frozen=True)
class Claim:
    """A lower bound on the probability of an event for a new example.

    `probability` is None where nothing can be said. `premises` are those of this claim beyond the shared
    ones of its guarantee. One that cannot be known makes the claim conditional; a refuted one voids it.
    """

    event: Event
    probability: float | None
    source: str
    premises: tuple[Premise, ...] = ()
    note: str = ""

    @property
    def conditions(self) -> tuple[Premise, ...]:
        """The premises of this claim that cannot be known here."""
        return tuple(premise for premise in self.premises if premise.status == "not knowable here")

    @property
    def refuted(self) -> tuple[Premise, ...]:
        """The premises of this claim that the data contradict."""
        return tuple(premise for premise in self.premises if premise.status == "refuted by the data")

    @property
    def promised(self) -> bool:
        """Whether the claim is unconditional: no premise of its own is unknowable or refuted."""
        return self.probability is not None and not self.conditions and not self.refuted

    def __str__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        if self.probability is None:
            return f"nothing is promised about whether the set {_EVENTS[self.event]}{note}"
        bound = f"with probability at least {_decimal(self.probability)}"
        return f"the set of a new example {_EVENTS[self.event]} {bound} ({self.source}){note}"


@dataclass(frozen=True)
class Guarantee:
    """What may be claimed about prediction sets at one confidence level.

    Prints as a short paragraph; `to_dict` gives the same as plain data. Where rows were calibrated by category,
    `by_category` holds one guarantee for each and this one has no claims of its own; `promised` is then the
    smallest of theirs.
    """

    strategy: str
    conformity_score: str
    n: int
    confidence_level: float
    claims: tuple[Claim, ...]
    premises: tuple[Premise, ...] = ()
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
            premises=(),
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
        """The largest unconditional probability for the true label, None where there is none."""
        if self.by_category:
            found = [part.promised for part in self.by_category.values()]
            return None if None in found else min(p for p in found if p is not None)
        promised = [claim.probability for claim in self.claims if claim.event == "truth" and claim.promised]
        return max((p for p in promised if p is not None), default=None)

    def __str__(self) -> str:
        if self.by_category:
            return "\n\n".join(map(str, self.by_category.values()))
        where = "" if self.category is None else f" in category {self.category!r}"
        basis = f"{self.n:,} calibration {self.unit}{where}"
        lines = [f"Strategy {self.strategy} with score {self.conformity_score.upper()}, {basis}."]
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
        rests = dict.fromkeys([*self.premises, *known])
        if rests:
            lines.append(f"Rests on: {_join(rests)}.")
        lines += [line for line in (self.given_calibration, *self.remarks) if line]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in str(self).split("\n") if line)

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as plain data, ready for JSON."""
        plain = asdict(replace(self, by_category={}))
        plain["by_category"] = {name: part.to_dict() for name, part in self.by_category.items()}
        plain["promised"] = self.promised
        plain["text"] = str(self)
        return plain


def _join(premises: Iterable[Premise]) -> str:
    return "; ".join(map(str, premises))


def _decimal(probability: float) -> str:
    """A lower bound, rounded down to four decimals: 0.89999 is 0.8999, and 0.9 is 0.90."""
    down = int(probability * 10**4 + 1e-9) / 10**4
    return f"{down:.2f}" if abs(down * 100 - round(down * 100)) < 1e-9 else f"{down:.4f}".rstrip("0")
