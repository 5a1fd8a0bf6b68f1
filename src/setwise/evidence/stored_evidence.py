"""Evidence out of a file: every column has its type, its length and its range, or there is no evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._arrays import Array, check_sizes
from setwise.evidence.column_schema import read_columns
from setwise.evidence.evidence import Evidence
from setwise.labels.vocabulary import MISSING
from setwise.probabilities.dense import TOLERANCE
from setwise.storage.stored_arrays import check_array

_NEAR = 1e-6  # how far two columns that were computed from the same scores may be apart


def read_evidence(arrays: dict[str, Array], k: int) -> Evidence:
    """The evidence of rows over k labels; a ValueError names the column that is wrong."""
    n, declared = len(arrays["low"]), read_columns(Evidence)
    unknown = next((name for name in arrays if name not in declared), None)
    if unknown is not None:
        raise ValueError(f"evidence.{unknown} is not known")

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
    evidence = Evidence.of(**arrays)
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
    truth, label, held, verified = evidence.truth, evidence.label, evidence.held, evidence.verified
    wrong: dict[str, Any] = {}
    for name in ("answered_truth", "answered", "answered_confidence"):
        column: Any = getattr(evidence, name)
        if column is not None:
            known = column != MISSING if name == "answered" else ~np.isnan(column)
            wrong[f"truth and {name}"] = (known != verified).any()
    if truth is None:
        wrong["held without truth"] = held is not None
        if label is not None and evidence.named is not None:  # the one label of each row
            wrong["named and label"] = not evidence.named[np.arange(evidence.n), label].all()
        return wrong
    if label is None or held is None:
        return {"truth without label and held": True}
    wrong["truth and label"] = (verified != (label != MISSING)).any()
    inside = (truth >= evidence.low - _NEAR) & (truth <= evidence.high + _NEAR)  # False where nobody checked
    wrong["truth and held"] = (held & ~inside).any()
    rows = np.flatnonzero(verified)
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
