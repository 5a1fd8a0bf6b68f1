"""What is declared about how false labels become candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from setwise._arrays import Floats, frozen
from setwise._types import Rows
from setwise.errors import InputError, Remedy

_MOST = 16_384  # classes of which a table of probabilities of one given another is made: 2 GiB


@dataclass(frozen=True, eq=False)
class Assumption:
    """What is declared about how false labels become candidates.

    `kind` is ``"nothing"``; ``"uniform"``: each with the same probability, whatever the example; or ``"class"``:
    with probabilities M_kl = P(l ∈ S | y = k) that depend on the true class k alone. `estimated` says that M
    was not given but found in the data. Of votes, ``"independent"``: annotators err independently given the class.
    """

    kind: Literal["nothing", "uniform", "class", "independent"] = "nothing"
    matrix: Floats | None = None
    estimated: bool = False


NOTHING = Assumption()

AssumptionLike: TypeAlias = Rows | Assumption
"""What a caller declares: a word, a K × K matrix, or an assumption that was read already."""


def as_assumption(assume: AssumptionLike, n_classes: int) -> Assumption:
    """What is declared about contamination: a known word, or a matrix of inclusion probabilities."""
    if isinstance(assume, Assumption):
        return assume
    if isinstance(assume, str):
        if assume not in {"nothing", "uniform", "class", "independent"}:
            raise ValueError(
                f"assume: {assume!r} is not known; use 'nothing', 'uniform', 'class', a K × K matrix, or, of "
                "votes, 'independent'."
            )
        if assume == "class" and n_classes > _MOST:
            raise InputError(
                f"assume: 'class' needs a table of {n_classes:,} × {n_classes:,} probabilities, and {_MOST:,} × "
                f"{_MOST:,} is the largest that is made",
                Remedy("assume", "uniform"),
                Remedy("strategy", "max", "to declare nothing"),
            )
        return Assumption(assume, estimated=assume == "class")  # type: ignore[arg-type]
    try:
        matrix = np.array(assume, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"assume: expected a word or a matrix of numbers: {error}.") from error
    if matrix.shape != (n_classes, n_classes):
        got = repr(assume) if matrix.ndim == 0 else f"shape {matrix.shape}"
        raise ValueError(
            f"assume: got {got}; a {n_classes} × {n_classes} matrix of probabilities is expected, or 'nothing', "
            "'uniform' or 'class'."
        )
    if not ((matrix >= 0) & (matrix <= 1)).all():
        row, column = np.argwhere(~((matrix >= 0) & (matrix <= 1)))[0].tolist()
        raise ValueError(
            f"assume: a {n_classes} × {n_classes} matrix of probabilities is expected, but row {row}, column "
            f"{column} holds {matrix[row, column]}."
        )
    return Assumption("class", frozen(matrix))
