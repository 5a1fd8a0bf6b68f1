"""How cost grows with rows, classes, votes per row, and workers.

    OMP_NUM_THREADS=1 python benchmarks/growth.py --keep

`rows`, `classes`: `max` and `corrected` (uniform contamination) are calibrated on simulated rows and predict their sets,
as in slow_strategies.py: 100 classes and more and more rows, 20,000 rows and more and more classes. `votes`: the annotator
model is fitted to so many answers of 200 people to each of 10,000 rows, with the probabilities of a classifier over 20
classes. All three are processor time of one thread, the least of several runs.

`workers`: `setwise predict --engine ray` over Parquet files with the probabilities of 20 classes, on a Ray with 1 and
with 2 cores that has done so once already; wall clock. `wide`: the same with 1,000 classes in this process, without Ray:
processor time and the most memory that the process held.

`--keep` writes benchmarks/results/growth.json and docs/growth.svg; `--scale 0.1` makes everything smaller, to try it. Then
`python benchmarks/scale_page.py` writes docs/guide/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from slow_strategies import data, measure
from streams import peak_mb, predicted, write_tables
from summary import RESULTS, ROOT, machine, show

import setwise
from setwise.crowd.annotator_model import fit_annotators

ROWS = (10_000, 30_000, 100_000, 300_000)
CLASSES = (10, 30, 100, 300, 1_000)
VOTES = (1, 2, 5, 10, 20)
WORKERS = (1, 2)
FIXED_ROWS, FIXED_CLASSES = 20_000, 100
VOTED_ROWS, VOTED_CLASSES, PEOPLE = 10_000, 20, 200
STREAM_ROWS, STREAM_PARTS = 4_000_000, 16
WIDE_ROWS, WIDE_PARTS, WIDE_CLASSES = 100_000, 4, 1_000


def calibrated(rows, classes, times):
    """Seconds of `max` and of `corrected`."""
    P, S, _ = data(rows, classes, 4.0)
    sets = setwise.LabelSets.from_mask(S)
    tasks = {
        "max": lambda: setwise.conformalize(P, sets, "max").predict_set(P),
        "corrected": lambda: setwise.conformalize(P, sets, "corrected", assume="uniform").predict_set(P),
    }
    return {"rows": rows, "classes": classes} | {name: measure(work, times)[0] for name, work in tasks.items()}


def voted(rows, votes, times):
    """Seconds of the annotator model."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(VOTED_CLASSES, 0.2), size=rows)
    y = np.minimum((P.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), VOTED_CLASSES - 1)
    row, who = np.repeat(np.arange(rows), votes), rng.integers(0, PEOPLE, rows * votes)
    right = rng.random(rows * votes) < rng.uniform(0.5, 0.95, PEOPLE)[who]
    label = np.where(right, y[row], rng.integers(0, VOTED_CLASSES, rows * votes))
    given = setwise.Votes.of(rows, row, label, who, classes=range(VOTED_CLASSES))
    seconds = measure(lambda: fit_annotators(given, P), times)[0]
    return {"rows": rows, "votes": votes, "seconds": seconds}


def by_ray(folder, workers, times):
    """The least wall clock of several runs on a Ray of so many cores, after one that starts its processes."""
    from setwise.streams.ray_engine import import_ray

    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    import_ray().init(num_cpus=workers, **options)
    return {"wall": min([predicted(folder, "--engine", "ray")[0] for _ in range(times + 1)][1:])}


def in_this_process(folder, _, times):
    """The least wall clock and processor time of several runs, and the most memory held."""
    walls, cpus = zip(*(predicted(folder) for _ in range(times)), strict=True)
    return {"wall": min(walls), "cpu": min(cpus), "peak_mb": peak_mb()}


CHILDREN = {"ray": by_ray, "wide": in_this_process}


def child(what, folder, times, workers=1):
    """Runs in a process of its own."""
    told = ["--child", what, "--folder", folder, "--workers", workers, "--times", times]
    command = [sys.executable, __file__, *map(str, told)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def streamed(rows, parts, times):
    """Wall clock for each number of workers."""
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name), rows, max(1, rows // parts))
        found = [{"workers": count, **child("ray", name, times, count)} for count in WORKERS]
    return {"rows": rows, "classes": 20, "parts": parts, "runs": found}


def wide(rows, parts, times):
    """Processor time and memory of a table with many classes."""
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name), rows, max(1, rows // parts), WIDE_CLASSES)
        size = sum(path.stat().st_size for path in Path(name, "in").iterdir())
        found = child("wide", name, times)
    return {"rows": rows, "classes": WIDE_CLASSES, "file_bytes": size, **found}


def picture(result):
    """One panel for each thing that grows."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "setwise"
    figure, panels = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
    for ax, name in zip(panels, ("rows", "classes"), strict=False):
        for work in ("max", "corrected"):
            ax.plot(*zip(*((row[name], row[work]) for row in result[name]), strict=True), "o-", ms=4, label=work)
        fixed = "classes" if name == "rows" else "rows"
        ax.set(xscale="log", yscale="log", xlabel=name, title=f"{result[name][0][fixed]:,} {fixed}")
    panels[0].set_ylabel("seconds")
    panels[0].legend(frameon=False)
    votes, workers = result["votes"], result["workers"]
    panels[2].plot([row["votes"] for row in votes], [row["seconds"] for row in votes], "o-", ms=4, color="C2")
    title = f"votes on {votes[0]['rows']:,} rows"
    panels[2].set(xscale="log", ylim=(0, None), xlabel="votes per row", title=title)
    counts, walls = zip(*((row["workers"], row["wall"]) for row in workers["runs"]), strict=True)
    rates = [workers["rows"] / wall / 1e6 for wall in walls]
    panels[3].plot(counts, rates, "o-", ms=4, color="C3")
    panels[3].plot(counts, [rates[0] * count for count in counts], "k:", label="in proportion")
    panels[3].set(xlabel="workers", ylabel="million rows/s", ylim=(0, None), title="predict, 20 classes")
    panels[3].set_xticks(counts)
    panels[3].legend(frameon=False)
    figure.savefig(ROOT / "docs" / "growth.svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of rows")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    times = arguments.times
    if arguments.child:
        print(json.dumps(CHILDREN[arguments.child](arguments.folder, arguments.workers, times)))
        return

    def scaled(rows):
        return max(100, round(rows * arguments.scale))

    result = {"machine": machine("pyarrow", "ray"), "load": round(os.getloadavg()[0], 1)}
    result["rows"] = [calibrated(scaled(rows), FIXED_CLASSES, times) for rows in ROWS]
    result["classes"] = [calibrated(scaled(FIXED_ROWS), classes, times) for classes in CLASSES]
    result["votes"] = [voted(scaled(VOTED_ROWS), votes, times) for votes in VOTES]
    result["workers"] = streamed(scaled(STREAM_ROWS), STREAM_PARTS, times)
    result["wide"] = wide(scaled(WIDE_ROWS), WIDE_PARTS, times)
    show(result, RESULTS / "growth.json" if arguments.keep else None)
    if arguments.keep:
        picture(result)


if __name__ == "__main__":
    main()
