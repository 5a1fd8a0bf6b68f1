"""The verdict: how many sets contain the true label, and what is guaranteed about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from setwise.conformal.calibration import Calibration
from setwise.guarantees import Guarantee, format_draws, right_labels
from setwise.ranks import as_fraction, chance_of_so_few, clopper_pearson, rank
from setwise.report.label_entry_levels import DELTA
from setwise.strategies.threshold_rules import RankRule

_RARE = 0.01  # a probability below which chance is no longer named as a cause

Status = Literal["kept", "open", "short", "broken", "unpromised", "unseen", "nothing"]


@dataclass(frozen=True)
class Promise:
    """With which probability sets contain the true label, None for nothing; over what, under which conditions.

    `stated` is false where nobody said what the sets were made for; `truth` is how many of several right labels
    they contain, and `each_class` whether the guarantee holds within each true class.
    """

    probability: float | None = None
    conditions: tuple[str, ...] = ()
    over: str = "on average"
    stated: bool = True
    truth: str = ""
    each_class: bool = False

    @property
    def about(self) -> str:
        """What the sets are to contain."""
        return "the right labels" if self.truth else "the true label"

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
        return f"at least {percent(self.probability)}" + (" under the condition below" if self.conditions else "")


@dataclass(frozen=True)
class Verdict:
    """The number to act on as a headline, a sentence on what follows from it, and both in a word."""

    status: Status
    headline: str
    sentence: str = ""


def judge(
    promise: Promise,
    hits: int = 0,
    n: int = 0,
    *,
    sets: int,
    calibrated_on: int | None = None,
    bracket: tuple[float, float] | None = None,
    interval: tuple[float, float] | Literal["binomial"] | None = "binomial",
) -> Verdict:
    """The verdict on `sets` sets, of which `n` have a known true label and `hits` of these contain it.

    `calibrated_on` is how many independent examples the guarantee was calibrated on. Which ones they are is chance
    too: sets that keep their guarantee cover no more than `hits` of `n` new rows with a Beta-binomial probability,
    and only where that is small is the guarantee called broken. `interval` is where the true rate lies, None where
    too few groups of rows tell.

    >>> judge(Promise(0.9), 960, 1000, sets=1000, calibrated_on=500).headline
    '960 of 1,000 sets contain the true label: 96.0% (95% interval: 94.6% to 97.1%).'
    >>> judge(Promise(0.9), 700, 1000, sets=1000, calibrated_on=500).status
    'broken'
    """
    level = promise.probability
    if n == 0:
        return _judge_unmeasured(promise, sets, bracket)
    if interval == "binomial":
        interval = clopper_pearson(hits, n, DELTA)
    known = "" if n == sets else " with a known label"
    low, high = interval or (0.0, 1.0)
    between = "" if interval is None else f" (95% interval: {low:.1%} to {high:.1%})"
    headline = f"{hits:,} of {n:,} sets{known} contain the true label: {hits / n:.1%}{between}."
    if level is None:
        return Verdict("unpromised", headline, f"{_nothing(promise)}: other rows may fare differently.")
    if interval is None:
        return Verdict("open", headline, f"The guarantee is {promise}. There are too few groups for an interval.")
    if low >= level:
        return Verdict("kept", headline, f"The sets keep their guarantee: {promise}.")
    if high >= level:
        return Verdict("open", headline, f"This agrees with the guarantee: {promise}.")
    chance = None if calibrated_on is None else _chance(hits, n, calibrated_on, level)
    if chance is None:
        return Verdict("short", headline, f"This is less than the guarantee: {promise}.")
    if chance >= _RARE:
        by_chance = f"With {calibrated_on:,} calibration rows chance alone gives so few in {chance:.1%} of cases."
        return Verdict("short", headline, f"This is less than the guarantee: {promise}. {by_chance}")
    rarely = f"1 of {round(1 / chance):,} cases" if chance > 1e-6 else "fewer than 1 of a million cases"
    why = f"Chance alone gives so few in {rarely}: something that the guarantee rests on fails for these rows."
    return Verdict("broken", headline, f"Do not rely on these sets. The guarantee was {promise}. {why}")


def _judge_unmeasured(promise: Promise, sets: int, bracket: tuple[float, float] | None) -> Verdict:
    unknown = "No true label is given to measure their coverage."
    if promise.truth:
        unknown = "With all right labels of some rows, setwise.evaluate measures their coverage."
    if bracket is not None:
        low, high = bracket
        unknown += (
            f" The calibration rows show that it lies between {low:.1%} and {high:.1%}, {format_draws(DELTA)}."
        )
    if promise.probability is None:
        return Verdict("nothing", f"{sets:,} sets. {_nothing(promise)}.", unknown)
    contained = right_labels(promise.truth, "their right labels") if promise.truth else promise.about
    within = " in each class" * promise.each_class
    share = f"At least {percent(promise.probability)} of such sets contain {contained}{within}, {promise.over}"
    condition = ", if the condition below holds" if promise.conditions else ""
    return Verdict("unseen", f"{sets:,} sets. {share}{condition}.", unknown)


def _nothing(promise: Promise) -> str:
    return f"Nothing is guaranteed about {promise.about}" if promise.stated else "No guarantee came with these sets"


def guarantees(made: Guarantee) -> list[Guarantee]:
    """A guarantee, or those of all categories, the weakest first."""
    return sorted(made.parts, key=lambda each: (each.promised or 0.0, each.n))


def promise_of(made: list[Guarantee]) -> Promise:
    """What the weakest of some guarantees says about the true label."""
    if not made:
        return Promise(stated=False)
    about = [each for each in made[0].claims if each.event == "truth"]
    truth = about[0].truth if about else ""
    claims = [each for each in about if each.probability and not each.refuted]
    if not claims:
        return Promise(truth=truth)
    claim = max(claims, key=lambda each: (each.promised, each.probability))
    average = "on average over groups" if made[0].unit == "groups" else "on average"
    over = average if claim.delta is None else format_draws(claim.delta)
    conditions = tuple(premise.text for premise in claim.conditions)
    return Promise(claim.probability, conditions, over, True, truth, "any one true class" in claim.subject)


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


def _chance(hits: int, n: int, calibrated_on: int, level: float) -> float | None:
    """P(at most `hits` of n | sets that cover exactly as promised), over calibration sets and new rows."""
    exact = as_fraction(level, "level")
    if rank(calibrated_on, exact) > calibrated_on:
        return None  # every label is in every set, and a miss is a label outside the vocabulary
    return chance_of_so_few(hits, n, calibrated_on, exact)
