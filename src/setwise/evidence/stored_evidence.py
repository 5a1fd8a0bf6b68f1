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
_NEAR = 1e-6  # how far two columns that were computed from the same scores may be apart


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
    "excess": _Column("f", -1e9, 1e9, gaps=True),
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
    "position": _Column("iu", 0, 2**62),
    "chance": _Column("f", 0, 1),
    "weight": _Column("f", 0),
    "group": _Column("iu", 0, 2**62),
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
            if arrays[name].dtype.kind == "u":  # whose differences would wrap around
                arrays[name] = arrays[name].astype(np.int64)
            if column is _LABEL and ((arrays[name] < 0) & (arrays[name] != MISSING)).any():
                raise ValueError(f"evidence.{name} holds a label that is none")

    for name, column in _BY_ROW.items():
        check(name, column, (n,))
    entries = int(arrays["sizes"].sum())
    check_sizes(arrays["sizes"], entries)
    for name, column in _BY_ENTRY.items():
        check(name, column, (entries,))
    for name, column in _BY_LABEL.items():
        check(name, column, (n, k))
    evidence = Evidence(**arrays)
    _check_agreement(evidence, k)
    return evidence


def _check_agreement(evidence: Evidence, k: int) -> None:
    """Refuses columns of which each could be, and which do not belong together."""
    low, high, starts = evidence.low, evidence.high, np.cumsum(evidence.sizes) - evidence.sizes
    wrong: dict[str, Any] = {
        "low and high": (low > high).any(),
        "weight": evidence.weight is not None and (evidence.weight == 0).any(),
        "chance": evidence.chance is not None and (evidence.chance == 0).any(),
        "position": evidence.position is not None and (np.diff(np.sort(evidence.position)) == 0).any(),
    }
    if evidence.named is not None:
        wrong["named and sizes"] = (evidence.named.sum(axis=1) != evidence.sizes).any()
    if evidence.every is not None:
        least, most = np.minimum.reduceat(evidence.every, starts), np.maximum.reduceat(evidence.every, starts)
        wrong["every, low and high"] = not (_near(least, low) and _near(most, high))
    if evidence.share is not None:
        wrong["share"] = not _near(np.add.reduceat(evidence.share, starts), 1)
    if evidence.backing is not None:
        unanswered = np.logical_and.reduceat(np.isnan(evidence.backing), starts)
        wrong["backing"] = not _near(np.add.reduceat(evidence.backing, starts)[~unanswered], 1)
    if evidence.posterior is not None:
        wrong["posterior"] = not _near(evidence.posterior.sum(axis=1), 1)
    if evidence.total is not None:  # which was compared with one in single precision
        rounded = k * float(np.finfo(np.float32).eps)
        wrong["total"] = (np.abs(evidence.total - 1) > TOLERANCE + _NEAR + rounded).any()
    if evidence.table is not None and evidence.named is not None:
        table, named = np.asarray(evidence.table), evidence.named
        least, most = (np.where(named, table, edge) for edge in (np.inf, -np.inf))
        wrong["table, low and high"] = not (_near(least.min(axis=1), low) and _near(most.max(axis=1), high))
    wrong |= _wrong_checks(evidence, starts)
    found = next((name for name, odd in wrong.items() if odd), None)
    if found is not None:
        raise ValueError(f"evidence: {found} cannot be")


def _wrong_checks(evidence: Evidence, starts: Array) -> dict[str, Any]:
    """What the columns about verified rows say against each other, and against the candidates."""
    truth, label, held, checked = evidence.truth, evidence.label, evidence.held, evidence.verified
    wrong: dict[str, Any] = {}
    for name in ("answered_truth", "answered", "answered_confidence"):
        column: Any = getattr(evidence, name)
        if column is not None:
            known = column != MISSING if name == "answered" else ~np.isnan(column)
            wrong[f"truth and {name}"] = (known != checked).any()
    if truth is None:
        wrong["held without truth"] = held is not None
        if label is not None and evidence.named is not None:  # the one label of each row
            wrong["named and label"] = not evidence.named[np.arange(evidence.n), label].all()
        return wrong
    if label is None or held is None:
        return {"truth without label and held": True}
    wrong["truth and label"] = (checked != (label != MISSING)).any()
    inside = (truth >= evidence.low - _NEAR) & (truth <= evidence.high + _NEAR)  # False where nobody checked
    wrong["truth and held"] = (held & ~inside).any()
    rows = np.flatnonzero(checked)
    if evidence.every is not None:
        away = np.abs(evidence.every - np.repeat(np.where(held, truth, np.inf), evidence.sizes))
        wrong["every, truth and held"] = (np.minimum.reduceat(away, starts)[held] > _NEAR).any()
    if evidence.named is not None:
        wrong["named, label and held"] = (evidence.named[rows, label[rows]] != held[rows]).any()
    if evidence.table is not None:
        wrong["table, truth and label"] = not _near(np.asarray(evidence.table)[rows, label[rows]], truth[rows])
    return wrong


def _near(found: Array, noted: Any) -> bool:
    return bool((np.abs(found - noted) <= _NEAR).all())
