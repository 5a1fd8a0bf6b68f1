"""Stacks from beginning to end: the committed cell again, to the last digit; resuming; engines."""

import json
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from setwise.paper import preparing
from setwise.paper.cells import Cell, cells_of, from_settings
from setwise.paper.compute import compute
from setwise.paper.executors import Local, executor
from setwise.paper.material import Material
from setwise.paper.results import load, save
from setwise.paper.runner import plan, record, run, runs
from setwise.paper.cell_stacks import Stack, stacks
from setwise.paper.stages import Stages

COMMITTED = Path(__file__).with_name("committed-cell.json")
SMALL = Cell("lost", "original", 0, preset="paper-lost", epochs=5)


def computed(*cells):
    """The measurements of some cells computed in this process, as they would be written."""
    material = Material(torch.device("cpu"), Stages())
    found = [result for stack in stacks(cells, "cpu") for result in compute(stack, material, lambda *_: None)]
    return {result.cell: result.to_dict()["measured"] for result in found}


def test_a_committed_cell_is_computed_again_to_the_last_digit(benchmarks):
    content = json.loads(COMMITTED.read_text())
    cell = from_settings(content["settings"])
    assert cell.key() == content["key"]
    assert computed(cell)[cell] == content["measured"]


def test_a_cell_does_not_depend_on_those_it_is_trained_with(benchmarks):
    cells = [replace(SMALL, seed=seed) for seed in range(3)]
    together = computed(*cells)
    assert computed(cells[1])[cells[1]] == together[cells[1]]


def test_image_cells_of_all_kinds_go_through(small_images):
    cells = [
        replace(cell, epochs=1, supermodel_epochs=min(cell.supermodel_epochs, 1))
        for table in (1, 2, 4)
        for cell in cells_of(table, range(1), protocols=("official", "resplit"), variants=("paper", "text"))
        if cell.data in {"mnist", "kmnist"}
    ]
    found = computed(*cells)
    assert found.keys() == set(cells)
    learned = [measured for cell, measured in found.items() if cell.preset]
    assert len(learned) == 12
    assert all(m["n_train"] == 450 and m["n_calibration"] == 50 and m["n_test"] == 100 for m in learned)
    assert all(
        "supermodel_accuracy" in m["sets"] for c, m in found.items() if c.contamination == "instance_dependent"
    )


def test_a_run_computes_what_is_missing_and_only_that(benchmarks, tmp_path):
    cells = [replace(SMALL, seed=seed) for seed in range(3)]
    run(plan(cells[:1], tmp_path, "cpu"), tmp_path)
    (before,) = (tmp_path / "cells").iterdir()
    stamp = before.stat().st_mtime_ns
    todo = plan(cells, tmp_path, "cpu")
    assert (todo.finished, todo.cells) == (1, 2)
    run(todo, tmp_path)
    assert before.stat().st_mtime_ns == stamp
    assert len(load(tmp_path)) == 3
    assert plan(cells, tmp_path, "cpu").cells == 0
    assert plan([replace(SMALL, epochs=6)], tmp_path, "cpu").cells == 1


def test_a_run_notes_versions_device_and_where_the_time_went(benchmarks, tmp_path):
    run(plan([SMALL], tmp_path, "cpu"), tmp_path)
    (noted,) = runs(tmp_path)
    assert {"setwise", "torch", "numpy", "device", "date", "cells", "absent"} <= noted.keys()
    assert {"wall", "load", "train", "predict", "measure", "write"} <= noted["seconds"].keys()
    (result,) = load(tmp_path)
    assert result.environment["precision"] == "float64"
    assert result.seconds["train"] > 0


def test_each_result_is_given_as_it_is_measured_and_epochs_are_told(benchmarks):
    told = []
    cells = tuple(replace(SMALL, seed=seed, epochs=2) for seed in range(2))
    results = Local().run([Stack(cells)], "cpu", lambda stack, epoch: told.append((len(stack.cells), epoch)))
    assert next(results).cell in cells
    assert told == [(2, 1), (2, 2)]


def test_data_that_is_not_here_is_left_out_and_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("SETWISE_CACHE", str(tmp_path / "cache"))
    todo = plan(cells_of(5, range(1)), tmp_path, "cpu")
    assert todo.cells == 0
    assert "soccer_player" in todo.absent
    run(todo, tmp_path)
    assert record(tmp_path).missing_data[:2] == ["birdsong", "lost"]


def test_an_unknown_engine_is_an_error():
    with pytest.raises(ValueError, match="--engine: 'dask' is not known; use local or ray"):
        executor("dask")


def test_without_ray_the_engine_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("setwise.paper.executors.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'setwise\[scale\]', or use --engine local"):
        executor("ray")


def test_another_engine_gives_the_same_results(benchmarks, tmp_path, monkeypatch):
    """A stand-in for Ray that computes when asked for the answer: the executor's own part is tested here."""
    ray = types.ModuleType("ray")
    ray.is_initialized = lambda: True
    ray.remote = lambda **_: lambda function: types.SimpleNamespace(remote=lambda *a: (function, a))
    ray.wait = lambda waiting, num_returns: (waiting[-1:], waiting[:-1])
    ray.get = lambda task: task[0](*task[1])
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr("setwise.paper.executors.find_spec", lambda name: ray)
    cells = [SMALL, replace(SMALL, data="msrcv2", preset="paper-msrcv2")]
    run(plan(cells, tmp_path, "cpu"), tmp_path, engine="ray")
    assert {r.cell: r.to_dict()["measured"] for r in load(tmp_path)} == computed(*cells)


def test_the_data_is_loaded_once_for_all_stacks(benchmarks, tmp_path, monkeypatch):
    names = []
    real = preparing.load
    monkeypatch.setattr(preparing, "load", lambda name, **k: names.append(name) or real(name, **k))
    cells = [replace(SMALL, epochs=1), replace(SMALL, epochs=2)]
    for result in Local().run(stacks(cells, "cpu"), "cpu", lambda *_: None):
        save(result, tmp_path)
    assert names == ["lost"]
    assert len(load(tmp_path)) == 2
