"""Streams: how fast and in how much memory, and whether a random sample of calibration rows keeps the promise.

    python benchmarks/streams.py --part predict --keep
    python benchmarks/streams.py --part sampling --keep
    python benchmarks/streams.py --part ray --keep

`predict`: Parquet files of 500,000 rows with the probabilities of 20 classes (float32) in a temporary folder, 10⁶ and
10⁷ rows in all. `setwise predict` turns the folder into a folder of sets; pyarrow alone reads the same input and writes
the same output, batch by batch. Each runs in a process of its own, in turns; wall clock and processor time start when
all is imported, and the fastest run counts. Peak memory is that of the process.

`sampling`: draws of 10⁷ scores are streamed through `CalibrationRows` with a memory limit of 1 MB. Scores are uniform,
so that a threshold is its own coverage: its mean over draws must not lie below the level by more than three standard
errors, and its spread is the Beta law of the rows kept.

`ray`: the same folder, in files of 250,000 rows, with `--engine local` and with `--engine ray` on all cores of this
machine, in turns. The clock starts when all is imported and, for Ray, when its cluster stands, as one does that is given
by `--address`; `start` is how long that took. Processes of tasks start, import and load the calibration while it runs.

`--keep` writes benchmarks/results/streams.json. Ratios hold on a busy machine too, seconds do not.
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
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from summary import load, machine, show

RESULTS = Path(__file__).resolve().parent / "results" / "streams.json"
CLASSES, PART, BATCH = 20, 500_000, 49_152
RAY_PART = 250_000
LIMITS = {
    "predict over pyarrow alone": 2.0,
    "peak memory at 10⁷ over 10⁶ rows": 1.2,
    "sample in MB": 1.0,
    "ray over local": 1.5,
}
LEVELS = (0.8, 0.9, 0.95, 0.99)


def write_tables(folder, rows, part=PART, classes=CLASSES):
    """Parts of probabilities, and a calibration."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import setwise

    rng = np.random.default_rng(0)
    names = [f"class {k}" for k in range(classes)]

    def probabilities(n):
        values = rng.exponential(size=(n, classes)).astype(np.float32) ** 4
        return values / values.sum(axis=1, keepdims=True)

    p = probabilities(20_000)
    y = np.minimum((p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1), classes - 1)
    setwise.conformalize(p, np.array(names)[y], classes=names, random_state=0).save(folder / "model.cal")
    (folder / "in").mkdir()
    for number, start in enumerate(range(0, rows, part)):
        p = probabilities(min(part, rows - start))
        columns = {f"p:{name}": p[:, k] for k, name in enumerate(names)}
        table = pa.table({"id": np.arange(start, start + len(p)), **columns})
        pq.write_table(table, folder / "in" / f"{number:04d}.parquet")


def pyarrow_alone(folder):
    """Reads the input, writes the output that is there already: seconds of both clocks."""
    import pyarrow.parquet as pq

    wall = cpu = 0.0
    for path in sorted((folder / "in").glob("*.parquet")):
        made = pq.read_table(folder / "out" / path.name)
        began = time.perf_counter(), time.process_time()
        for _ in pq.ParquetFile(path).iter_batches(batch_size=BATCH):
            pass
        with pq.ParquetWriter(folder / "alone.parquet", made.schema) as writer:
            for start in range(0, len(made), BATCH):
                writer.write_table(made.slice(start, BATCH))
        wall, cpu = wall + time.perf_counter() - began[0], cpu + time.process_time() - began[1]
    return wall, cpu


def predicted(folder, *more):
    """`setwise predict` from folder to folder."""
    import pyarrow.parquet  # noqa: F401 - imported before the clock starts, as for pyarrow alone

    import setwise.streams.predicted_parts  # noqa: F401
    from setwise.cli.app import run

    arguments = ["predict", "model.cal", "--probabilities", "in", "--out", "out", "--force", "--quiet", *more]
    os.chdir(folder)
    began = time.perf_counter(), time.process_time()
    assert run(arguments) == 0
    return time.perf_counter() - began[0], time.process_time() - began[1]


def predicted_by_ray(folder):
    """The same on a Ray cluster that stands."""
    from setwise.streams.ray_engine import connect

    began = time.perf_counter()
    connect()
    start = time.perf_counter() - began
    return *predicted(folder, "--engine", "ray"), start


CHILDREN = {"predict": predicted, "pyarrow": pyarrow_alone, "ray": predicted_by_ray}


def peak_mb():
    """The most memory that this process held."""
    return round(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6, 1
    )


def child(what, folder):
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--child", what, "--folder", str(folder)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_predict(sizes, times):
    """The fastest of several runs of each, in turns."""
    found = {}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_tables(folder, rows)
            runs = {what: [] for what in ("predict", "pyarrow")}
            for _ in range(times):
                for what, held in runs.items():
                    held.append(child(what, folder))
            best = {what: {k: min(run[k] for run in held) for k in ("wall", "cpu")} for what, held in runs.items()}
            found[str(rows)] = {
                **best,
                "ratio": {k: round(best["predict"][k] / best["pyarrow"][k], 2) for k in ("wall", "cpu")},
                "rows_per_second": round(rows / best["predict"]["wall"]),
                "peak_mb": max(run["peak_mb"] for run in runs["predict"]),
            }
    small, large = (found[str(rows)]["peak_mb"] for rows in (min(sizes), max(sizes)))
    return {"classes": CLASSES, "part_rows": PART, "rows": found, "peak_ratio": round(large / small, 2)}


def measure_ray(rows, times):
    """The fastest of several runs with either engine, in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, rows, RAY_PART)
        runs = {what: [] for what in ("predict", "ray")}
        for _ in range(times):
            for what, held in runs.items():
                held.append(child(what, folder))
    local, ray = (min(run["wall"] for run in held) for held in runs.values())
    return {
        "rows": rows,
        "classes": CLASSES,
        "part_rows": RAY_PART,
        "cores": os.cpu_count(),
        "local": local,
        "ray": ray,
        "start": min(run["start"] for run in runs["ray"]),
        "ratio": round(ray / local, 2),
    }


def one_draw(rows, limit, draw):
    """The thresholds of a stream of uniform scores, each of which is its own coverage."""
    from setwise.streams import CalibrationRows

    rng = np.random.default_rng([1, draw])
    kept = CalibrationRows(memory_limit=limit, random_state=draw)
    first, most = 0, 0
    while first < rows:
        scores = rng.random(min(2**18, rows - first), dtype=np.float32)
        mask = np.zeros((len(scores), 2), dtype=bool)
        mask[:, 0] = True
        pairs = np.stack([1 - scores, scores], axis=1)
        kept.add(pairs, mask, sampling_ids=np.arange(first, first + len(scores)))
        first, most = first + len(scores), max(most, kept.nbytes)
    return [float(q) for q in kept.conformalize("max").threshold(list(LEVELS))], len(kept), most


def measure_sampling(draws, rows, limit, workers):
    """Mean and spread of coverage over draws, beside the Beta law of the rows kept."""
    from setwise.ranks import rank

    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(partial(one_draw, rows, limit), range(draws)))
    thresholds, (n, *_), bytes_held = (np.array(column) for column in zip(*results, strict=True))
    found = {}
    for level, values in zip(LEVELS, thresholds.T, strict=True):
        a = rank(int(n), level)
        spread = float(np.sqrt(a * (n + 1 - a) / (n + 1) ** 2 / (n + 2)))
        error = spread / draws**0.5
        found[str(level)] = {
            "mean_coverage": float(values.mean()),
            "standard_error": error,
            "holds": bool(values.mean() >= level - 3 * error),
            "spread": float(values.std()),
            "spread_of_beta": spread,
            "lowest": float(values.min()),
        }
    shown = {
        "draws": draws,
        "scores": rows,
        "rows_kept": int(n),
        "most_mb": round(float(bytes_held.max()) / 1e6, 3),
    }
    return shown | {"levels": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["predict", "sampling", "ray"], default="predict")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--scores", type=int, default=10**7)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        wall, cpu, *start = CHILDREN[arguments.child](arguments.folder)
        print(json.dumps({"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "start": sum(start)}))
        return
    versions = ("pyarrow", "ray") if arguments.part == "ray" else ("pyarrow",)
    result = {**(load("streams") or {}), "machine": machine(*versions), "limits": LIMITS}
    if arguments.part == "predict":
        result["predict"] = measure_predict(arguments.sizes, arguments.times)
    elif arguments.part == "ray":
        result["ray"] = measure_ray(max(arguments.sizes), arguments.times)
    else:
        limit = 10**6 * 4 // 5  # a quarter more is held between two cuts
        result["sampling"] = measure_sampling(arguments.draws, arguments.scores, limit, arguments.workers)
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
