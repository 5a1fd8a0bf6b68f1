"""One stack of cells from beginning to end: rows, training, prediction, and measurements cell by cell.

Softmax regressions are trained in double precision: it costs nothing, and their results do not depend on the
machine. Networks are trained as fast as the device can (TF32 on a GPU); all of them predict in double precision.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reproduction.cell_stacks import Stack, names_of
from reproduction.cells import Cell
from reproduction.material import Material, Prepared, Stages
from reproduction.measure import Rows, describe_sets, measure
from reproduction.results import Result
from reproduction.training import ScaledRows, stack_scalings, train_models
from setwise._arrays import Floats
from setwise._version import __version__
from setwise.learn.batches import Resident
from setwise.learn.classifier import PartialLabelClassifier
from setwise.learn.scaling import fit_scaling
from setwise.learn.trainer import Trainer, threads_for

Watch = Callable[[Stack, int], None]
"""Called with the number of finished epochs of a stack."""

_AT_ONCE = 2**15  # rows of all models together that are predicted at once


def compute(stack: Stack, material: Material, watch: Watch) -> Iterator[Result]:
    """Prepares, trains, predicts and measures the cells of a stack, and gives each result as it is measured."""
    before = dict(material.stages.seconds)
    prepared = material.prepare(stack.cells)
    around = environment(material.device)
    if not stack.epochs:
        for one in prepared:
            yield Result(one.cell, {"sets": _sets(one, material)}, around, _since(before, material.stages))
        return
    around["precision"] = _precision(stack.cells[0], material.device)
    around["models_in_stack"] = len(stack.cells)
    small = around["precision"] == "float64"  # the products of softmax regressions, which many threads only slow
    with threads_for(0, material.device) if small else nullcontext():
        shares, logits = _learned(stack, prepared, material, watch)
    for one, share, own in zip(prepared, shares, logits, strict=True):
        with material.stages.timed("measure"):
            measured = _measured(one, share, own, material)
        yield Result(one.cell, measured, around, _since(before, material.stages))


def _learned(
    stack: Stack, prepared: Sequence[Prepared], material: Material, watch: Watch
) -> tuple[list[float], Any]:
    """Training accuracies, and the logits of calibration and test rows, of every model."""
    stages = material.stages
    with stages.timed("move to device"):
        features = material.features(names_of(stack.cells))
        masks = np.stack([one.candidates[one.split.train].to_mask() for one in prepared])
        candidates = torch.as_tensor(masks).to(material.device)
        source = Resident(features, material.rows(prepared, "train"))
    with stages.timed("train"):
        trainer = train_cells(stack.cells, source, candidates, lambda t: watch(stack, t.epoch))
        if material.device.type == "cuda":
            torch.cuda.synchronize(material.device)
    stages.seconds["train: compile and capture"] += 0.0 if trainer.captured is None else trainer.captured.seconds
    with stages.timed("predict"):
        labels = np.stack([one.data.y[one.split.train] for one in prepared])
        right = trainer.logits().argmax(dim=-1) == torch.as_tensor(labels, device=material.device)
        shares = (100 * right.double().mean(dim=1)).tolist()
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
    return {
        "setwise": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "device": torch.cuda.get_device_name(device) if gpu else f"CPU {platform.machine()}",
        "threads": torch.get_num_threads(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _since(before: dict[str, float], stages: Stages) -> dict[str, float]:
    return {name: spent - before.get(name, 0.0) for name, spent in stages.seconds.items()}


def train_cells(
    cells: Sequence[Cell], source: Resident, candidates: Tensor, hook: Callable[[Trainer], None]
) -> Trainer:
    """Trains a model for each cell on its rows of `source` with `candidates` (M, n, K).

    Cells of a stack share a network and a number of epochs; each has its own scaling, learning rate and decay.
    """
    precision = _precision(cells[0], candidates.device)
    dtype = torch.float64 if precision == "float64" else torch.float32
    learners = [cell.learner() for cell in cells]
    trained_in = "tf32" if precision == "tf32" else "float32"  # of float64 no product is shortened either
    settings = PartialLabelClassifier(**learners[0], precision=trained_in).settings()
    rows = [None] * len(cells) if source.selected is None else source.selected[:, None]
    owns = [Resident(source.features, own) for own in rows]
    scalings = [
        fit_scaling(learner["scale"], own.chunks(), dtype) for own, learner in zip(owns, learners, strict=True)
    ]
    return train_models(
        settings,
        ScaledRows(source, stack_scalings(scalings)),
        candidates,
        [cell.seed for cell in cells],
        learning_rates=[learner["learning_rate"] for learner in learners],
        weight_decays=[learner["weight_decay"] for learner in learners],
        dtype=dtype,
        hooks=[hook],
    )


@torch.no_grad()
def exact_logits(trainer: Trainer, source: Resident) -> Floats:
    """The logits (M, n, K) of all models in double precision."""
    network, scaling = copy.deepcopy(trainer.network).double().eval(), copy.deepcopy(trainer.source.scaling)
    scaling.dtype = torch.float64
    size = max(_AT_ONCE // trainer.n_models, 1)
    parts = []
    for start in range(0, source.n_rows, size):
        index = torch.arange(start, min(start + size, source.n_rows), device=trainer.device)
        parts.append(network(scaling(source.batch(index.expand(trainer.n_models, -1)))))
    logits: Floats = torch.cat(parts, dim=1).cpu().numpy()
    return logits


def _precision(cell: Cell, device: torch.device) -> str:
    """In which arithmetic a cell is trained on a device."""
    if cell.learner()["network"] == "linear":
        return "float64"
    return "tf32" if device.type == "cuda" else "float32"
