"""A model's probabilities: read and checked once, never changed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, blocks

Domain = Literal["simplex", "unit"]
_SINGLE = float(np.finfo(np.float32).eps)
_COARSE = 2**10  # multiples of its inverse are exact in every floating type
_UNROUNDED = 9  # as many decimals, or more, do not look rounded
_NEARLY = 1e-6  # of a whole number
TOLERANCE = 0.01
"""How far from one a row may sum: enough for probabilities written with few decimals."""


def as_probabilities(
    values: Any,
    domain: Domain = "simplex",
    n_classes: int | None = None,
    *,
    classes: Array | None = None,
    name: str = "probabilities",
) -> Floats:
    """An (n, K) float array whose entries lie in [0, 1] and, on the simplex, whose rows sum to one.

    float32 and float64 pass without a copy; anything else that is numeric becomes one of them. A frame whose
    columns are named for `classes` is brought into their order.
    """
    array = _as_matrix(_by_name(values, classes, name), name)
    if array.shape[1] < 2:
        raise ValueError(f"{name}: {array.shape[1]} class; prediction sets need at least two columns.")
    if n_classes is not None and array.shape[1] != n_classes:
        raise ValueError(f"{name}: {array.shape[1]} columns, but there are {n_classes} classes.")
    ones = np.ones(array.shape[1], dtype=array.dtype)

    def fine(block: slice) -> bool:
        rows = array[block]
        with np.errstate(invalid="ignore", over="ignore"):
            if not rows.min(initial=0) >= 0:
                return False
            if domain == "unit":
                return bool(rows.max(initial=1) <= 1)
            return bool((np.abs(rows @ ones - 1) <= TOLERANCE).all())

    for block in blocks(array):  # one thread: memory is the limit, and the product has threads of its own
        if not fine(block):
            _explain(np.asarray(array[block], dtype=np.float64), block.start, domain, name)
    return array


def precision_of(values: Any) -> str:
    """The floating type that probabilities come in, as numpy names it; integers and the like count as float64."""
    name = str(getattr(values, "dtype", None) or np.asarray(values).dtype).removeprefix("torch.")
    return name if name in {"float16", "float32"} else "float64"


def held_in(matrix: Floats, precision: str) -> str:
    """The precision; of doubles ``"float32"`` or, say, ``"6 decimals"`` where they hold nothing beyond it."""
    if precision != "float64" or len(_rounded(matrix)) < len(matrix) or _exact(matrix).all():
        return precision
    if _single(matrix).all():
        return "float32"
    decimals = int(_decimals(matrix).max())
    return f"{decimals} decimals" if decimals < _UNROUNDED else precision


def in_precision(matrix: Floats, given: str, wanted: str) -> tuple[Floats, Floats]:
    """Probabilities of type `given` for comparison with others of precision `wanted`, and how far each row is off.

    Finer floating types are rounded as the others were, and then equal ones are equal. Coarser ones cannot be
    refined, and decimals may have been cut off: equal probabilities then differ by up to a rounding unit. Each row
    is looked at for itself, so that its set does not depend on the others.
    """
    units = np.full(len(matrix), 0.0 if given == "float64" else float(np.finfo(given).eps))
    if given == "float64":
        units = _row_units(matrix)
    if wanted.endswith("decimals"):
        decimals = int(wanted.partition(" ")[0])
        return matrix, np.where(_decimals(matrix) <= decimals, 0.0, np.maximum(units, 10.0**-decimals))
    theirs = 0.0 if wanted == "float64" else float(np.finfo(wanted).eps)
    if given != wanted and np.finfo(given).eps < np.finfo(wanted).eps:
        matrix = matrix.astype(wanted).astype(np.float32)
    return matrix, np.where(units > theirs, units, 0.0)


def _row_units(matrix: Floats) -> Floats:
    """What the entries of a row of doubles may have been rounded to: float32, three to eight decimals, or 0."""
    units, rows = np.zeros(len(matrix)), _rounded(matrix)
    kept = matrix[rows]
    decimals = _decimals(kept)
    units[rows] = np.where(decimals < _UNROUNDED, 10.0 ** -np.maximum(decimals, 3), 0.0)
    units[rows[_single(kept)]] = _SINGLE
    units[rows[_exact(kept)]] = 0.0
    return units


def _rounded(matrix: Floats) -> Ints:
    """Rows whose first entry may have been rounded, which few others have."""
    first = matrix[:, :1]
    return np.flatnonzero(_single(first) | (_decimals(first) < _UNROUNDED))


def _exact(matrix: Floats) -> Bools:
    """Rows of halves, quarters and the like, which are the same in every precision and do not tell."""
    found: Bools = (matrix * _COARSE % 1 == 0).all(axis=1)
    return found


def _single(matrix: Floats) -> Bools:
    """Rows that a float32 holds."""
    found: Bools = (matrix == matrix.astype(np.float32)).all(axis=1)
    return found


def _decimals(matrix: Floats) -> Ints:
    """How many decimals the entries of each row have, up to eight; `_UNROUNDED` for more."""
    found = np.full(len(matrix), _UNROUNDED)
    rows = np.arange(len(matrix))
    for decimals in range(_UNROUNDED - 1, -1, -1):
        scaled = matrix[rows] * 10.0**decimals
        rows = rows[(np.abs(scaled - np.rint(scaled)) < _NEARLY).all(axis=1)]
        if not len(rows):
            break
        found[rows] = decimals
    return found


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


def _explain(rows: Floats, start: int, domain: Domain, name: str) -> None:
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
    row, where = rows[i], f"{name}: row {start + i}"
    if not np.isfinite(row).all():
        column = int(np.flatnonzero(~np.isfinite(row))[0])
        raise ValueError(f"{where} holds {row[column]} in column {column}; remove or repair such rows.")
    if domain == "simplex" and off_range[i] and wrong_sum[i]:
        raise ValueError(
            f"{where} has entries from {row.min():.4g} to {row.max():.4g} that sum to {sums[i]:.4g}; "
            "these look like logits: pass their softmax."
        )
    if off_range[i] or domain == "unit":
        raise ValueError(f"{where} has entries from {row.min():.4g} to {row.max():.4g}, outside [0, 1].")
    raise ValueError(
        f"{where} sums to {sums[i]:.4g}, not to 1 (tolerance {TOLERANCE}); divide each row by its sum."
    )
