"""Facts given with calibration rows: verified labels, categories, groups, weights; read once, sliced once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, frozen
from setwise.errors import InputError, MisuseWarning, Remedy
from setwise.evidence.column_schema import Column
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import (
    MISSING,
    UNKNOWN,
    Vocabulary,
    is_collection,
    is_missing,
    label_vector,
    missing_labels,
)
from setwise.labels.votes import Votes


@dataclass(frozen=True, kw_only=True)
class LastingFacts:
    """Facts of rows that their evidence keeps; None where nothing was given."""

    agreed: Annotated[Floats | None, Column("f", 0, 1, gaps=True)] = None
    """The share of pairs of answers that agree; NaN in rows with fewer than two answers."""
    excess: Annotated[Floats | None, Column("f", -1e9, 1e9, gaps=True)] = None
    """By how much that share exceeds what independent annotators would show."""
    position: Annotated[Ints | None, Column("iu", 0, 2**62)] = None
    """The row's number as it was given, where rows were dropped or held out."""
    chance: Annotated[Floats | None, Column("f", 0, 1)] = None
    """With which probability each row was to be verified; None where all had the same."""
    weight: Annotated[Floats | None, Column("f", 0)] = None
    """How much likelier each row is among new examples; None for equal ones."""
    group: Annotated[Ints | None, Column("iu", 0, 2**62)] = None
    """The number of each row's cluster: its rows share one unit of weight, and groups are the instances."""


@dataclass(frozen=True, kw_only=True)
class RowFacts(LastingFacts):
    """What is known of each row beyond its probabilities and candidates; None where nothing was given."""

    verified: Ints | None = None
    """The position of the verified label, `MISSING` where nobody checked; of several right ones at first any."""
    right: LabelSets | None = None  # all right labels of verified rows, where several may be right
    held: Bools | None = None  # whether enough of these are candidates, once that is decided
    category: Array | None = None  # the Mondrian category, as it was given
    u: Floats | None = None  # the uniform number that a randomised score uses
    votes: Votes | None = None  # the answers, where candidates come from them
    posterior: Floats | None = None  # (n, K): the probabilities of the labels given the row's answers

    @classmethod
    def read(
        cls,
        n: int,
        vocabulary: Vocabulary,
        *,
        verified: Any = None,
        truth: str | None = None,
        verified_probability: Any = None,
        sample_weight: Any = None,
        by: Any = None,
        groups: Any = None,
    ) -> RowFacts:
        """Reads the arguments of `conformalize` for n rows; an error names the argument and the row.

        Where `by` is a word categories are found later. By label, verified labels outside the classes are left out
        with a warning: they belong to no class that is guaranteed anything. Verified rows may have several right
        labels with `truth`; it is None where they may not.
        """
        if groups is not None and sample_weight is not None:
            raise ValueError("groups: not together with sample_weight; rows of a group share one unit of weight.")
        by_label = isinstance(by, str) and by == "label"
        codes, right = _read_verified(verified, vocabulary, n, truth, by_label=by_label)
        return cls(
            verified=codes,
            right=right,
            chance=_chances(verified_probability, n),
            weight=weights(sample_weight, n),
            category=None if by is None or isinstance(by, str) else categories(by, n),
            group=None if groups is None else _codes(categories(groups, n, "groups")),
        )

    def take(self, rows: Ints) -> RowFacts:
        """The facts of some rows, by their positions."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        return RowFacts(**{name: None if value is None else value[rows] for name, value in held.items()})

    @property
    def lasting(self) -> dict[str, Any]:
        """What evidence keeps of them, by name."""
        return {part.name: getattr(self, part.name) for part in fields(LastingFacts)}

    @property
    def category_codes(self) -> Ints | None:
        """The categories as numbers."""
        return None if self.category is None else _codes(self.category)

    @property
    def verified_rows(self) -> Ints:
        """The positions of the verified rows."""
        if self.verified is None:
            return np.arange(0)
        return np.flatnonzero(self.verified != MISSING)


def present_rows(sets: LabelSets, missing: str) -> tuple[LabelSets, Ints | None]:
    """The candidate sets after the rule for rows without any, and the rows kept if some were dropped."""
    if missing not in {"error", "full", "drop"}:
        raise ValueError(f"missing: {missing!r} is not known; use 'error', 'full' or 'drop'.")
    indptr, _ = sets.rows  # which are needed: a mask is then read once
    empty = indptr[1:] == indptr[:-1]
    if not empty.any():
        return sets, None
    if missing == "error":
        raise InputError(
            f"candidates: row {int(np.flatnonzero(empty)[0])} is empty ({int(empty.sum())} such rows)",
            Remedy("missing", "full", "to let every label be a candidate there"),
            Remedy("missing", "drop", "to leave them out"),
        )
    if missing == "full":
        return sets.fill_empty(), None
    kept = np.flatnonzero(~empty)
    if len(kept) == 0:
        raise ValueError("candidates: every row is empty; nothing is left to calibrate on.")
    return sets[kept], kept


def _read_verified(
    verified: Any, vocabulary: Vocabulary, n: int, truth: str | None, *, by_label: bool
) -> tuple[Ints | None, LabelSets | None]:
    """The verified labels' positions, `MISSING` where nobody checked, and with `truth` all right labels.

    The position is then that of any of them, `UNKNOWN` where a row has none. None where nobody checked anything.
    """
    if verified is None:
        return None, None
    verified = list(verified) if hasattr(verified, "__next__") else verified
    rows = sets_among(verified)
    if rows is not None and truth == "":
        refuse_sets(rows, "verified")
    if rows is not None and truth:
        codes, right = _right_labels(rows, vocabulary)
    else:
        given = label_vector(verified, "verified")
        codes = vocabulary.encode(given)
        if len(codes) == n and (codes == UNKNOWN).any():
            row = int(np.flatnonzero(codes == UNKNOWN)[0])
            problem = f"verified: row {row} holds {given.tolist()[row]!r}, which is not among the classes"
            if not by_label or (codes < 0).all():
                written = f"write it as the classes are written ({vocabulary.classes.tolist()[0]!r})"
                raise InputError(problem, written, Remedy("classes", None, "if it is a class"))
            count = int((codes == UNKNOWN).sum())
            left = f"{problem}; {count:,} such rows count for no class"
            warnings.warn(MisuseWarning(left, Remedy("classes", None, "if they are a class")), stacklevel=4)
            codes = np.where(codes == UNKNOWN, MISSING, codes)
        right = LabelSets.from_codes(vocabulary, codes[codes >= 0], (codes >= 0).astype(np.intp))
    if len(codes) != n:
        raise ValueError(f"verified: {len(codes)} entries for {n} rows; use None for the others.")
    if (codes == MISSING).all():
        warnings.warn(MisuseWarning("verified: no row has a label", "leave it out"), stacklevel=4)
        return None, None
    return codes, right if truth else None


def _right_labels(rows: list[Any], vocabulary: Vocabulary) -> tuple[Ints, LabelSets]:
    """Any right label of each row, `UNKNOWN` where it has none, `MISSING` where nobody knows; and all of them."""
    given = [() if row is None else row for row in rows]
    right = as_candidates(given, len(vocabulary), vocabulary, name="verified")
    codes = np.array([MISSING if row is None else UNKNOWN for row in rows])
    codes[right.sizes > 0] = right.rows[1][right.rows[0][:-1][right.sizes > 0]]
    return codes, right


def sets_among(column: Any) -> list[Any] | None:
    """The right labels of each row, None where nobody knows, if a column holds a set of labels in some row."""
    if isinstance(column, LabelSets):
        return None if (column.sizes == 1).all() else column.to_lists()
    plain = column.to_pylist() if hasattr(column, "to_pylist") else column
    if getattr(getattr(plain, "dtype", None), "kind", "O") != "O" or not isinstance(plain, Iterable):
        return None
    rows = plain.to_list() if hasattr(plain, "to_list") else list(plain)
    if not any(map(is_collection, rows)):
        return None
    return [row if is_collection(row) else None if is_missing(row) else (row,) for row in rows]


def refuse_sets(rows: list[Any], name: str) -> None:
    """Refuses sets of right labels where nobody said how many of them a set must contain."""
    first = min((i for i, row in enumerate(rows) if row is not None), key=lambda i: len(rows[i]) == 1)
    ways = [
        Remedy("truth", word, f"so that sets contain {word} of several right labels") for word in ("all", "one")
    ]
    raise InputError(f"{name}: row {first} is {rows[first]!r}, not one label", *ways)


def categories(by: Any, n: int, name: str = "by") -> Array:
    """One category (or group) per row, none missing."""
    values = label_vector(by, name)
    if len(values) != n:
        raise ValueError(f"{name}: {len(values)} entries for {n} rows; give one per row.")
    gone = missing_labels(values)
    if gone.any():
        raise ValueError(f"{name}: row {int(np.flatnonzero(gone)[0])} has none; give it one.")
    return values


def _codes(values: Array) -> Ints:
    """The same categories as numbers."""
    return frozen(Vocabulary.infer(values).encode(values))


def weights(sample_weight: Any, n: int | None, name: str = "sample_weight") -> Floats | None:
    """One positive number per row."""
    if sample_weight is None:
        return None
    if np.ma.is_masked(sample_weight):
        row = int(np.flatnonzero(np.ma.getmaskarray(sample_weight))[0])
        raise ValueError(f"{name}: row {row} is masked; give every row one.")
    try:
        values = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected one number per row: {error}.") from error
    if n is not None and values.shape != (n,):
        raise ValueError(f"{name}: expected one per row, {n} in all, got shape {values.shape}.")
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name}: row {row} has {values.flat[row]}; these are positive and finite.")
    return values


def _chances(verified_probability: Any, n: int) -> Floats | None:
    """One probability per row, above 0 and at most 1."""
    values = weights(verified_probability, n, "verified_probability")
    if values is not None and (values > 1).any():
        row = int(np.flatnonzero(values > 1)[0])
        raise ValueError(f"verified_probability: row {row} has {values[row]}; probabilities are at most 1.")
    return values
