"""How fast data arrive: loading, contaminating, reading and writing, next to a reference in the same process.

Every figure is the best of several runs. `--supermodels` trains the paper's supermodels instead and compares
accuracies and candidate-set sizes with the paper's tables. Figures go to benchmarks/results/data.json and
benchmarks/results/contamination.json. Needs the benchmark files (SETWISE_DATA) for what is about them.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import importlib.metadata
import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from supermodel import PIXELS, train_supermodel

from setwise import LabelSets, __version__
from setwise.datasets import InstanceDependent, Random, contaminate, load
from setwise.datasets.benchmark_sets import fetch
from setwise.tables import DataError, from_annotators_long, read_batches, read_sets, read_table, write_sets

RESULTS = Path(__file__).resolve().parent / "results"
PAPER = {  # average candidate-set size (Table 1), accuracy in training and test (Table 6)
    "fashion_mnist": (2.32, 85.13, 82.88),
    "kmnist": (2.49, 93.70, 78.35),
    "mnist": (2.25, 96.56, 94.77),
}


def best(work: Callable[[], Any], times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def figure(
    name: str, seconds: float, limit: float | None, reference: str, reference_seconds: float
) -> dict[str, Any]:
    within = "" if limit is None else f" of {limit:g} s allowed"
    print(f"{name}: {seconds:.3f} s{within}; {seconds / reference_seconds:.2f} × {reference}")
    return {
        "name": name,
        "seconds": round(seconds, 4),
        "limit_seconds": limit,
        "reference": reference,
        "reference_seconds": round(reference_seconds, 4),
        "ratio": round(seconds / reference_seconds, 3),
    }


def loading() -> list[dict[str, Any]]:
    try:
        paths = fetch("mnist", progress=False)
    except DataError as error:
        print(f"loading is not measured: {error}")
        return []
    unpacking = best(lambda: [gzip.decompress(path.read_bytes()) for path in paths], 3)
    return [
        figure("load MNIST, four files, verified", best(lambda: load("mnist"), 3), 1.5, "gzip alone", unpacking)
    ]


def contaminating() -> list[dict[str, Any]]:
    small, large = np.arange(60_000) % 10, np.arange(1_000_000) % 1000
    dense = best(lambda: np.random.default_rng(0).random((60_000, 10)) < 0.5, 9)
    sparse = best(lambda: np.random.default_rng(0).random(1_000_000), 5)
    found = []
    for p in (0.1, 0.7):
        seconds = best(lambda p=p: contaminate(small, Random(p=p), random_state=0), 15)
        found.append(figure(f"contaminate 60,000 × 10, p = {p}", seconds, 0.02, "drawing its mask", dense))
    seconds = best(lambda: contaminate(large, Random(p=0.001), random_state=0), 3)
    name = "contaminate 1,000,000 × 1,000, p = 0.001"
    found.append(figure(name, seconds, 2.0, "drawing a million uniforms", sparse))
    return found


def tables(folder: Path) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    names = np.array([f"label{i}" for i in range(100)])
    rows = ["|".join(row) for row in names[rng.integers(100, size=(1_000_000, 3))].tolist()]
    path = folder / "answers.csv"
    path.write_text("x,answers\n" + "".join(f"{i / 7:.6f},{row}\n" for i, row in enumerate(rows)))
    loop = best(lambda: LabelSets.from_strings(rows), 1)
    reference = "a Python loop over the rows in memory"
    seconds = best(lambda: read_table(path, candidates="answers"), 3)
    found = [figure("read a CSV of 1,000,000 sets a|b|c", seconds, 3.0, reference, loop)]
    batches = best(lambda: sum(map(len, read_batches(path, candidates="answers"))), 2)
    found.append(figure("the same in batches, file read twice", batches, None, "reading it whole", seconds))
    sets = read_table(path, candidates="answers").candidates
    assert sets is not None
    for suffix in ("csv", "jsonl", "parquet"):
        out = folder / f"sets.{suffix}"
        seconds = best(lambda out=out: write_sets(out, sets), 2)
        found.append(figure(f"write 1,000,000 sets as {suffix}", seconds, None, reference, loop))
        seconds = best(lambda out=out: read_sets(out), 2)
        found.append(figure(f"read 1,000,000 sets from {suffix}", seconds, None, reference, loop))
    votes = dict(
        zip(("task", "worker", "label"), rng.integers(0, [200_000, 50, 20], size=(1_000_000, 3)).T, strict=True)
    )
    seconds = best(lambda: from_annotators_long(votes, missing="empty"), 1)
    found.append(figure("1,000,000 votes in long form", seconds, None, reference, loop))
    return found


def supermodels(seeds: int) -> list[dict[str, Any]]:
    found = []
    for name, (size, train_accuracy, test_accuracy) in PAPER.items():
        data = load(name)
        assert data.split is not None
        train, test = data.split["train"], data.split["test"]
        shift, scale = PIXELS[name]
        runs = []
        for seed in range(seeds):
            start = time.perf_counter()
            model = train_supermodel(data.X[train], data.y[train], shift=shift, scale=scale, random_state=seed)
            seconds = time.perf_counter() - start
            sets = contaminate(
                data.y[train], InstanceDependent(model.predict_proba(data.X[train])), random_state=seed
            )
            runs.append(
                {
                    "seed": seed,
                    "training_accuracy": round(100 * model.accuracy(data.X[train], data.y[train]), 2),
                    "test_accuracy": round(100 * model.accuracy(data.X[test], data.y[test]), 2),
                    "average_size": round(float(sets.sizes.mean()), 3),
                    "seconds": round(seconds, 1),
                }
            )
            print(name, runs[-1])
        random_sizes = {
            f"p={p}": round(float(contaminate(data.y[train], Random(p=p), random_state=0).sizes.mean()), 3)
            for p in (0.1, 0.7)
        }
        means = {key: round(float(np.mean([run[key] for run in runs])), 3) for key in list(runs[0])[1:]}
        paper = {"training_accuracy": train_accuracy, "test_accuracy": test_accuracy, "average_size": size}
        print(f"{name}: {means}; paper {paper}; random contamination {random_sizes} (paper 2.29, 7.30)")
        found.append({"set": name, "paper": paper, "mean": means, "runs": runs, "random": random_sizes})
    return found


def stored(name: str, content: list[dict[str, Any]]) -> None:
    packages = ("numpy", "pyarrow", "torch")
    versions = {package: importlib.metadata.version(package) for package in packages}
    record = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "setwise": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": versions,
        "figures": content,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--supermodels", action="store_true", help="train the paper's supermodels")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.supermodels:
        stored("contamination.json", supermodels(arguments.seeds))
        return
    with tempfile.TemporaryDirectory() as folder:
        stored("data.json", [*loading(), *contaminating(), *tables(Path(folder))])


if __name__ == "__main__":
    main()
