"""Evidence out of a file: every column has its type, its length and its range, or there is no evidence."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from setwise._arrays import Array, check_sizes
from setwise.evidence.evidence import Evidence
from setwise.labels.vocabulary import MISSING
from setwise.probabilities import TOLERANCE
from setwise.stored_arrays import checked

_MOST = 1 + TOLERANCE  # of a probability


class _Column(NamedTuple):
    kinds: str
    low: float = -math.inf
    high: float = math.inf
    gaps: bool = False


_SCORE, _LABEL = _Column("f"), _Column("iu", MISSING)
_BY_ROW = {
    "low": _SCORE,
    "high": _SCORE,
    "sizes": _Column("iu", 1),
    "agreed": _Column("f", 0, 1, gaps=True),
    "excess": _Column("f", gaps=True),
    "total": _Column("f", 0),
    "truth": _Column("f", gaps=True),
    "held": _Column("b"),
    "predicted": _Column("iu", 0),
    "confidence": _Column("f", 0, _MOST),
    "label": _LABEL,
    "consensus": _LABEL,
    "consensus_confidence": _Column("f", 0, _MOST, gaps=True),
    "answered_truth": _Column("f", gaps=True),
    "answered": _LABEL,
    "answered_confidence": _Column("f", 0, _MOST, gaps=True),
    "noise": _Column("f", 0, 1),
    "position": _Column("iu", 0),
    "chance": _Column("f", 0, 1),
    "weight": _Column("f", 0),
    "group": _Column("iu", 0),
}
_LABELS = {"predicted", "label", "consensus", "answered"}
_BY_ENTRY = {"every": _SCORE, "share": _Column("f", 0, _MOST), "backing": _Column("f", 0, _MOST, gaps=True)}
_BY_LABEL = {"posterior": _Column("f", 0, _MOST), "table": _SCORE, "named": _Column("b")}


def checked_evidence(arrays: dict[str, Array], k: int) -> Evidence:
    """The evidence of rows over k labels; a ValueError names the column that is wrong."""
    n = len(arrays["low"])
    columns = {**_BY_ROW, **_BY_ENTRY, **_BY_LABEL}
    unknown = next((name for name in arrays if name not in columns), None)
    if unknown is not None:
        raise ValueError(f"evidence.{unknown} is not known")

    def check(name: str, column: _Column, shape: tuple[int, ...]) -> None:
        if name in arrays:
            high = k - 1 if name in _LABELS else k if name == "sizes" else column.high
            checked(arrays[name], f"evidence.{name}", column.kinds, shape, column.low, high, gaps=column.gaps)

    for name, column in _BY_ROW.items():
        check(name, column, (n,))
    entries = int(arrays["sizes"].sum())
    check_sizes(arrays["sizes"], entries)
    for name, column in _BY_ENTRY.items():
        check(name, column, (entries,))
    for name, column in _BY_LABEL.items():
        check(name, column, (n, k))
    evidence = Evidence(**arrays)
    _check_agreement(evidence)
    return evidence


def _check_agreement(evidence: Evidence) -> None:
    """Refuses columns of which each could be, and which do not belong together."""
    wrong: dict[str, Any] = {
        "low and high": (evidence.low > evidence.high).any(),
        "weight": evidence.weight is not None and (evidence.weight == 0).any(),
        "chance": evidence.chance is not None and (evidence.chance == 0).any(),
    }
    if evidence.named is not None:
        wrong["named and sizes"] = (evidence.named.sum(axis=1) != evidence.sizes).any()
    if evidence.truth is not None and evidence.label is not None:
        wrong["truth and label"] = (np.isnan(evidence.truth) != (evidence.label == MISSING)).any()
    if evidence.truth is not None and evidence.held is not None:
        wrong["truth and held"] = (np.isnan(evidence.truth) & evidence.held).any()
    found = next((name for name, odd in wrong.items() if odd), None)
    if found is not None:
        raise ValueError(f"evidence: {found} cannot be")
