"""The verdict: measured coverage against the promise, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from setwise.conformal.calibration import Calibration
from setwise.guarantees import Guarantee
from setwise.ranks import as_fraction, chance_of_so_few, clopper_pearson, rank
from setwise.report.label_entry_levels import DELTA
from setwise.strategies.threshold_rules import RankRule

_RARE = 0.01  # a probability below which chance is no longer named as a cause

Status = Literal["kept", "open", "short", "broken", "unpromised", "unseen", "nothing"]

_HEADLINES: dict[Status, str] = {
    "kept": "The promise is kept on these examples.",
    "open": "These sets keep their promise.",
    "short": "Coverage came out below the promise.",
    "broken": "Do not rely on these sets: the promise is broken.",
    "unpromised": "Nothing is promised about the true label.",
    "unseen": "There is a promise, but no truth to measure it against.",
    "nothing": "Nothing is promised, and nothing could be measured.",
}


@dataclass(frozen=True)
class Promise:
    """What is promised for the true label, None for nothing, and the conditions that cannot be known here."""

    probability: float | None = None
    conditions: tuple[str, ...] = ()

    @property
    def bound(self) -> str:
        """The bound alone: "≥ 90%"."""
        return "nothing" if self.probability is None else f"≥ {percent(self.probability)}"

    @property
    def text(self) -> str:
        """The bound, and whether it is conditional: "≥ 90% (conditional)"."""
        return self.bound + (" (conditional)" if self.conditions else "")

    def __str__(self) -> str:
        if self.probability is None:
            return "nothing"
        return f"at least {percent(self.probability)}" + (f" if {_and(self.conditions)}" if self.conditions else "")


@dataclass(frozen=True)
class Verdict:
    """How the measured coverage stands to the promise: in a word, in a few words, in a sentence."""

    status: Status
    sentence: str
    conditional: bool = False

    @property
    def headline(self) -> str:
        """In a few words."""
        return _HEADLINES[self.status].replace("promise", "conditional promise" if self.conditional else "promise")


def judge(
    promise: Promise,
    hits: int = 0,
    n: int = 0,
    *,
    calibrated_on: int | None = None,
    bracket: tuple[float, float] | None = None,
    interval: tuple[float, float] | Literal["binomial"] | None = "binomial",
) -> Verdict:
    """The verdict on sets that held the truth in `hits` of `n` rows.

    `calibrated_on` is how many independent examples the promise was calibrated on. Which ones they are is chance
    too: sets that keep their promise cover no more than `hits` of `n` new rows with a Beta-binomial probability,
    and only where that is small is the promise called broken. `interval` is where the true rate lies, None where
    too few groups of rows tell.

    >>> judge(Promise(0.9), 960, 1000, calibrated_on=500).headline
    'The promise is kept on these examples.'
    >>> judge(Promise(0.9), 700, 1000, calibrated_on=500).headline
    'Do not rely on these sets: the promise is broken.'
    """
    conditional, level = bool(promise.conditions), promise.probability
    if n == 0:
        return _unmeasured(promise, bracket)
    if interval == "binomial":
        interval = clopper_pearson(hits, n, DELTA)
    measured = f"{hits:,} of {n:,} examples ({hits / n:.1%}) have their true label in the set"
    low, high = interval or (0.0, 1.0)
    if interval is not None:
        measured += f"; the true rate lies between {low:.1%} and {high:.1%} in 95 of 100 such cases"
    if level is None:
        sentence = f"{measured}. That was measured, not promised: other examples may fare differently."
        return Verdict("unpromised", sentence)
    if hits / n >= level:
        return Verdict("kept" if low >= level else "open", f"{measured}. Promised was {promise}.", conditional)
    if high >= level:
        return Verdict("open", f"{measured}, so that the promise, {promise}, may well hold.", conditional)
    chance = None if calibrated_on is None else _chance(hits, n, calibrated_on, level)
    if chance is not None and chance < _RARE:
        rarely = f"1 in {round(1 / chance):,} cases" if chance > 1e-6 else "less than 1 in a million cases"
        why = "something that the promise rests on does not hold for these examples"
        return Verdict(
            "broken", f"{measured}, but promised was {promise}. Chance does this in {rarely}: {why}.", conditional
        )
    often = (
        "" if chance is None else f" With {calibrated_on:,} calibration examples chance does this in {chance:.1%}"
    )
    how = often and f"{often} of cases."
    return Verdict("short", f"{measured}, although promised was {promise}.{how}", conditional)


def _unmeasured(promise: Promise, bracket: tuple[float, float] | None) -> Verdict:
    proved = ""
    if bracket is not None:
        proved = f" Candidate sets alone show that coverage lies between {bracket[0]:.1%} and {bracket[1]:.1%}."
    if promise.probability is None:
        return Verdict("nothing", f"No true labels were given, and nothing is promised about them.{proved}")
    sentence = "No true labels were given, so coverage could not be measured. What stands is the promise"
    return Verdict("unseen", f"{sentence}: {promise}.{proved}", bool(promise.conditions))


def usefulness(mean_size: float, n_classes: int, singles: float, wrong: str = "") -> tuple[bool, str]:
    """Whether the sets are small enough to be informative, and a sentence about it; `wrong` single labels are.

    >>> usefulness(9.5, 10, 0.0)
    (False, 'They say little: 9.50 of 10 labels on average.')
    """
    size = f"{mean_size:.2f} of {n_classes:,} labels on average"
    if mean_size > n_classes / 2 and n_classes > 2:
        return False, f"They say little: {size}."
    among = f"; of these {wrong} are wrong" if wrong and singles else ""
    return True, f"They hold {size}, and {singles:.0%} of them a single one{among}."


def in_plain_words(guarantee: Guarantee) -> str:
    """The promise in everyday words, with all that it rests on; empty without one."""
    claim, promise = _best(guarantee)
    if claim is None or promise.probability is None:
        return ""
    share = percent(promise.probability).removesuffix("%")
    over = "on average over draws of the calibration rows"
    if claim.delta is not None:
        over = f"in {100 * (1 - claim.delta):g} of 100 draws of the calibration rows"
    rests = _and([premise.text for premise in claim.premises])
    return (
        f"The promise in plain words: {over} the set of {claim.subject} contains the true label in at least "
        f"{share} of 100 cases, if {rests}."
    )


def guarantees(made: Guarantee) -> list[Guarantee]:
    """A guarantee, or those of all categories, the weakest first."""
    return sorted(made.parts, key=lambda each: (each.promised or 0.0, each.n))


def promise_of(made: list[Guarantee]) -> Promise:
    """What the weakest of some guarantees promises."""
    return _best(made[0])[1] if made else Promise()


def independent_examples(calibration: Calibration) -> int | None:
    """How many examples the smallest category has; None where thresholds are no ranks of independent rows."""
    plain = all(isinstance(rule, RankRule) and len(rule.scores) == rule.n for rule in calibration.rules)
    if not plain or calibration.evidence.shares is not None:
        return None
    return min(rule.n for rule in calibration.rules)


def percent(probability: float) -> str:
    """A bound as a percentage, never rounded up.

    >>> percent(0.9), percent(0.8999), percent(0.995)
    ('90%', '89.99%', '99.5%')
    """
    down = int(probability * 10**4 + 1e-9) / 100
    return f"{down:.2f}".rstrip("0").rstrip(".") + "%"


def _best(guarantee: Guarantee) -> tuple[Any, Promise]:
    """The strongest claim about the truth: the largest unconditional one if there is any, else the largest."""
    claims = [each for each in guarantee.claims if each.event == "truth" and each.probability and not each.refuted]
    if not claims:
        return None, Promise()
    claim = max(claims, key=lambda each: (each.promised, each.probability))
    return claim, Promise(claim.probability, tuple(premise.text for premise in claim.conditions))


def _chance(hits: int, n: int, calibrated_on: int, level: float) -> float | None:
    """P(at most `hits` of n | sets that cover exactly as promised), over calibration sets and new rows."""
    exact = as_fraction(level, "level")
    if rank(calibrated_on, exact) > calibrated_on:
        return None  # every label is in every set, and a miss is a label outside the vocabulary
    return chance_of_so_few(hits, n, calibrated_on, exact)


def _and(texts: Any) -> str:
    return " and ".join(texts)
