"""Votes: a million of them, and learning from real ones. Aggregation beside others: `benchmarks/ambiguous`, `peers.py`.

    python benchmarks/crowd.py --data DIR --keep

DIR holds cifar10n.npz (X, P, votes, y), which is not in the repository.

A million votes: 300,000 rows, 100 classes, 1,000 annotators right in 50 to 95 % of answers; time and peak memory of
`fit_annotators` in a process of its own (with the seconds its threads computed, and how many processes wanted a core,
since others may run beside it).

Learning: `ConformalClassifier(strategy="crowd", assume="independent").fit(X, votes)` on 5,000 rows of `cifar10n.npz`
(a fifth to calibrate), with the default network and with scikit-learn's LogisticRegression, on 5,000 other rows; beside
the same learner with the majority vote of the same rows as label (ties broken at random), and the size of the sets
beside that of the oracle's: the same model, conformalized on the same rows with true labels.

The annotator model's shrinkage (5) and start (vote shares) are those, of 56 settings compared, under which held-out
tenths of the answers of dog and duck are most probable. Truths do not enter that criterion; weaker shrinkage (0.1) gives
dog the accuracy of crowd-kit, and held-out answers a log likelihood lower by 0.07 per answer.

`--keep` writes benchmarks/results/crowd.json; with `--only PART` that part alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from summary import machine

from setwise import ConformalClassifier, Votes, conformalize
from setwise.crowd.annotator_model import fit_annotators

RESULTS = Path(__file__).resolve().parent / "results" / "crowd.json"
LEVEL, TEST = 0.9, 5_000


def simulated(votes, rows, k=100, people=1_000, seed=0):
    rng = np.random.default_rng(seed)
    y, row = rng.integers(0, k, rows), rng.integers(0, rows, votes)
    who, accuracy = rng.integers(0, people, votes), rng.uniform(0.5, 0.95, people)
    label = np.where(rng.random(votes) < accuracy[who], y[row], rng.integers(0, k, votes))
    return y, row, who, label


def million():
    """Time and peak memory; run in a process of its own."""
    y, row, who, label = simulated(1_000_000, 300_000)
    votes = Votes.of(300_000, row, label, who, classes=range(100))
    start, used = time.perf_counter(), time.process_time()
    found = fit_annotators(votes)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "votes": 1_000_000,
        "rows": 300_000,
        "classes": 100,
        "annotators": 1_000,
        "accuracy": round(float((found.posterior.argmax(axis=1) == y).mean()), 4),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used, 1),
        "load_average": round(os.getloadavg()[0], 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
    }


def learning(data, splits):
    """Accuracy from votes and from their majority; size of the sets beside the oracle's."""
    from setwise.learn import PartialLabelClassifier

    held = np.load(data / "cifar10n.npz")
    X, answers, y = held["X"].astype(float), held["votes"].astype(int), held["y"].astype(int)
    learners = {
        "default network": PartialLabelClassifier(),
        "LogisticRegression": LogisticRegression(max_iter=1000),
    }
    for name, learner in learners.items():
        found = []
        for split in range(splits):
            rng = np.random.default_rng(split)
            rows = rng.permutation(len(y))
            r, t = rows[:TEST], rows[TEST : 2 * TEST]
            votes = Votes.from_counts(Votes.from_matrix(answers[r], classes=range(10)).counts)
            model = ConformalClassifier(learner, "crowd", assume="independent", random_state=split).fit(X[r], votes)
            c = model.calibration_rows_
            kept = np.setdiff1d(np.arange(TEST), c)
            majority = (votes.counts[kept] + 0.5 * rng.random((len(kept), 10))).argmax(axis=1)
            seeded = clone(learner).set_params(random_state=split)
            baseline = (seeded.fit(X[r[kept]], majority).predict(X[t]) == y[t]).mean()
            P = model.predict_proba(X[t])
            ours = model.calibration_.predict_set(P, LEVEL).to_mask()
            oracle = conformalize(model.predict_proba(X[r[c]]), y[r[c]]).predict_set(P, LEVEL).to_mask()
            covered = [mask[np.arange(TEST), y[t]].mean() for mask in (ours, oracle)]
            sizes = [mask.sum(axis=1).mean() for mask in (ours, oracle)]
            found.append(((P.argmax(axis=1) == y[t]).mean(), baseline, *covered, *sizes))
        means, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        better = np.subtract(*np.array(found).T[:2])
        columns = ("accuracy", "majority_accuracy", "coverage", "oracle_coverage", "size", "oracle_size")
        yield {
            "learner": name,
            "splits": splits,
            **{column: round(float(mean), 4) for column, mean in zip(columns, means, strict=True)},
            **{f"{column}_sd": round(float(sd), 4) for column, sd in zip(columns, spread, strict=True)},
            "gain_in_accuracy": round(float(better.mean()), 4),
            "gain_se": round(float(better.std(ddof=1) / splits**0.5), 4),
            "size_by_oracle": round(float(means[4] / means[5]), 3),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--keep", action="store_true")
    parts = {
        "million": lambda _: million(),
        "learning": lambda given: list(learning(given.data, given.splits)),
    }
    parser.add_argument("--only", choices=parts, help="one part; --keep leaves the others as they are")
    arguments = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if arguments.only and arguments.keep else {}
    if arguments.only:
        result = {arguments.only: parts[arguments.only](arguments)}
        result["later"] = kept.get("later", {}) | {arguments.only: machine()}
    else:
        alone = [sys.executable, __file__, "--only", "million"]
        own = json.loads(subprocess.run(alone, capture_output=True, text=True, check=True).stdout)
        result = {"machine": machine()}
        result |= {name: own["million"] if name == "million" else part(arguments) for name, part in parts.items()}
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if arguments.keep:
        RESULTS.write_text(json.dumps(kept | result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
