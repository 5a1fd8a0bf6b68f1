"""Guarantees that were once printed and false, in the worlds that showed it: what is printed now, and what happens.

    python benchmarks/broken_guarantees.py --keep [--only unequal_chances bracket …] [--share 0.1]

A world is a finite population of `NEW` rows: calibration rows are drawn from it with replacement, and the coverage of
a calibration sample is a sum over it. Where a model is learned, new rows are drawn for every sample. The level is 0.90
unless a case names another. The guarantees are read from the object: every claim about the true label that is
unconditional, or whose conditions are true in the world, and in some cases the law given the sample, and the bracket.
A guarantee

- on average over draws holds if the mean of coverage − guarantee, over the draws in which it was printed, is not
  below zero by more than 3 standard errors (for few draws by the quantile of Student's t);
- in a share 1 − δ of draws holds if the binomial probability of so many failures, among the draws in which it was
  printed, is at least that of 3 standard errors.

Otherwise it is broken, whatever it rests on. If it was printed in fewer than 3 draws, it stays open. "No guarantee"
names the premise that the data refute, or the condition that only an assumption can meet; the coverage is shown all
the same. `--share` takes that share of the draws; `--keep` writes benchmarks/results/broken_guarantees.json. The exit
status is 1 where a guarantee is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import re
import sys
import tempfile
import time
import warnings
import zlib
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr, softmax
from scipy.stats import binom, t
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from summary import machine

from setwise import (
    ConformalClassifier,
    CrossConformalClassifier,
    LabelSets,
    MisuseWarning,
    conformalize,
)
from setwise.guarantees import PREMISES, format_draws
from setwise.strategies import Corrected, Mixture, Rectified
from setwise.tables import read_table

RESULTS = Path(__file__).resolve().parent / "results" / "broken_guarantees.json"
LEVEL, NEW = 0.9, 20_000
ERROR = float(ndtr(-3))  # how often a guarantee that holds exactly is called broken
NONE = "—"
NAMED = {"different_events", "verified_written"}
"""What a guarantee says that the user states, because the rows look otherwise: conditions like those assumed."""
SCENARIOS = {}


# -------------------------------------------------------------------- what is guaranteed, and what happens


@dataclass(frozen=True)
class Statement:
    """A statement about one calibration sample, and the coverage of its sets; `promised` is None where nothing is guaranteed."""

    source: str
    covered: float
    promised: float | None = None
    delta: float | None = None
    most: float = 1.0
    condition: str = ""
    part: str = ""
    reason: str = ""
    size: float | None = None

    @property
    def key(self):
        """The same for draws with the same statement."""
        average = self.promised is not None and self.delta is None
        return self.part, self.condition, self.delta, round(self.promised, 6) if average else self.source


@dataclass(frozen=True)
class Row:
    """A line of the table: one statement of one case, over the draws in which it was printed."""

    scenario: str
    case: str
    promised: str
    happened: str
    verdict: str
    printed: int
    samples: int
    coverage: float | None = None
    standard_error: float | None = None

    @property
    def broken(self):
        return self.verdict.startswith("broken")


def claims(guarantee, covered, *true, part="", size=None):
    """The claims about the true label that can be compared with coverage; without any, why nothing is guaranteed.

    `covered` is a number, or a function of the claim; `true` names the conditions that are true in the world.
    """
    said, silent = [], []
    for claim in guarantee.claims:
        if claim.event != "truth":
            continue
        told = {"covered": covered(claim) if callable(covered) else covered, "part": part, "size": size}
        conditions = [p for p in claim.premises if p in claim.conditions or p.name in NAMED]
        source, condition = claim.source.partition(" with ")[0], " and ".join(p.text for p in conditions)
        if claim.refuted:
            names = ", ".join(premise.name for premise in claim.refuted)
            silent.append(Statement(f"{source}, {names}", reason="; ".join(map(str, claim.refuted)), **told))
        elif claim.probability is None:
            silent.append(Statement(source, reason=claim.note, **told))
        elif {premise.name for premise in conditions} <= set(true):
            said.append(
                Statement(source, promised=claim.probability, delta=claim.delta, condition=condition, **told)
            )
        else:
            silent.append(Statement(f"{source}, {condition}", reason=f"only if {condition}", **told))
    if said or not silent:
        return said
    reason = "; ".join(dict.fromkeys(each.reason for each in silent))
    return [replace(silent[0], source="; ".join(each.source for each in silent), reason=reason)]


def simulate(case, runs, once, *given):
    """The rows about one case: `once(*given)` calibrates a sample, and returns the statements about it."""
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
    rows = []
    for part in dict.fromkeys(said[0].part for said in found.values()):
        rows += merge_rows([judge(case, said, runs, warned) for said in found.values() if said[0].part == part])
    if refused:
        often = f"{len(refused)} of {runs} draws"
        rows[:1] = merge_rows([*rows[:1], Row(*case, NONE, often, f"refused: {refused[0]}", len(refused), runs)])
    return rows


def merge_rows(rows):
    """The guarantees; the verdicts on draws without one stand beside the first of them."""
    promises = [row for row in rows if row.promised != NONE]
    if not promises:
        return rows
    others = [f"in {row.printed} of {row.samples} draws {row.verdict}" for row in rows if row.promised == NONE]
    return [replace(promises[0], verdict="; ".join([promises[0].verdict, *others])), *promises[1:]]


def judge(case, said, runs, warned):
    """The verdict on one statement, over the draws in which it was printed."""
    (scenario, name), first, n = case, said[0], len(said)
    name += f", {first.part}" if first.part else ""
    covered = np.array([each.covered for each in said])
    error = standard_error(covered)
    happened = f"{covered.mean():.4f}{f' ± {error:.4f}' if n > 1 else ''}, {n} of {runs} draws"
    if first.size is not None:
        happened += f", {np.mean([each.size for each in said]):.2f} labels"
    numbers = (n, runs, float(covered.mean()), error if n > 1 else None)
    if first.promised is None:
        return Row(scenario, name, NONE, happened, f"no guarantee: {first.reason}", *numbers)
    promised, most = np.array([(each.promised, each.most) for each in said]).T
    promise = f"{promised.mean():.4f}" + (f" to {most.mean():.4f}" if most.min() < 1 else "")
    promise += " (mean over draws)" if np.ptp(promised) > 1e-9 else ""
    if first.delta is None:
        above = covered - promised
        holds = above.mean() >= -1e-9 - t.isf(ERROR, max(n - 1, 1)) * standard_error(above)
    else:
        kept = (covered >= promised - 1e-9) & (covered <= most + 1e-9)
        promise += f" in {100 * (1 - first.delta):g} of 100 draws"
        happened = f"in {100 * kept.mean():.1f} of 100 draws; {happened}"
        holds = binom.sf(n - kept.sum() - 1, n, first.delta) >= ERROR
    promise += f", if {first.condition}" if first.condition else ""
    promise += f" ({', '.join(dict.fromkeys(each.source for each in said))})"
    verdict = "holds" if n > 2 else "open: too few draws"
    if not holds:
        verdict = "broken" + (f", though warned in {len(warned)} draws: {warned[0]}" if warned else "")
    return Row(scenario, name, promise, happened, verdict, *numbers)


def standard_error(values):
    return float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf


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

    def said(self, made, *true, level=LEVEL):
        """The statements of a calibration, with its coverage here."""
        return claims(made.guarantee(level), self.covered(made, level), *true)

    def said_with_size(self, made, level=LEVEL):
        sets = made.predict_set(self.p, level)
        return claims(made.guarantee(level), float(sets.contains(self.y).mean()), size=float(sets.sizes.mean()))

    def verified(self, m):
        """The truth of the first m rows, which are as random as any."""
        return np.where(np.arange(len(self)) < m, self.y, np.nan)


def draw(rng, k, sharpness=2.0, temperature=1.0):
    """Rows whose law the model knows; at another temperature it is too sure of it."""
    z = sharpness * rng.normal(size=(NEW, k))
    law = softmax(z, axis=1)
    y = np.minimum((law.cumsum(axis=1) < rng.random((NEW, 1))).sum(axis=1), k - 1)
    return World(softmax(temperature * z, axis=1), y)


def one_hot(y, k):
    return np.arange(k) == y[:, None]


def top_label(rows):
    return one_hot(rows.p.argmax(axis=1), rows.p.shape[1])


def contaminated(rng, rows, kind, share=0.3):
    """The truth, and beside it: nothing, others by chance, the model's top label, or what the model finds plausible."""
    own, u = one_hot(rows.y, rows.p.shape[1]), rng.random(rows.p.shape)
    if kind == "hides":  # in a tenth of rows the model's top label stands there instead of the truth
        gone = own & (rng.random((len(rows), 1)) < 0.1)
        return top_label(rows) | ((own | (u < 0.1)) & ~gone)
    if kind == "top":
        return own | top_label(rows)
    return own | (u < {"none": 0.0, "uniform": share, "confusing": 1.5 * rows.p}[kind])


def examples(rng, n, k=4):
    """Features and labels to learn from."""
    y = rng.integers(0, k, n)
    return 1.2 * np.eye(k)[y] + rng.normal(size=(n, k)), y


def learned(model, new, truth):
    """The statements of a model, with its coverage of new rows; of those of its classes, where they are about these.

    A label outside the classes is missed.
    """
    made, hits = model.guarantee(), model.predict_set(new).contains(truth)
    return claims(made, hits[np.isin(truth, model.classes_)].mean() if made.caution else hits.mean())


def seed(rng):
    return int(rng.integers(2**31))


def called(strategy):
    return getattr(strategy, "name", strategy)


def scenario(runs):
    """Registers a function that yields cases: a name, a function that calibrates one sample, and its arguments.

    `runs` calibration samples are drawn for each case.
    """

    def register(function):
        SCENARIOS[function.__name__] = (function, runs)
        return function

    return register


# -------------------------------------------------------------------- the eleven


@scenario(300)
def unequal_chances(rng):
    """1: rows verified with unequal probabilities, easy ones mostly; on hard rows a false candidate beats the truth."""
    hard = rng.random(NEW) < 0.3
    own = np.where(hard, rng.uniform(0, 0.05, NEW), rng.uniform(0.6, 0.95, NEW))
    p = np.column_stack([own, 0.9 * (1 - own), 0.1 * (1 - own)])
    world = World(p, np.zeros(NEW, dtype=int), np.tile([True, True, False], (NEW, 1)), np.where(hard, 0.02, 0.5))

    def once(strategy):
        rows = world.sample(rng, 1000)
        verified = np.where(rng.random(1000) < rows.mark, rows.y, np.nan)
        made = conformalize(rows.p, rows.s, strategy, verified=verified, verified_probability=rows.mark)
        return world.said(made, "large_sample")

    for strategy in ("mean", "min", Mixture(mu=0.5), "rectified", "auto"):
        yield called(strategy), once, strategy


@scenario(250)
def long_tail(rng):
    """2: a share of labels comes from a long tail, and new rows carry labels that nobody has named yet."""

    def rows(n, tail):
        rare, y = rng.random(n) < tail, rng.integers(0, 5, n)
        X = np.column_stack([3 * np.eye(5)[y] * ~rare[:, None] + 0.5 * rng.normal(size=(n, 5)), 2.0 * rare])
        return X, np.where(rare, 5 + rng.zipf(1.08, n) % 10**9, y)

    def once(tail):
        model = ConformalClassifier(KNeighborsClassifier(5), random_state=seed(rng)).fit(*rows(400, tail))
        X, y = rows(1000, tail)
        known = np.isin(y, model.classes_)  # of which rows the guarantee speaks
        return learned(model, X[known], y[known])

    for tail in (0.1, 0.15, 0.2, 0.3):
        yield f"{tail:g} of labels from the tail", once, tail


@scenario(100)
def every_label_seen(rng):
    """3: one class is never named, its rows are blank, and "every label" is put there for them."""
    names, y = np.array(list("abcd")), rng.integers(0, 4, NEW)
    z = np.where((y == 3)[:, None], [1, 1, 1, 0], 3 * one_hot(y, 4)) + 0.3 * rng.normal(size=(NEW, 4))
    world = World(softmax(z, axis=1), y)

    def texts(rows):
        return np.where(rows.y == 3, "", names[rows.y])

    def from_table(rows, classes=None):
        frame = {"x": np.zeros(len(rows)), "labels": texts(rows)}
        return read_table(frame, candidates="labels", missing="full", classes=classes).candidates

    def calibrated(read):
        rows = world.sample(rng, 200)
        made = conformalize(rows.p, read(rows), "max", classes=names)
        return claims(made.guarantee(LEVEL), float(made.predict_set(world.p).contains(names[world.y]).mean()))

    def fitted():
        rows, new = world.sample(rng, 200), world.sample(rng, 1000)
        model = ConformalClassifier(LogisticRegression(), "max", random_state=0).fit(rows.p, from_table(rows))
        return learned(model, new.p, names[new.y])

    def by_command():
        from setwise.cli.app import run

        rows, new, complaint = world.sample(rng, 200), world.sample(rng, 1000), io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            table, out = Path(folder, "t.csv"), Path(folder, "model")
            lines = [[*p, text] for p, text in zip(rows.p.tolist(), texts(rows).tolist(), strict=True)]
            table.write_text("\n".join(",".join(map(str, line)) for line in [[*names, "labels"], *lines]))
            options = ["--candidates=labels", "--missing=full", "--learner=em", "--strategy=max", "--quiet"]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complaint):
                if run(["fit", str(table), "--out", str(out), *options]):
                    raise ValueError(complaint.getvalue())
            return learned(ConformalClassifier.load(out), new.p, names[new.y])

    yield "read_table", calibrated, from_table
    yield "LabelSets.from_strings", calibrated, lambda rows: LabelSets.from_strings(texts(rows), missing="full")
    yield "ConformalClassifier", fitted
    yield "setwise fit --missing full", by_command
    yield "read_table with classes", calibrated, lambda rows: from_table(rows, names)


@scenario(300)
def by_size(rng):
    """4: calibrated by the number of candidates, where those of new rows come from other annotators."""
    hard = rng.random(NEW) < 0.5
    own = np.where(hard, rng.uniform(0, 0.05, NEW), rng.uniform(0.4, 0.49, NEW))
    sets = np.column_stack([np.ones(NEW, dtype=bool), ~hard, np.zeros(NEW, dtype=bool)])
    world = World(np.column_stack([own, 0.99 - own, np.full(NEW, 0.01)]), np.zeros(NEW, dtype=int), sets)

    def once(later, *true):
        rows = world.sample(rng, 500)
        return said_by_size(conformalize(rows.p, rows.s, "max", by="size"), world, later, *true)

    yield "other annotators", once, sets ^ [False, True, False]
    yield "the same annotators", once, sets, "same_candidates"


def said_by_size(made, world, later, *true):
    """The statements for each number of candidates, where new rows bring theirs."""
    inside = made.predict_set(world.p, LEVEL, candidates=later).contains(world.y)
    for size, guarantee in made.guarantee(LEVEL).by_category.items():
        yield from claims(guarantee, float(inside[later.sum(axis=1) == size].mean()), *true, part=f"size {size}")


@scenario(400)
def informative_groups(rng):
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
        of_groups = float((np.bincount(new.mark, inside) / np.bincount(new.mark)).mean())
        shares = {"a row of a random new group": of_groups, "a new example": float(inside.mean())}
        for claim in made.guarantee(LEVEL).claims:
            yield from claims(
                replace(made.guarantee(LEVEL), claims=(claim,)), shares[claim.subject], part=claim.subject
            )

    yield "max", once


@scenario(250)
def truth_is_no_candidate(rng):
    """6: the truth is no candidate in 15 of 100 rows, as verified rows show."""
    plain, gone = draw(rng, 4), rng.random(NEW) < 0.15
    sets = np.where(gone[:, None], top_label(plain), one_hot(plain.y, 4))
    world = World(plain.p, np.where(gone, plain.p.argmin(axis=1), plain.y), sets)

    def once(strategy):
        rows = world.sample(rng, 1000)
        return world.said(conformalize(rows.p, rows.s, strategy, verified=rows.verified(200)))

    for strategy in ("max", "auto"):
        yield called(strategy), once, strategy


@scenario(250)
def bracket(rng):
    """7: the bracket where verified rows show that 30 of 100 truths are no candidates."""
    plain, gone = draw(rng, 4), rng.random((NEW, 1)) < 0.3
    sets = contaminated(rng, plain, "uniform", 0.2) & ~(one_hot(plain.y, 4) & gone)
    sets |= one_hot(plain.p.argmin(axis=1), 4) & ~sets.any(axis=1, keepdims=True)
    world = replace(plain, s=sets)

    def once(strategy):
        rows = world.sample(rng, 1000)
        made = conformalize(rows.p, rows.s, strategy, verified=rows.verified(200))
        low, high = made.bracket(LEVEL)
        return [Statement("the bracket", world.covered(made), low, 0.05, high), *world.said(made)]

    for strategy in ("rectified", "max"):
        yield strategy, once, strategy


@scenario(150)
def blank_rows(rng):
    """8: rows without candidates come from where the model is arbitrary, and every label is put there."""
    plain, odd = draw(rng, 5), rng.random(NEW) < 0.2
    world = World(plain.p, np.where(odd, rng.integers(0, 5, NEW), plain.y), mark=odd & (rng.random(NEW) < 0.9))

    def once(strategy, assume):
        rows = world.sample(rng, 4000)
        sets = contaminated(rng, rows, "uniform", 0.2) & ~rows.mark[:, None]
        return world.said(conformalize(rows.p, sets, strategy, missing="full", assume=assume))

    yield "corrected, finite margin", once, Corrected("finite"), "uniform"
    yield "auto, uniform stated", once, "auto", "uniform"
    yield "max", once, "max", "nothing"


@scenario(150)
def float32(rng):
    """9: probabilities in tenths, calibrated in one precision and asked in another."""
    plain = draw(rng, 5)
    world = replace(plain, p=rng.multinomial(10, plain.p) / 10)

    def once(first, then, score):
        rows = world.sample(rng, 300)
        made = conformalize(rows.p.astype(first), rows.y, "max", conformity_score=score, random_state=seed(rng))
        return replace(world, p=world.p.astype(then)).said(made)

    for first, then, score in product(("float64", "float32"), ("float64", "float32"), ("lac", "aps", "margin")):
        yield f"{score}, {first} → {then}", once, first, then, score


@scenario(500)
def law(rng):
    """10: the law given the calibration set, where scores are tied in the population and not in the sample."""

    def rounded(how):
        plain = draw(rng, 3)
        if how == "saturated":
            p = np.where(plain.p < 0.05, 0, plain.p)
            return World(p / p.sum(axis=1, keepdims=True), plain.y, contaminated(rng, plain, "uniform", 0.15))
        p = plain.p
        if how != "exact":
            unit = {"tenths": 10, "hundredths": 100}[how]
            p = np.floor(p * unit)
            p = (p + top_label(plain) * (unit - p.sum(axis=1, keepdims=True))) / unit
        return World(p, plain.y, one_hot(plain.y, 3))

    def once(world, n, level):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, rows.s, "max")
        text = made.guarantee(level).given_calibration
        ends = re.search(r"(?:at least|between) ([\d.]+\d)(?: and ([\d.]+\d))?", text)
        if ends:
            every = float((made.predict_set(world.p, level).to_mask() | ~world.s).all(axis=1).mean())
            low, high = float(ends[1]) - 5e-4, float(ends[2] or 1) + 5e-4  # printed to three decimals
            yield Statement("the law given the sample", every, low, 0.05, high)

    for how in ("exact", "tenths", "hundredths", "saturated"):
        world = rounded(how)
        for n, level in ((9, 0.9), (19, 0.95), (19, 0.9), (99, 0.99), (50, 0.9)):
            yield f"{how}, n = {n}, level {level}", once, world, n, level


@scenario(1000)
def theorem_2_selected(rng):
    """11: `all` where every row is verified, and Theorem 2 holds in some draws only."""

    def once(world, n, otherwise):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, rows.s, "all", verified=rows.y)
        if not otherwise:
            return world.said(made)
        if world.said(made, "max_otherwise")[0].promised is None:
            made = conformalize(rows.p, rows.s, "max")
        return [Statement("Theorem 1 or 2", world.covered(made), LEVEL, condition=PREMISES["max_otherwise"])]

    for share, n in ((0.1, 19), (0.2, 19), (0.3, 19), (0.12, 99)):
        wrong = rng.random(NEW) < share
        own = np.where(wrong, 0.01, rng.uniform(0.5, 1, NEW))
        p = np.column_stack([own, np.where(wrong, 0.98, 1 - own), np.where(wrong, 0.01, 0)])
        sets = np.column_stack([np.ones(NEW, dtype=bool), wrong, np.zeros(NEW, dtype=bool)])
        for otherwise in ("", ", and max otherwise"):
            told = f"all{otherwise}; the model errs in {share:g}, n = {n}"
            yield told, once, World(p, np.zeros(NEW, dtype=int), sets), n, otherwise


# -------------------------------------------------------------------- misuse, and guarantees that were too strong


@scenario(150)
def drop_by_size(rng):
    """Calibrated by the number of candidates, with every seventh row blank and dropped; it once crashed."""
    world = draw(rng, 4)

    def once():
        rows = world.sample(rng, 1000)
        sets = contaminated(rng, rows, "uniform") & (np.arange(1000) % 7 > 0)[:, None]
        made = conformalize(rows.p, sets, "max", by="size", missing="drop")
        return said_by_size(made, world, contaminated(rng, world, "uniform"), "same_candidates")

    yield "max", once


@scenario(150)
def chosen_rows(rng):
    """Rows to verify that were chosen, and are passed as if they were drawn at random."""
    world = draw(rng, 5)

    def once(kind, n, how):
        rows = world.sample(rng, n)
        sets, sure, chance = contaminated(rng, rows, kind), rows.p.max(axis=1), None
        if how.startswith("uncertain"):
            weight = 1.05 - sure
            drawn_with = np.minimum(100 * weight / weight.sum(), 1.0)
            chosen, chance = np.flatnonzero(rng.random(n) < drawn_with), drawn_with if "chances" in how else None
        else:
            chosen = {
                "at random": np.arange(n),
                "least confident": np.argsort(sure),
                "most confident": np.argsort(-sure),
                "singletons": np.flatnonzero(sets.sum(axis=1) == 1),
            }[how][:100]
        verified = np.where(np.isin(np.arange(n), chosen), rows.y, np.nan)
        return world.said(conformalize(rows.p, sets, verified=verified, verified_probability=chance))

    ways = (
        "at random",
        "uncertain",
        "uncertain, chances passed on",
        "least confident",
        "most confident",
        "singletons",
    )
    for kind, n, how in [
        *product(("uniform", "top"), (500,), ways),
        *product(("uniform",), (190,), ("uncertain", "most confident")),
    ]:
        yield f"{how}; {kind}, 100 of {n}", once, kind, n, how


@scenario(100)
def stated_uniform(rng):
    """`auto` where uniform contamination is stated: rightly, and wrongly in five ways."""

    def uniform(rows, share=0.3):
        return contaminated(rng, rows, "uniform", share)

    def confusions(rows):
        return uniform(rows, 0.2) | (top_label(rows) & (rng.random((len(rows), 1)) < 0.8))

    def once(world, sets, n):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, sets(rows), assume="uniform")
        return world.said(made, *(["large_sample"] if n >= 2000 and sets is uniform else []))

    five, two, y = draw(rng, 5), draw(rng, 2), rng.integers(0, 5, NEW)
    top = np.where(rng.random(NEW) < 0.8, y, (y + rng.integers(1, 5, NEW)) % 5)
    p = np.where(one_hot(top, 5), 0.7, 0.075 + 1e-3 * rng.random((NEW, 5)))
    blunt = World(p / p.sum(axis=1, keepdims=True), y)
    cases = {
        "uniform": (five, uniform),
        "what is plausible": (five, lambda rows: contaminated(rng, rows, "confusing")),
        "shared confusions": (five, confusions),
        "shared confusions, model too sure": (draw(rng, 5, temperature=3.0), confusions),
        "more on hard rows": (five, lambda rows: uniform(rows, 0.48 - 0.36 * rows.p.max(axis=1, keepdims=True))),
        "shared confusions, top label alone known": (blunt, lambda rows: uniform(rows) | top_label(rows)),
    }
    for n, (told, case) in product((50, 300, 2000), cases.items()):
        yield f"{told}, n = {n}", once, *case, n
    for told, sets, n in (("uniform", uniform, 300), *(("shared confusions", confusions, n) for n in (300, 3000))):
        yield f"{told}, two classes, n = {n}", once, two, sets, n


@scenario(50)
def cross_conformal(rng):
    """Cross-conformal prediction from few rows."""

    def once(learner, n, folds, level):
        model = CrossConformalClassifier(learner, cv=folds, confidence_level=level, random_state=seed(rng))
        return learned(model.fit(*examples(rng, n)), *examples(rng, 200))

    for learner, n, folds, level in (
        (DecisionTreeClassifier(), 40, 5, 0.9),
        (DecisionTreeClassifier(), 40, 20, 0.8),
        (KNeighborsClassifier(1), 30, 3, 0.9),
        (LogisticRegression(), 60, 5, 0.9),
    ):
        told = f"{type(learner).__name__}, {n} rows in {folds} folds, level {level}"
        yield told, once, learner, n, folds, level


@scenario(40)
def kept_for_calibration(rng):
    """Verified rows that a classifier keeps for calibration before others."""

    def once(m):
        X, y = examples(rng, 500)
        sets = one_hot(y, 4) | (rng.random((500, 4)) < 0.3)
        model = ConformalClassifier(LogisticRegression(), random_state=seed(rng))
        model.fit(X, sets, verified=np.where(rng.permutation(500) < m, y, np.nan))
        return learned(model, *examples(rng, 1000))

    for m in (40, 120, 300):
        yield f"{m} of 500 rows verified", once, m


@scenario(200)
def learned_rows(rng):
    """Calibrated on rows that were learned from: the same rows again, or copies of them."""

    def again():
        rows = examples(rng, 400)
        model = ConformalClassifier(KNeighborsClassifier(3), random_state=seed(rng)).fit(*rows).conformalize(*rows)
        return learned(model, *examples(rng, 1000))

    def copies(learner):
        thrice = (np.repeat(each, 3, axis=0) for each in examples(rng, 200))
        return learned(ConformalClassifier(learner, random_state=seed(rng)).fit(*thrice), *examples(rng, 1000))

    yield "fit, then conformalize on the same rows", again
    for learner in (KNeighborsClassifier(1), LogisticRegression()):
        yield f"every row three times, {type(learner).__name__}", copies, learner


@scenario(150)
def own_candidates(rng):
    """New rows bring candidates, which lack the truth in up to 8 of 100 rows, as stated."""
    world = draw(rng, 5)

    def lossy(rows):
        gone = one_hot(rows.y, 5) & (rng.random((len(rows), 1)) < 0.08)
        sets = contaminated(rng, rows, "uniform", 0.2) & ~gone
        kept = sets.any(axis=1)
        return World(rows.p[kept], rows.y[kept], sets[kept])

    def once(strategy, assume, inside):
        rows, new = lossy(world.sample(rng, 1500)), lossy(world)
        made = conformalize(rows.p, rows.s, strategy, miss_rate=0.08, assume=assume)
        covered = new.covered(made, candidates=new.s) if inside else new.covered(made)
        return claims(made.guarantee(LEVEL), covered, "large_sample")

    for strategy, assume in (("max", "nothing"), ("corrected", "uniform")):
        yield f"{strategy}, the set", once, strategy, assume, False
        yield f"{strategy}, the part of the set inside the candidates", once, strategy, assume, True


@scenario(60)
def high_level(rng):
    """`auto` with 50 verified rows of 2,000, too few for 0.99: once every label, and no guarantee."""
    world = draw(rng, 10, sharpness=4.0)

    def once(kind, level, m):
        rows = world.sample(rng, 2000)
        verified = rows.verified(m) if m else None
        return world.said_with_size(
            conformalize(rows.p, contaminated(rng, rows, kind, 0.1), verified=verified), level
        )

    for kind, level, m in product(("top", "uniform"), (0.9, 0.95, 0.99), (0, 50)):
        yield f"{kind}, level {level}, {m} verified", once, kind, level, m


@scenario(400)
def larger_of_both(rng):
    """`rectified` alone lost part of a row; `auto` takes the larger threshold of it and the verified rows alone."""
    world = draw(rng, 3)

    def once(strategy, m, kind):
        rows = world.sample(rng, 100)
        return world.said(conformalize(rows.p, contaminated(rng, rows, kind), strategy, verified=rows.verified(m)))

    for (m, kind), strategy in product(((20, "none"), (30, "top")), ("rectified", "auto")):
        yield f"{strategy}, {m} of 100 verified, {kind}", once, strategy, m, kind


@scenario(80)
def few_verified(rng):
    """Few verified rows and ten classes: the default, and `rectified` with each margin."""

    def once(world, kind, n, m, strategy):
        rows = world.sample(rng, n)
        made = conformalize(rows.p, contaminated(rng, rows, kind), strategy, verified=rows.verified(m))
        return world.said(made, *(["large_sample"] if m >= 200 else []))

    right, sure = draw(rng, 10), draw(rng, 10, temperature=3.0)
    rules = {"auto": "auto"} | {f"rectified, margin {each}": Rectified(each) for each in ("none", "finite")}
    for (kind, model), (m, n), rule in product(
        (("uniform", "right"), ("confusing", "right"), ("confusing", "too sure"), ("hides", "right")),
        ((20, 200), (50, 2000), (200, 2000)),
        rules,
    ):
        world = {"right": right, "too sure": sure}[model]
        yield f"{rule}, {m} of {n} verified; {kind}, model {model}", once, world, kind, n, m, rules[rule]


@scenario(60)
def finite_margin(rng):
    """`rectified` with the finite margin, from 200 to 1,000 verified rows of 20,000, and the size of its sets."""

    def once(world, m):
        rows = world.sample(rng, 20_000)
        sets = contaminated(rng, rows, "uniform")
        return world.said_with_size(conformalize(rows.p, sets, Rectified("finite"), verified=rows.verified(m)))

    for k in (3, 10):
        world = draw(rng, k)
        limit = np.quantile(1 - world.p[np.arange(NEW), world.y], LEVEL)
        best = (1 - world.p <= limit).sum(axis=1).mean()
        for m in (200, 300, 400, 600, 1000):
            yield f"{k} classes, {m} verified; {best:.2f} labels suffice", once, world, m


@scenario(120)
def first_crossing(rng):
    """`corrected` took the first threshold whose estimated coverage reached the level, and so one too small."""

    def once(world, score, n, share, level, margin):
        rows = world.sample(rng, n)
        options = {"conformity_score": score, "assume": "uniform", "random_state": seed(rng)}
        made = conformalize(rows.p, contaminated(rng, rows, "uniform", share), Corrected(margin), **options)
        return world.said(made, *(["large_sample"] if n >= 1000 else []), level=level)

    worlds = {k: draw(rng, k) for k in (2, 3, 10, 50)}
    for k, score, n, share, level, margin in (
        (10, "margin", 200, 0.3, 0.9, "none"),
        (10, "lac", 200, 0.3, 0.9, "none"),
        (10, "margin", 1000, 0.5, 0.9, "none"),
        (10, "lac", 1000, 0.7, 0.9, "none"),
        (10, "lac", 200, 0.7, 0.99, "none"),
        (10, "lac", 1000, 0.7, 0.99, "none"),
        (50, "lac", 50, 0.7, 0.9, "none"),
        (50, "lac", 1000, 0.3, 0.9, "none"),
        (3, "lac", 50, 0.3, 0.9, "none"),
        (2, "lac", 50, 0.7, 0.9, "finite"),
        (2, "lac", 1000, 0.7, 0.9, "finite"),
    ):
        told = f"score {score}, n = {n}, {k} classes, share {share:g}, level {level}, margin {margin}"
        yield told, once, worlds[k], score, n, share, level, margin


@scenario(100)
def plain_words(rng):
    """A guarantee as it prints: over which draws it holds, and all that it rests on."""
    world = draw(rng, 3)

    def once(strategy, assume, m):
        rows = world.sample(rng, 3000)
        sets, verified = contaminated(rng, rows, "uniform", 0.1), rows.verified(m) if m else None
        made = conformalize(rows.p, sets, strategy, verified=verified, assume=assume)
        guarantee, inside = made.guarantee(LEVEL), made.predict_set(world.p, LEVEL).contains(world.y)
        worst = float((np.bincount(world.y, inside) / np.bincount(world.y)).min())
        sentence = " ".join(str(guarantee).split())
        for claim in guarantee.claims:
            if claim.event == "truth" and claim.promised and claim.probability == guarantee.promised:
                over = "on average over draws" if claim.delta is None else format_draws(claim.delta)
                texts = {premise.name: premise.text for premise in claim.premises}
                named = {"unseen", "classes"} <= set(texts)
                whole = named and all(text in sentence for text in (over, claim.subject, *texts.values()))
                yield Statement("the text names all that the guarantee rests on", float(whole), 1.0)
        yield from claims(guarantee, lambda claim: worst if "true class" in claim.subject else float(inside.mean()))

    for strategy, assume, m in (
        (Corrected("finite"), "uniform", 0),
        ("min", "nothing", 300),
        ("max", "nothing", 0),
    ):
        yield called(strategy), once, strategy, assume, m


# -------------------------------------------------------------------- command


def rows_of(name, share=1.0):
    """The rows of one scenario, from a share of its draws."""
    cases, runs = SCENARIOS[name]
    for case, once, *given in cases(np.random.default_rng(zlib.crc32(name.encode()))):
        yield from simulate((name, case), max(round(share * runs), 3), once, *given)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("--share", type=float, default=1.0, help="share of the draws")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    rows, start = [], time.perf_counter()
    print("| what | guaranteed | happened | holds |\n|---|---|---|---|")
    for name in arguments.only:
        for row in rows_of(name, arguments.share):
            rows.append(row)
            print(f"| {name}: {row.case} | {row.promised} | {row.happened} | {row.verdict} |", flush=True)
    broken, seconds = sum(row.broken for row in rows), round(time.perf_counter() - start, 1)
    print(f"\n{len(rows)} rows, {broken} broken guarantees; {seconds} s")
    if arguments.keep:
        result = {
            "machine": machine(),
            "level": LEVEL,
            "share": arguments.share,
            "seconds": seconds,
            "broken": broken,
            "rows": [asdict(row) for row in rows],
        }
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
