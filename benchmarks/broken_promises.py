"""The promises that were once printed and false, in the worlds that showed it: what is printed there now, and what happens.

    python benchmarks/broken_promises.py --keep [--only unequal_chances bracket …] [--share 0.1]

A world is a finite population, whose size is `NEW` rows: calibration rows are drawn from it with replacement, and the
coverage of a calibration sample is a sum over it. Where a model is learned, new rows are drawn for every sample. The
level is 0.90 unless a case names another. Promises are read from the object: every claim of its guarantee about the
true label that is unconditional, or whose conditions are true in the world, and where a case is about them the law
given the sample and the bracket. A promise

- on average over calibration samples holds if the mean of coverage − promise, over the samples in which it was
  printed, is not below zero by more than 3 standard errors (for few samples the quantile of Student's t instead of 3);
- in a share 1 − δ of calibration samples holds if the binomial probability of so many failures, among the samples in
  which it was printed, is at least that of 3 standard errors.

Otherwise it is broken, whatever it rests on. "No promise" names the premise that the data refute, or the condition that
nobody can know; its coverage is shown all the same. `--share` draws that share of the samples; `--keep` writes
benchmarks/results/broken_promises.json. The exit status is 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import json
import math
import os
import platform
import re
import sys
import tempfile
import time
import warnings
import zlib
from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr, softmax
from scipy.stats import binom, t
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from setwise import (
    ConformalClassifier,
    CrossConformalClassifier,
    LabelSets,
    MisuseWarning,
    __version__,
    conformalize,
    evaluate,
    suggest_verification,
)
from setwise.data import read_table
from setwise.report.verdict import in_plain_words
from setwise.strategies import Classwise, Corrected, Mixture, Rectified

RESULTS = Path(__file__).resolve().parent / "results" / "broken_promises.json"
LEVEL, NEW = 0.9, 20_000
ERROR = float(ndtr(-3))  # of the verdict on a promise that holds exactly
SCENARIOS = {}


# -------------------------------------------------------------------- what is said, and what happens


@dataclass(frozen=True)
class Said:
    """A statement about one calibration sample, and the coverage of its sets; `promised` is None for no promise."""

    source: str
    covered: float
    promised: float | None = None
    delta: float | None = None
    most: float = 1.0
    condition: str = ""
    part: str = ""
    reason: str = ""

    @property
    def key(self):
        """What the samples in which the same was said have in common."""
        return self.part, self.condition, self.delta, self.promised is None and self.source


@dataclass(frozen=True)
class Row:
    """A line of the table: one statement of one case, over the samples in which it was printed."""

    scenario: str
    case: str
    promised: str
    happened: str
    verdict: str
    coverage: float | None = None
    standard_error: float | None = None
    printed: int = 0
    samples: int = 0

    @property
    def broken(self):
        return self.verdict.startswith("broken")


def claims(guarantee, covered, *true, part=""):
    """The claims about the true label that can be held against coverage; without any, why nothing is promised.

    `covered` is a number, or a function of the claim; `true` names the conditions that are true in the world.
    """
    said, silent = [], []
    for claim in guarantee.claims:
        if claim.event != "truth":
            continue
        share, source = covered(claim) if callable(covered) else covered, claim.source.partition(" with ")[0]
        if claim.probability is not None and not claim.refuted and {p.name for p in claim.conditions} <= set(true):
            condition = " and ".join(premise.text for premise in claim.conditions)
            said.append(Said(source, share, claim.probability, claim.delta, condition=condition, part=part))
        elif claim.refuted:
            names = ", ".join(premise.name for premise in claim.refuted)
            silent.append((f"{source}: {names} refuted", "; ".join(map(str, claim.refuted)), share))
        elif claim.conditions and claim.probability is not None:
            names = " and ".join(premise.text for premise in claim.conditions)
            silent.append((f"{source}: only if {names}", f"only if {names}", share))
        else:
            silent.append((source, claim.note, share))
    if said or not silent:
        return said
    sources, reasons, shares = zip(*silent, strict=True)
    return [Said(" and ".join(sources), shares[0], part=part, reason="; ".join(dict.fromkeys(reasons)))]


def simulate(scenario, case, runs, once, *given):
    """The rows about one case: `once(*given)` calibrates a sample, and returns what is said of it."""
    found, refused, warned = defaultdict(list), [], []
    for _ in range(runs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                for said in once(*given):
                    found[said.key].append(said)
            except (ValueError, TypeError) as error:
                refused.append(str(error).strip().split("\n", 1)[0])
        warned += [str(warning.message) for warning in caught if warning.category is MisuseWarning][:1]
    rows = [judged(scenario, case, said, runs, warned) for said in found.values()]
    if refused:
        often = f"{len(refused)} of {runs} samples" if runs > 1 else "refused"
        rows.append(Row(scenario, case, "—", often, f"refused: {refused[0]}", printed=len(refused), samples=runs))
    return rows


def judged(scenario, case, said, runs, warned):
    """One statement over the samples in which it was printed."""
    first, n = said[0], len(said)
    covered = np.array([each.covered for each in said])
    error = float(covered.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
    name = f"{case}, {first.part}" if first.part else case
    seen = f"{n} samples" if n == runs else f"{n} of {runs} samples"
    happened, numbers = f"{covered.mean():.4f} ± {error:.4f}, {seen}", (float(covered.mean()), error, n, runs)
    if first.promised is None:
        return Row(scenario, name, "—", happened, f"no promise: {first.reason}", *numbers)
    promised = np.array([each.promised for each in said])
    promise = f"{promised.mean():.4f}" + (" on average over samples" if np.ptp(promised) > 1e-9 else "")
    if first.delta is None:
        above = covered - promised
        error = above.std(ddof=1) / math.sqrt(n) if n > 1 else math.inf
        holds = above.mean() >= -1e-9 - t.isf(ERROR, max(n - 1, 1)) * error
    else:
        most = np.array([each.most for each in said])
        kept = (covered >= promised - 1e-9) & (covered <= most + 1e-9)
        if most.min() < 1:
            promise = f"{promised.mean():.4f} to {most.mean():.4f} on average over samples"
        promise += f", in {100 * (1 - first.delta):g} of 100 samples"
        happened = f"in {100 * kept.mean():.1f} of 100 samples; {happened}"
        holds = binom.sf(n - kept.sum() - 1, n, first.delta) >= ERROR
    promise += f", if {first.condition}" if first.condition else ""
    promise += f" ({', '.join(dict.fromkeys(each.source for each in said))})"
    told = f"; warned in {len(warned)} samples: {warned[0]}" if warned else ""
    return Row(scenario, name, promise, happened, "holds" if holds else f"broken{told}", *numbers)


# -------------------------------------------------------------------- worlds


@dataclass(frozen=True)
class World:
    """Probabilities, truths and, where they belong to the row, candidates: a population, or a sample of it."""

    p: np.ndarray
    y: np.ndarray
    s: np.ndarray | None = None
    mark: np.ndarray | None = None
    """What else is known of each row."""

    def __len__(self):
        return len(self.y)

    def sample(self, rng, n):
        rows = rng.integers(len(self), size=n)
        return World(*(None if each is None else each[rows] for each in (self.p, self.y, self.s, self.mark)))

    def covered(self, made, level=LEVEL, **asked):
        return float(made.predict_set(self.p, level, **asked).contains(self.y).mean())


def draw(rng, n, k, sharpness=2.0, temperature=1.0):
    """Rows whose law the model knows; at another temperature it is too sure of it."""
    z = sharpness * rng.normal(size=(n, k))
    return World(softmax(temperature * z, axis=1), labels(rng, softmax(z, axis=1)))


def labels(rng, law):
    return np.minimum((law.cumsum(axis=1) < rng.random((len(law), 1))).sum(axis=1), law.shape[1] - 1)


def one_hot(y, k):
    return np.arange(k) == np.asarray(y)[:, None]


def contaminated(rng, rows, kind, share=0.3):
    """The truth, and beside it: nothing, others by chance, the model's top label, or what the model finds plausible."""
    own, top = one_hot(rows.y, rows.p.shape[1]), one_hot(rows.p.argmax(axis=1), rows.p.shape[1])
    chance = {"none": 0.0, "top": 0.0, "uniform": share, "confusing": np.clip(1.5 * rows.p, 0, 1)}
    if kind == "hides":  # in a tenth of rows the model's top label is there instead of the truth
        gone = rng.random((len(rows), 1)) < 0.1
        return (own & ~gone) | top | ((rng.random(own.shape) < 0.1) & ~(own & gone))
    return own | (top & (kind == "top")) | (rng.random(own.shape) < chance[kind])


def first_verified(rows, m):
    """The truth of the first m rows, which are as random as any."""
    return np.where(np.arange(len(rows)) < m, rows.y, np.nan)


def examples(rng, n, k=4):
    """Features and labels to learn from."""
    y = rng.integers(0, k, n)
    return 1.2 * np.eye(k)[y] + rng.normal(size=(n, k)), y


def scenario(runs):
    """Registers a function that yields rows; `runs` calibration samples are drawn for each of its cases."""

    def register(function):
        SCENARIOS[function.__name__] = (function, runs)
        return function

    return register


# -------------------------------------------------------------------- the eleven


@scenario(300)
def unequal_chances(rng, runs):
    """1: rows verified with unequal probabilities, easy ones mostly; on hard rows a false candidate beats the truth."""
    hard = rng.random(NEW) < 0.3
    own = np.where(hard, rng.uniform(0, 0.05, NEW), rng.uniform(0.6, 0.95, NEW))
    p = np.column_stack([own, 0.9 * (1 - own), 0.1 * (1 - own)])
    world = World(p, np.zeros(NEW, dtype=int), np.tile([True, True, False], (NEW, 1)), np.where(hard, 0.02, 0.5))

    def once(strategy):
        rows = world.sample(rng, 1000)
        verified = np.where(rng.random(1000) < rows.mark, rows.y, np.nan)
        made = conformalize(rows.p, rows.s, strategy, verified=verified, verified_probability=rows.mark)
        return claims(made.guarantee(LEVEL), world.covered(made), "large_sample")

    for strategy in ("mean", "min", Mixture(mu=0.5), Mixture(mu="verified"), "rectified", "auto"):
        yield from simulate("unequal_chances", getattr(strategy, "name", strategy), runs, once, strategy)


@scenario(150)
def long_tail(rng, runs):
    """2: a share of labels comes from a long tail, and new rows carry labels that nobody has named yet."""

    def rows(n, tail):
        rare, y = rng.random(n) < tail, rng.integers(0, 5, n)
        X = np.column_stack([3 * np.eye(5)[y] * ~rare[:, None] + 0.5 * rng.normal(size=(n, 5)), 2.0 * rare])
        return X, np.where(rare, 5 + rng.zipf(1.08, n) % 10**9, y)

    def once(tail):
        (X, y), (new, truth) = rows(400, tail), rows(1000, tail)
        model = ConformalClassifier(KNeighborsClassifier(5), random_state=int(rng.integers(2**31))).fit(X, y)
        return claims(model.guarantee(), evaluate(model.predict_set(new), truth)["coverage"])

    for tail in (0.1, 0.2, 0.3):
        yield from simulate("long_tail", f"{tail:g} of labels from the tail", runs, once, tail)


@scenario(150)
def every_label_seen(rng, runs):
    """3: one class is never named, its rows are blank, and "every label" is put there for them."""
    names = np.array(list("abcd"))
    y = rng.integers(0, 4, NEW)
    z = np.where((y == 3)[:, None], [1, 1, 1, 0], 3 * one_hot(y, 4)) + 0.3 * rng.normal(size=(NEW, 4))
    world = World(softmax(z, axis=1), y)

    def texts(rows):
        return np.where(rows.y == 3, "", names[rows.y])

    def from_table(rows, **options):
        frame = {"x": np.zeros(len(rows)), "labels": texts(rows)}
        return read_table(frame, candidates="labels", missing="full", **options).candidates

    def from_strings(rows):
        return LabelSets.from_strings(texts(rows), missing="full")

    def declared(rows):
        return from_table(rows, classes=names)

    def calibrated(read):
        rows = world.sample(rng, 200)
        made = conformalize(rows.p, read(rows), "max", classes=names)
        return claims(made.guarantee(LEVEL), float(made.predict_set(world.p).contains(names[world.y]).mean()))

    def fitted():
        rows, new = world.sample(rng, 200), world.sample(rng, 1000)
        model = ConformalClassifier(LogisticRegression(), "max", random_state=0).fit(rows.p, from_table(rows))
        return claims(model.guarantee(), evaluate(model.predict_set(new.p), names[new.y])["coverage"])

    def by_command():
        from setwise.cli.app import run

        rows, complaint = world.sample(rng, 200), io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            lines = ["a,b,c,d,labels", *(f"{','.join(map(str, p))},{s}" for p, s in zip(rows.p, texts(rows), strict=True))]
            table, out = Path(folder, "t.csv"), Path(folder, "model")
            table.write_text("\n".join(lines) + "\n")
            options = ["--candidates", "labels", "--missing", "full", "--learner", "em", "--out", str(out), "--quiet"]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complaint):
                if run(["fit", str(table), *options]):
                    raise ValueError(complaint.getvalue().replace(str(table), "t.csv"))
            model, new = ConformalClassifier.load(out), world.sample(rng, 1000)
        return claims(model.guarantee(), evaluate(model.predict_set(new.p), names[new.y])["coverage"])

    yield from simulate("every_label_seen", "read_table", runs, calibrated, from_table)
    yield from simulate("every_label_seen", "LabelSets.from_strings", runs, calibrated, from_strings)
    yield from simulate("every_label_seen", "ConformalClassifier", runs, fitted)
    yield from simulate("every_label_seen", "setwise fit --missing full", 1, by_command)
    yield from simulate("every_label_seen", "read_table with classes declared", runs, calibrated, declared)


@scenario(300)
def by_size(rng, runs):
    """4: calibrated by the number of candidates, where those of new rows come from other annotators."""
    hard = rng.random(NEW) < 0.5
    own = np.where(hard, rng.uniform(0, 0.05, NEW), rng.uniform(0.4, 0.49, NEW))
    sets = np.column_stack([np.ones(NEW, dtype=bool), ~hard, np.zeros(NEW, dtype=bool)])
    world = World(np.column_stack([own, 0.99 - own, np.full(NEW, 0.01)]), np.zeros(NEW, dtype=int), sets)

    def once(later, *true):
        rows = world.sample(rng, 500)
        made = conformalize(rows.p, rows.s, "max", by="size")
        inside = made.predict_set(world.p, LEVEL, candidates=later).contains(world.y)
        for size, guarantee in made.guarantee(LEVEL).by_category.items():
            share = float(inside[later.sum(axis=1) == size].mean())
            yield from claims(guarantee, share, *true, part=f"size {size}")

    yield from simulate("by_size", "other annotators", runs, once, sets ^ [False, True, False])
    yield from simulate("by_size", "the same annotators", runs, once, sets, "same_candidates")


@scenario(400)
def informative_groups(rng, runs):
    """5: a tenth of the groups are large, and hard."""

    def rows(groups):
        large = rng.random(groups) < 0.1
        sizes = np.where(large, 50, 1)
        hard, group = np.repeat(large, sizes), np.repeat(np.arange(groups), sizes)
        own = np.where(hard, rng.uniform(0, 0.4, len(group)), rng.uniform(0.4, 1, len(group)))
        return World(np.column_stack([own, 1 - own]), np.zeros(len(group), dtype=int), mark=group)

    def once():
        given, new = rows(100), rows(400)
        made = conformalize(given.p, given.y, "max", groups=given.mark)
        inside = made.predict_set(new.p, LEVEL).contains(new.y)

        def covered(claim):
            if claim.subject == "a row of a random new group":
                return float((np.bincount(new.mark, inside) / np.bincount(new.mark)).mean())
            return float(inside.mean())

        guarantee = made.guarantee(LEVEL)
        for subject in {claim.subject for claim in guarantee.claims}:
            yield from claims(guarantee, covered, part=subject)

    yield from simulate("informative_groups", "max", runs, once)


@scenario(250)
def mixture_falls_back(rng, runs):
    """6: the truth is no candidate in 15 of 100 rows, as verified rows show; the mixture falls back to `max`."""
    plain, gone = draw(rng, NEW, 4), rng.random(NEW) < 0.15
    y = np.where(gone, plain.p.argmin(axis=1), plain.y)
    world = World(plain.p, y, np.where(gone[:, None], one_hot(plain.p.argmax(axis=1), 4), one_hot(plain.y, 4)))

    def once(strategy):
        rows = world.sample(rng, 1000)
        made = conformalize(rows.p, rows.s, strategy, verified=first_verified(rows, 200))
        return claims(made.guarantee(LEVEL), world.covered(made))

    for strategy in (Mixture(mu="verified"), "max", "auto"):
        yield from simulate("mixture_falls_back", getattr(strategy, "name", strategy), runs, once, strategy)


@scenario(250)
def bracket(rng, runs):
    """7: the bracket where verified rows show that 30 of 100 truths are no candidates."""
    plain, gone = draw(rng, NEW, 4), rng.random(NEW) < 0.3
    sets = contaminated(rng, plain, "uniform", 0.2) & ~(one_hot(plain.y, 4) & gone[:, None])
    empty = ~sets.any(axis=1)
    sets[empty] = one_hot(plain.p.argmin(axis=1), 4)[empty]
    world = World(plain.p, plain.y, sets)

    def once(strategy):
        rows = world.sample(rng, 1000)
        made = conformalize(rows.p, rows.s, strategy, verified=first_verified(rows, 200))
        share, (low, high) = world.covered(made), made.bracket(LEVEL)
        yield Said("the bracket", share, low, 0.05, high)
        yield from claims(made.guarantee(LEVEL), share)

    for strategy in ("rectified", "max"):
        yield from simulate("bracket", strategy, runs, once, strategy)


@scenario(150)
def blank_rows(rng, runs):
    """8: rows without candidates come from where the model is arbitrary, and every label is put there."""
    plain, odd = draw(rng, NEW, 5), rng.random(NEW) < 0.2
    world = World(plain.p, np.where(odd, rng.integers(0, 5, NEW), plain.y), mark=odd & (rng.random(NEW) < 0.9))

    def once(strategy, options):
        rows = world.sample(rng, 4000)
        sets = contaminated(rng, rows, "uniform", 0.2) & ~rows.mark[:, None]
        made = conformalize(rows.p, sets, strategy, missing="full", **options)
        return claims(made.guarantee(LEVEL), world.covered(made))

    uniform = {"assume": "uniform"}
    yield from simulate("blank_rows", "corrected, finite margin", runs, once, Corrected("finite"), uniform)
    yield from simulate("blank_rows", "auto, uniform declared", runs, once, "auto", uniform)
    yield from simulate("blank_rows", "max", runs, once, "max", {})


@scenario(150)
def float32(rng, runs):
    """9: probabilities in tenths, calibrated in one precision and asked in another."""
    plain = draw(rng, NEW, 5)
    world = World(rng.multinomial(10, plain.p) / 10, plain.y)

    def once(first, then, score):
        rows, seed = world.sample(rng, 300), int(rng.integers(2**31))
        made = conformalize(rows.p.astype(first), rows.y, "max", conformity_score=score, random_state=seed)
        return claims(made.guarantee(LEVEL), World(world.p.astype(then), world.y).covered(made))

    for first, then in (("float64", "float64"), ("float32", "float32"), ("float64", "float32"), ("float32", "float64")):
        for score in ("lac", "aps", "margin"):
            yield from simulate("float32", f"{score}, {first} → {then}", runs, once, first, then, score)


@scenario(500)
def law(rng, runs):
    """10: the law given the calibration set, where scores are tied in the population and not in the sample."""

    def rounded(decimals):
        world = draw(rng, NEW, 3)
        if decimals == "saturated":
            p = np.where(world.p < 0.05, 0, world.p)
            return World(p / p.sum(axis=1, keepdims=True), world.y, contaminated(rng, world, "uniform", 0.15))
        p = world.p
        if decimals is not None:
            p = np.floor(p * 10**decimals)
            p[np.arange(NEW), world.p.argmax(axis=1)] += 10**decimals - p.sum(axis=1)
            p /= 10**decimals
        return World(p, world.y, one_hot(world.y, 3))

    def once(world, n, level):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, rows.s, "max")
        guarantee, sets = made.guarantee(level), made.predict_set(world.p, level).to_mask()
        every = float((sets | ~world.s).all(axis=1).mean())
        least = re.search(r"is at least ([\d.]+\d)", guarantee.given_calibration)
        between = re.search(r"between ([\d.]+\d) and ([\d.]+\d)", guarantee.given_calibration)
        if least or between:
            low, high = (least[1], 1) if least else between.groups()
            yield Said("the law given the sample", every, float(low) - 5e-4, 0.05, float(high) + 5e-4)

    for decimals in (None, 1, 2, "saturated"):
        world, told = rounded(decimals), f"{decimals} decimals" if isinstance(decimals, int) else decimals or "exact"
        for n, level in ((9, 0.9), (19, 0.95), (19, 0.9), (99, 0.99), (50, 0.9)):
            yield from simulate("law", f"{told}, n = {n}, level {level}", runs, once, world, n, level)


@scenario(1500)
def theorem_2_selected(rng, runs):
    """11: `all` where every row is verified, and Theorem 2 can be claimed in some samples only."""

    def alone(world, n):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, rows.s, "all", verified=rows.y)
        return claims(made.guarantee(LEVEL), world.covered(made))

    def with_max(world, n):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, rows.s, "all", verified=rows.y)
        said = claims(made.guarantee(LEVEL), 0.0, "max_otherwise")
        used = made if said[0].promised else conformalize(rows.p, rows.s, "max")
        return [Said("Theorem 2 or 1", world.covered(used), LEVEL)]

    for share, n in ((0.1, 19), (0.2, 19), (0.3, 19), (0.12, 99)):
        wrong = rng.random(NEW) < share
        own = np.where(wrong, 0.01, rng.uniform(0.5, 1, NEW))
        p = np.column_stack([own, np.where(wrong, 0.98, 1 - own), np.where(wrong, 0.01, 0)])
        sets = np.column_stack([np.ones(NEW, dtype=bool), wrong, np.zeros(NEW, dtype=bool)])
        world, told = World(p, np.zeros(NEW, dtype=int), sets), f"the model errs in {share:g}, n = {n}"
        yield from simulate("theorem_2_selected", f"all; {told}", runs, alone, world, n)
        yield from simulate("theorem_2_selected", f"all, and max otherwise; {told}", runs, with_max, world, n)


# -------------------------------------------------------------------- misuse, and claims that were too strong


@scenario(150)
def drop_by_size(rng, runs):
    """Calibrated by the number of candidates, with every seventh row blank and dropped; it once crashed."""
    world = draw(rng, NEW, 4)

    def once():
        rows = world.sample(rng, 1000)
        sets, later = contaminated(rng, rows, "uniform"), contaminated(rng, world, "uniform")
        sets[::7] = False
        made = conformalize(rows.p, sets, "max", by="size", missing="drop")
        inside = made.predict_set(world.p, LEVEL, candidates=later).contains(world.y)
        for size, guarantee in made.guarantee(LEVEL).by_category.items():
            share = float(inside[later.sum(axis=1) == size].mean())
            yield from claims(guarantee, share, "same_candidates", part=f"size {size}")

    yield from simulate("drop_by_size", "max", runs, once)


class Fixed:
    """A model that answers row numbers with given probabilities."""

    def __init__(self, p):
        self.p, self.classes_ = p, np.arange(p.shape[1])

    def predict_proba(self, X):
        return self.p[np.asarray(X)]


@scenario(150)
def chosen_checks(rng, runs):
    """Rows to verify that were chosen, and are passed as a random choice."""
    world = draw(rng, NEW, 5)

    def once(kind, n, how):
        rows = world.sample(rng, n)
        sets, options = contaminated(rng, rows, kind), {}
        if how.startswith("uncertain"):
            seed = int(rng.integers(2**31))
            suggestion = suggest_verification(
                Fixed(rows.p), np.arange(n), sets, 100, prefer="uncertain", random_state=seed
            )
            chosen = suggestion.rows
            if how.endswith("passed on"):
                options["verified_probability"] = suggestion.probability
        else:
            sure = rows.p.max(axis=1)
            order = {
                "at random": np.arange(n),
                "least confident": np.argsort(sure),
                "most confident": np.argsort(-sure),
                "singletons": np.flatnonzero(sets.sum(axis=1) == 1),
            }
            chosen = order[how][:100]
        verified = np.full(n, np.nan)
        verified[chosen] = rows.y[chosen]
        made = conformalize(rows.p, sets, verified=verified, **options)
        return claims(made.guarantee(LEVEL), world.covered(made))

    ways = ("at random", "uncertain", "uncertain, chances passed on", "least confident", "most confident", "singletons")
    for kind, n, how in [
        *((kind, 500, how) for how in ways for kind in ("uniform", "top")),
        *(("uniform", 190, how) for how in ("uncertain", "most confident")),
    ]:
        yield from simulate("chosen_checks", f"{how}; {kind}, 100 of {n}", runs, once, kind, n, how)


@scenario(150)
def declared_uniform(rng, runs):
    """`auto` where uniform contamination is declared: rightly, and wrongly in five ways."""

    def uniform(rows, share=0.3):
        return contaminated(rng, rows, "uniform", share)

    def plausible(rows):
        return one_hot(rows.y, 5) | (rng.random(rows.p.shape) < np.clip(1.5 * rows.p, 0, 1))

    def confusions(rows):
        k = rows.p.shape[1]
        return uniform(rows, 0.2) | (one_hot(rows.p.argmax(axis=1), k) & (rng.random((len(rows), 1)) < 0.8))

    def difficulty(rows):
        return uniform(rows, 0.3 * (1.6 - 1.2 * rows.p.max(axis=1, keepdims=True)))

    def with_top(rows):
        return uniform(rows) | one_hot(rows.p.argmax(axis=1), 5)

    def once(world, n, sets):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, sets(rows), assume="uniform")
        true = ("large_sample",) if n >= 2000 and sets is uniform else ()
        return claims(made.guarantee(LEVEL), world.covered(made), *true)

    five, sure, two = draw(rng, NEW, 5), draw(rng, NEW, 5, temperature=3.0), draw(rng, NEW, 2)
    y = rng.integers(0, 5, NEW)
    top = np.where(rng.random(NEW) < 0.8, y, (y + rng.integers(1, 5, NEW)) % 5)
    p = np.where(one_hot(top, 5), 0.7, 0.075 + 1e-3 * rng.random((NEW, 5)))
    cases = {
        "uniform": (five, uniform),
        "what is plausible": (five, plausible),
        "shared confusions": (five, confusions),
        "shared confusions, model too sure": (sure, confusions),
        "more on hard rows": (five, difficulty),
        "shared confusions, top label alone known": (World(p / p.sum(axis=1, keepdims=True), y), with_top),
    }
    for n in (50, 300, 2000):
        for told, (world, sets) in cases.items():
            yield from simulate("declared_uniform", f"{told}, n = {n}", runs, once, world, n, sets)
    yield from simulate("declared_uniform", "uniform, two classes, n = 300", runs, once, two, 300, uniform)
    for n in (300, 3000):
        told = f"shared confusions, two classes, n = {n}"
        yield from simulate("declared_uniform", told, runs, once, two, n, confusions)


@scenario(150)
def classifiers(rng, runs):
    """Cross-conformal prediction from few rows, and verified rows that are kept for calibration."""

    def across(learner, n, folds, level):
        (X, y), (new, truth) = examples(rng, n), examples(rng, 200)
        seed = int(rng.integers(2**31))
        model = CrossConformalClassifier(learner, cv=folds, confidence_level=level, random_state=seed).fit(X, y)
        return claims(model.guarantee(), float(model.predict_set(new).contains(truth).mean()))

    def kept(m):
        (X, y), (new, truth) = examples(rng, 500), examples(rng, 1000)
        sets = one_hot(y, 4) | (rng.random((500, 4)) < 0.3)
        verified = np.where(rng.permutation(500) < m, y, np.nan)
        model = ConformalClassifier(LogisticRegression(), random_state=int(rng.integers(2**31)))
        model.fit(X, sets, verified=verified)
        return claims(model.guarantee(), float(model.predict_set(new).contains(truth).mean()))

    for learner, n, folds, level in (
        (DecisionTreeClassifier(), 40, 5, 0.9),
        (DecisionTreeClassifier(), 40, 20, 0.8),
        (KNeighborsClassifier(1), 30, 3, 0.9),
        (LogisticRegression(), 60, 5, 0.9),
    ):
        told = f"{type(learner).__name__}, {n} rows in {folds} folds, level {level}"
        yield from simulate("classifiers", told, runs, across, learner, n, folds, level)
    for m in (40, 120, 300):
        yield from simulate("classifiers", f"{m} of 500 rows verified", max(runs // 2, 2), kept, m)


@scenario(100)
def learned_rows(rng, runs):
    """Calibrated on rows that were learned from: the same rows again, or copies of them."""

    def again():
        (X, y), (new, truth) = examples(rng, 400), examples(rng, 1000)
        model = ConformalClassifier(KNeighborsClassifier(3), random_state=int(rng.integers(2**31))).fit(X, y)
        model.conformalize(X, y)
        return claims(model.guarantee(), float(model.predict_set(new).contains(truth).mean()))

    def copies(learner):
        (X, y), (new, truth) = examples(rng, 200), examples(rng, 1000)
        model = ConformalClassifier(learner, random_state=int(rng.integers(2**31)))
        model.fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
        return claims(model.guarantee(), float(model.predict_set(new).contains(truth).mean()))

    yield from simulate("learned_rows", "fit, then conformalize on the same rows", runs, again)
    for learner in (KNeighborsClassifier(1), LogisticRegression()):
        told = f"every row three times, {type(learner).__name__}"
        yield from simulate("learned_rows", told, runs, copies, learner)


@scenario(150)
def own_candidates(rng, runs):
    """New rows bring candidates, which lack the truth in 8 of 100 rows, as declared."""
    world = draw(rng, NEW, 5)

    def lossy(rows):
        gone = (rng.random(len(rows)) < 0.08)[:, None] & one_hot(rows.y, 5)
        sets = contaminated(rng, rows, "uniform", 0.2) & ~gone
        kept = sets.any(axis=1)
        return World(rows.p[kept], rows.y[kept], sets[kept])

    def once(strategy, inside, options):
        rows, new = lossy(world.sample(rng, 1500)), lossy(world)
        made = conformalize(rows.p, rows.s, strategy, miss_rate=0.08, **options)
        share = new.covered(made, **({"candidates": new.s} if inside else {}))
        return claims(made.guarantee(LEVEL), share, "large_sample")

    for strategy, options in (("max", {}), ("corrected", {"assume": "uniform"})):
        for inside in (False, True):
            told = f"{strategy}, the part of the set inside the candidates" if inside else f"{strategy}, the set"
            yield from simulate("own_candidates", told, runs, once, strategy, inside, options)


@scenario(60)
def high_level(rng, runs):
    """`auto` with 50 verified rows of 2,000, which do not suffice at 0.99: once every label, and no promise."""
    world = draw(rng, NEW, 10, 4.0)

    def once(kind, level, m):
        rows = world.sample(rng, 2000)
        sets = contaminated(rng, rows, kind, 0.1)
        made = conformalize(rows.p, sets, verified=first_verified(rows, m) if m else None)
        found = made.predict_set(world.p, level)
        sizes[m].append(float(found.sizes.mean()))
        return claims(made.guarantee(level), float(found.contains(world.y).mean()))

    for kind in ("top", "uniform"):
        for level in (0.9, 0.95, 0.99):
            sizes, rows = {0: [], 50: []}, {}
            for m in sizes:
                rows[m] = simulate("high_level", f"{kind}, level {level}, {m} verified", runs, once, kind, level, m)
                for row in rows[m]:
                    yield Row(**asdict(row) | {"happened": f"{row.happened}; {np.mean(sizes[m]):.2f} labels"})


@scenario(400)
def larger_of_both(rng, runs):
    """`rectified` alone lost part of a row; `auto` takes the larger threshold of it and the verified rows alone."""
    world = draw(rng, NEW, 3)

    def once(strategy, m, kind):
        rows = world.sample(rng, 100)
        made = conformalize(rows.p, contaminated(rng, rows, kind), strategy, verified=first_verified(rows, m))
        return claims(made.guarantee(LEVEL), world.covered(made))

    for m, kind in ((20, "none"), (30, "top")):
        for strategy in ("rectified", "auto"):
            told = f"{strategy}, {m} of 100 verified, {kind}"
            yield from simulate("larger_of_both", told, runs, once, strategy, m, kind)


@scenario(100)
def few_verified(rng, runs):
    """Few verified rows and ten classes: the default, and `rectified` with each margin."""

    def once(world, strategy, kind, n, m):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, contaminated(rng, rows, kind), strategy, verified=first_verified(rows, m))
        true = ("large_sample",) if m >= 200 else ()
        return claims(made.guarantee(LEVEL), world.covered(made), *true)

    right, sure = draw(rng, NEW, 10), draw(rng, NEW, 10, temperature=3.0)
    worlds = {"uniform": (right, "uniform"), "confusing": (right, "confusing"), "hides": (right, "hides")}
    worlds["confusing, model too sure"] = (sure, "confusing")
    for told, (world, kind) in worlds.items():
        for n, m in ((200, 20), (200, 50), (2000, 20), (2000, 50), (2000, 200)):
            for strategy in ("auto", Rectified(), Rectified("normal"), Rectified("finite")):
                name = strategy if strategy == "auto" else f"rectified, margin {strategy.margin}"
                case = f"{told}; {name}, {m} of {n}"
                yield from simulate("few_verified", case, runs, once, world, strategy, kind, n, m)


@scenario(60)
def finite_margin(rng, runs):
    """`rectified` with the finite margin, from 200 to 1,000 verified rows of 20,000, and the size of its sets."""

    def once(world, m):
        rows = world.sample(rng, 20_000)
        made = conformalize(rows.p, contaminated(rng, rows, "uniform"), Rectified("finite"), verified=first_verified(rows, m))
        found = made.predict_set(world.p, LEVEL)
        sizes.append(float(found.sizes.mean()))
        return claims(made.guarantee(LEVEL), float(found.contains(world.y).mean()))

    for k in (3, 10):
        world = draw(rng, NEW, k)
        limit = np.quantile(1 - world.p[np.arange(NEW), world.y], LEVEL)
        best = (1 - world.p <= limit).sum(axis=1).mean()
        for m in (200, 300, 400, 600, 1000):
            sizes = []
            for row in simulate("finite_margin", f"{k} classes, {m} verified", runs, once, world, m):
                told = f"{row.happened}; {np.mean(sizes):.2f} labels, with all labels known {best:.2f}"
                yield Row(**asdict(row) | {"happened": told})


@scenario(200)
def first_crossing(rng, runs):
    """`corrected` took the first threshold whose estimated coverage reached the level, and so one too small."""

    def once(world, n, share, level, score, margin):
        rows = world.sample(rng, n)
        seed = int(rng.integers(2**31))
        sets = contaminated(rng, rows, "uniform", share)
        options = {"conformity_score": score, "assume": "uniform", "random_state": seed}
        made = conformalize(rows.p, sets, Corrected(margin), **options)
        return claims(made.guarantee(level), world.covered(made, level), *(("large_sample",) if n >= 1000 else ()))

    for k, cases in {
        10: (
            ("margin", 200, 0.3, 0.9, "none"),
            ("lac", 200, 0.3, 0.9, "none"),
            ("margin", 1000, 0.5, 0.9, "none"),
            ("lac", 1000, 0.7, 0.9, "none"),
            ("lac", 200, 0.7, 0.99, "none"),
            ("lac", 1000, 0.7, 0.99, "none"),
        ),
        50: (("lac", 50, 0.7, 0.9, "none"), ("lac", 1000, 0.3, 0.9, "none")),
        3: (("lac", 50, 0.3, 0.9, "none"),),
        2: (("lac", 50, 0.7, 0.9, "normal"), ("lac", 1000, 0.7, 0.9, "normal")),
    }.items():
        world = draw(rng, NEW, k)
        for score, n, share, level, margin in cases:
            told = f"{score}, n = {n}, {k} classes, share {share:g}, level {level}, margin {margin}"
            yield from simulate("first_crossing", told, runs, once, world, n, share, level, score, margin)


@scenario(100)
def plain_words(rng, runs):
    """The report's sentence about a promise: over what it is taken, and all that it rests on."""
    world = draw(rng, NEW, 3)

    def once(strategy, m, options):
        rows = world.sample(rng, 3000)
        verified = first_verified(rows, m) if m else None
        made = conformalize(rows.p, contaminated(rng, rows, "uniform", 0.1), strategy, verified=verified, **options)
        guarantee, sets = made.guarantee(LEVEL), made.predict_set(world.p, LEVEL).contains(world.y)
        by_class = np.bincount(world.y, sets) / np.bincount(world.y)

        def covered(claim):
            return float(by_class.min() if "any one true class" in claim.subject else sets.mean())

        sentence, promised = in_plain_words(guarantee), [each for each in guarantee.claims if each.promised]
        for claim in [each for each in promised if each.probability == guarantee.promised]:
            over = "on average" if claim.delta is None else f"in {100 * (1 - claim.delta):g} of 100 calibration samples"
            missing = [text for text in (over, claim.subject, *(p.text for p in claim.premises)) if text not in sentence]
            yield Said("the sentence says all", float(not missing), 1.0, reason="; ".join(missing))
        yield from claims(guarantee, covered)

    for strategy, m, options in (
        (Corrected("finite"), 0, {"assume": "uniform"}),
        (Classwise(), 0, {}),
        (Mixture("verified"), 300, {}),
        ("min", 300, {}),
        ("max", 0, {}),
    ):
        told = getattr(strategy, "name", strategy)
        yield from simulate("plain_words", told, runs, once, strategy, m, options)


# -------------------------------------------------------------------- command


def rows_of(name, share=1.0):
    """The rows of one scenario, from a share of its calibration samples."""
    function, runs = SCENARIOS[name]
    return list(function(np.random.default_rng(zlib.crc32(name.encode())), max(round(share * runs), 2)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("--share", type=float, default=1.0, help="of the calibration samples")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    rows, start = [], time.perf_counter()
    print("| what | promised | happened | holds |\n|---|---|---|---|")
    for name in arguments.only:
        for row in rows_of(name, arguments.share):
            rows.append(row)
            print(f"| {name}: {row.case} | {row.promised} | {row.happened} | {row.verdict} |", flush=True)
    broken = sum(row.broken for row in rows)
    seconds = round(time.perf_counter() - start, 1)
    print(f"\n{len(rows)} statements and refusals, {broken} broken; {seconds} s")
    packages = ("numpy", "scipy", "scikit-learn")
    result = {
        "machine": {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "setwise": __version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in packages},
            "device": f"CPU {platform.machine()}",
        },
        "level": LEVEL,
        "share": arguments.share,
        "seconds": seconds,
        "broken": broken,
        "rows": [asdict(row) for row in rows],
    }
    if arguments.keep:
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
