"""How often `diagnose` refutes: contamination that is as declared, contamination that is not, and where it is weak.

    SETWISE_DATA=DIR python benchmarks/gate.py --keep [--only false_alarms power real shared_confusions images]

False alarms: samples in which the declared contamination holds, over numbers of classes and rows, inclusion
probabilities, models, scores, miss rates, and matrices known and estimated. The default level of `diagnose` is, for
uniform contamination and for a given matrix, the largest of `LEVELS` at which the worst of these settings is refuted
in at most 5 of 100 samples; an estimated matrix, tried with calibrated models alone, shares the first. As the largest
of many shares is too large by chance, the settings with the largest shares are drawn anew, ten times as often, and
these shares count.

Power: annotators who share the model's confusions (the model's top label is always a candidate, every other label with
probability 0.3), five classes, a calibrated model.

Real sets: a new split in every run, a linear model learned on four fifths, the gate on the rest. Images: one small
network for each set and contamination, learned from 10,000 contaminated rows; every run draws 6,000 other rows and
contaminates them anew. Sharing confusions: the wrong top label of a row is always a candidate, every other label with
probability 0.7; nobody can see it where the model knows nothing below its top label. `--keep` writes the parts that
were run into benchmarks/results/gate.json.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import softmax
from supermodel import PIXELS, train_supermodel

from setwise import LabelSets, PartialLabelClassifier, __version__, diagnose
from setwise.contamination.diagnose import examine
from setwise.datasets import InstanceDependent, Random, contaminate, load
from setwise.errors import InputError
from setwise.scores import as_score

RESULTS = Path(__file__).resolve().parent / "results" / "gate.json"
REAL = ("lost", "msrcv2", "birdsong", "fg_net")
IMAGES = ("mnist", "kmnist", "fashion_mnist")
CONTAMINATIONS = ("random 0.1", "random 0.7", "instance")
ROWS, LEARNED, K = 6_000, 10_000, 10
LEVELS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
AGAIN = 10
MODELS = {
    "calibrated": lambda logits: softmax(logits, axis=1),
    "overconfident": lambda logits: softmax(3 * logits, axis=1),
    "wrong": lambda logits: softmax(np.roll(logits, 1, axis=1), axis=1),
    "discrete": lambda logits: softmax(logits, axis=1).round(1),
}


@dataclass(frozen=True)
class Null:
    """A setting in which what is declared about contamination holds, so that every refutation is a false alarm."""

    kind: str
    k: int
    n: int
    p: float
    model: str = "calibrated"
    score: str = "lac"
    declared: float = 0.0
    missed: float = 0.0

    def p_value(self, rng):
        """The gate's p-value on one sample; 1 where the declaration cannot be used."""
        logits = 3 * rng.normal(size=(self.n, self.k))
        y = drawn(softmax(logits, axis=1), rng)
        P = MODELS[self.model](logits)
        matrix = np.full((self.k, self.k), self.p)
        if self.kind in ("matrix", "class"):
            matrix = np.random.default_rng(self.k).uniform(0, 2 * self.p, matrix.shape)
        np.fill_diagonal(matrix, 1 - self.missed)
        S = rng.random(P.shape) < matrix[y]
        if self.kind == "one if none":
            alone = np.flatnonzero(S.sum(axis=1) == 1)
            S[alone, (y[alone] + rng.integers(1, self.k, len(alone))) % self.k] = True
        elif self.kind == "exclusive":  # the least plausible label enters, or all the others
            positions, coin = np.arange(self.k), rng.random((self.n, 1)) < 0.5
            S = (positions == y[:, None]) | ((positions == P.argmin(axis=1)[:, None]) == coin)
        P, S = P[S.any(axis=1)], S[S.any(axis=1)]
        try:
            if self.kind == "class":
                return diagnose(P, S, "class").p_value
            table = as_score(self.score).score(P, u=rng.random(len(P)))
            return examine(table, S, matrix if self.kind == "matrix" else "uniform", self.declared).p_value
        except InputError:
            return 1.0

    def runs(self, runs):
        """Fewer where a run is slow."""
        return max(runs * 5_000 // max(self.k * self.n, 5_000), 40)


def nulls():
    """Uniform contamination and its relatives, matrices known and estimated."""
    for k, n, p in product((2, 5, 10, 50), (50, 300, 1_000, 5_000), (0.05, 0.2, 0.5, 0.8)):
        if k * n <= 50_000:
            yield from (Null("uniform", k, n, p, model) for model in MODELS)
    for k, n, p in product((3, 10), (100, 1_000), (0.1, 0.7)):
        yield from (Null("uniform", k, n, p, score=score) for score in ("aps", "margin"))
        yield from (Null("uniform", k, n, p, declared=0.1, missed=missed) for missed in (0.0, 0.1))
        yield Null("one if none", k, n, p)
    yield from (Null("exclusive", k, n, 0.5) for k, n in product((3, 10), (100, 1_000)))
    for k, n, p in product((2, 5, 10, 20), (50, 300, 1_000), (0.1, 0.3)):
        yield from (Null("matrix", k, n, p, model) for model in ("calibrated", "overconfident", "wrong"))
        yield Null("class", k, n, p)


def false_alarms(runs):
    """The share of samples refuted at each level, and again for the settings with the largest shares of each kind."""
    settings = list(nulls())
    first = [alarms(null, null.runs(2 * runs), index) for index, null in enumerate(settings)]
    again = drawn_again(settings, first, runs)
    return {"settings": dict(Counter(kind_of(null) for null in settings)), "again": again}


def drawn_again(settings, first, runs):
    """The settings of each kind with the largest shares, ten times as often."""
    order = sorted(range(len(settings)), key=lambda i: [*first[i]["refuted"].values()][1:3], reverse=True)
    found = {}
    for kind in ("uniform", "matrix", "class"):
        worst = [i for i in order if kind_of(settings[i]) == kind][:AGAIN]
        lines = [alarms(settings[i], settings[i].runs(20 * runs), len(settings) + i) for i in worst]
        shares = {level: max(line["refuted"][level] for line in lines) for level in lines[0]["refuted"]}
        print(f"{kind}: the largest shares when drawn again: {shares}", flush=True)
        found[kind] = {"worst": shares, "lines": lines}
    return found


def kind_of(null):
    """What is declared: a matrix, a matrix to be estimated, or uniform contamination, however inclusions depend."""
    return null.kind if null.kind in ("matrix", "class") else "uniform"


def alarms(null, runs, seed):
    """How often each level refutes."""
    rng = np.random.default_rng([seed, 3])
    found = np.array([null.p_value(rng) for _ in range(runs)])
    line = asdict(null) | {"runs": runs, "refuted": {f"{a:g}": round(float((found < a).mean()), 4) for a in LEVELS}}
    print(json.dumps(line), flush=True)
    return line


def power(runs):
    """How often shared confusions among five classes are refuted at each level."""
    lines = []
    for n in (100, 300, 1_000):
        found = []
        for run in range(2 * runs):
            rng = np.random.default_rng([run, 4])
            P = softmax(3 * rng.normal(size=(n, 5)), axis=1)
            found.append(diagnose(P, sharing(P, drawn(P, rng), rng, 0.3)).p_value)
        shares = {f"{level:g}": round(float((np.array(found) < level).mean()), 3) for level in LEVELS}
        lines.append({"rows": n, "classes": 5, "runs": 2 * runs, "refuted": shares})
        print(json.dumps(lines[-1]), flush=True)
    return lines


def real(runs):
    """The gate on a fifth of each real set, with a linear model of the other four."""
    lines = []
    for name in REAL:
        data, found, right = load(name), [], []
        for run in range(runs):
            order = np.random.default_rng(run).permutation(len(data.y))
            held, learned = np.split(order, [len(order) // 5])
            model = PartialLabelClassifier(
                "linear", scale="standard", epochs=10, random_state=run, device="cpu"
            ).fit(data.X[learned], data.candidates[learned])
            P = model.predict_proba(data.X[held])
            right.append((P.argmax(axis=1) == data.y[held]).mean())
            found.append(diagnose(P, data.candidates[held]))
        lines.append(row(name, found, np.mean(right), "at least 0.95 refuted"))
    return lines


def images(runs):
    """The gate on 6,000 rows of each image set under each contamination."""
    lines = []
    for name in IMAGES:
        data = load(name)
        X, y = np.asarray(data.X), np.asarray(data.y)
        shift, scale = PIXELS[name]
        train = data.split["train"]
        supermodel = train_supermodel(X[train], y[train], shift=shift, scale=scale, random_state=0)
        hard = supermodel.predict_proba(X)
        learned, rest = np.split(np.random.default_rng(0).permutation(len(y)), [LEARNED])
        for contamination in CONTAMINATIONS:
            first = candidates(y, hard, learned, contamination, 0)
            model = PartialLabelClassifier("mlp", hidden_sizes=(100,), epochs=5, random_state=0, device="cpu").fit(
                X[learned], first
            )
            P = model.predict_proba(X)
            right = (P[rest].argmax(axis=1) == y[rest]).mean()
            found = []
            for run in range(runs):
                rng = np.random.default_rng([run, 1])
                held = rng.choice(rest, ROWS, replace=False)
                found.append(diagnose(P[held], candidates(y, hard, held, contamination, rng)))
            bar = "at least 0.95 refuted" if contamination == "instance" else "at most 0.10 refuted"
            lines.append(row(f"{name}, {contamination}", found, right, bar))
    return lines


def candidates(y, hard, rows, contamination, seed):
    """Candidate sets of these rows."""
    if contamination == "instance":
        return contaminate(y[rows], InstanceDependent(hard[rows]), K, random_state=seed)
    return contaminate(y[rows], Random(p=float(contamination.split()[1])), K, random_state=seed)


def sharing(P, y, rng, p=0.7):
    """The truth, the top label, and each other label with probability p."""
    positions = np.arange(P.shape[1])
    known = (positions == y[:, None]) | (positions == P.argmax(axis=1)[:, None])
    return LabelSets.from_mask(known | (rng.random(P.shape) < p))


def drawn(P, rng):
    """Labels drawn from probabilities."""
    return np.minimum((P.cumsum(axis=1) < rng.random((len(P), 1))).sum(axis=1), P.shape[1] - 1)


def shared_confusions(runs):
    """Annotators who share the confusions of a model of accuracy 0.84: one calibrated, one that knows its top alone.

    The second spreads the truth evenly over the other ranks and is equally sure of every row: then no label
    chosen by x is a candidate more rarely than under uniform contamination, and there is nothing to see.
    """
    lines = []
    for calibrated in (True, False):
        found, right = [], []
        for run in range(runs):
            rng = np.random.default_rng([run, 2])
            if calibrated:
                P = softmax(6.6 * rng.normal(size=(ROWS, K)), axis=1)
                y = drawn(P, rng)
            else:
                order = rng.permuted(np.tile(np.arange(K), (ROWS, 1)), axis=1)
                P = np.array([0.84, *np.linspace(0.03, 0.16 * 2 / 9 - 0.03, K - 1)])[order]
                y = np.where(rng.random(ROWS) < 0.84, order.argmin(axis=1), -1)
                y = np.where(y < 0, (order == rng.integers(1, K, size=(ROWS, 1))).argmax(axis=1), y)
            right.append((P.argmax(axis=1) == y).mean())
            found.append(diagnose(P, sharing(P, y, rng)))
        name = "calibrated model" if calibrated else "model that knows its top label alone"
        lines.append(row(f"sharing confusions, {name}", found, np.mean(right), "reported"))
    return lines


def row(name, found, accuracy, bar):
    """One line of the table, printed as it comes."""
    spoke = Counter(one.strongest.family for one in found if one.refuted)
    seen = [one.detectable for one in found if one.detectable is not None]
    line = {
        "case": name,
        "rows": found[0].n,
        "classes": found[0].n_classes,
        "accuracy": round(float(accuracy), 3),
        "level": found[0].level,
        "runs": len(found),
        "refuted": sum(one.refuted for one in found),
        "bar": bar,
        "largest_p_value": max(one.p_value for one in found),
        "median_p_value": float(np.median([one.p_value for one in found])),
        "strongest": dict(spoke),
        "median_detectable_excess": round(float(np.median(seen)), 4) if seen else None,
    }
    print(
        f"{name:52s} n = {line['rows']:5d}  accuracy {line['accuracy']:.3f}  refuted {line['refuted']:3d} of "
        f"{line['runs']}  ({bar})  largest p {line['largest_p_value']:.2g}  {dict(spoke)}",
        flush=True,
    )
    return line


def machine():
    """When, with what and where."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "setwise": __version__,
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in ("numpy", "scipy", "torch")},
        "device": f"CPU {platform.machine()}",
    }


PARTS = (false_alarms, power, real, shared_confusions, images)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [part.__name__ for part in PARTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/gate.json")
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for part in PARTS:
        if part.__name__ not in options.only:
            continue
        began = time.perf_counter()
        found = part(options.runs)
        kept[part.__name__] = {
            "machine": machine(),
            "seconds": round(time.perf_counter() - began, 1),
            "found": found,
        }
        if options.keep:
            RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
