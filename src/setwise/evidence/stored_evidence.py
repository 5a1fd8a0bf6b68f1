"""Evidence out of a file: every column has its type, its length and its range, or there is no evidence."""

from __future__ import annotations

import numpy as np

from setwise._arrays import Array, check_sizes
from setwise.evidence.column_schema import read_columns
from setwise.evidence.evidence import Evidence
from setwise.labels.vocabulary import MISSING
from setwise.storage.stored_arrays import check_array


def read_evidence(arrays: dict[str, Array], k: int) -> Evidence:
    """The evidence of rows over k labels; a ValueError names the column that is wrong."""
    n, declared = len(arrays["low"]), read_columns(Evidence)

    def check(per: str, *shape: int) -> None:
        for name, column in declared.items():
            if name not in arrays or column.per != per:
                continue
            high = k - 1 if column.labels else k if name == "sizes" else column.high
            check_array(arrays[name], f"evidence.{name}", column.kinds, shape, column.low, high, gaps=column.gaps)
            if arrays[name].dtype.kind == "u":  # whose differences would wrap around
                arrays[name] = arrays[name].astype(np.int64)
            if column.labels and ((arrays[name] < 0) & (arrays[name] != MISSING)).any():
                raise ValueError(f"evidence.{name} holds a label that is none")

    check("row", n)
    entries = int(arrays["sizes"].sum())
    check_sizes(arrays["sizes"], entries)
    check("candidate", entries)
    check("label", n, k)
    if len({"truth", "held"} & arrays.keys()) == 1 or ("truth" in arrays and "label" not in arrays):
        raise ValueError("evidence: truth, label and held come together")
    return Evidence.of(**arrays)
