"""`EMClassifier` around three classifiers of scikit-learn: accuracy on the truth, fits, and seconds of processor time.

    SETWISE_DATA=DIR python benchmarks/em.py --keep

Every split is new: a fifth of the rows to test on, the rest to learn from. "plain" is one fit that gives all candidates
of a row the same weight. Seconds are of the processor, not of the clock, with one thread: other work on the machine
counts little. `--keep` writes benchmarks/results/em.json.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from train import machine, write

from setwise.datasets import load
from setwise.learn import EMClassifier

SETS = ("lost", "msrcv2", "birdsong")
ESTIMATORS = {
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "RandomForest": RandomForestClassifier(random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
}
VARIANTS = {"plain": {"max_iter": 1}, "default": {}}


def measure(name, estimator, variant, splits):
    """One row of the table."""
    data, accuracy, fits, seconds = load(name), [], [], []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(data.y))
        test, learned = np.split(order, [len(order) // 5])
        model = EMClassifier(ESTIMATORS[estimator], random_state=split, **VARIANTS[variant])
        began = time.process_time()
        model.fit(data.X[learned], data.candidates[learned])
        seconds.append(time.process_time() - began)
        accuracy.append(100 * float((model.predict(data.X[test]) == data.y[test]).mean()))
        fits.append(model.n_fits_)
    return {
        "set": name,
        "estimator": estimator,
        "variant": variant,
        "accuracy": float(np.mean(accuracy)),
        "accuracies": accuracy,
        "fits": fits,
        "cpu_seconds": float(np.mean(seconds)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS))
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rows = []
    with threadpool_limits(1):
        for estimator in options.estimators:
            for name in options.sets:
                for variant in options.variants:
                    rows.append(row := measure(name, estimator, variant, options.splits))
                    print(
                        f"{name:9s} {estimator:21s} {variant:8s} accuracy {row['accuracy']:6.2f}"
                        f"  fits {row['fits']}  {row['cpu_seconds']:7.1f} s",
                        flush=True,
                    )
    path = Path(__file__).resolve().parent / "results" / "em.json"
    about = machine(torch.device("cpu"))
    write(path if options.keep else None, {"machine": about, "splits": options.splits, "rows": rows})


if __name__ == "__main__":
    main()
