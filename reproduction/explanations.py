"""Why a number of ours differs from the paper's: from evidence in the results alone, or "unexplained".

A rule looks at the measurements. Either they account for the difference, and the rule returns the figures that
show it, or it returns nothing. No rule knows anything about a cell in advance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reproduction.cells import Variant
from reproduction.presets import preset_settings
from reproduction.record import Record
from reproduction.results import Result
from reproduction.summary import FAR, Entry, Value, distance, value, values

UNEXPLAINED = "unexplained"
_OTHERS: dict[Variant, str] = {
    "annealed": "100 epochs annealed over 100",
    "stretched": "50 epochs of a cosine over 500",
    "text": "100 epochs annealed over 100 with learning rate 0.1 and shuffling, as the paper's text says,",
    "long": "500 epochs, the default of the paper's public code,",
}
_KINDS: dict[Variant, str] = {"annealed": "schedule", "stretched": "schedule", "text": "text", "long": "epochs"}


@dataclass(frozen=True)
class Explanation:
    """The kind of evidence (`UNEXPLAINED` where there is none) and what it is."""

    kind: str
    text: str


def explain(entry: Entry, record: Record) -> Explanation:
    """The first rule that accounts for a difference."""
    for rule in _RULES:
        found = rule(entry, record)
        if found is not None:
            return found
    return Explanation(UNEXPLAINED, f"{UNEXPLAINED}: no measurement accounts for it{_hints(entry, record)}.")


def _short_training(entry: Entry, record: Record) -> Explanation | None:
    """The models were trained for fewer epochs than the paper's."""
    asked = [(r.cell.epochs, preset_settings(r.cell.preset)["epochs"]) for r in _own(entry, record)]
    if not asked or asked[0][0] >= asked[0][1]:
        return None
    return Explanation("quick", f"quick: a quick run, trained for {asked[0][0]} epochs instead of {asked[0][1]}.")


def _single_precision(entry: Entry, record: Record) -> Explanation | None:
    """With 1 − f in single precision, as the public code has it, models give the paper's value."""
    if entry.strategy not in {"max", "all"} or entry.paper is None:
        return None
    trained: dict[Variant, str] = {"paper": "the same models"}
    trained |= {variant: f"models trained with {how}" for variant, how in _OTHERS.items()}
    for variant, how in trained.items():
        found = [result.measured["float32"][entry.strategy] for result in _own(entry, record, variant)]
        if not any(f["admits_everything"] for f in found):
            continue
        single = Value.of(f[entry.quantity] for f in found)
        if abs(distance(single, entry.paper)) <= FAR:
            share = Value.of(100 * f["share_exactly_one"] for f in found)
            full = sum(f["admits_everything"] for f in found)
            text = (
                f"single precision: computed with 1 − f in float32 and f ≥ 1 − q, {how} give {single}. There 1 − f "
                f"is exactly 1 for {share.mean:.1f} % of the calibration scores, so that in {full} of {len(found)} "
                "seeds q = 1 and every label is admitted. In double precision the scores stay apart."
            )
            return Explanation("float32", text)
    return None


def _seeds(entry: Entry, record: Record) -> Explanation | None:
    """The paper's value lies among those of our seeds."""
    values = _values(entry, record)
    if entry.paper is None or len(values) < 2 or not min(values) <= entry.paper.mean <= max(values):
        return None
    each = "each with a supermodel of its own, " if entry.contamination == "instance_dependent" else ""
    kind = "supermodel" if each else "seeds"
    return Explanation(
        kind,
        f"{kind}: our {len(values)} seeds, {each}range from {min(values):.2f} to {max(values):.2f}, and the "
        "paper's value is among them.",
    )


def _other_training(entry: Entry, record: Record) -> Explanation | None:
    """Another training gives the paper's value, or the paper's lies between both trainings."""
    if entry.paper is None:
        return None
    for variant, how in _OTHERS.items():
        other = _other(entry, record, variant)
        if other is None:
            continue
        if abs(distance(other, entry.paper)) <= FAR:
            return Explanation(_KINDS[variant], f"{_KINDS[variant]}: {how} gives {other}.")
        if (other.mean - entry.paper.mean) * (entry.ours.mean - entry.paper.mean) < 0:
            text = f"{_KINDS[variant]}: {how} gives {other}; the paper's value lies between the two trainings."
            return Explanation(_KINDS[variant], text)
    return None


def _accuracy(entry: Entry, record: Record) -> Explanation | None:
    """On the line through two of our trainings, the paper's accuracy goes with the paper's value."""
    if entry.strategy == "model" or entry.paper is None:
        return None
    mine = _test_accuracy(entry, record, "paper")
    for variant, how in _OTHERS.items():
        other, theirs = _other(entry, record, variant), _test_accuracy(entry, record, variant)
        if other is None or theirs is None or mine is None or mine.paper is None:
            continue
        apart = theirs.ours.mean - mine.ours.mean
        if abs(apart) <= mine.ours.deviation + theirs.ours.deviation:
            continue
        slope = (other.mean - entry.ours.mean) / apart
        reached = entry.ours.mean + slope * (mine.paper.mean - mine.ours.mean)
        if abs(distance(Value(reached, entry.ours.deviation), entry.paper)) <= FAR:
            text = (
                f"accuracy: our models find {mine.ours.mean:.2f} % of the test labels, with {how} "
                f"{theirs.ours.mean:.2f} %, and have {entry.ours.mean:.2f} and {other.mean:.2f} here; on the line "
                f"through both, the paper's {mine.paper.mean:.2f} % goes with {reached:.2f}."
            )
            return Explanation("accuracy", text)
    return None


_RULES: tuple[Callable[[Entry, Record], Explanation | None], ...] = (
    _short_training,
    _single_precision,
    _seeds,
    _other_training,
    _accuracy,
)


def _hints(entry: Entry, record: Record) -> str:
    """What was tried, in figures."""
    tried = []
    values = _values(entry, record)
    if len(values) > 1:
        tried.append(f"our seeds range from {min(values):.2f} to {max(values):.2f}")
    for variant, how in _OTHERS.items():
        other = _other(entry, record, variant)
        if other is not None:
            tried.append(f"{how} gives {other}")
    if entry.strategy in {"max", "all"}:
        found = [r.measured["float32"][entry.strategy] for r in _own(entry, record)]
        share = Value.of(100 * f["share_exactly_one"] for f in found)
        single = Value.of(f[entry.quantity] for f in found)
        tried.append(f"single precision gives {single}, with 1 − f exactly 1 for {share.mean:.1f} % of the scores")
    return f" ({'; '.join(tried)})" if tried else ""


def _own(entry: Entry, record: Record, variant: Variant = "paper") -> list[Result]:
    if entry.table in {1, 6}:
        return []
    return [r for r in record.learned(entry.table, "official", variant) if r.cell.data == entry.data]


def _values(entry: Entry, record: Record) -> list[float]:
    """The value of each seed."""
    if entry.table not in {1, 6}:
        return values(_own(entry, record), entry.strategy, entry.quantity)
    wanted = (entry.data, entry.contamination)
    described = [r for r in record.results if not r.cell.preset and (r.cell.data, r.cell.contamination) == wanted]
    if entry.table == 1:
        return [r.measured["sets"]["average_size"] for r in described]
    part = entry.quantity.removesuffix("_accuracy")
    return [r.measured["sets"]["supermodel_accuracy"][part] for r in described]


def _other(entry: Entry, record: Record, variant: Variant) -> Value | None:
    """The same number from models of another training."""
    found = _own(entry, record, variant)
    return value(found, entry.strategy, entry.quantity) if found else None


def _test_accuracy(entry: Entry, record: Record, variant: Variant) -> Entry | None:
    own = (e for e in record.entries(entry.table, variant=variant) if e.data == entry.data)
    return next((e for e in own if e.quantity == "test_accuracy"), None)
