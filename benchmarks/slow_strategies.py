"""What other strategies, `diagnose` and p-values cost beside `max`: ratios in one run, and the memory that each takes.

A simulated model (normal logits, float32) is right in about half of the cases, and every wrong label is a candidate
with probability 0.1. `max` and `corrected` are calibrated on the rows and then predict their sets, `diagnose` looks at
them, `predict_p` gives their p-values. Times are of the process (one thread), the least of several runs. Memory is the
most that numpy allocates meanwhile, the answer included, in copies of the probabilities.

OMP_NUM_THREADS=1 python benchmarks/slow_strategies.py [--keep]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np
from summary import RESULTS, machine, show

import setwise

SIZES = {"100,000 × 100": (100_000, 100), "50,000 × 1,000": (50_000, 1_000)}
BARS = {"100,000 × 100": 25, "50,000 × 1,000": 40}
"""How many times `max` the others may take."""
SHARE = 0.1
BLOCK = 5_000


def data(rows: int, classes: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """Probabilities, candidates and how often the most probable label is the true one."""
    rng = np.random.default_rng(seed)
    P, S, right = np.empty((rows, classes), np.float32), np.empty((rows, classes), bool), 0
    for start in range(0, rows, BLOCK):
        block = slice(start, min(start + BLOCK, rows))
        p = np.exp(sharpness * rng.normal(size=P[block].shape))
        p /= p.sum(axis=1, keepdims=True)
        y = np.minimum((p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1), classes - 1)
        P[block], S[block] = p, rng.random(p.shape) < SHARE
        S[block][np.arange(len(y)), y] = True
        right += int((p.argmax(axis=1) == y).sum())
    return P, S, right / rows


def measure(work, times: int) -> tuple[float, int]:
    """The least processor time of several runs, and the peak of memory."""
    least = np.inf
    for _ in range(times):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return least, peak


def rows_of(name: str, times: int, sharpness: float) -> dict[str, object]:
    """The figures of one size."""
    P, S, right = data(*SIZES[name], sharpness)
    sets = setwise.LabelSets.from_mask(S)
    calibration = setwise.conformalize(P, sets, "max")
    tasks = {
        "max": lambda: setwise.conformalize(P, sets, "max").predict_set(P),
        "corrected": lambda: setwise.conformalize(P, sets, "corrected", assume="uniform").predict_set(P),
        "diagnose": lambda: setwise.diagnose(P, sets),
        "predict_p": lambda: calibration.predict_p(P),
    }
    figures, base = {}, None
    for task, work in tasks.items():
        seconds, peak = measure(work, 5 * times if task == "max" else times)
        base = base or seconds
        figures[task] = {
            "seconds": round(seconds, 3),
            "times_max": round(seconds / base, 1),
            "peak_copies": round(peak / P.nbytes, 2),
        }
    return {"accuracy": round(right, 3), "bar_times_max": BARS[name], "figures": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, action="append", help="default: all")
    parser.add_argument("--times", type=int, default=3, help="runs of each, and five times as many of max")
    parser.add_argument("--sharpness", type=float, default=4.0, help="the standard deviation of the logits")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/slow_strategies.json")
    arguments = parser.parse_args()
    found = {name: rows_of(name, arguments.times, arguments.sharpness) for name in arguments.size or SIZES}
    result = {"machine": machine(), "sharpness": arguments.sharpness, "sizes": found}
    show(result, RESULTS / "slow_strategies.json" if arguments.keep else None)


if __name__ == "__main__":
    main()
