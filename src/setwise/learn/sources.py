"""Where batches come from: tensors resident on the device as stored, or a torch `Dataset` read as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

CHUNK = 8192


class Source(Protocol):
    """The features of n rows, the same or different ones for each of M models."""

    n_rows: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    resident: bool

    def batch(self, index: Tensor) -> Tensor:
        """The rows at positions `index` (M, batch), as stored: (M, batch, …)."""
        ...

    def rows(self, positions: Tensor) -> Source:
        """The source restricted to some positions."""
        ...

    def chunks(self) -> Iterator[Tensor]:
        """All rows in blocks."""
        ...


class Resident:
    """Rows of one tensor on the device. `rows` (M, n) names the rows each model sees; None means all.

    >>> source = Resident(torch.arange(6).view(3, 2), rows=torch.tensor([[0, 2], [1, 2]]))
    >>> source.batch(torch.tensor([[1], [0]])).tolist()
    [[[4, 5]], [[2, 3]]]
    """

    resident = True

    def __init__(self, features: Tensor, rows: Tensor | None = None) -> None:
        self.features, self.selected = features, rows
        self.n_rows = len(features) if rows is None else rows.shape[1]
        self.shape, self.dtype = tuple(features.shape[1:]), features.dtype

    def batch(self, index: Tensor) -> Tensor:
        """The rows at these positions, as stored."""
        if self.selected is not None:
            index = self.selected.expand(len(index), -1).gather(1, index)
        return self.features.index_select(0, index.reshape(-1)).view(*index.shape, *self.shape)

    def rows(self, positions: Tensor) -> Resident:
        """The same storage with other rows for every model."""
        positions = positions.to(self.features.device)
        if self.selected is not None:
            return Resident(self.features, self.selected[:, positions])
        return Resident(self.features, positions[None])

    def chunks(self) -> Iterator[Tensor]:
        """The rows of the first model in blocks."""
        for start in range(0, self.n_rows, CHUNK):
            stop = min(start + CHUNK, self.n_rows)
            if self.selected is None:
                yield self.features[start:stop]
            else:
                yield self.features[self.selected[0, start:stop]]


class Streamed:
    """A torch `Dataset` whose items are features, or (features, …) of which the first counts."""

    resident = False

    def __init__(self, dataset: Any, device: torch.device, positions: Tensor | None = None) -> None:
        self.dataset, self.device = dataset, device
        self.positions = torch.arange(len(dataset)) if positions is None else positions
        self.n_rows = len(self.positions)
        first = self._read([0])[0] if self.n_rows else torch.zeros(0)
        self.shape, self.dtype = tuple(first.shape), first.dtype

    def batch(self, index: Tensor) -> Tensor:
        """Items fetched one by one (or together, where the data set has `__getitems__`)."""
        chosen = self.positions[index.reshape(-1).cpu()]
        items = self._items(chosen.tolist())
        return torch.stack(items).to(self.device).view(*index.shape, *self.shape)

    def rows(self, positions: Tensor) -> Streamed:
        """The data set restricted to some positions."""
        return Streamed(self.dataset, self.device, self.positions[positions.cpu()])

    def chunks(self) -> Iterator[Tensor]:
        """All items in blocks."""
        for start in range(0, self.n_rows, CHUNK):
            yield self._read(range(start, min(start + CHUNK, self.n_rows)))

    def _read(self, positions: Sequence[int] | range) -> Tensor:
        return torch.stack(self._items([int(self.positions[p]) for p in positions]))

    def _items(self, numbers: list[int]) -> list[Tensor]:
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(numbers) if fetch is not None else [self.dataset[i] for i in numbers]
        return [torch.as_tensor(item[0] if isinstance(item, (tuple, list)) else item) for item in items]
