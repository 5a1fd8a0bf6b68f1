"""Runs what is missing and only that: each cell is kept as soon as it is measured, so that a killed run resumes."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from reproduction.cell_stacks import Stack, absent, stacks
from reproduction.cells import Cell
from reproduction.compute import Watch, compute, environment
from reproduction.material import Material, Stages
from reproduction.record import Record
from reproduction.results import load, missing, save, write_text


@dataclass(frozen=True)
class Todo:
    """What a run has to do: stacks of missing cells; how many cells are there already; which data are not."""

    stacks: tuple[Stack, ...]
    finished: int
    absent: tuple[str, ...]
    device: str

    @property
    def cells(self) -> int:
        """How many cells are to be computed."""
        return sum(len(stack.cells) for stack in self.stacks)


def plan(cells: Iterable[Cell], out: Path, device: str = "auto") -> Todo:
    """Compares what is wanted with what is there."""
    wanted = list(dict.fromkeys(cells))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    lacking = missing(wanted, out)
    gone = absent(wanted)
    here = [cell for cell in lacking if cell.data not in gone]
    return Todo(tuple(stacks(here, device)), len(wanted) - len(lacking), tuple(gone), device)


def _silent(_stack: Stack, _epoch: int) -> None:
    """Watches nothing."""


@dataclass(frozen=True)
class StackRunner:
    """A worker of an engine: computes stacks and keeps each result; what stacks share is made once."""

    out: Path
    device: str
    watch: Watch = _silent

    def __call__(self, stack: Stack) -> tuple[Stack, dict[str, float]]:
        """The stack, and how long each stage took."""
        stages, material = self._shared
        stages.seconds.clear()
        for result in compute(stack, material, self.watch):
            with stages.timed("write"):
                save(result, self.out)
        return stack, dict(stages.seconds)

    @cached_property
    def _shared(self) -> tuple[Stages, Material]:
        stages = Stages()
        return stages, Material(torch.device(self.device), stages)


def run(todo: Todo, out: Path, watch: Watch = _silent, engine: Any = None) -> dict[str, Any]:
    """Computes and keeps what is to be done; returns how long each stage took, as noted in ``OUT/runs.json``.

    `engine` is one of `setwise.streams.engines`, which gives stacks to other processes; default is this process, in
    which `watch` is called after every epoch, not only after the last.
    """
    began, seconds = time.perf_counter(), defaultdict[str, float](float)
    out.mkdir(parents=True, exist_ok=True)
    if engine is None:
        done = map(StackRunner(out, todo.device, watch), todo.stacks)
    else:
        done = engine(todo.stacks, StackRunner(out, todo.device))
    for stack, stages in done:
        for stage, taken in stages.items():
            seconds[stage] += taken
        if engine is not None:
            watch(stack, stack.epochs)
    spent = {"wall": time.perf_counter() - began, **seconds}
    made = {
        **environment(torch.device(todo.device)),
        "cells": todo.cells,
        "stacks": [str(stack) for stack in todo.stacks],
        "absent": list(todo.absent),
        "seconds": {name: round(value, 3) for name, value in spent.items()},
    }
    if todo.cells or todo.absent:
        write_text(out / "runs.json", json.dumps([*runs(out), made], indent=1) + "\n")
    return made


def runs(out: Path) -> list[dict[str, Any]]:
    """The runs that made a folder."""
    path = out / "runs.json"
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return found


def record(out: Path) -> Record:
    """All that a folder holds."""
    gone = dict.fromkeys(name for one in runs(out) for name in one["absent"])
    return Record(tuple(load(out)), tuple(gone))
