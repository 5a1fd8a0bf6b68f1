"""`setwise predict` on a large Parquet file with a linear model, as a process of its own: rows a second and peak memory.

Writes a table of 1,000,000 rows and 50 features and two linear models (of torch and of scikit-learn) into a temporary
folder, runs the command on it, and prints for each the fastest of several runs and their largest peak. Rows a second
are given twice: by the whole process, which also loads Python and its libraries, and by the command's own clock, which
starts when it begins to work. With `--keep` figures go to benchmarks/results/predict.json: use a quiet machine.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from setwise import __version__

RESULTS = Path(__file__).resolve().parent / "results"
MODELS = {
    "network": ["--learner", "network", "--network", "linear", "--epochs", "5"],
    "scikit-learn": ["--learner", "em"],
}
BARS = {"peak_mb": 600, "rows_per_second": 200_000}
CHUNK = 100_000


def command(folder: Path, *arguments: str) -> tuple[dict[str, Any], float, float]:
    """What a command says, its wall clock in seconds, and its peak memory in MB."""
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "setwise", *arguments, "--json", "--force"], cwd=folder, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(process.returncode)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return json.loads(said), seconds, usage.ru_maxrss * unit / 1e6


def write_tables(folder: Path, rows: int, features: int) -> None:
    """A table to learn from and a large one to predict, written in parts."""
    rng = np.random.default_rng(0)
    names = [f"f{j}" for j in range(features)]

    def columns(n: int) -> tuple[dict[str, Any], Any]:
        y = rng.integers(0, 4, n)
        X = rng.normal(size=(n, features)) + 1.5 * (np.arange(features) % 4 == y[:, None])
        return dict(zip(names, X.T, strict=True)), y

    known, y = columns(2000)
    wrong = rng.integers(0, 4, 2000)
    answers = [sorted({f"class {a}", f"class {b}"}) for a, b in zip(y, wrong, strict=True)]
    pq.write_table(pa.table({**known, "answers": answers}), folder / "votes.parquet")
    part = pa.table(columns(min(rows, CHUNK))[0])
    with pq.ParquetWriter(folder / "new.parquet", part.schema) as writer:
        for start in range(0, rows, CHUNK):
            writer.write_table(part.slice(0, min(CHUNK, rows - start)))


def measure(folder: Path, model: str, rows: int, times: int) -> dict[str, Any]:
    """The fastest of several runs by either clock, and the largest peak of all of them."""
    command(folder, "fit", "votes.parquet", "--candidates", "answers", "--out", model, *MODELS[model])
    runs = [command(folder, "predict", model, "new.parquet", "--out", "sets.parquet") for _ in range(times)]
    assert all(said["rows"] == rows for said, _, _ in runs)
    return {
        "model": model,
        "peak_mb": round(max(peak for _, _, peak in runs), 1),
        "rows_per_second": round(rows / min(seconds for _, seconds, _ in runs)),
        "rows_per_second_own_clock": round(rows / min(said["seconds"] for said, _, _ in runs)),
        "runs": [
            {"seconds": round(seconds, 3), "own_clock": round(said["seconds"], 3), "peak_mb": round(peak, 1)}
            for said, seconds, peak in runs
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/predict.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, arguments.rows, arguments.features)
        found = [measure(folder, model, arguments.rows, arguments.times) for model in MODELS]
    print(
        f"{arguments.rows:,} rows × {arguments.features} features, {os.cpu_count()} cores, {arguments.times} runs"
    )
    print(f"{'linear model':<14}{'peak MB':>10}{'rows/s':>12}{'rows/s, own clock':>20}")
    for figure in found:
        own = figure["rows_per_second_own_clock"]
        print(f"{figure['model']:<14}{figure['peak_mb']:>10.0f}{figure['rows_per_second']:>12,}{own:>20,}")
    print(f"{'bar':<14}{'< 600':>10}{'≥ 200,000':>12}{'≥ 200,000':>20}")
    if arguments.keep:
        record = {
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "setwise": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "versions": {p: importlib.metadata.version(p) for p in ("numpy", "pyarrow", "scikit-learn", "torch")},
            "rows": arguments.rows,
            "features": arguments.features,
            "bars": BARS,
            "figures": found,
        }
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "predict.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
