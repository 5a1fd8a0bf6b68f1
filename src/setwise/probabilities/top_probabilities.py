"""`TopK`: the k largest probabilities of each row, in place of a table with a column for each of many classes.

A row is read as k + 1 columns: its stored labels, and one that stands for any other label. A label outside shares
the remaining probability equally with the others outside. Whatever a score makes of such a row is a fixed function
of it, the same for calibration and new rows, so that promises hold as they do for whole rows; what is lost is only
which of the labels outside is likelier than another: they enter a set together or not at all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from setwise._arrays import Bools, Floats, Ints, frozen, row_positions
from setwise._lazy import lazy
from setwise.errors import InputError, Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.probabilities.dense import TOLERANCE, DenseRows, as_probabilities
from setwise.probabilities.proposed_labels import Proposals, among_candidates, most_probable, restrict
from setwise.row_noise import uniforms
from setwise.scores import RPS, Nodes, Score

_MOST = 2**31
"""Labels that sets may hold together: where labels outside the stored ones enter, a row holds them all."""


class TopK:
    """The most probable labels of each row, out of many, with their probabilities and what is left for the others.

    `conformalize` and `Calibration.predict_set` take it in place of probabilities, and then no array with a column
    for every class is made. A label outside the stored ones counts as if it had an equal share of the rest.

    Parameters
    ----------
    indices
        (n, k): the positions of the labels among the classes, distinct within a row.
    values
        (n, k): their probabilities.
    n_classes
        How many classes there are.
    rest
        (n,): the probability of all other labels together; default is what the values lack to one.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet(np.full(1000, 0.002), size=600)
    >>> y = (P.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    >>> top = setwise.TopK.of(P, k=20)
    >>> top
    TopK(600 rows, 20 of 1,000 classes)
    >>> cal = setwise.conformalize(top[:300], y[:300])
    >>> sets = cal.predict_set(top[300:])
    >>> bool(sets.contains(y[300:]).mean() > 0.85)
    True
    """

    def __init__(self, indices: Any, values: Any, n_classes: int, rest: Any = None) -> None:
        self.values, self.n_classes = _real(values), int(n_classes)
        self.indices = np.asarray(indices)
        n, k = self.values.shape
        if self.indices.shape != (n, k) or k == 0:
            raise ValueError(
                f"TopK: indices and values are (rows, k) alike, got {self.indices.shape} and {(n, k)}."
            )
        if self.indices.dtype.kind not in "iu":
            raise TypeError(f"indices: expected whole numbers, got {self.indices.dtype}.")
        if self.indices.dtype == np.uint64:  # which numpy adds to signed numbers as floating point
            self.indices = self.indices.astype(np.int64)
        if not k <= self.n_classes:
            raise ValueError(f"n_classes: {n_classes} classes, and {k} labels in a row.")
        outside = (self.indices < 0) | (self.indices >= self.n_classes)
        _refuse(outside, self.indices, f"indices: row {{row}} holds {{value}}, which is not in 0…{n_classes - 1}")
        ordered = np.sort(self.indices, axis=1)
        _refuse(ordered[:, 1:] == ordered[:, :-1], ordered, "indices: row {row} holds {value} twice")
        total = self.values.sum(axis=1, dtype=np.float64)
        self.rest = np.maximum(1 - total, 0) if rest is None else np.asarray(rest, dtype=np.float64)
        if self.rest.shape != (n,):
            raise ValueError(f"rest: expected one number per row, {n} in all, got shape {self.rest.shape}.")
        self.rest = np.where((self.rest < 0) & (self.rest >= -TOLERANCE), 0.0, self.rest)  # 1 − Σ, rounded
        as_probabilities(np.column_stack([self.values, self.rest]), name="values, with rest in the last column")
        share, least = self.rest / max(self.n_classes - k, 1), self.values.min(axis=1)
        _refuse(
            share > least + TOLERANCE,
            share,
            "values: row {row} has {value:.4g} for a label outside; store the largest",
        )
        self.columns = frozen(np.column_stack([self.values, np.minimum(share, least).astype(self.values.dtype)]))
        # what was given stays writeable for whoever gave it
        self.indices, self.values, self.rest = (frozen(a.view()) for a in (self.indices, self.values, self.rest))

    @classmethod
    def of(cls, probabilities: Any, k: int) -> TopK:
        """The k largest of a whole table of probabilities."""
        table = _real(probabilities)
        if not 1 <= k <= table.shape[1]:
            raise ValueError(f"k: {k} of {table.shape[1]} classes.")
        found = np.argpartition(table, table.shape[1] - k, axis=1)[:, -k:]
        return cls(found, np.take_along_axis(table, found, axis=1), table.shape[1])

    @property
    def k(self) -> int:
        """How many labels a row stores."""
        return int(self.values.shape[1])

    @property
    def dtype(self) -> Any:
        """That of the values."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes."""
        return len(self), self.n_classes

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> TopK:
        rows = row_positions(key, len(self), "TopK is indexed by rows.")
        return TopK(self.indices[rows], self.values[rows], self.n_classes, self.rest[rows])

    def __repr__(self) -> str:
        return f"TopK({len(self):,} rows, {self.k:,} of {self.n_classes:,} classes)"

    @lazy
    def _order(self) -> tuple[Ints, Ints]:
        """The stored labels as row · K + position, ascending, and the column where each of them stands."""
        order = np.argsort(self.indices, axis=1)
        keys = np.take_along_axis(self.indices, order, axis=1) + np.arange(len(self))[:, None] * self.n_classes
        return keys.ravel(), order.ravel()

    def columns_of(self, rows: Ints, labels: Ints) -> Ints:
        """The column of each label in its row; k, the last, for those outside."""
        keys, order = self._order
        wanted = rows * self.n_classes + labels
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return np.where(keys[place] == wanted, order[place], self.k)

    # ---------------------------------------------------------------- what calibrations ask of rows

    @property
    def stored(self) -> int:
        """How many labels a row stores."""
        return self.k

    @property
    def array(self) -> Floats:
        """There is none."""
        raise InputError("probabilities: those of all labels are needed", "pass them in place of TopK")

    @lazy
    def proposed(self) -> Proposals:
        """The most probable label of each row, and its probability."""
        best = most_probable(self.values)
        return replace(best, label=self.indices[np.arange(len(self)), best.label])

    def astype(self, dtype: Any) -> TopK:
        """The same probabilities rounded to another type."""
        return TopK(self.indices, self.values.astype(dtype), self.n_classes, self.rest)

    def uniforms(self, seed: int, row_ids: Any = None, *, distinct: bool = False) -> Floats:
        """One number in [0, 1) for each row, as `row_noise.uniforms` gives it."""
        return uniforms(self.columns, seed, row_ids, distinct=distinct)

    def check_known(self, score: Score, needs: Collection[str], *, verified: bool, votes: bool) -> None:  # noqa: ARG002
        """Refuses votes, a score of ordered classes or of a tree, and strategies that look at all labels."""
        if isinstance(score, (RPS, Nodes)):
            problem = f"conformity_score: {score.name!r} needs the probabilities of all labels, in their order"
            raise InputError(problem, "pass them in place of TopK", Remedy("conformity_score", "lac"))
        if votes:
            raise InputError("candidates: votes are not defined for TopK", "pass votes.candidates() in their place")
        if lacking := set(needs) - {"consensus", "every", "share", "total"}:
            raise InputError(
                f"probabilities: this strategy needs those of all labels ({', '.join(sorted(lacking))})",
                "use 'max', 'min', 'mean', a mixture, 'rectified' or 'auto' with TopK",
            )

    def score_candidates(
        self, score: Score, candidates: LabelSets, u: Floats | None, *, every: bool
    ) -> tuple[Floats, Floats, Floats | None]:
        """As for whole rows: a candidate outside the stored labels has the score of a label outside."""
        return DenseRows(self.columns).score_candidates(score, self._read(candidates), u, every=every)

    def score_labels(self, score: Score, labels: Ints, u: Floats | None) -> Floats:
        """The score of one label of each row."""
        return score.score(self.columns, self.columns_of(np.arange(len(self)), labels), u=u)

    def among(self, candidates: LabelSets) -> Proposals:
        """The most probable candidate of each row; of those outside the first, where one of them is it."""
        read = self._read(candidates)
        best, (indptr, labels) = among_candidates(self.columns, read), candidates.rows
        first = labels[indptr[:-1]].astype(np.intp)
        rows = np.repeat(np.arange(len(self)), candidates.sizes)
        outside = np.flatnonzero(read.rows[1] == self.k)[::-1]
        first[rows[outside]] = labels[outside]
        inside = self.indices[np.arange(len(self)), np.minimum(best.label, self.k - 1)]
        return replace(best, label=np.where(best.label == self.k, first, inside))

    def values_of(self, candidates: LabelSets) -> Floats:
        """The probability of every candidate, row after row."""
        return DenseRows(self.columns).values_of(self._read(candidates))

    def totals(self) -> Floats:
        """The sum of each row, with what is left for other labels."""
        totals: Floats = self.values.sum(axis=1, dtype=np.float64) + self.rest
        return totals

    def mask(
        self, score: Score, limits: Floats, u: Floats | None, inside: LabelSets | None, *, allow_empty: bool
    ) -> LabelSets:
        """The labels whose scores are at most the limits, as sets of positions, cut down to the rows' own."""
        found = score.below(self.columns, limits, u=u)
        sets = self._sets(found)
        if inside is not None:
            sets = sets & inside.rename_classes(sets.vocabulary)
        if not allow_empty and (sets.sizes == 0).any():
            if inside is not None:
                raise InputError("allow_empty: not together with candidates and TopK", "leave candidates out")
            return self._sets(restrict(found, self.columns))
        return sets

    def as_sets(self, mask: LabelSets, vocabulary: Vocabulary) -> LabelSets:
        """The sets under the names of the labels."""
        return mask.rename_classes(vocabulary)

    def _read(self, candidates: LabelSets) -> LabelSets:
        """The columns of the candidates, of those outside one as often as there are."""
        rows = np.repeat(np.arange(len(self)), candidates.sizes)
        columns = self.columns_of(rows, candidates.rows[1])
        return LabelSets(Vocabulary.positions(self.k + 1), len(self), _rows=(candidates.rows[0], columns))

    def _sets(self, mask: Bools) -> LabelSets:
        """The labels of the columns in an (n, k + 1) mask; where the last is in it, every label."""
        full = np.flatnonzero(mask[:, -1])
        some = mask[:, :-1] & ~mask[:, -1:]
        held = int(some.sum()) + len(full) * self.n_classes
        if held > _MOST:
            raise InputError(
                f"probabilities: in {len(full):,} of {len(self):,} rows labels outside the {self.k} stored ones "
                f"are in the set, {held:,} labels in all",
                "store more labels of each row",
                "ask for a lower confidence level",
            )
        row, column = np.nonzero(some)
        keys = row * self.n_classes + self.indices[row, column]
        every = (full[:, None] * self.n_classes + np.arange(self.n_classes)).ravel()
        return LabelSets.from_keys(Vocabulary.positions(self.n_classes), len(self), np.concatenate([keys, every]))


def _real(values: Any) -> Floats:
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(f"TopK: expected numbers of shape (rows, k), got {array.dtype} of shape {array.shape}.")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _refuse(wrong: Bools, values: Any, text: str) -> None:
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise ValueError(text.format(row=place[0], value=values[place]) + ".")
