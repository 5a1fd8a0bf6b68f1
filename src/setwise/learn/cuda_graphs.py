"""A training step captured in a CUDA graph and replayed: no launch costs, no waiting for Python."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import torch
from torch import Tensor

_WARM_UPS = 3


class CapturedSteps:
    """One graph for each batch size, captured on first use, which took so many `seconds` in all.

    `step` is one update from the examples at positions (M, batch), `order` (M, n) stays in its place, and what
    `changing` returns, the tensors that a step changes, is restored after the capture.
    """

    def __init__(self, step: Callable[[Tensor], None], order: Tensor, changing: Callable[[], list[Tensor]]) -> None:
        self.step, self.order, self.changing = step, order, changing
        self.start = torch.zeros((), dtype=torch.int64, device=order.device)
        self.reach = torch.arange(order.shape[1], device=order.device)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.seconds = 0.0

    def run(self, bounds: list[tuple[int, int]]) -> None:
        """One epoch: replays the graph of each batch's size."""
        self.prepare(bounds)
        self.start.zero_()
        for start, stop in bounds:
            self.graphs[stop - start].replay()

    def prepare(self, bounds: list[tuple[int, int]]) -> None:
        """Captures the graphs that are missing, and leaves every tensor as it was."""
        missing = {stop - start for start, stop in bounds} - self.graphs.keys()
        if not missing:
            return
        began = time.perf_counter()
        changing = self.changing()
        before = [tensor.detach().clone() for tensor in changing]
        for size in sorted(missing, reverse=True):
            self.graphs[size] = self._capture(size)
        with torch.no_grad():
            for tensor, value in zip(changing, before, strict=True):
                tensor.copy_(value)
        torch.cuda.synchronize()
        self.seconds += time.perf_counter() - began

    def _capture(self, size: int) -> torch.cuda.CUDAGraph:
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UPS):
                self.start.zero_()
                self._step(size)
        torch.cuda.current_stream().wait_stream(aside)
        self.start.zero_()
        graph = torch.cuda.CUDAGraph()
        gc.disable()  # it might free an earlier trainer's graph in the middle
        try:
            with torch.cuda.graph(graph):
                self._step(size)
        finally:
            gc.enable()
        return graph

    def _step(self, size: int) -> None:
        self.step(self.order.index_select(1, self.start + self.reach[:size]))
        self.start.add_(size)
