"""Digests of rows, 64 bits each: they tell whether rows were used before, and whether rows are copies.

A digest is Σ_j word_j·c_j mod 2⁶⁴ over the columns, mixed as in `row_noise`. Equal numbers have equal words
whatever their type, and zero has the word zero: arrays, sparse matrices and frames give a row the same digest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from setwise._arrays import Array, Bools, Floats, Ints, for_blocks
from setwise.labels.vocabulary import MISSING, is_missing
from setwise.row_noise import Words, as_words, mix, multipliers

NOTABLE = 0.01
"""From this share of the rows on a coincidence is worth a warning: coverage is at most so much lower."""
_SEED = 0  # of the multipliers: digests that were saved stay valid while it is the same
_HALVES = 6  # choices of half of the columns
_NEAR = 20  # discrete features: for 20 pairs of equal rows at least one pair that is equal in one half only
_COPIES = 8  # more of a kind are not copies
_FEW = 20  # so many distinct rows occur k, 2k, … times by chance once in 2²⁰ tables at most


def row_digests(X: Any) -> Words | None:
    """One 64-bit number per row, equal where rows are equal; None where X holds neither numbers nor text.

    >>> import numpy as np
    >>> one, two, three = row_digests(np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 0.0]]))
    >>> bool(one == three), bool(one == two)
    (True, False)
    """
    found = _sums(X, lambda n: multipliers(n, _SEED)[:n, None])
    return None if found is None else mix(found[:, 0])


@dataclass(frozen=True)
class Coincidence:
    """Which rows occur among others too, and the first of them."""

    again: Bools
    first: int

    @property
    def rows(self) -> int:
        """How many they are."""
        return int(self.again.sum())

    @property
    def share(self) -> float:
        """Which share of the rows they are."""
        return float(self.again.mean())

    def __str__(self) -> str:
        return f"{self.rows:,} rows ({self.share:.0%}, the first is row {self.first})"


def coincidence(digests: Words, known: Words) -> Coincidence | None:
    """Whether rows occur among known ones, and more often than rows drawn from the same source do.

    If they were drawn alike, every division of all of them into rows and known rows is equally likely: rows that
    occur several times, as with discrete features or a catalogue, lie on both sides by chance. None unless more do
    than that explains, by three standard deviations and by the share `NOTABLE`.
    """
    n = len(digests)
    if n == 0 or len(known) == 0:
        return None
    values, which, counts = np.unique(np.concatenate([known, digests]), return_inverse=True, return_counts=True)
    seen = np.zeros(len(values), dtype=bool)
    seen[which[: len(known)]] = True
    again: Bools = seen[which[len(known) :]]
    if again.sum() < 3 or again.mean() <= NOTABLE:
        return None
    m, p = counts[counts > 1].astype(float), n / len(which)
    expected = m * p * (1 - p ** (m - 1))
    variance = m * p * (1 - p) + m**2 * p**2 - m**2 * p**m - expected**2
    excess = int(again.sum()) - float(expected.sum())
    if excess <= max(3 * float(variance.sum()) ** 0.5, NOTABLE * n):
        return None
    return Coincidence(again, int(again.argmax()))


def agreement(digests: Words, labels: Ints, known: Words, known_labels: Ints) -> tuple[int, int]:
    """How many rows with one label occur among known rows with one label, and how many of these have an equal one.

    `MISSING` stands for rows of several labels. Where both are the same rows, each is compared with the others.
    """
    single, among = labels != MISSING, known_labels != MISSING
    own = int(digests is known)
    digests, labels, known, known_labels = digests[single], labels[single], known[among], known_labels[among]
    pairs = with_labels(digests, labels), with_labels(known, known_labels)
    return _count_among(digests, known, own), _count_among(*pairs, own)


def proposal_digests(label: Ints, confidence: Floats) -> Words:
    """Digests of rows by the label that a model proposes, and its probability."""
    return with_labels(as_words(np.ascontiguousarray(confidence, dtype=np.float64)), label)


def with_labels(digests: Words, labels: Ints) -> Words:
    """Digests of rows together with their labels."""
    return mix(digests) + labels.astype(np.uint64)


def _count_among(words: Words, known: Words, own: int) -> int:
    """How many of the words occur among the known ones, more than `own` times."""
    values, counts = np.unique(known, return_counts=True)
    if not len(values):
        return 0
    place = np.minimum(np.searchsorted(values, words), len(values) - 1)
    return int(((values[place] == words) & (counts[place] > own)).sum())


def copies(X: Any, digests: Words, part: Ints, rows: Ints) -> Coincidence | None:
    """Which `rows` of X have an equal row in another part that looks like a copy, not like discrete features.

    The most frequent row does not count if it is frequent: it may be an empty text or a blank image. Equal rows are
    taken for copies

    - if each row occurs k, 2k, 3k, … times for some k > 1; or
    - if there are at most eight of a kind on average, and rows that agree in half of the columns agree in the other
      half too: with discrete features many do not. This cannot be known where X is None.
    """
    values, which, counts = np.unique(digests, return_inverse=True, return_counts=True)
    if len(values) == len(digests):
        return None
    lowest, highest = np.full(len(values), np.iinfo(part.dtype).max), np.full(len(values), -1)
    np.minimum.at(lowest, which, part)
    np.maximum.at(highest, which, part)
    apart = lowest < highest
    most = counts.argmax()
    apart[most] &= counts[most] <= _COPIES
    again = apart[which[rows]]
    if again.sum() < 2 or again.mean() <= NOTABLE:
        return None
    multiples = len(counts) >= _FEW and np.gcd.reduce(counts) > 1
    if not multiples and (counts.mean() > _COPIES or not _halves_agree(X, which)):
        return None
    return Coincidence(again, int(rows[again].min()))


def _halves_agree(X: Any, which: Ints) -> bool:
    """Whether pairs of rows agree in half of the columns only if they agree in all, for every choice of a half."""
    sums = _sums(X, _half_multipliers)
    if sums is None or sums.shape[1] == 1:  # with a single column there are no halves
        return False
    kept = which != np.bincount(which).argmax()
    tied = _pairs(which[kept])
    for half in sums[kept, 1:].T:
        near = min(_pairs(half), _pairs(sums[kept, 0] - half)) - tied
        if near * _NEAR >= tied:
            return False
    return True


def _half_multipliers(n: int) -> Words:
    """Those of all columns, and of six random halves of them; of a single column its own only."""
    full = multipliers(n, _SEED)[:n, None]
    if n < 2:
        return full
    rng = np.random.default_rng(_SEED)
    chosen = np.array([rng.permutation(n) < n // 2 for _ in range(_HALVES)]).T
    return np.hstack([full, np.where(chosen, full, np.uint64(0))])


def _pairs(values: Array) -> float:
    """How many pairs of equal values there are."""
    counts = np.unique(values, return_counts=True)[1].astype(float)
    return float((counts * (counts - 1)).sum() / 2)


# -------------------------------------------------------------------- the sums


def _sums(X: Any, factors: Callable[[int], Words]) -> Words | None:
    """Σ_j word_j·c_j for each row and each column of the (columns, q) multipliers; None where X cannot be read."""
    try:
        if sparse.issparse(X):
            return _sparse_sums(sparse.csr_array(X), factors)
        if hasattr(X, "columns"):
            width = len(X.columns)
            columns = (X.iloc[:, j] if hasattr(X, "iloc") else X[:, j] for j in range(width))
            return _column_sums(columns, len(X), factors(width))
        array = np.asarray(X)
        rows = array.reshape(len(array), -1)
        if array.dtype.kind not in "biuf":
            return _column_sums(rows.T, len(rows), factors(rows.shape[1]))
        c = factors(rows.shape[1])
        return np.concatenate(
            [np.empty((0, c.shape[1]), np.uint64), *for_blocks(rows, lambda i: _words(rows[i]) @ c)]
        )
    except Exception:  # noqa: BLE001 - X may be anything the estimator reads
        return None


def _sparse_sums(rows: Any, factors: Callable[[int], Words]) -> Words:
    c = factors(rows.shape[1])
    sums = np.zeros((rows.shape[0], c.shape[1]), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(rows.indptr))
    if len(filled):
        terms = _words(rows.data)[:, None] * c[rows.indices]
        sums[filled] = np.add.reduceat(terms, rows.indptr[filled], axis=0)
    return sums


def _column_sums(columns: Any, n: int, c: Words) -> Words:
    sums = np.zeros((n, c.shape[1]), dtype=np.uint64)
    for column, factor in zip(columns, c, strict=True):
        sums += _words(np.asarray(column))[:, None] * factor
    return sums


def _words(values: Array) -> Words:
    """One word per value: equal numbers, times and texts have equal words, zero has zero."""
    if values.dtype.kind in "biuf":
        numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # −0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan  # of many bit patterns one
        return as_words(numbers)
    if values.dtype.kind in "mM":
        return as_words(np.ascontiguousarray(values).astype(np.int64))
    plain = values.tolist()
    texts = {value: _text_word(value) for value in {value for value in plain if isinstance(value, str)}}
    words = (texts[value] if isinstance(value, str) else _text_word(value) for value in plain)
    return np.fromiter(words, dtype=np.uint64, count=len(values))


def _text_word(value: Any) -> int:
    if is_missing(value):
        return 0  # as None in one table, as NaN in another
    if hasattr(value, "__len__") and not isinstance(value, (str, bytes)):
        raise TypeError("a value is a collection")  # what it prints may be abridged
    return int.from_bytes(blake2b(str(value).encode(), digest_size=8).digest(), "little")
