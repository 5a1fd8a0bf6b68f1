"""Who computes stacks: this process, or a Ray cluster. Another engine is another executor and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import torch

from setwise.paper.computing import Watch, compute
from setwise.paper.preparing import Material
from setwise.paper.results import Result
from setwise.paper.stacks import Stack
from setwise.paper.stages import Stages


class Executor(Protocol):
    """Gives back each result as soon as it is there, and keeps the time that stages took."""

    stages: Stages

    def run(self, todo: Sequence[Stack], device: str, watch: Watch) -> Iterator[Result]:
        """The results of all cells of all stacks, in any order."""
        ...


class Local:
    """One stack after the other in this process; what stacks share is made once."""

    def __init__(self) -> None:
        self.stages = Stages()

    def run(self, todo: Sequence[Stack], device: str, watch: Watch) -> Iterator[Result]:
        """The results of all cells of all stacks."""
        material = Material(torch.device(device), self.stages)
        for stack in todo:
            yield from compute(stack, material, watch)


class OnRay:
    """A Ray cluster, one task for each stack. Workers find the data as this machine does."""

    def __init__(self) -> None:
        if find_spec("ray") is None:
            raise ModuleNotFoundError(
                "--engine ray needs Ray: pip install 'setwise[scale]', or use --engine local."
            )
        self.stages = Stages()

    def run(self, todo: Sequence[Stack], device: str, watch: Watch) -> Iterator[Result]:
        """The results of all cells of all stacks, as their tasks end."""
        ray: Any = import_module("ray")
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        task = ray.remote(num_gpus=int(torch.device(device).type == "cuda"))(_alone)
        waiting = {task.remote(stack, device): stack for stack in todo}
        while waiting:
            (done, *_), _ = ray.wait(list(waiting), num_returns=1)
            stack = waiting.pop(done)
            results, seconds = ray.get(done)
            for stage, spent in seconds.items():
                self.stages.seconds[stage] += spent
            watch(stack, stack.epochs)
            yield from results


_ENGINES: dict[str, Callable[[], Executor]] = {"local": Local, "ray": OnRay}


def executor(engine: str) -> Executor:
    """An executor by name."""
    if engine not in _ENGINES:
        raise ValueError(f"--engine: {engine!r} is not known; use {' or '.join(_ENGINES)}.")
    return _ENGINES[engine]()


def _alone(stack: Stack, device: str) -> tuple[list[Result], dict[str, float]]:
    stages = Stages()
    results = list(compute(stack, Material(torch.device(device), stages), lambda *_: None))
    return results, dict(stages.seconds)
