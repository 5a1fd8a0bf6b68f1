"""The waits of somebody's first hour: fits with nothing set, and `setwise predict` of 100 rows, against their limits.

    python benchmarks/first_hour.py --keep

Each step runs in a process of its own; short ones five times, of which the fastest counts (what disturbs a machine
only adds) and all are kept. Seconds are those of the clock, from the start of the work (of the
command: of the process), and beside them those of the processor: on a machine that does other work as well only these
say something. `--keep` writes benchmarks/results/first_hour.json: use a quiet machine with two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STEPS = {
    "fit 800 x 7": 3.0,
    "fit 100,000 x 50": 60.0,
    "fit 100,000 x 50, clusters": 60.0,
    "covering over plain, 4,000 x 40": 2.0,
    "forest, 178 rows": 12.0,
    "predict 100 rows": 1.5,
}
"""The largest value allowed: seconds, the ratio of two fits, or the number of fits of a forest."""
SHORT = {"fit 800 x 7": 5, "predict 100 rows": 5}


def rows(n, d, k, *, clusters=0, seed=0):
    """Features, candidates and truth: classes by a linear rule, or of many clusters each."""
    rng = np.random.default_rng(seed)
    if clusters:
        own = rng.integers(0, k * clusters, n)
        X, y = 1.5 * rng.normal(size=(k * clusters, d))[own] + rng.normal(size=(n, d)), own % k
    else:
        X = rng.normal(size=(n, d))
        y = (X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return X, (np.arange(k) == y[:, None]) | (rng.random((n, k)) < 0.1), y


def default_fit(*shape, **options):
    """Seconds of `ConformalClassifier().fit`, and what its sets are worth on a tenth more rows."""
    from setwise import ConformalClassifier

    n = shape[0]
    X, candidates, y = rows(n + n // 10, *shape[1:], **options)
    began = clocks()
    model = ConformalClassifier(random_state=0).fit(X[:n], candidates[:n])
    took = since(began)
    found = model.evaluate(X[n:], y[n:])
    accuracy = float((model.predict(X[n:]) == y[n:]).mean())
    return took | {"coverage": found["coverage"], "mean_size": found["mean_size"], "accuracy": accuracy}


def covering_over_plain():
    """How many times a plain fit the covering learner takes."""
    from setwise.learn import CoveringClassifier, PartialLabelClassifier

    X, candidates, _ = rows(4000, 40, 13, clusters=3)
    took = []
    for kind in (PartialLabelClassifier, CoveringClassifier):
        began = clocks()
        kind(random_state=0).fit(X, candidates)
        took.append(since(began))
    return took[1] | {"value": took[1]["cpu_seconds"] / took[0]["cpu_seconds"], "plain": took[0]}


def forest():
    """How often a forest is fitted on candidate sets."""
    from sklearn.ensemble import RandomForestClassifier

    from setwise import ConformalClassifier

    X, candidates, _ = rows(178, 13, 3)
    began = clocks()
    model = ConformalClassifier(RandomForestClassifier(), random_state=0).fit(X, candidates)
    return since(began) | {"value": model.estimator_.n_fits_}


def predict():
    """`setwise predict` with a linear model of scikit-learn, as a process."""
    from sklearn.linear_model import LogisticRegression

    from setwise import ConformalClassifier
    from setwise.estimators.model_directory import save_model

    X, candidates, _ = rows(800, 7, 4)
    with tempfile.TemporaryDirectory() as folder:
        model = ConformalClassifier(LogisticRegression(), random_state=0).fit(X, candidates)
        names = [f"f{j}" for j in range(7)]
        save_model(model, Path(folder) / "model", feature_names=names)
        np.savetxt(Path(folder) / "new.csv", X[:100], delimiter=",", header=",".join(names), comments="")
        command = [sys.executable, "-m", "setwise", "predict", "model", "new.csv", "--out", "sets.csv"]
        subprocess.run([*command, "--force"], cwd=folder, check=True, capture_output=True)  # once, to compile
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*command, "--force"], cwd=folder, check=True, capture_output=True)
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": seconds, "cpu_seconds": after.ru_utime - before.ru_utime, "peak_mb": after.ru_maxrss / 1024}


WORK = dict(
    zip(
        STEPS,
        (
            lambda: default_fit(800, 7, 4),
            lambda: default_fit(100_000, 50, 20),
            lambda: default_fit(100_000, 50, 20, clusters=10),
            covering_over_plain,
            forest,
            predict,
        ),
        strict=True,
    )
)


def clocks():
    return time.perf_counter(), time.process_time()


def since(began):
    return dict(zip(("seconds", "cpu_seconds"), np.subtract(clocks(), began).tolist(), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", nargs="*", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--one", choices=list(STEPS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(WORK[options.one]()))
        return
    found = {}
    for step in options.steps:
        command = [sys.executable, __file__, "--one", step]
        runs = [
            json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            for _ in range(SHORT.get(step, 1))
        ]
        found[step] = {"limit": STEPS[step], **min(runs, key=lambda run: run["seconds"])}
        if len(runs) > 1:
            found[step]["all_seconds"] = sorted(round(run["seconds"], 3) for run in runs)
        value = found[step].get("value", found[step]["seconds"])
        others = {
            k: round(v, 3) for k, v in found[step].items() if isinstance(v, float) and k not in ("limit", "value")
        }
        print(f"{step:34s} {value:8.2f} of at most {STEPS[step]:g}   {others}", flush=True)
    if options.keep:
        import torch
        from train import machine

        path = Path(__file__).resolve().parent / "results" / "first_hour.json"
        about = machine(torch.device("cpu")) | {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
        path.write_text(json.dumps({"machine": about, "steps": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
