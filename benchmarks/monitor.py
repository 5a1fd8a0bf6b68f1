"""What a monitor costs over ten million rows, its false alarms when threads feed it, and what its cells lose.

    python benchmarks/monitor.py [--data DIR] [--rows 10000000] [--singly 1000000] [--runs 200] [--streams 100] [--keep]

Rows one by one: simulated probabilities of four classes (a 1 x 4 array each), 1,000 calibration rows; processor time of
the first and the last million, and of a new monitor that meanwhile gets every tenth block of 10,000 rows; those between
come in batches, which changes no rank (`--singly` says how many come one by one at each end: half of all for all).
Batches: as many rows, 10,000 at once, with ten features, so that distances are watched too; the numbers that
are kept are counted. Threads: 8 feed one monitor with clean rows, 20 at once, 8,000 rows in all, 300 calibration rows; `p_value`
is the probability of so many alarms or more of so many runs if each had the probability delta. Cells: rows until an alarm,
beside ranks among the values themselves; by the model's answers on the real sets of `drift.py`, of which DIR holds the
data, with noise that costs 10 points of accuracy, and by the distance of simulated features. `--keep` writes
benchmarks/results/monitor.json.
"""

from __future__ import annotations

import argparse
import copy
import os
import pickle
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning
from summary import machine, show

from setwise import conformalize
from setwise.drift import monitor as monitors
from setwise.drift.feature_summary import FeatureSummary, Reference
from setwise.drift.monitor import Monitor

RESULTS = Path(__file__).resolve().parent / "results" / "monitor.json"
NOISY = ("lost", "msrcv2", "birdsong", "italian")
DELTA, WITHIN, BATCH = 0.05, 1000, 10_000
CALIBRATION, THREADS, AT_ONCE, FED = 300, 8, 20, 8000


def simulated(rng, n):
    return rng.dirichlet([0.3] * 4, size=n)


def one_by_one(count, singly):
    """Microseconds of a row among the first and the last rows, and of a new monitor's first rows meanwhile."""
    rng = np.random.default_rng(0)
    P = simulated(rng, 1000)
    start = conformalize(P, P.argmax(axis=1)).monitor(random_state=0)
    watch, found = copy.copy(start), {"rows": count, "one_by_one": singly}
    for part in ("first", "last"):
        spent = {"all": 0.0, "new": 0.0}
        for block in range(singly // BATCH):
            rows = simulated(rng, BATCH)
            spent["all"] += seconds(watch, rows)
            if block % 10 == 0:
                spent["new"] += 10 * seconds(copy.copy(start), rows)
        found[part] = {name: round(1e6 * value / singly, 1) for name, value in spent.items()}
        print(part, found[part], file=sys.stderr, flush=True)
        if part == "first":
            for _ in range((count - 2 * singly) // BATCH):
                watch.update(simulated(rng, BATCH))
    first, last = found["first"], found["last"]
    return found | {
        "last_to_first": round(last["all"] / first["all"], 3),
        "last_to_new": round(last["all"] / last["new"], 3),
        "seen": watch.state.rows,
        "alarm": watch.alarm,
        "bytes": len(pickle.dumps(watch._progress)),
    }


def seconds(watch, rows):
    """Processor time to give a monitor some rows one by one."""
    start = time.process_time()
    for row in range(len(rows)):
        watch.update(rows[row : row + 1])
    return time.process_time() - start


def in_batches(count):
    """Microseconds of a row, and what is kept at powers of ten."""
    rng = np.random.default_rng(1)
    learned, X, P = rng.normal(size=(1000, 10)), rng.normal(size=(1000, 10)), simulated(rng, 1000)
    summary = FeatureSummary.of(X, Reference.of(learned))
    watch = Monitor(conformalize(P, P.argmax(axis=1)), random_state=0, features=summary)
    sizes, parts, spent = {}, [], 0.0
    for done in range(BATCH, count + 1, BATCH):
        P, X = simulated(rng, BATCH), rng.normal(size=(BATCH, 10))
        start = time.process_time()
        watch.update(P, X=X)
        spent += time.process_time() - start
        if done in {10**5, 10**6, 10**7}:
            sizes[f"{done:,}"] = {
                "cells": [len(game.seen[0].cells) for game in watch._progress.games],
                "bytes": len(pickle.dumps(watch._progress)),
            }
        if done % (10 * BATCH) == 0:
            parts.append(spent)
            spent = 0.0
    micro = [round(1e6 * part / (10 * BATCH), 2) for part in parts]
    return {"rows": count, "microseconds": {"first": micro[0], "last": micro[-1]}, "kept": sizes}


def by_threads(runs):
    """False alarms of monitors that several threads feed, and whether all rows count."""
    alarms = whole = resumed = 0
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(THREADS) as pool:
        path = Path(folder, "state.npz")
        for run in range(runs):
            rng = np.random.default_rng([run, 2])
            P = simulated(rng, CALIBRATION + FED)
            cal = conformalize(P[:CALIBRATION], P[:CALIBRATION].argmax(axis=1))
            watch = cal.monitor(DELTA, random_state=run)

            def work(rows, watch=watch):
                for start in range(0, len(rows), AT_ONCE):
                    watch.update(rows[start : start + AT_ONCE])

            list(pool.map(work, np.split(P[CALIBRATION:], THREADS)))
            alarms += watch.alarm
            watch.save(path)
            seen = [game.to_arrays()["counts"].sum() for game in watch._progress.games]
            whole += watch.state.rows == FED and seen == [CALIBRATION + FED] * 2
            resumed += cal.monitor(resume=path).state == watch.state
    sys.setswitchinterval(before)
    return {
        "runs": runs,
        "threads": THREADS,
        "rows": FED,
        "delta": DELTA,
        "alarms": alarms,
        "p_value": round(float(binom.sf(alarms - 1, runs, DELTA)), 4),
        "runs_with_all_rows": whole,
        "runs_that_went_on": resumed,
    }


def answers_with_noise(name, seed):
    """A monitor of a model's answers alone, and those to rows with noise."""
    from drift import COPIES, material, noisy

    _, y, P, *_ = material(name)
    rows, _, made, *_ = noisy(name)
    rng = np.random.default_rng([seed, 7])
    old, others = np.split(rng.permutation(len(y)), [min(1000, len(y) // 3)])
    held = len(rows) // COPIES
    after = rng.permutation(np.flatnonzero(np.isin(rows[:held], others)))[:WITHIN]
    return conformalize(P[old], y[old], "max").monitor(DELTA, random_state=seed), made[after], None


def wider_features(columns, factor, seed):
    """A monitor of rows with so many normal features, and rows whose deviations are so much larger."""
    rng = np.random.default_rng([seed, 8])
    learned, X, P = (
        rng.normal(size=(2000, columns)),
        rng.normal(size=(1000, columns)),
        simulated(rng, 1000 + WITHIN),
    )
    summary = FeatureSummary.of(X, Reference.of(learned))
    watch = Monitor(conformalize(P[:1000], P[:1000].argmax(axis=1)), random_state=seed, features=summary)
    return watch, P[1000:], factor * rng.normal(size=(WITHIN, columns))


def of_cells(streams, sets):
    """How many rows come before an alarm, with values and with their cells."""
    changes = {f"answers on {name} with noise": partial(answers_with_noise, name) for name in sets}
    for columns, factor in ((10, 1.1), (300, 1.01)):
        changes[f"{columns} features, {factor} times as wide"] = partial(wider_features, columns, factor)
    plain, result = monitors._DROPPED, []
    for change, make in changes.items():
        row = {"change": change, "streams": streams}
        for kind, dropped in (("values", 0), ("cells", plain)):
            monitors._DROPPED, found = dropped, []
            for seed in range(streams):
                watch, P, X = make(seed)
                first = watch.update(P, X=X).first_row
                found.append(WITHIN if first is None else first)
            row[kind] = {
                "noticed_within_1000": round(float(np.mean(np.array(found) < WITHIN)), 3),
                "mean_rows_up_to_1000": round(float(np.mean(found)), 1),
            }
        monitors._DROPPED = plain
        result.append(row)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", help="the folder that SETWISE_DATA names; without it real sets are left out")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--singly", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # any model will do
    result = {"machine": machine(), "threads": by_threads(arguments.runs)}
    if arguments.data:
        os.environ["SETWISE_DATA"] = arguments.data
    result["cells"] = of_cells(arguments.streams, NOISY if arguments.data else ())
    print(result, file=sys.stderr, flush=True)
    result["batches"] = in_batches(arguments.rows)
    print(result["batches"], file=sys.stderr, flush=True)
    result["one_by_one"] = one_by_one(arguments.rows, arguments.singly)
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
