import numpy as np
import pytest
from reproduction import material
from reproduction.cells import CONTAMINATIONS, IMAGES, Cell, cells_of
from reproduction.measure import ORACLE, STRATEGIES
from reproduction.record import Record
from reproduction.results import Result
from reproduction.summary import published

from setwise import LabelSets
from setwise.datasets.benchmark_sets import Benchmark


@pytest.fixture
def small_images(monkeypatch):
    """The image sets as 500 + 100 rows of noise around ten patterns, so that cells take a second."""

    def load(name, **_):
        rng = np.random.default_rng(len(name))
        y = rng.integers(0, 10, 600)
        X = np.clip(rng.normal(0, 60, (600, 784)) + 40 * rng.random((10, 784))[y] * 3, 0, 255).astype(np.uint8)
        split = {"train": np.arange(500), "test": np.arange(500, 600)}
        return Benchmark(name, X, None, y, tuple("0123456789"), split, "", "")

    monkeypatch.setattr(material, "load", load)


ABSENT = {"soccer_player", "yahoo_news"}
ENVIRONMENT = {"setwise": "0", "python": "3", "torch": "2", "numpy": "2", "device": "CPU"}


def result(cell, *, accuracy=90.0, size=1.5, coverage=0.9, changed=(), sets=None, single=None):
    """A finished cell as if it had been measured, with every strategy alike except the `changed` ones."""
    sizes = [0, 5, 5] + 8 * [0]
    one = {
        "efficiency": size,
        "coverage": coverage,
        "all_candidates": 0.5,
        "any_candidate": 0.95,
        "threshold": 0.9,
        "least_probability": 0.1,
        "bracket": [0.4, 0.97],
        "sizes": sizes,
    }
    strategies = {name: dict(one) for name in (*STRATEGIES, ORACLE)}
    for name, quantity, value in changed:
        strategies[name][quantity] = value
    curve = {"coverage": 11 * [coverage], "size": 11 * [size]}
    plain = {"efficiency": size, "coverage": coverage, "threshold": 0.9, "share_exactly_one": 0.0}
    measured = {
        "train_accuracy": accuracy,
        "test_accuracy": accuracy,
        "n_train": 54_000,
        "n_calibration": 6_000,
        "n_test": 10_000,
        "sets": {"n": 60_000, "classes": 10, "average_size": 2.3, "singletons": 0.0} | (sets or {}),
        "strategies": strategies,
        "by_level": dict.fromkeys(strategies, curve),
        "by_mu": curve,
        "premises": {
            "rho": {name: 0.1 for name in STRATEGIES if name != "all"},
            "below_mean": 0.1,
            "below_one_over_size": 0.2,
            "q_of_truth": 0.4,
            "q_of_truth_at_most_half": True,
            "size_certificate": True,
            "epsilon_within_bound": False,
        },
        "float32": {name: plain | {"admits_everything": False} | (single or {}) for name in ("max", "all")},
    }
    if not cell.preset:
        measured = {"sets": measured["sets"]}
    return Result(cell, measured, ENVIRONMENT, {"train": 1.0})


def as_published(table, seeds=2):
    """Cells of a table that measured exactly what the paper prints."""
    made = []
    for cell in cells_of(table, range(seeds)):
        known = published()["results"].get(cell.contamination, {})
        if cell.data not in known["max"]["efficiency"]:
            continue
        changed = [
            (name, quantity, known[name][quantity][cell.data][0])
            for name in STRATEGIES
            for quantity in ("efficiency", "coverage")
        ]
        found = result(cell, changed=changed)
        for quantity in ("train_accuracy", "test_accuracy"):
            found.measured[quantity] = known["model"][quantity][cell.data][0]
        made.append(found)
    return made


@pytest.fixture
def faithful():
    """A record of every table in which ours is the paper's."""
    sets = [
        result(
            Cell(data, how, 0, supermodel_epochs=10 if how == "instance_dependent" else 0),
            sets={
                "average_size": published()["average_size"][how][data],
                "supermodel_accuracy": published()["supermodel_accuracy"][data],
            },
        )
        for how in CONTAMINATIONS
        for data in IMAGES
    ]
    learned = [r for table in (2, 3, 4, 5) for r in as_published(table) if r.cell.data not in ABSENT]
    return Record((*learned, *sets), ("soccer_player",))


def masks_of(rows):
    return LabelSets.from_mask(np.array(rows, dtype=bool))
