"""Compares what an object promises with what happens, over many samples of a cell.

The promise is read from the object: every claim of its guarantee whose premises are true in the world (or are known
to be false from the rows that the object was given: then it must not promise), the law given the sample, and the
bracket. Three kinds of statements are tested, each exactly, without a large-sample argument:

average   E[coverage] ≥ p over the samples in which it is printed. The coverage of each sample lies in [0, 1], and
          a betting e-value tests their mean.
share     coverage < p in at most a share δ of samples: the binomial tail.
interval  outside the interval printed in at most a share δ of samples: the binomial tail.

A claim for large samples is held to 0.01 of its number, at n ≥ 2,000.
"""

from __future__ import annotations

import math
import re
import tempfile
import time
import traceback
import warnings
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import setwise
from tests.observatory.answers import Answer, RefusedError, answer
from tests.observatory.cells import Cell
from tests.observatory.worlds import COARSER, holds, population
from tests.statistical.sampling import average_p

FAMILY = 0.01
TESTS = 50_000
"""The p-value of a violation is below FAMILY/TESTS: Bonferroni for as many tests as a run may make."""

DELTA = 0.05
LARGE = 0.01
ROUNDING = 6e-4
"""Half a unit of the third decimal, to which laws are printed, and what a row of the population weighs at most."""

REFUSALS = (ValueError, TypeError)
HERE = setwise.__path__[0]
BOUNDS = re.compile(r"(?:at least (?P<least>[\d.]+\d)|between (?P<low>[\d.]+\d) and (?P<high>[\d.]+\d))")


_BRACKET = {"same_source", "same_digits", "independent_rows", "unseen", "missing_at_random"}


@dataclass
class Test:
    """A statement over all samples in which it was printed."""

    kind: str
    promises: list[float] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)
    false: int = 0

    def p_value(self, samples: int) -> float:
        """How surprising the measurements are if the statement is true."""
        if self.kind == "average":
            return average_p(np.array(self.promises), np.array(self.measured))
        return float(binom.sf(self.false - 1, samples, DELTA))


@dataclass(frozen=True)
class Verdict:
    """What was found in a cell."""

    key: str
    status: str
    """kept or violated; without a statement to test named (rests on a premise that is false), refused or none."""
    statement: str = ""
    promised: float | None = None
    measured: float | None = None
    p_value: float = 1.0
    tests: int = 0
    samples: int = 0
    refused: int = 0
    seed: int = 0
    seconds: float = 0.0
    violated: tuple[str, ...] = ()
    """All statements that are false."""
    margin: float | None = None
    """How far the probability measured lies above the one claimed, for the claim where it is least."""

    def __str__(self) -> str:
        if self.promised is None:
            return f"{self.status}: {self.key} {self.statement}"
        numbers = f"promised {self.promised:.4f}, measured {self.measured:.4f}, p = {self.p_value:.2g}"
        again = f"python -m tests.observatory --cell {self.key!r}"
        false = "; ".join(self.violated) or self.statement
        return f"{self.status}: {false}: {numbers} in {self.samples} samples, seed {self.seed}\n    {again}"


def judge(cell: Cell, share: float = 1.0, silent: int | None = None) -> Verdict:
    """Draws samples of a cell (or a share of as many) and tests every statement.

    It ends after `silent` samples in which there was none to test.
    """
    samples = max(round(share * cell.samples), 4)
    seed = zlib.crc32(cell.key.encode())
    start = time.perf_counter()
    try:
        tests, outcomes = _observed(cell, samples, silent, np.random.default_rng(seed))
    except Exception as error:  # noqa: BLE001 - neither an answer nor a refusal
        crash = f"{type(error).__name__}: {error}"
        return Verdict(cell.key, "violated", crash, samples=samples, seed=seed, violated=(crash,))
    p_values = {name: test.p_value(samples) for name, test in tests.items()}
    common = {"samples": samples, "refused": outcomes["refused"], "seed": seed, "tests": len(tests)}
    common["violated"] = tuple(name for name, p in p_values.items() if p < FAMILY / TESTS)
    claimed = [_margin(test) for test in tests.values() if test.kind != "interval"]
    common["margin"] = min(claimed, default=None)
    common["seconds"] = round(time.perf_counter() - start, 2)
    if not tests:
        status = max(("named", "refused", "none"), key=lambda name: outcomes[name])
        return Verdict(cell.key, status, **common)
    worst = min(p_values, key=lambda name: (p_values[name], _margin(tests[name])))
    status = "violated" if common["violated"] else "kept"
    promised, measured = np.mean(tests[worst].promises), np.mean(tests[worst].measured)
    return Verdict(cell.key, status, worst, float(promised), float(measured), p_values[worst], **common)


def _margin(test: Test) -> float:
    return float(np.mean(test.measured) - np.mean(test.promises))


def _observed(
    cell: Cell, samples: int, silent: int | None, rng: np.random.Generator
) -> tuple[dict[str, Test], dict[str, int]]:
    true, tests, outcomes = holds(cell), {}, defaultdict(int)
    finite = cell.shape not in {"classifier", "cross", "fit by command line"}
    finite = finite and not cell.strategy.startswith("decide")
    worlds = population(cell, rng) if finite else (None,)
    waiting: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(samples):
            if number == silent and not tests:
                break
            try:
                found = answer(cell, worlds[rng.integers(len(worlds))], rng, Path(folder))
            except REFUSALS as error:
                frames = traceback.extract_tb(error.__traceback__)
                if not isinstance(error, RefusedError) and not any(HERE in frame.filename for frame in frames):
                    raise  # the observatory's own
                outcomes["refused"] += 1
                continue
            for part in found.guarantee.parts:
                outcomes[_claims(part, found, true, tests, waiting)] += 1
                _law(part, found, true, tests)
            _bracket(cell, found, true, tests)
    return tests, outcomes


def _claims(part: Any, found: Answer, true: frozenset[str], tests: dict[str, Test], waiting: Any) -> str:
    """Adds the statements of one guarantee; what became of its claims where none could be tested."""
    tested = named = False
    made = set()
    for claim in part.claims:
        if claim.probability is None or claim.refuted:
            continue
        premises = [(p.name, p) for p in claim.premises]
        if not all(_may_rely(name, p, claim, found, true) for name, p in premises):
            named = True
            continue
        tested = True
        large = LARGE if any(name == "large_sample" for name, _ in premises) else 0.0
        label = f"{claim.source.partition(' with ')[0]} ({claim.event})"
        if part.category is not None:
            label += f" in category {part.category}"
        for name, coverage in _measured(claim, part, found, label).items():
            _add(tests, name, claim.delta, claim.probability - large, coverage, noise=found.noise)
            made.add(name)
            if any(premise == "max_otherwise" for premise, _ in premises) and found.otherwise is not None:
                waiting[name].append((claim.probability, coverage))
    _otherwise(found, tests, waiting, made)
    return "tested" if tested else "named" if named else "none"


def _otherwise(found: Answer, tests: dict[str, Test], waiting: Any, made: set[str]) -> None:
    """Claims that rest on `max` being used in all other samples: there it is `max` that counts."""
    if found.otherwise is None:
        return
    for name in waiting:
        if name not in made:
            _add(tests, name, None, waiting[name][0][0], found.otherwise())


def _measured(claim: Any, part: Any, found: Answer, label: str) -> dict[str, float]:
    """The probability of the event, for whom the claim is about."""
    if "true class" in claim.subject and found.by_class is not None:
        return {f"{label} of class {k}": c for k, c in enumerate(found.by_class().tolist()) if not math.isnan(c)}
    events = getattr(found, claim.event)
    if events is None:
        return {}
    share = found.group_share if "random new group" in claim.subject else found.share
    return _share_of(events, share, found.parts.get(part.category), label)


def _share_of(events: np.ndarray, share: np.ndarray, rows: np.ndarray | None, label: str) -> dict[str, float]:
    if rows is not None:
        share = share * rows
    total = float(share.sum())
    return {} if total <= 0 else {label: float(events @ share) / total}


def _add(
    tests: dict[str, Test], name: str, delta: float | None, promised: float, measured: float, *, noise: bool = False
) -> None:
    kind = "average" if delta is None else "share"
    test = tests.setdefault(f"{name}, {kind}", Test(kind))
    test.promises.append(promised)
    test.measured.append(measured)
    slack = 3 * math.sqrt(0.25 / 1000) if noise else 1e-9
    test.false += measured < promised - slack


def _may_rely(name: str, premise: Any, claim: Any, found: Answer, true: frozenset[str]) -> bool:
    """Whether a premise is true, or so plainly false that the object had to see it."""
    if name in true or premise.status == "shown by the data":
        return True
    return claim.promised and found.rows is not None and name in found.rows.refuted


def _law(part: Any, found: Answer, true: frozenset[str], tests: dict[str, Test]) -> None:
    """The law given the calibration sample, as it is printed: of the event that the first claim is about."""
    bounds = BOUNDS.search(part.given_calibration)
    if not bounds:
        return
    claim = part.claims[0]
    needed = {premise.name for premise in claim.premises} | {"independent_rows"}
    if not needed <= true:
        return
    events = getattr(found, claim.event)
    if events is None:
        return
    low = float(bounds["least"] or bounds["low"])
    high = float(bounds["high"] or 1.0)
    label = "the law given the sample" + ("" if part.category is None else f" in category {part.category}")
    for name, coverage in _measured(claim, part, found, label).items():
        test = tests.setdefault(name, Test("interval"))
        inside = min(max(coverage, low), high)
        test.promises.append(inside)
        test.measured.append(coverage)
        test.false += abs(coverage - inside) > ROUNDING


def _bracket(cell: Cell, found: Answer, true: frozenset[str], tests: dict[str, Test]) -> None:
    """The bracket: independent rows, the truth among the candidates; its upper end unless new rows are coarser."""
    rows = found.rows
    if found.bracket is None or not true >= _BRACKET:
        return
    held = "miss_rate" if cell.miss_rate else "truth_is_candidate"
    if held not in true and not (rows is not None and held in rows.refuted):
        return
    if cell.shape in {"weights", "own"} or (cell.shape == "by size" and "same_candidates" not in true):
        return
    try:
        brackets = found.bracket()
    except REFUSALS:
        return
    for name, (low, high) in brackets.items():
        label = "the bracket" + ("" if name is None else f" in category {name}")
        for coverage in _share_of(found.truth, found.share, found.parts.get(name), label).values():
            test = tests.setdefault(label, Test("interval"))
            inside = min(max(coverage, low), 1.0 if cell.breach in COARSER else high)
            test.promises.append(inside)
            test.measured.append(coverage)
            test.false += abs(coverage - inside) > ROUNDING
