"""A column of evidence, declared where its field is: its type, length and range, which slices and files follow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_type_hints


@dataclass(frozen=True)
class Column:
    """What a column holds: a number for each row, for each candidate of each row, or for each label of each row."""

    kinds: str  # of numbers, as numpy abbreviates them
    low: float = -math.inf
    high: float = math.inf  # of labels the range ends with the last label
    per: Literal["row", "candidate", "label"] = "row"
    gaps: bool = False  # whether NaN stands where there is none
    labels: bool = False  # whether they are positions of labels


@cache
def read_columns(kind: type) -> dict[str, Column]:
    """The columns of a dataclass by their names: of fields with a `Column`, or with several by name."""
    found: dict[str, Column] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for part in getattr(hint, "__metadata__", ()):
            found |= part if isinstance(part, dict) else {name: part}
    return found
