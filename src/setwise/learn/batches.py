"""Rows as tensors that stay on the device, and the candidates and features that are read into them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise.crowd.annotator_model import own_fits
from setwise.errors import InputError, Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes
from setwise.learn.feature_errors import check_finite
from setwise.learn.inputs import as_training_sets, read_array

CHUNK = 8192


class Resident:
    """Rows of one tensor on the device. `rows` (M, n) names the rows each model sees; None means all.

    >>> source = Resident(torch.arange(6).view(3, 2), rows=torch.tensor([[0, 2], [1, 2]]))
    >>> source.batch(torch.tensor([[1], [0]])).tolist()
    [[[4, 5]], [[2, 3]]]
    """

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


def read_source(estimator: Any, X: Any, device: torch.device, *, reset: bool) -> Resident:
    """The rows of X on the device as they are stored."""
    if isinstance(X, torch.utils.data.Dataset):
        raise InputError(
            "X: a torch Dataset, not an array or a tensor", "stack its items: torch.stack([row for row, _ in X])"
        )
    if isinstance(X, torch.Tensor):
        if X.ndim < 2 or len(X) == 0:
            raise ValueError(f"X: expected shape (rows, features, …) with rows, got {tuple(X.shape)}.")
        _check_width(estimator, tuple(X.shape[1:]), reset=reset)
        if X.is_floating_point() and not torch.isfinite(X).all():
            check_finite(X.detach().cpu().numpy())
        return Resident(X.detach().to(device))
    tensor = torch.from_numpy(_storable(read_array(estimator, X, reset=reset)))
    return Resident(tensor.to(device))


def read_examples(estimator: Any, X: Any, y: Any, device: torch.device) -> tuple[Resident, LabelSets]:
    """The rows of X and their candidate sets."""
    source = read_source(estimator, X, device, reset=True)
    sets = as_training_sets(y, missing=estimator.missing)
    if len(sets) != source.n_rows:
        raise ValueError(f"y: inconsistent numbers of samples, {len(sets)} rows for {source.n_rows} rows of X.")
    return source, sets


def candidate_mask(sets: LabelSets, device: torch.device, y: Any = None) -> Tensor:
    """The candidates (n, K) on the device; for votes, the probability of each label given the answers."""
    if isinstance(y, Votes):
        targets = own_fits(y.recode(sets.vocabulary)).label_targets()
        return torch.from_numpy(targets.astype(np.float32)).to(device)
    return torch.from_numpy(np.array(sets.to_mask())).to(device)


def as_device(device: Any) -> torch.device:
    """A torch device; "auto" is a GPU where there is one."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # an unknown name, or nothing of that kind here
        use = Remedy("device", "auto", "to use what this machine has")
        raise InputError(f"device: {device!r} cannot be used here", use) from error
    return torch.device(device)


def _storable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A writable array of a type that torch has, which nobody else writes to."""
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float64 if array.dtype.itemsize > 8 else np.float32)
    elif array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return array if array.flags.writeable else array.copy()


def _check_width(estimator: Any, shape: tuple[int, ...], *, reset: bool) -> None:
    if reset:
        estimator.n_features_in_ = shape[0]
    elif estimator.n_features_in_ != shape[0]:
        raise ValueError(
            f"X has {shape[0]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
