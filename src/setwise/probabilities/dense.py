"""A model's probabilities as an array: read and checked once, never changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, blocks, column_numbers, entries, frame_columns, frozen
from setwise._lazy import lazy
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.probabilities.kept_arrays import Digest, LaterProposals
from setwise.probabilities.proposed_labels import Proposals, among_candidates, most_probable, restrict
from setwise.row_noise import uniforms
from setwise.scores import Domain, Score, fill_gaps

TOLERANCE = 0.01
"""How far from one a row may sum: enough for probabilities written with few decimals."""

_NAMES: dict[Any, str] = {np.dtype(name): name for name in ("float16", "float32", "float64")}
_NAMES |= {f"torch.{name}": name for name in ("float16", "float32")}


@dataclass(frozen=True, eq=False)
class DenseRows:
    """The rows of an array (n, K); see `Probabilities`."""

    given: Floats
    digest: Digest | None = None
    """Of an array that somebody else may change, of which the most probable labels are found later."""
    unchecked: Domain | None = None
    """What to check at first use, with what reads the rows anyway; None where that was done."""
    stored = 0

    @lazy
    def array(self) -> Floats:
        """The probabilities, checked."""
        return as_probabilities(self.given, self.unchecked) if self.unchecked else self.given

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and classes."""
        return self.given.shape

    @lazy
    def proposed(self) -> Proposals | LaterProposals:
        """The most probable label of each row, and its probability."""
        return most_probable(self.array) if self.digest is None else LaterProposals(self.array, self.digest)

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, rows: Ints) -> DenseRows:
        return DenseRows(self.array[rows])

    def astype(self, dtype: Any) -> DenseRows:
        """The same probabilities rounded to another type."""
        return DenseRows(self.array.astype(dtype))

    def uniforms(self, seed: int, row_ids: Any = None, *, distinct: bool = False) -> Floats:
        """One number in [0, 1) for each row."""
        return uniforms(self.array, seed, row_ids, distinct=distinct)

    def check_known(self, score: Score, needs: Collection[str], *, verified: bool, votes: bool) -> None:
        """Everything is."""

    def score_candidates(
        self, score: Score, candidates: LabelSets, u: Floats | None, *, every: bool
    ) -> tuple[Floats, Floats, Floats | None]:
        """The extremes of the candidates' scores, which monotone scores have at the extreme probabilities."""
        indptr, indices = candidates.rows
        if len(indices) == len(candidates):
            scores = self.score_labels(score, indices, u)
            return scores, scores, scores
        if every or score.elementwise or not score.monotone:
            scores = self._score_all(score, candidates, u)
            return np.minimum.reduceat(scores, indptr[:-1]), np.maximum.reduceat(scores, indptr[:-1]), scores
        likeliest, unlikeliest = self._extreme_labels(candidates)
        return self.score_labels(score, likeliest, u), self.score_labels(score, unlikeliest, u), None

    def score_labels(self, score: Score, labels: Ints, u: Floats | None) -> Floats:
        """The score of one label of each row."""
        return score.score(self.array, labels, u=u)

    def among(self, candidates: LabelSets) -> Proposals:
        """The most probable candidate of each row."""
        return among_candidates(self.array, candidates)

    def values_of(self, candidates: LabelSets) -> Floats:
        """The probability of every candidate, row after row."""
        return entries(self.array, np.repeat(np.arange(len(self)), candidates.sizes), candidates.rows[1])

    def totals(self) -> Floats:
        """The sum of each row."""
        totals: Floats = self.array.sum(axis=1, dtype=np.float64)
        return totals

    def mask(
        self, score: Score, limits: Floats, u: Floats | None, inside: LabelSets | None, *, allow_empty: bool
    ) -> Bools:
        """The labels with scores within the limits."""
        if limits.ndim == 2:  # by label
            found = ~fill_gaps(score, score.score(self.array, u=u) > limits)
        elif score.elementwise and self.unchecked and "array" not in self.__dict__:
            found = np.empty(self.shape, dtype=bool)
            for block in checked_blocks(self.given, self.unchecked):
                found[block] = score.below(self.given[block], limits if limits.size == 1 else limits[block])
            self.__dict__["array"] = self.given
        else:
            found = score.below(self.array, limits, u=u)
        return self.finish(found, inside, allow_empty=allow_empty)

    def finish(self, found: Bools, inside: LabelSets | None, *, allow_empty: bool) -> Bools:
        """A mask cut down to the labels inside; empty sets get the most probable label unless they are allowed."""
        allowed = None if inside is None else inside.to_mask()
        cut: Bools = restrict(found, self.array, allowed, allow_empty=allow_empty)
        return cut

    def as_sets(self, mask: Bools, vocabulary: Vocabulary) -> LabelSets:
        """The sets of a mask."""
        return LabelSets(vocabulary, len(mask), _mask=frozen(mask))

    def _score_all(self, score: Score, candidates: LabelSets, u: Floats | None) -> Floats:
        """The score of every candidate, row after row."""
        indptr, indices = candidates.rows
        scores = np.empty(len(indices))
        for block in blocks(self.array):
            inside = slice(indptr[block.start], indptr[block.stop])
            rows = np.repeat(np.arange(block.stop - block.start), candidates.sizes[block])
            part = self.array[block]
            if score.elementwise:
                scores[inside] = score.score(entries(part, rows, indices[inside])[:, None])[:, 0]
            else:
                table = score.score(part, u=None if u is None else u[block])
                scores[inside] = entries(table, rows, indices[inside])
        return scores

    def _extreme_labels(self, candidates: LabelSets) -> tuple[Ints, Ints]:
        """The most and the least probable candidate of each row (the first of equals)."""
        values, (indptr, indices) = self.values_of(candidates), candidates.rows
        rows = np.repeat(np.arange(len(self)), candidates.sizes)
        return tuple(  # type: ignore[return-value]
            _first_equal(values, extreme.reduceat(values, indptr[:-1]), rows, indices)
            for extreme in (np.maximum, np.minimum)
        )


def _first_equal(values: Floats, wanted: Floats, rows: Ints, indices: Ints) -> Ints:
    found = np.flatnonzero(values == wanted[rows])[::-1]
    labels = np.empty(len(wanted), dtype=np.intp)
    labels[rows[found]] = indices[found]  # written from the back: the first of equals stays
    return labels


def as_probabilities(
    values: Any,
    domain: Domain = "simplex",
    n_classes: int | None = None,
    *,
    classes: Array | None = None,
    name: str = "probabilities",
    first_row: int = 0,
) -> Floats:
    """An (n, K) float array whose entries lie in [0, 1] and, on the simplex, whose rows sum to one.

    float32 and float64 pass without a copy; anything else that is numeric becomes one of them. A frame whose
    columns are named for `classes` is brought into their order. Errors count rows from `first_row`.
    """
    array = as_matrix(values, n_classes, classes, name)
    for _ in checked_blocks(array, domain, name, first_row):
        pass
    return array


def checked_blocks(array: Floats, domain: Domain, name: str = "probabilities", first: int = 0) -> Iterator[slice]:
    """Blocks of rows that were just read, and so are in the cache; the end raises an error if rows are unfit."""
    least, most, off = 0.0, 1.0, 0.0
    for block in blocks(array):  # one thread: memory is the limit (and those of a product would wait in a loop)
        rows = array[block]
        with np.errstate(invalid="ignore", over="ignore"):
            if domain == "simplex":
                sums = np.einsum("ij->i", rows)  # first: of all passes it waits least for memory
                off = np.maximum.reduce(np.abs(sums - 1), initial=off)
            else:
                most = np.maximum.reduce(rows, axis=None, initial=most)
            least = np.minimum.reduce(rows, axis=None, initial=least)
        yield block
    fine = least >= 0 and most <= 1 and off <= TOLERANCE  # not so where one is NaN
    for block in () if fine else blocks(array):
        numbers = first + np.arange(block.start, block.stop)
        explain(np.asarray(array[block], dtype=np.float64), numbers, domain, name)


def check_shape(columns: int, n_classes: int | None, name: str = "probabilities") -> None:
    """Refuses a number of columns that is no number of classes, or not the one that is wanted."""
    if columns < 2:
        raise ValueError(f"{name}: {columns} class; prediction sets need at least two columns.")
    if n_classes is not None and columns != n_classes:
        raise ValueError(f"{name}: {columns} columns, but there are {n_classes} classes.")


def precision_of(values: Any) -> str:
    """The floating type that probabilities come in, as numpy names it; integers and the like count as float64."""
    dtype = getattr(values, "dtype", None) or np.asarray(values).dtype
    return _NAMES.get(dtype) or _NAMES.get(str(dtype), "float64")  # that of torch is written torch.float32


def _by_name(values: Any, classes: Array | None, name: str) -> Any:
    """The frame with its columns in the order of the classes; anything else as it is."""
    if classes is None or not hasattr(values, "columns"):
        return values
    names, numbers, wanted = frame_columns(values), column_numbers(values), classes.tolist()
    if numbers and wanted != [*range(len(wanted))] and {*numbers} == {*wanted}:
        return values[[values.columns[numbers.index(label)] for label in wanted]]
    if names is None or not all(isinstance(label, str) for label in wanted) or names == wanted:
        return values
    if sorted(names) != sorted(wanted):
        odd = next((column for column in names if column not in wanted), "one twice")
        raise ValueError(
            f"{name}: the columns are not named for the classes ({odd!r} is not one); rename them, or pass "
            "an array to go by position."
        )
    return values[wanted]


def as_matrix(values: Any, n_classes: int | None, classes: Array | None, name: str = "probabilities") -> Floats:
    """Numbers as an (n, K) float array with the columns of the classes, whatever the numbers are."""
    values = _by_name(values, classes, name)
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
    check_shape(array.shape[1], n_classes, name)
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


def explain(rows: Floats, numbers: Ints, domain: Domain, name: str = "probabilities") -> None:
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
    row, where = rows[i], f"{name}: row {numbers[i]}"
    if not np.isfinite(row).all():
        column = int(np.flatnonzero(~np.isfinite(row))[0])
        raise ValueError(f"{where} holds {row[column]} in column {column}; remove or repair such rows.")
    if domain == "simplex" and row.min() >= 0 and abs(sums[i] - 100) <= 1:
        raise ValueError(f"{where} sums to {sums[i]:.4g}; these look like percentages: divide them by 100.")
    if domain == "simplex" and off_range[i] and wrong_sum[i]:
        raise ValueError(
            f"{where} has entries from {row.min():.4g} to {row.max():.4g} that sum to {sums[i]:.4g}; "
            "these look like logits: pass their softmax."
        )
    if off_range[i] or domain == "unit":
        raise ValueError(f"{where} has entries from {row.min():.4g} to {row.max():.4g}, outside [0, 1].")
    with np.errstate(over="ignore"):
        columns = rows.sum(axis=0)
    across = rows.shape[1] > rows.shape[0] and bool((np.abs(columns - 1) <= TOLERANCE).all())
    fix = "its columns do: pass its transpose" if across else "divide each row by its sum"
    raise ValueError(f"{where} sums to {sums[i]:.4g}, not to 1 (tolerance {TOLERANCE}); {fix}.")
