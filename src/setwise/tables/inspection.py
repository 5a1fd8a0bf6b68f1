"""A first look at candidate sets: how large they are, which labels are confused, which rows have none."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Ints
from setwise.findings import join_names
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import label_vector, missing_labels

_SHOWN = 12  # labels and pairs in a line
_MAX_PAIRS = 20_000_000  # label pairs to count; beyond that, a sample of rows is counted


@dataclass(frozen=True)
class Pair:
    """Two labels that are candidates together: how many rows, and what share of the rows of the rarer label."""

    labels: tuple[Any, Any]
    rows: int
    share: float


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`; it prints as a short summary, and `to_dict` gives plain data."""

    rows: int
    classes: int
    mean_size: float
    sizes: dict[int, int]
    singletons: int
    full: int
    unlabelled: int
    first_unlabelled: int | None
    confused: tuple[Pair, ...]
    never_alone: tuple[Any, ...]
    never_occurs: tuple[Any, ...]
    containment: float | None
    truth_known: int | None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dicts, lists and numbers."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.rows:,} rows, {self.classes:,} classes, {self.mean_size:.2f} candidates per row",
            f"sizes: {join_names([f'{size}: {count:,}' for size, count in self.sizes.items()], _SHOWN)}",
            f"one candidate only: {_part(self.singletons, self.rows)}; every class: {_part(self.full, self.rows)}",
        ]
        if self.unlabelled:
            empty = f"without candidates: {_part(self.unlabelled, self.rows)}, first in row {self.first_unlabelled}"
            lines.append(empty)
        if self.confused:
            pairs = (f"{a} and {b} ({pair.rows:,})" for pair in self.confused for a, b in [pair.labels])
            lines.append(f"most often together: {join_names([*pairs], _SHOWN)}")
        if self.never_alone:
            lines.append(f"never the only candidate: {join_names([*map(str, self.never_alone)], _SHOWN)}")
        if self.never_occurs:
            lines.append(f"never a candidate: {join_names([*map(str, self.never_occurs)], _SHOWN)}")
        if self.containment is not None:
            lines.append(
                f"the truth is a candidate in {self.containment:.2%} of the {self.truth_known:,} rows where it is "
                "known"
            )
        return "\n".join(lines)


def inspect(candidates: Any, truth: ArrayLike | None = None, *, top: int = 10) -> Inspection:
    """Describes candidate sets.

    Parameters
    ----------
    candidates
        A `LabelSets`; or a table or benchmark with candidates, whose truth is then used too.
    truth
        True labels; None or NaN where they are unknown.
    top
        How many confused pairs to name.

    Examples
    --------
    >>> from setwise import LabelSets
    >>> print(inspect(LabelSets.from_lists([["cat", "dog"], ["dog"], ["cat", "dog"]]), ["cat", "dog", None]))
    3 rows, 2 classes, 1.67 candidates per row
    sizes: 1: 1, 2: 2
    one candidate only: 1 (33.3%); every class: 2 (66.7%)
    most often together: cat and dog (2)
    never the only candidate: cat
    the truth is a candidate in 100.00% of the 2 rows where it is known
    """
    if not isinstance(candidates, LabelSets):
        source = candidates
        if getattr(source, "candidates", None) is None:
            raise ValueError("candidates: expected LabelSets, or a table or benchmark that has candidates.")
        truth = truth if truth is not None else getattr(source, "truth", getattr(source, "y", None))
        candidates = source.candidates
    sets: LabelSets = candidates
    sizes, k = sets.sizes, sets.n_classes
    labels = sets.classes.tolist()
    counts = np.bincount(sets.rows[1], minlength=k)
    alone = np.bincount(sets.rows[1][sets.rows[0][:-1][sizes == 1]], minlength=k)
    empty = np.flatnonzero(sizes == 0)
    containment, known = _containment(sets, truth)
    return Inspection(
        rows=len(sets),
        classes=k,
        mean_size=float(sizes.mean()) if len(sets) else 0.0,
        sizes={int(size): int(count) for size, count in zip(*np.unique(sizes, return_counts=True), strict=True)},
        singletons=int((sizes == 1).sum()),
        full=int((sizes == k).sum()),
        unlabelled=len(empty),
        first_unlabelled=int(empty[0]) if len(empty) else None,
        confused=_most_confused(sets, counts, labels, top),
        never_alone=tuple(labels[i] for i in np.flatnonzero((counts > 0) & (alone == 0))),
        never_occurs=tuple(labels[i] for i in np.flatnonzero(counts == 0)),
        containment=containment,
        truth_known=known,
    )


def _most_confused(sets: LabelSets, counts: Ints, labels: list[Any], top: int) -> tuple[Pair, ...]:
    """The pairs of labels that are most often candidates together, without full sets."""
    from scipy.sparse import csr_array, triu  # slow to import, needed here alone

    telling = np.flatnonzero((sets.sizes > 1) & (sets.sizes < max(sets.n_classes, 3)))
    step = max(1, math.ceil((sets.sizes[telling].astype(np.float64) ** 2).sum() / _MAX_PAIRS))
    telling = telling[::step]
    if not len(telling):
        return ()
    indptr, indices = sets[telling].rows
    held = csr_array((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=(len(telling), sets.n_classes))
    together = triu(held.T @ held, k=1).tocoo()
    order = np.lexsort((together.col, together.row, -together.data))[:top]
    a, b, rows = together.row[order], together.col[order], step * together.data[order]
    shares = np.minimum(1, rows / np.maximum(np.minimum(counts[a], counts[b]), 1))
    found = zip(a.tolist(), b.tolist(), rows.tolist(), shares.tolist(), strict=True)
    return tuple(Pair((labels[a], labels[b]), rows, share) for a, b, rows, share in found)


def _containment(sets: LabelSets, truth: ArrayLike | None) -> tuple[float | None, int | None]:
    if truth is None:
        return None, None
    y = label_vector(truth, "truth")
    if len(y) != len(sets):
        raise ValueError(f"truth: {len(y)} labels for {len(sets)} sets; give one per row.")
    known = np.flatnonzero(~missing_labels(y))
    if not len(known):
        return None, 0
    return float(sets[known].contains(y[known]).mean()), len(known)


def _part(count: int, of: int) -> str:
    return f"{count:,} ({count / max(of, 1):.1%})"
