"""From a cell to its rows: the split, the candidate sets, and the supermodels that make some of them.

Image sets: 60,000 rows to learn and calibrate with, of which a random tenth calibrates, and 10,000 to test on.
Real sets: a random fifth tests, a fifth of the rest calibrates. The supermodel of an official split is trained on
all 60,000 rows, as the paper has it; that of a re-split on the 54,000 learned from alone, so that nothing tells
calibration rows from test rows.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from reproduction.cell_stacks import names_of
from reproduction.cells import IMAGES, PRESET_OF, Cell
from reproduction.presets import preset_settings
from reproduction.training import ScaledRows, stack_scalings, train_models
from setwise._arrays import Floats, Ints
from setwise.datasets import InstanceDependent, Random, contaminate, load
from setwise.datasets.benchmark_sets import Benchmark
from setwise.labels.label_sets import LabelSets
from setwise.learn.batches import Resident
from setwise.learn.classifier import PartialLabelClassifier
from setwise.learn.scaling import fit_scaling

_CALIBRATION = {True: 10, False: 5}  # one in so many of the rows that are not for testing: images, real sets
_TEST = 5  # one in so many of a real set


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers to learn from, to calibrate on and to test on."""

    train: Ints
    calibration: Ints
    test: Ints


@dataclass(frozen=True, eq=False)
class Prepared:
    """A cell's rows: those of its data set, their split, and a candidate set for each."""

    cell: Cell
    data: Benchmark
    split: Split
    candidates: LabelSets


@dataclass(frozen=True, eq=False)
class Confusions:
    """A trained supermodel: its probabilities of all rows and its accuracies in percent."""

    probabilities: Floats
    train_accuracy: float
    test_accuracy: float


class Stages:
    """Where the time goes: seconds by the name of a stage, added up.

    >>> stages = Stages()
    >>> with stages.timed("load"):
    ...     pass
    >>> list(stages.seconds)
    ['load']
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds what happens inside to a stage."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - began


class Material:
    """What cells are made of, each piece made once: data sets, pixels on the device, supermodels."""

    def __init__(self, device: torch.device, stages: Stages) -> None:
        self.device, self.stages = device, stages
        self.data = lru_cache(maxsize=None)(self._load)
        self.features = lru_cache(maxsize=None)(self._features)
        self._supermodels: dict[Any, Confusions] = {}
        self._drawn: dict[Any, LabelSets] = {}

    def prepare(self, cells: Sequence[Cell]) -> list[Prepared]:
        """Rows and candidates of every cell."""
        with self.stages.timed("load"), ThreadPoolExecutor() as pool:
            list(pool.map(self.data, [name for name in names_of(cells) if name in IMAGES]))  # mostly decompression
        with self.stages.timed("supermodels"):
            self._train_supermodels([cell for cell in cells if cell.supermodel_epochs])
        with self.stages.timed("contaminate"), ThreadPoolExecutor() as pool:
            return list(pool.map(self._prepare, cells))

    def supermodel(self, cell: Cell) -> Confusions | None:
        """The supermodel behind a cell's candidates, if there is one."""
        return self._supermodels.get(_supermodel_of(cell))

    def rows(self, prepared: Sequence[Prepared], part: str) -> Tensor:
        """The rows (M, n) of a part of each cell's split, as positions in `features`."""
        starts = self._starts(names_of([p.cell for p in prepared]))
        chosen = [getattr(p.split, part) + starts[p.cell.data] for p in prepared]
        return torch.as_tensor(np.stack(chosen), device=self.device)

    # ---------------------------------------------------------------- parts

    def _load(self, name: str) -> Benchmark:
        return load(name, progress=False)

    def _features(self, names: tuple[str, ...]) -> Tensor:
        """The features of these sets below each other, on the device, as stored."""
        arrays = [np.ascontiguousarray(self.data(name).X) for name in names]
        return torch.as_tensor(np.concatenate(arrays)).to(self.device)

    def _starts(self, names: Sequence[str]) -> dict[str, int]:
        sizes = [len(self.data(name).y) for name in names]
        return dict(zip(names, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))

    def _prepare(self, cell: Cell) -> Prepared:
        data = self.data(cell.data)
        return Prepared(cell, data, split_of(cell, data), self._candidates(cell, data))

    def _candidates(self, cell: Cell, data: Benchmark) -> LabelSets:
        if data.candidates is not None:
            return data.candidates
        confusions = self.supermodel(cell)
        drawn = (cell.data, cell.contamination, cell.seed, None if confusions is None else _supermodel_of(cell))
        if drawn not in self._drawn:
            how = (
                Random(float(cell.contamination.removeprefix("random_p")))
                if confusions is None
                else InstanceDependent(confusions.probabilities)
            )
            rng = np.random.default_rng([cell.seed, 1, crc32(cell.data.encode())])  # each set its own noise
            self._drawn[drawn] = contaminate(data.y, how, n_classes=data.n_classes, random_state=rng)
        return self._drawn[drawn]

    def _train_supermodels(self, cells: Sequence[Cell]) -> None:
        """Those that are not there yet, as one stack for each number of rows and epochs."""
        wanted = {_supermodel_of(cell): cell for cell in cells if _supermodel_of(cell) not in self._supermodels}
        groups: dict[Any, list[Cell]] = {}
        for cell in wanted.values():
            groups.setdefault((cell.protocol, cell.supermodel_epochs), []).append(cell)
        for members in groups.values():
            found = self._trained(members)
            self._supermodels |= {_supermodel_of(c): f for c, f in zip(members, found, strict=True)}

    def _trained(self, cells: Sequence[Cell]) -> list[Confusions]:
        """The supermodels of some cells, trained together; each reads pixels as its cells' learners do."""
        names = names_of(cells)
        data = [self.data(cell.data) for cell in cells]
        learned = [_supermodel_rows(cell, own) for cell, own in zip(cells, data, strict=True)]
        start = self._starts(names)
        rows = np.stack([r + start[cell.data] for r, cell in zip(learned, cells, strict=True)])
        labels = torch.as_tensor(np.stack([own.y[r] for own, r in zip(data, learned, strict=True)]))
        features, k = self.features(names), data[0].n_classes
        preset = preset_settings("paper-supermodel") | {"epochs": cells[0].supermodel_epochs}
        settings = PartialLabelClassifier(**preset).settings()
        scales = [preset_settings(PRESET_OF[cell.data])["scale"] for cell in cells]
        scaling = stack_scalings([fit_scaling(scale, ()) for scale in scales])
        trainer = train_models(
            settings,
            ScaledRows(Resident(features, torch.as_tensor(rows, device=self.device)), scaling),
            nn.functional.one_hot(labels, k).bool().to(self.device),
            [cell.seed for cell in cells],
        )
        whole = np.stack([np.arange(len(own.y)) + start[cell.data] for cell, own in zip(cells, data, strict=True)])
        everything = Resident(features, torch.as_tensor(whole, device=self.device))
        logits = trainer.logits(ScaledRows(everything, scaling))
        found = []
        for own, r, probabilities in zip(data, learned, logits.double().softmax(-1).cpu().numpy(), strict=True):
            right = probabilities.argmax(axis=1) == own.y
            others = np.setdiff1d(np.arange(len(own.y)), r)
            found.append(Confusions(probabilities, 100 * float(right[r].mean()), 100 * float(right[others].mean())))
        return found


def split_of(cell: Cell, data: Benchmark) -> Split:
    """The rows of a cell's parts, in random order."""
    rng = np.random.default_rng([cell.seed, 0])
    images = data.split is not None
    if data.split is None:
        order = rng.permutation(len(data.y))
        test, rest = np.split(order, [len(order) // _TEST])
    elif cell.protocol == "official":
        test, rest = data.split["test"], rng.permutation(data.split["train"])
    else:
        test, rest = np.split(rng.permutation(len(data.y)), [len(data.split["test"])])
    calibration, train = np.split(rest, [len(rest) // _CALIBRATION[images]])
    return Split(train, calibration, test)


def _supermodel_of(cell: Cell) -> tuple[Any, ...]:
    return cell.data, cell.seed, cell.protocol, cell.supermodel_epochs


def _supermodel_rows(cell: Cell, data: Benchmark) -> Ints:
    if cell.protocol == "official" and data.split is not None:
        return data.split["train"]
    return split_of(cell, data).train
