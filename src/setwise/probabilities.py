"""A model's probabilities: read and checked once, never changed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, blocks

Domain = Literal["simplex", "unit"]
_UNITS = 4  # in the last place: what softmaxes of the same logits differ by in another type
TOLERANCE = 0.01
"""How far from one a row may sum: enough for probabilities written with few decimals."""


def as_probabilities(
    values: Any,
    domain: Domain = "simplex",
    n_classes: int | None = None,
    *,
    classes: Array | None = None,
    name: str = "probabilities",
    first_row: int = 0,
) -> Floats:
    """An (n, K) float array whose entries lie in [0, 1] and, on the simplex, whose rows sum to one.

    float32 and float64 pass without a copy; anything else that is numeric becomes one of them. A frame whose
    columns are named for `classes` is brought into their order. Errors count rows from `first_row`.
    """
    array = _as_matrix(_by_name(values, classes, name), name)
    check_shape(array.shape[1], n_classes, name)

    def fine(block: slice) -> bool:
        rows = array[block]
        with np.errstate(invalid="ignore", over="ignore"):
            if not rows.min(initial=0) >= 0:
                return False
            if domain == "unit":
                return bool(rows.max(initial=1) <= 1)
            return bool((np.abs(np.einsum("ij->i", rows) - 1) <= TOLERANCE).all())

    for block in blocks(array):  # one thread: memory is the limit (and those of a product would wait in a loop)
        if not fine(block):
            numbers = first_row + np.arange(block.start, block.stop)
            explain(np.asarray(array[block], dtype=np.float64), numbers, domain, name)
    return array


def check_shape(columns: int, n_classes: int | None, name: str = "probabilities") -> None:
    """Refuses a number of columns that is no number of classes, or not the one that is wanted."""
    if columns < 2:
        raise ValueError(f"{name}: {columns} class; prediction sets need at least two columns.")
    if n_classes is not None and columns != n_classes:
        raise ValueError(f"{name}: {columns} columns, but there are {n_classes} classes.")


def precision_of(values: Any) -> str:
    """The floating type that probabilities come in, as numpy names it; integers and the like count as float64."""
    name = str(getattr(values, "dtype", None) or np.asarray(values).dtype).removeprefix("torch.")
    return name if name in {"float16", "float32"} else "float64"


def in_precision(matrix: Floats, given: str, wanted: str) -> tuple[Floats, float]:
    """Probabilities of type `given` for comparison with others of type `wanted`, and how far scores may be off.

    Finer ones are rounded as the others were. Even so equal probabilities, and sums of them, differ by some units
    of the coarser type, in which they may have been computed.
    """
    if given == wanted:
        return matrix, 0.0
    coarser = max(np.finfo(given).eps, np.finfo(wanted).eps)
    if np.finfo(given).eps < np.finfo(wanted).eps:
        matrix = matrix.astype(wanted).astype(np.float32)
    return matrix, _UNITS * float(coarser)


def column_names(values: Any) -> list[str] | None:
    """The names of a frame's columns, where they are names."""
    columns = list(getattr(values, "columns", []))
    return columns if columns and all(isinstance(column, str) for column in columns) else None


def _by_name(values: Any, classes: Array | None, name: str) -> Any:
    """The frame with its columns in the order of the classes; anything else as it is."""
    names, wanted = column_names(values), None if classes is None else classes.tolist()
    if names is None or wanted is None or not all(isinstance(label, str) for label in wanted) or names == wanted:
        return values
    if sorted(names) != sorted(wanted):
        odd = next((column for column in names if column not in wanted), "one twice")
        raise ValueError(
            f"{name}: the columns are not named for the classes ({odd!r} is not one); rename them, or pass "
            "an array to go by position."
        )
    return values[wanted]


def _as_matrix(values: Any, name: str) -> Floats:
    if hasattr(values, "detach") and (values.requires_grad or str(values.device) != "cpu"):
        values = values.detach().cpu()
    if np.ma.is_masked(values):
        raise ValueError(f"{name}: a masked array with masked entries; remove these rows.")
    try:
        array: Array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: cannot be read as an array: {error}") from error
    if array.dtype.kind in "OUS":
        raise TypeError(f"{name}: expected numbers, got an array of {array.dtype}; convert it to float.")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected real numbers, got {array.dtype}.")
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape (rows, classes), got {array.shape}.")
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


def explain(rows: Floats, numbers: Ints, domain: Domain, name: str = "probabilities") -> None:
    """Looks again in double precision, and raises the error for the first row that is out of its domain."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums = rows.sum(axis=1)
        off_range: Bools = ~np.logical_and.reduce((rows >= 0) & (rows <= 1 + TOLERANCE), axis=1)
        margin = TOLERANCE + 1e-6  # what float32 cannot tell from the tolerance passes
        wrong_sum: Bools = ~(np.abs(sums - 1) <= margin) if domain == "simplex" else rows.max(axis=1) > 1
        off = off_range | wrong_sum
    if not off.any():
        return
    i = int(np.flatnonzero(off)[0])
    row, where = rows[i], f"{name}: row {numbers[i]}"
    if not np.isfinite(row).all():
        column = int(np.flatnonzero(~np.isfinite(row))[0])
        raise ValueError(f"{where} holds {row[column]} in column {column}; remove or repair such rows.")
    if domain == "simplex" and row.min() >= 0 and abs(sums[i] - 100) <= 1:
        raise ValueError(f"{where} sums to {sums[i]:.4g}; these look like percentages: divide them by 100.")
    if domain == "simplex" and off_range[i] and wrong_sum[i]:
        raise ValueError(
            f"{where} has entries from {row.min():.4g} to {row.max():.4g} that sum to {sums[i]:.4g}; "
            "these look like logits: pass their softmax."
        )
    if off_range[i] or domain == "unit":
        raise ValueError(f"{where} has entries from {row.min():.4g} to {row.max():.4g}, outside [0, 1].")
    with np.errstate(over="ignore"):
        columns = rows.sum(axis=0)
    across = rows.shape[1] > rows.shape[0] and bool((np.abs(columns - 1) <= TOLERANCE).all())
    fix = "its columns do: pass its transpose" if across else "divide each row by its sum"
    raise ValueError(f"{where} sums to {sums[i]:.4g}, not to 1 (tolerance {TOLERANCE}); {fix}.")
