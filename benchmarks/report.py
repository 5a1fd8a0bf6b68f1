"""How long a report takes and how large it is: 100,000 rows and 1,000 classes.

python benchmarks/report.py
"""

import json
import tempfile
import time
from pathlib import Path

import numpy as np

import setwise
from setwise.report import build_report

ROWS, CLASSES, CALIBRATION = 100_000, 1_000, 20_000


def data(rows, seed):
    """Probabilities of a plausible model, labels drawn from them, and the labels with a few wrong ones beside."""
    rng = np.random.default_rng(seed)
    p = rng.exponential(size=(rows, CLASSES)).astype(np.float32) ** 4
    p /= p.sum(axis=1, keepdims=True)
    y = np.minimum((p.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), CLASSES - 1)
    lists = np.column_stack([y, rng.integers(0, CLASSES, (rows, 2))])
    classes = list(range(CLASSES))
    candidates = setwise.LabelSets.from_lists([sorted(set(row)) for row in lists.tolist()], classes=classes)
    return p, y, candidates


def main():
    p, y, candidates = data(ROWS + CALIBRATION, 0)
    results = {"rows": ROWS, "classes": CLASSES, "calibration": CALIBRATION}
    for score in ("lac", "aps"):
        calibration = setwise.conformalize(
            p[:CALIBRATION], candidates[:CALIBRATION], conformity_score=score, random_state=0
        )
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            made = build_report(
                Path(folder) / "report.html",
                calibration,
                p[CALIBRATION:],
                y=y[CALIBRATION:],
                candidates=candidates[CALIBRATION:],
            )
            seconds = time.perf_counter() - start
            results[score] = {"seconds": round(seconds, 1), "megabytes": round(made.stat().st_size / 1e6, 2)}
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
