"""How the settings of the paper's image sets were found: other trainings, and how many printed numbers they miss.

    python benchmarks/schedules.py --device cuda --out benchmarks/results/schedules.json

Each training is that of the public code (learning rate 0.01, no shuffling, the presets of `reproduction`) with what
its name says changed; "50/500" is 50 epochs of a cosine over 500. A number is missed where it is more than two
standard deviations over five seeds from the paper's.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from reproduction.cells import CONTAMINATIONS, IMAGES, PRESET_OF, Cell
from reproduction.results import load
from reproduction.runner import plan, run
from reproduction.summary import entries

_FASHION = ("fashion_mnist",)


def trainings():
    """Table, data sets, name, epochs, horizon and what else is changed."""
    for table in (2, 3):
        for epochs in (40, 50, 60, 100):
            yield table, IMAGES, f"{epochs}/500", epochs, 500, {}
        yield table, IMAGES, "100/100", 100, 100, {}
        yield table, IMAGES, "30/30", 30, 30, {}
        yield table, IMAGES, "50/500, learning rate 0.001", 50, 500, {"learning_rate": 0.001}
    for epochs in (50, 60):
        yield 3, _FASHION, f"{epochs}/{epochs}", epochs, epochs, {}
    for rate in (0.1, 0.3):
        yield 3, _FASHION, f"50/500, learning rate {rate}", 50, 500, {"learning_rate": rate}
    for decay in (1e-3, 1e-2):
        yield 3, _FASHION, f"50/500, weight decay {decay:g}", 50, 500, {"weight_decay": decay}
    yield 3, _FASHION, "50/500, shuffled", 50, 500, {"shuffle": True}
    pixels = {"scale": (255 * 0.1307, 255 * 0.3081)}
    yield 3, _FASHION, "50/500, pixels divided by 255", 50, 500, pixels
    for epochs in (25, 50, 100, 200):
        yield 4, IMAGES, f"{epochs}/500", epochs, 500, {}
    for epochs in (60, 80, 100):
        yield 4, IMAGES, f"{epochs}/100", epochs, 100, {}


def cells(table, names, epochs, horizon, changed, seeds):
    (how,) = (name for name, number in CONTAMINATIONS.items() if number == table)
    overrides = tuple({"annealing_epochs": horizon, **changed}.items())
    supermodel = 10 if table == 4 else 0
    return [
        Cell(data, how, seed, "official", PRESET_OF[data], overrides, epochs, "paper", supermodel)
        for data in names
        for seed in range(seeds)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found, made = [], {}
    for table, names, name, epochs, horizon, changed in trainings():
        with tempfile.TemporaryDirectory() as folder:
            wanted = cells(table, names, epochs, horizon, changed, given.seeds)
            made = run(plan(wanted, Path(folder), given.device), Path(folder))
            numbers = entries(table, load(Path(folder)))
        compared = [e for e in numbers if e.paper is not None]
        row = {
            "table": table,
            "training": name,
            "missed": sum(e.far for e in compared),
            "of": len(compared),
            "test accuracy": {e.data: f"{e.ours} ({e.paper})" for e in numbers if e.quantity == "test_accuracy"},
            "max, size": {
                e.data: f"{e.ours} ({e.paper})"
                for e in numbers
                if (e.strategy, e.quantity) == ("max", "efficiency")
            },
        }
        found.append(row)
        print(json.dumps(row), flush=True)
        around = {key: made[key] for key in ("setwise", "python", "torch", "device", "date")}
        text = json.dumps({"environment": around, "seeds": given.seeds, "trainings": found}, indent=1)
        given.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
