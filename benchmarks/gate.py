"""How often the gate speaks: on contamination that is not uniform, on contamination that is, and where it is weak.

    SETWISE_DATA=DIR python benchmarks/gate.py --keep

Level 0.05. Real sets: a new split in every run, a linear model learned on four fifths, the gate on the rest.
Images: one small network for each set and contamination, learned from 10,000 contaminated rows; every run draws
6,000 other rows and contaminates them anew. Sharing confusions: the wrong top label of a row is always a
candidate, every other label with probability 0.7; nobody can see it where the model knows nothing below its
top label. `--keep` writes benchmarks/results/gate.json.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from supermodel import PIXELS, train_supermodel

from setwise import LabelSets, PartialLabelClassifier, __version__, diagnose
from setwise.data import InstanceDependent, Random, contaminate, load

RESULTS = Path(__file__).resolve().parent / "results" / "gate.json"
REAL = ("lost", "msrcv2", "birdsong", "fg_net")
IMAGES = ("mnist", "kmnist", "fashion_mnist")
CONTAMINATIONS = ("random 0.1", "random 0.7", "instance")
ROWS, LEARNED, K = 6_000, 10_000, 10


def real(runs):
    """The gate on a fifth of each real set, with a linear model of the other four."""
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
        yield row(name, found, np.mean(right), "at least 0.95 refuted")


def images(runs):
    """The gate on 6,000 rows of each image set under each contamination."""
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
            yield row(f"{name}, {contamination}", found, right, bar)


def candidates(y, hard, rows, contamination, seed):
    """Candidate sets of these rows."""
    if contamination == "instance":
        return contaminate(y[rows], InstanceDependent(hard[rows]), K, random_state=seed)
    return contaminate(y[rows], Random(p=float(contamination.split()[1])), K, random_state=seed)


def sharing(P, y, rng):
    """The truth, the top label, and each other label with probability 0.7."""
    positions = np.arange(P.shape[1])
    known = (positions == y[:, None]) | (positions == P.argmax(axis=1)[:, None])
    return LabelSets.from_mask(known | (rng.random(P.shape) < 0.7))


def shared_confusions(runs):
    """Annotators who share the confusions of a model of accuracy 0.84: one calibrated, one that knows its top alone.

    The second spreads the truth evenly over the other ranks and is equally sure of every row: then no label
    chosen by x is a candidate more rarely than under uniform contamination, and there is nothing to see.
    """
    for calibrated in (True, False):
        found, right = [], []
        for run in range(runs):
            rng = np.random.default_rng([run, 2])
            if calibrated:
                P = np.exp(6.6 * rng.normal(size=(ROWS, K)))
                P /= P.sum(axis=1, keepdims=True)
                y = np.minimum((P.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1), K - 1)
            else:
                order = rng.permuted(np.tile(np.arange(K), (ROWS, 1)), axis=1)
                P = np.array([0.84, *np.linspace(0.03, 0.16 * 2 / 9 - 0.03, K - 1)])[order]
                y = np.where(rng.random(ROWS) < 0.84, order.argmin(axis=1), -1)
                y = np.where(y < 0, (order == rng.integers(1, K, size=(ROWS, 1))).argmax(axis=1), y)
            right.append((P.argmax(axis=1) == y).mean())
            found.append(diagnose(P, sharing(P, y, rng)))
        name = "calibrated model" if calibrated else "model that knows its top label alone"
        yield row(f"sharing confusions, {name}", found, np.mean(right), "reported")


def row(name, found, accuracy, bar):
    """One line of the table, printed as it comes."""
    spoke = Counter(one.strongest.family for one in found if one.refuted)
    seen = [one.detectable for one in found if one.detectable is not None]
    line = {
        "case": name,
        "rows": found[0].n,
        "classes": found[0].n_classes,
        "accuracy": round(float(accuracy), 3),
        "runs": len(found),
        "refuted": sum(one.refuted for one in found),
        "bar": bar,
        "largest_p_value": max(one.p_value for one in found),
        "median_p_value": float(np.median([one.p_value for one in found])),
        "loudest": dict(spoke),
        "median_detectable_excess": round(float(np.median(seen)), 4) if seen else None,
    }
    print(
        f"{name:52s} n = {line['rows']:5d}  accuracy {line['accuracy']:.3f}  refuted {line['refuted']:3d} of "
        f"{line['runs']}  ({bar})  largest p {line['largest_p_value']:.2g}  {dict(spoke)}",
        flush=True,
    )
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/gate.json")
    options = parser.parse_args()
    began = time.perf_counter()
    rows = [line for part in (real, shared_confusions, images) for line in part(options.runs)]
    if options.keep:
        packages = ("numpy", "scipy", "torch")
        record = {
            "date": datetime.now(UTC).date().isoformat(),
            "setwise": __version__,
            "python": platform.python_version(),
            "machine": f"CPU {platform.machine()}",
            "versions": {package: importlib.metadata.version(package) for package in packages},
            "level": 0.05,
            "seconds": round(time.perf_counter() - began, 1),
            "rows": rows,
        }
        RESULTS.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
