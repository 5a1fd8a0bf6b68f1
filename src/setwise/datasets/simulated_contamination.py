"""Candidate sets made from precise labels: the true label, and wrong ones as a rule adds them.

A rule is a small frozen object that says which wrong labels enter. Rows and labels travel as single integers
row · K + label, so that memory follows the labels that enter and not rows × classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Bools, Floats, Ints, blocks
from setwise._types import Seed
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.probabilities.dense import as_probabilities
from setwise.row_noise import draw_seed

_DENSE = 0.25  # above this share a draw for every cell is faster than a draw for every gap between successes
_CELLS = 2**20  # drawn at a time


class Contamination(Protocol):
    """A rule of contamination; its attribute `n_classes`, if any, says how many classes there are."""

    def wrong_labels(self, y: Ints, n_classes: int, rng: np.random.Generator) -> Ints:
        """The wrong labels that enter, as sorted integers row · K + label."""
        ...


def contaminate(
    y: ArrayLike,
    how: Contamination,
    n_classes: int | None = None,
    miss_rate: float = 0.0,
    random_state: Seed = None,
) -> LabelSets:
    """Candidate sets over 0..K−1 for precise labels.

    Parameters
    ----------
    y
        True labels, integers 0..K−1.
    how
        `Random`, `InstanceDependent`, `ClassConditional` or `Adversarial`.
    n_classes
        K; by default what the rule knows from its matrix, else one more than the largest label.
    miss_rate
        How often the true label is left out. A row that would be empty then gets a random wrong label.
    random_state
        A seed or a numpy generator; None for fresh randomness.

    Examples
    --------
    >>> from setwise.datasets import Random, contaminate
    >>> contaminate([0, 1, 2], Random(p=0.3), n_classes=4, random_state=0)
    LabelSets(3 rows, 4 classes): {0, 2, 3}, {0, 1}, {1, 2}
    """
    labels, k = _as_labels(y, getattr(how, "n_classes", None) if n_classes is None else n_classes)
    if not 0 <= miss_rate <= 1:
        raise ValueError(f"miss_rate: {miss_rate} is not between 0 and 1.")
    rng = np.random.default_rng(draw_seed(random_state))
    wrong = how.wrong_labels(labels, k, rng)
    rows = np.arange(len(labels))
    missed = rng.random(len(labels)) < miss_rate if miss_rate else np.zeros(len(labels), dtype=bool)
    kept = rows[~missed]
    parts = [wrong, kept * k + labels[kept]]
    if miss_rate:
        parts.append(_one_wrong_label(np.setdiff1d(rows[missed], wrong // k), labels, k, rng))
    return LabelSets.from_keys(Vocabulary.positions(k), len(labels), np.concatenate(parts))


@dataclass(frozen=True)
class Random:
    """Each wrong label enters with probability p; where none did, one wrong label at random.

    >>> round(Random(p=0.1).inclusion_probability(n_classes=10), 4)
    0.143
    """

    p: float

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"p: {self.p} is not between 0 and 1.")

    def inclusion_probability(self, n_classes: int) -> float:
        """The probability p + (1−p)^(K−1) / (K−1) with which a wrong label is a candidate after all."""
        return self.p + (1 - self.p) ** (n_classes - 1) / (n_classes - 1)

    def wrong_labels(self, y: Ints, n_classes: int, rng: np.random.Generator) -> Ints:
        """The wrong labels that enter, as sorted integers row · K + label."""
        cells = _bernoulli_positions(len(y) * (n_classes - 1), self.p, rng)
        rows, others = np.divmod(cells, n_classes - 1)
        entered = cells + rows + (others >= y[rows])  # row · K + label, the true label skipped
        alone = np.flatnonzero(np.bincount(rows, minlength=len(y)) == 0)
        return np.concatenate([entered, _one_wrong_label(alone, y, n_classes, rng)])


@dataclass(frozen=True, eq=False)
class InstanceDependent:
    """A wrong label enters with probability p_y = f_y / max f over wrong labels: what a model confuses, people do.

    `probabilities` are those of a model, (n, K). The wrong label that it finds most probable always enters; where
    it excludes all of them (every f_y is 0), one wrong label at random.
    """

    probabilities: Any

    @property
    def n_classes(self) -> int | None:
        """As many as the probabilities have columns."""
        return _columns(self.probabilities)

    def wrong_labels(self, y: Ints, n_classes: int, rng: np.random.Generator) -> Ints:
        """The wrong labels that enter, as sorted integers row · K + label."""
        p = _read_probabilities(self.probabilities, len(y), n_classes)

        def chances(block: slice) -> Floats:
            wrong = p[block].astype(np.float64)
            wrong[np.arange(len(wrong)), y[block]] = 0
            largest = wrong.max(axis=1, keepdims=True)
            chance: Floats = np.divide(wrong, largest, out=np.zeros_like(wrong), where=largest > 0)
            return chance

        entered = _draw(p, chances, rng)
        alone = np.setdiff1d(np.arange(len(y)), entered // n_classes)
        return np.concatenate([entered, _one_wrong_label(alone, y, n_classes, rng)])


@dataclass(frozen=True, eq=False)
class ClassConditional:
    """Label k enters the set of an example of class y with probability ``matrix[y, k]``.

    The diagonal is one: the true label is a candidate. (How often it is not is `contaminate`'s `miss_rate`.)
    """

    matrix: ArrayLike

    @property
    def n_classes(self) -> int | None:
        """As many as the matrix has columns."""
        return _columns(self.matrix)

    def wrong_labels(self, y: Ints, n_classes: int, rng: np.random.Generator) -> Ints:
        """The wrong labels that enter, as sorted integers row · K + label."""
        matrix = np.asarray(self.matrix, dtype=np.float64)
        if matrix.shape != (n_classes, n_classes):
            raise ValueError(f"matrix: shape {matrix.shape}, but there are {n_classes} classes.")
        outside, missed = ~((matrix >= 0) & (matrix <= 1)).all(axis=1), np.diag(matrix) != 1
        if outside.any():
            problem = f"matrix: row {outside.argmax()} has entries outside [0, 1]"
            raise ValueError(f"{problem}; they are inclusion probabilities.")
        if missed.any():
            problem = f"matrix: the diagonal of row {missed.argmax()} is not 1"
            raise ValueError(f"{problem}; say with miss_rate how often truth is absent.")
        wrong = matrix - np.eye(n_classes)
        shape = np.broadcast_to(np.float64(0), (len(y), n_classes))
        return _draw(shape, lambda block: wrong[y[block]], rng)


@dataclass(frozen=True, eq=False)
class Adversarial:
    """The worst wrong labels for a given model, the same number in every row.

    These are the wrong labels that the model finds most probable, which hide the truth from a learner and make
    optimistic strategies such as `min` undercover. `probabilities` as for `InstanceDependent`.
    """

    probabilities: Any
    added: int = 1

    @property
    def n_classes(self) -> int | None:
        """As many as the probabilities have columns."""
        return _columns(self.probabilities)

    def wrong_labels(self, y: Ints, n_classes: int, rng: np.random.Generator) -> Ints:  # noqa: ARG002 - no chance here
        """The wrong labels that enter, as sorted integers row · K + label."""
        if not 1 <= self.added < n_classes:
            raise ValueError(
                f"added: {self.added} wrong labels of {n_classes - 1}; at least one, at most all of them."
            )
        p = _read_probabilities(self.probabilities, len(y), n_classes)
        chosen = [np.empty(0, dtype=np.intp)]
        for block in blocks(p):
            merit = p[block].astype(np.float64)
            merit[np.arange(len(merit)), y[block]] = -np.inf
            worst = np.argsort(-merit, axis=1, kind="stable")[:, : self.added]
            chosen.append((np.arange(block.start, block.stop)[:, None] * n_classes + worst).ravel())
        return np.sort(np.concatenate(chosen))


def _as_labels(y: ArrayLike, n_classes: int | None) -> tuple[Ints, int]:
    labels: Array = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise TypeError(
            f"y: expected integers 0..K−1, one per row, got {labels.dtype} of shape {labels.shape}; "
            "np.unique(y, return_inverse=True) makes them."
        )
    k = int(labels.max(initial=1)) + 1 if n_classes is None else int(n_classes)
    if k < 2:
        raise ValueError(f"n_classes: {k}; contamination needs a wrong label to add.")
    outside = (labels < 0) | (labels >= k)
    if outside.any():
        row = outside.argmax()
        raise ValueError(f"y: row {row} is {labels[row]}, outside 0..{k - 1}.")
    return labels.astype(np.int64, copy=False), k


def _columns(matrix: Any) -> int | None:
    return None if np.ndim(matrix) != 2 else int(np.shape(matrix)[1])


def _read_probabilities(probabilities: Any, n: int, n_classes: int) -> Floats:
    p = as_probabilities(probabilities, "unit", n_classes)
    if len(p) != n:
        raise ValueError(f"probabilities: {len(p)} rows for {n} labels; give one row per label.")
    return p


def _bernoulli_positions(cells: int, p: float, rng: np.random.Generator) -> Ints:
    """The successes among so many trials, by their geometric gaps: work follows successes, not trials."""
    if p <= 0 or cells == 0:
        return np.empty(0, dtype=np.int64)
    if p >= 1:
        return np.arange(cells)
    if p > _DENSE:
        starts = range(0, cells, _CELLS)
        return np.concatenate(
            [start + np.flatnonzero(rng.random(min(_CELLS, cells - start)) < p) for start in starts]
        )
    found, last = [], -1
    while last < cells:
        left = (cells - last) * p
        gaps = rng.geometric(p, size=int(left + 4 * np.sqrt(left) + 16))
        np.minimum(gaps, cells + 1, out=gaps)  # a tiny p has gaps that overflow when summed
        positions = last + np.cumsum(gaps)
        found.append(positions)
        last = int(positions[-1])
    merged = found[0] if len(found) == 1 else np.concatenate(found)
    return merged[: np.searchsorted(merged, cells)]


def _draw(shape: Array, chances: Any, rng: np.random.Generator) -> Ints:
    """Independent draws, row block by row block, with the chances a block has."""
    k = shape.shape[1]
    entered = [np.empty(0, dtype=np.int64)]
    for block in blocks(shape):
        hit: Bools = rng.random((block.stop - block.start, k)) < chances(block)
        entered.append(block.start * k + np.flatnonzero(hit))
    return np.concatenate(entered)


def _one_wrong_label(rows: Ints, y: Ints, n_classes: int, rng: np.random.Generator) -> Ints:
    others = rng.integers(n_classes - 1, size=len(rows))
    return rows * n_classes + others + (others >= y[rows])
