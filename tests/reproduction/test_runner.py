"""Stacks from beginning to end: the committed cell again, to the last digit; resuming."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from reproduction import material
from reproduction.cell_stacks import Stack, stacks
from reproduction.cells import Cell, cells_of, from_settings
from reproduction.compute import compute
from reproduction.material import Material, Stages
from reproduction.results import load
from reproduction.runner import plan, record, run, runs

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
    material = Material(torch.device("cpu"), Stages())
    results = compute(Stack(cells), material, lambda stack, epoch: told.append((len(stack.cells), epoch)))
    assert next(results).cell in cells
    assert told == [(2, 1), (2, 2)]


def test_workers_of_an_engine_keep_what_this_process_would_and_say_when_a_stack_is_done(benchmarks, tmp_path):
    def elsewhere(parts, worker):
        return map(pickle.loads(pickle.dumps(worker)), parts)  # noqa: S301 - our own

    told = []
    todo = plan([replace(SMALL, epochs=1), replace(SMALL, epochs=2)], tmp_path, "cpu")
    made = run(todo, tmp_path, lambda stack, epoch: told.append((stack, epoch)), elsewhere)
    assert told == [(stack, stack.epochs) for stack in todo.stacks]
    assert {result.cell: result.to_dict()["measured"] for result in load(tmp_path)} == computed(
        *(cell for stack in todo.stacks for cell in stack.cells)
    )
    trained = sum(result.seconds["train"] for result in load(tmp_path))
    assert made["seconds"]["train"] == pytest.approx(trained, abs=1e-2)


def test_data_that_is_not_here_is_left_out_and_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("SETWISE_CACHE", str(tmp_path / "cache"))
    todo = plan(cells_of(5, range(1)), tmp_path, "cpu")
    assert todo.cells == 0
    assert "soccer_player" in todo.absent
    run(todo, tmp_path)
    assert record(tmp_path).missing_data[:2] == ["birdsong", "lost"]


def test_the_data_is_loaded_once_for_all_stacks(benchmarks, tmp_path, monkeypatch):
    names = []
    real = material.load
    monkeypatch.setattr(material, "load", lambda name, **k: names.append(name) or real(name, **k))
    run(plan([replace(SMALL, epochs=1), replace(SMALL, epochs=2)], tmp_path, "cpu"), tmp_path)
    assert names == ["lost"]
    assert len(load(tmp_path)) == 2
