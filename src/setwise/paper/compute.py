"""One stack of cells from beginning to end: rows, training, prediction, and measurements cell by cell."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch

from setwise._version import __version__
from setwise.learn import Resident, Trainer
from setwise.paper.measure import Rows, describe_sets, measure
from setwise.paper.material import Material, Prepared
from setwise.paper.results import Result
from setwise.paper.cell_stacks import Stack, names_of
from setwise.paper.stages import Stages
from setwise.paper.training import accuracies, exact_logits, few_threads, masks, precision_of, train_stack

Watch = Callable[[Stack, int], None]
"""Told how many epochs of a stack are done."""


def compute(stack: Stack, material: Material, watch: Watch) -> Iterator[Result]:
    """Prepares, trains, predicts and measures the cells of a stack, and gives each result as it is measured."""
    before = dict(material.stages.seconds)
    prepared = material.prepare(stack.cells)
    around = environment(material.device)
    if not stack.epochs:
        for one in prepared:
            yield Result(one.cell, {"sets": _sets(one, material)}, around, _since(before, material.stages))
        return
    learners = [cell.learner() for cell in stack.cells]
    around["precision"] = precision_of(learners[0], material.device)
    around["models_in_stack"] = len(learners)
    with few_threads(learners[0]):
        shares, logits = _learned(stack, learners, prepared, material, watch)
    for one, share, own in zip(prepared, shares, logits, strict=True):
        with material.stages.timed("measure"):
            measured = _measured(one, share, own, material)
        yield Result(one.cell, measured, around, _since(before, material.stages))


def _learned(
    stack: Stack, learners: Sequence[dict[str, Any]], prepared: Sequence[Prepared], material: Material, watch: Watch
) -> tuple[list[float], Any]:
    """Training accuracies, and the logits of calibration and test rows, of every model."""
    stages = material.stages
    with stages.timed("move to device"):
        features = material.features(names_of(stack.cells))
        sets = [one.candidates for one in prepared]
        candidates = masks(sets, [one.split.train for one in prepared], material.device)
        rows = material.rows(prepared, "train")
    with stages.timed("train"):
        seeds = [cell.seed for cell in stack.cells]
        trainer = train_stack(learners, seeds, features, rows, candidates, lambda t: watch(stack, t.epoch))
        _wait(material.device)
    stages.seconds["train: compile and capture"] += _captured(trainer)
    with stages.timed("predict"):
        labels = np.stack([one.data.y[one.split.train] for one in prepared])
        shares = accuracies(trainer, torch.as_tensor(labels, device=material.device))
        new = torch.cat([material.rows(prepared, part) for part in ("calibration", "test")], dim=1)
        return shares, exact_logits(trainer, Resident(features, new))


def _measured(one: Prepared, train_accuracy: float, logits: Any, material: Material) -> dict[str, Any]:
    """All measurements of one cell."""
    n = len(one.split.calibration)
    parts = [
        Rows(own, one.candidates[rows], one.data.y[rows])
        for own, rows in ((logits[:n], one.split.calibration), (logits[n:], one.split.test))
    ]
    right = parts[1].logits.argmax(axis=1) == parts[1].y
    return {
        "train_accuracy": train_accuracy,
        "test_accuracy": 100 * float(right.mean()),
        "n_train": len(one.split.train),
        "sets": _sets(one, material),
        **measure(parts[0], parts[1], one.cell.epsilon),
    }


def _sets(one: Prepared, material: Material) -> dict[str, Any]:
    """What is said of the candidate sets: those of all rows that are not for testing, as in the paper."""
    chosen = one.candidates
    if one.data.split is not None:
        chosen = chosen[np.concatenate([one.split.train, one.split.calibration])]
    described = describe_sets(chosen)
    supermodel = material.supermodel(one.cell) if one.cell.supermodel_epochs else None
    if supermodel is not None:
        accuracy = {"train": supermodel.train_accuracy, "test": supermodel.test_accuracy}
        described["supermodel_accuracy"] = accuracy
    return described


def environment(device: torch.device) -> dict[str, Any]:
    """Versions and hardware."""
    gpu = device.type == "cuda"
    versions = {}
    for name in ("numpy", "scipy", "scikit-learn"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "unknown"
    return {
        "setwise": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        **versions,
        "device": torch.cuda.get_device_name(device) if gpu else f"CPU {platform.machine()}",
        "threads": torch.get_num_threads(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _since(before: dict[str, float], stages: Stages) -> dict[str, float]:
    return {name: spent - before.get(name, 0.0) for name, spent in stages.seconds.items()}


def _captured(trainer: Trainer) -> float:
    return trainer.captured.seconds if trainer.captured is not None else 0.0


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
