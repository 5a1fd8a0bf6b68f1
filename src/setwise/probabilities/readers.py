"""Probabilities as somebody gives them, and masks: read for what they are, tensors on their device."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._arrays import Array
from setwise.probabilities.base import Probabilities
from setwise.probabilities.dense import DenseRows, as_matrix, checked_blocks
from setwise.probabilities.kept_arrays import Digest
from setwise.probabilities.top_probabilities import TopK
from setwise.scores import Domain

_UNITS = 4  # in the last place: what softmaxes of the same logits differ by in another type


def read_probabilities(
    values: Any,
    domain: Domain = "simplex",
    n_classes: int | None = None,
    classes: Array | None = None,
    *,
    device: bool = False,
    later: bool = False,
) -> Probabilities:
    """Reads probabilities, checked as in `as_probabilities` at first use; tensors stay on their device if `device`.

    With `later` the most probable labels are found when somebody asks for them, and the array is kept until then.
    """
    if isinstance(values, TopK):
        return values
    if device:
        from setwise.probabilities.device_rows import DeviceRows  # torch, for tensors alone

        return DeviceRows.read(values, domain, n_classes)
    array = as_matrix(values, n_classes, classes)
    digest = Digest.of(array, checked_blocks(array, domain)) if later else None
    return DenseRows(array, digest, None if later else domain)


def read_mask(candidates: Any) -> Any:
    """Candidates that are a tensor on a device as label sets or an array on the host."""
    from setwise.probabilities.device_rows import read_candidates  # torch, for tensors alone

    return read_candidates(candidates)


def in_precision(rows: Probabilities, given: str, wanted: str) -> tuple[Probabilities, float]:
    """Probabilities of type `given` for comparison with others of type `wanted`, and how far scores may be off.

    Finer ones are rounded as the others were. Even so equal probabilities, and sums of them, differ by some units
    of the coarser type, in which they may have been computed.
    """
    if given == wanted:
        return rows, 0.0
    coarser = max(np.finfo(given).eps, np.finfo(wanted).eps)
    if np.finfo(given).eps < np.finfo(wanted).eps:
        rows = rows.astype(wanted).astype(np.float32)
    return rows, _UNITS * float(coarser)
