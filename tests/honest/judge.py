"""Runs a design: how often it gets its guarantee, whether the guarantee holds, and which guards speak."""

from __future__ import annotations

import contextlib
import math
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np
from scipy.stats import binom, t

import setwise
from setwise.errors import MisuseWarning
from setwise.findings import Finding
from setwise.guarantees import Event, Guarantee, Premise

SOURCE = Path(setwise.__file__).parent
RARE = 1e-4
"""How often a design that is as it should be is called otherwise, for each of its two verdicts."""
REFUSED = 0.01
"""In so many samples a design may go without its guarantee."""


@dataclass(frozen=True)
class Outcome:
    """What one sample gave: the guarantee, and for which share of new cases its event happened.

    `conditions` are premises, otherwise only assumed, that are true in the design.
    """

    made: Guarantee | float | None
    covered: float
    event: Event = "truth"
    conditions: tuple[str, ...] = ()
    delta: float | None = None

    def read(self) -> tuple[float | None, float | None, str]:
        """The bound, in which share of draws it may fail, and why there is none."""
        if not isinstance(self.made, Guarantee):
            return self.made, self.delta, "" if self.made is not None else "nothing was found"
        best, reasons = None, []
        for claim in self.made.claims:
            open_conditions = [premise for premise in claim.conditions if premise.name not in self.conditions]
            if (
                claim.event == self.event
                and not claim.refuted
                and not open_conditions
                and claim.probability is not None
            ):
                if best is None or claim.probability > best.probability:
                    best = claim
            elif claim.event == self.event:
                reasons += [str(premise) for premise in (*claim.refuted, *open_conditions)] or [claim.note]
        if best is None:
            return None, None, "; ".join(reasons) or "no such claim"
        return best.probability, best.delta, ""


Trial = Callable[[np.random.Generator], Outcome | list[Outcome]]


@dataclass
class Record:
    """What the samples of one design, or of one mistake, gave."""

    samples: int = 0
    guaranteed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    guards: Counter[str] = field(default_factory=Counter)
    above: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    failed: int = 0
    counted: int = 0
    delta: float | None = None

    def add(self, outcomes: list[Outcome], reason: str, spoke: set[str]) -> None:
        """Takes one sample in."""
        self.samples += 1
        self.guards.update(spoke)
        read = [outcome.read() for outcome in outcomes]
        reason = reason or next((why for bound, _, why in read if bound is None), "")
        if reason:
            self.reasons[reason] += 1
            return
        self.guaranteed += 1
        for outcome, (bound, delta, _) in zip(outcomes, read, strict=True):
            assert bound is not None
            self.delta = delta
            self.counted += 1
            self.failed += outcome.covered < bound - 1e-9
            self.covered.append(outcome.covered)
            self.bounds.append(bound)
            self.above.append(outcome.covered - bound)

    @property
    def given(self) -> bool:
        """Whether guarantees are missing in at most the share of samples that may lack one."""
        missing = self.samples - self.guaranteed
        return bool(binom.sf(missing - 1, self.samples, REFUSED) >= RARE)

    @property
    def holds(self) -> bool:
        """Whether what was guaranteed happened as often as guaranteed."""
        if self.delta is not None:
            return bool(binom.sf(self.failed - 1, self.counted, self.delta) >= RARE)
        if len(self.above) < 2:
            return True
        error = float(np.std(self.above, ddof=1)) / math.sqrt(len(self.above))
        return float(np.mean(self.above)) >= -1e-9 + t.ppf(RARE, len(self.above) - 1) * error

    @property
    def verdict(self) -> str:
        """In words."""
        return "kept" if self.given and self.holds else "refused" if self.holds else "broken"

    def to_dict(self) -> dict[str, Any]:
        """As it is kept."""
        n, covered = max(len(self.covered), 1), self.covered or [math.nan]
        return {
            "samples": self.samples,
            "guaranteed": self.guaranteed / max(self.samples, 1),
            "coverage": round(float(np.mean(covered)), 4),
            "standard_error": round(float(np.std(covered)) / math.sqrt(n), 4),
            "bound": round(float(np.mean(self.bounds or [math.nan])), 4),
            "delta": self.delta,
            "failed": self.failed if self.delta is not None else None,
            "verdict": self.verdict,
            "reasons": dict(self.reasons.most_common(5)),
            "guards": {name: count / max(self.samples, 1) for name, count in sorted(self.guards.items())},
        }


def run(name: str, trial: Trial, samples: int) -> Record:
    """Draws samples of a design; each has a seed of its own, so that any one can be drawn again."""
    record = Record()
    for sample in range(samples):
        rng = np.random.default_rng([crc32(name.encode()), sample])
        reason, outcomes = "", []
        with watch_guards() as spoke, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = trial(rng)
                outcomes = found if isinstance(found, list) else [found]
            except (ValueError, TypeError) as error:
                reason = f"refused: {str(error).splitlines()[0]}"
                spoke.add(raised_in(error))
            record.add(outcomes, reason, spoke)
    return record


@contextlib.contextmanager
def watch_guards() -> Iterator[set[str]]:
    """The functions of setwise that warn, find something, or refute a premise, while this is open."""
    spoke: set[str] = set()

    def watching(original: Any, when: Callable[[Any], bool] = lambda _: True) -> Any:
        def init(self: Any, *args: Any, **named: Any) -> None:
            original(self, *args, **named)
            if when(self) and (site := caller()):
                spoke.add(site)

        return init

    def warn(message: Any, *args: Any, **named: Any) -> None:
        if site := caller():
            spoke.add(site)
        plain(message, *args, **{**named, "stacklevel": named.get("stacklevel", 1) + 1})

    plain = warnings.warn
    refuted = "refuted by the data"
    with (
        mock.patch.object(MisuseWarning, "__init__", watching(MisuseWarning.__init__)),
        mock.patch.object(Finding, "__init__", watching(Finding.__init__)),
        mock.patch.object(Premise, "__init__", watching(Premise.__init__, lambda one: one.status == refuted)),
        mock.patch.object(warnings, "warn", warn),
    ):
        yield spoke


def caller() -> str:
    """The function of setwise that called the one that calls this; empty where it is none of setwise."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<"):  # made by dataclasses
        frame = frame.f_back  # type: ignore[assignment]
    return "" if frame is None else site(frame.f_code.co_filename, frame.f_code.co_qualname)


def site(filename: str, qualname: str) -> str:
    """A function as the inventory names it: module and name, without what is inside of it."""
    path = Path(filename)
    if not path.is_relative_to(SOURCE):
        return ""
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return f"{module}.{qualname.split('.<locals>', maxsplit=1)[0]}"


def raised_in(error: BaseException) -> str:
    """The function of setwise in which an error was raised."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    found = [site(frame.f_code.co_filename, frame.f_code.co_qualname) for frame in frames]
    return next((name for name in reversed(found) if name), "elsewhere")
