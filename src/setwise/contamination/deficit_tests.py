"""Where labels are candidates more rarely than declared contamination allows: the tests behind `diagnose`.

Where wrong labels enter with a probability that does not depend on x, u = z M⁻¹ (z a row of the mask) estimates
1{y = l} without bias given x, so its mean over rows and labels chosen by x alone is never negative. Under
uniform inclusion: a label chosen by x is a candidate no more rarely than (|S| − 1 + η)/(K − 1), whose mean is p.
Both sides come from the same row, so the error of the estimated p is part of the statistic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtr, ndtri, stdtr

from setwise._arrays import Array, Bools, Floats, Ints, along_rows, blocks, count_true, frozen
from setwise._lazy import lazy
from setwise.contamination.assumption import Assumption
from setwise.evidence.score_table import Table, row_order

_POOLED = 12  # more ranks than this are tested in blocks
_BINS = 4  # of confidence, the first the most confident
_FEWEST = 20  # rows of a category that is looked at on its own
_WIDE = 200.0  # standard deviation of a count from which the normal law stands for the exact one
_SILENT = 0.25  # a p-value that is one after adjustment in every family, and need not be looked at twice
_RESOLUTION = 1e-12  # below this a Fourier inversion in double precision cannot tell p-values from zero


@dataclass(frozen=True)
class Deficit:
    """One test: what was looked at, what was seen and expected there, and how rarely that happens by chance."""

    family: str
    where: str
    rows: int
    seen: float
    expected: float
    p_value: float


class RankedRows:
    """Rows with their labels in the order of the scores, and the tests on them.

    One pass over blocks of rows sums the u of above (under uniform inclusion simply the mask: p then cancels in the
    excess over `floor`) over ranges of ranks in each row; the tests look at these sums. Where M was estimated,
    `support` is how many rows its classes have.
    """

    def __init__(
        self,
        scores: Table,
        mask: Bools,
        declared: Assumption,
        miss_rate: float,
        classes: list[Any],
    ) -> None:
        self.n, self.K = mask.shape
        self.scores, self.mask, self.classes, self.M = scores, mask, classes, declared.matrix
        self.sizes = count_true(mask)
        self.W = None if self.M is None else np.linalg.inv(self.M)
        self.total = self.sizes if self.W is None else mask @ self.W.sum(axis=1)
        # What one label takes of a row's surplus: mean zero given x for any number; this one makes a uniform M
        # agree with "uniform" up to the factor 1/(1 − p).
        wrong = 0.0 if self.M is None else (self.M.sum() - np.trace(self.M)) / (self.K * (self.K - 1))
        self.share = 1 / ((self.K - 1) * (1 - wrong))
        self.floor = (self.total - 1 + (miss_rate if self.M is None else 0)) * self.share
        self.support = None
        if declared.estimated and self.W is not None:
            self.support = (mask.sum(axis=0) @ self.W).clip(min=1)
        self.others = (self.sizes - 1).clip(min=0)  # wrong candidates, if the truth is one
        ranks = np.arange(self.K) if self.K <= _POOLED else np.geomspace(1, self.K, _POOLED).astype(int) - 1
        self.starts: list[int] = np.unique(ranks).tolist()
        self.lows = sorted({min(2, self.K - 1), self.K // 2})
        self._look()

    def _look(self) -> None:
        """The pass over the rows: what their labels of each rank hold, and the most plausible label of each."""
        edges = sorted({*self.starts, *self.lows})
        self._column = {edge: j for j, edge in enumerate([*edges, self.K])}
        self._from = np.zeros((self.n, len(edges) + 1), dtype=np.int32 if self.W is None else np.float64)
        self.best, self.predicted = np.empty(self.n), np.empty(self.n, dtype=np.intp)
        self.hits, self.least = np.zeros(self.K, dtype=np.int64), np.zeros(self.K)
        self._top = np.zeros(len(edges) + 1)  # Σ W_yl over the labels from each edge on, y being the top label
        rarest = None if self.M is None else (self.M + 2 * np.eye(self.K)).min(axis=0)
        for rows in blocks(self.scores, 2):
            scores, mask = self.scores[rows], self.mask[rows]
            order = row_order(scores)
            self.predicted[rows] = top = order[:, 0]
            self.best[rows] = scores[np.arange(len(top)), top]
            ranked = along_rows(mask, order)
            self.hits += np.count_nonzero(ranked, axis=0)
            if self.W is not None and rarest is not None:
                self.least += rarest[order].sum(axis=0)
                self._top[:-1] += _suffix_sums(along_rows(self.W[top], order), edges).sum(axis=0)
                ranked = along_rows(mask @ self.W, order)
            self._from[rows, :-1] = _suffix_sums(ranked, edges)

    @lazy
    def order(self) -> Ints:
        """The labels of each row in the order of the scores; of a uniform contamination nothing needs all of it."""
        return np.concatenate([row_order(self.scores[rows]).astype(np.int32) for rows in blocks(self.scores)])

    # ---------------------------------------------------------------- the families of tests

    def by_rank(self) -> list[Deficit]:
        """Each rank (or block of ranks), and all ranks from some rank on."""
        single = list(zip(self.starts, [*self.starts[1:], self.K], strict=True))
        rows = np.arange(self.n)
        return [self._of_ranks("rank", _ranks(low, high), low, high, rows) for low, high in single + self._tails]

    def by_category(self) -> list[Deficit]:
        """Pooled low ranks within predicted classes and within bins of confidence."""
        return [
            self._of_ranks("category", f"{_ranks(low, self.K)}, {name}", low, self.K, rows)
            for low in self.lows
            for name, rows in self._categories
        ]

    def by_label(self) -> list[Deficit]:
        """Each label over all rows."""
        found = self._uniform_labels() if self.W is None else self._matrix_labels()
        return [
            Deficit("label", f"the label {name!r}", self.n, *one)
            for name, one in zip(self.classes, found, strict=True)
        ]

    def by_size(self) -> list[Deficit]:
        """The mean of |S| (in general of Σ u), which is the same in every category."""
        found = []
        whole, squares = self.total.sum(), ((self.total - self.total.mean()) ** 2).sum()
        for name, rows in self._categories:
            here, m, others = self.total[rows], len(rows), self.n - len(rows)
            if others < _FEWEST:
                continue
            seen, expected = float(here.mean()), float((whole - here.sum()) / others)
            between = (seen - expected) ** 2 * m * others / self.n
            within = ((here - seen) ** 2).sum()
            apart = within / (m - 1) / m + (squares - between - within) / (others - 1) / others  # Welch
            alike = squares / (self.n - 1) * (1 / m + 1 / others)  # steadier where sizes hardly vary
            p_value = _two_sided(seen - expected, max(apart, alike) + self._size_error(rows), min(m, others) - 1)
            found.append(Deficit("size", name, m, seen, expected, p_value))
        if self.M is not None and self.support is None:
            seen, spread = float(self.total.mean()), float(self.total.var(ddof=1)) / self.n
            found.append(Deficit("size", "all rows", self.n, seen, 1.0, _two_sided(seen - 1, spread, self.n - 1)))
        return found

    # ---------------------------------------------------------------- a picture, and what could be seen

    def inclusion_by_rank(self) -> tuple[Ints, Floats]:
        """How often the label at each rank is a candidate, and the least that it must be (at least p, or min M)."""
        if self.M is None:
            return self.hits, np.full(self.K, self.floor.mean())
        return self.hits, self.least / self.n

    def detectable(self, level: float, power: float) -> float:
        """The smallest excess inclusion of the top label that one of the rank tests would show so often.

        An excess e raises the floor of every other label; it shows where that outweighs the excess observed there
        (truths at low ranks, less what already hides behind them) by a margin of both errors.
        """
        quantiles = ndtri(1 - level) + ndtri(power)
        found = []
        for low, high in self._tails or [(self.K - 1, self.K)]:
            drop = (high - low) * self.share
            if self.W is not None:
                top = self._top[self._column[low]] - self._top[self._column[high]]
                drop = float((drop * self.W.sum(axis=1)[self.predicted]).mean() - top / self.n)
            T = self._excess(low, high)
            if drop > 0:
                found.append((max(T.mean(), 0) + quantiles * T.std() / np.sqrt(self.n)) / drop)
        return float(min(found, default=np.inf))

    # ---------------------------------------------------------------- one test

    def _of_ranks(self, family: str, where: str, low: int, high: int, rows: Ints) -> Deficit:
        """Whether the labels of these ranks are candidates more rarely than they may be."""
        T, size = self._excess(low, high, rows), high - low
        if self.M is not None:
            error = 0.0 if self.support is None else self._error_of(self.order[rows, low:high], rows)
            return Deficit(family, where, len(rows), float(T.mean()), 0.0, below_zero(T, error))
        expected = float(self.floor[rows].mean())
        p_value = below_zero(T)
        if p_value < _SILENT:
            count, wrong = int(self._sum_ranks(low, high, rows).sum()), np.bincount(self.others[rows])
            p_value = max(p_value, few_included(count, wrong, size, self.K - 1))
        return Deficit(family, where, len(rows), float(T.mean() / size + expected), expected, p_value)

    def _uniform_labels(self) -> Iterator[tuple[float, float, float]]:
        """Of each label what was seen, what is expected, and the p-value: by the rows of each size that hold it."""
        sizes, which, rows = np.unique(self.sizes, return_inverse=True, return_counts=True)
        floor = self.floor[np.unique(which, return_index=True)[1]]
        held = np.stack([np.count_nonzero(self.mask[which == j], axis=0) for j in range(len(sizes))], axis=1)
        wrong, expected = np.bincount(self.others), float(self.floor.mean())
        values = np.concatenate([1 - floor, -floor, [1.0]])  # the imaginary row of `below_zero`
        for own in held:
            p_value = _studentise(values, np.concatenate([own, rows - own, [1]]))
            count = int(own.sum())
            if p_value < _SILENT:
                p_value = max(p_value, few_included(count, wrong, 1, self.K - 1))
            yield count / self.n, expected, p_value

    def _matrix_labels(self) -> Iterator[tuple[float, float, float]]:
        """The same by the columns of u, and with the error of an estimated M."""
        errors = np.zeros(self.K)
        if self.M is not None and self.W is not None and self.support is not None:
            variance = self.M * (1 - self.M) / self.support[:, None]
            held = (self.mask.mean(axis=0) @ self.W) ** 2
            labels = (self.W - self.share * self.W.sum(axis=1, keepdims=True)) ** 2
            errors = held @ variance @ labels
        for label in range(self.K):
            T = self.mask @ self.W[:, label] - self.floor  # type: ignore[index]
            yield float(T.mean()), 0.0, below_zero(T, float(errors[label]))

    def _sum_ranks(self, low: int, high: int, rows: Ints | slice = slice(None)) -> Array:
        """The sum of u over the labels of these ranks, in each row."""
        return self._from[rows, self._column[low]] - self._from[rows, self._column[high]]

    def _excess(self, low: int, high: int, rows: Ints | slice = slice(None)) -> Floats:
        """By how much the labels of these ranks exceed what they must reach: mean zero or more given x."""
        excess: Floats = self._sum_ranks(low, high, rows) - (high - low) * self.floor[rows]
        return excess

    def _error_of(self, labels: Ints, rows: Ints) -> float:
        """What the error of an estimated M adds to the variance of the mean excess."""
        share = labels.shape[1] * self.share
        weight = np.full((len(rows), self.K), -share)
        np.put_along_axis(weight, labels, 1 - share, axis=1)
        return self._error(weight.T @ self.mask[rows] / len(rows))

    def _size_error(self, rows: Ints) -> float:
        """The same for the mean of Σ u in these rows less that in the others."""
        if self.support is None:
            return 0.0
        inside, whole = self.mask[rows].mean(axis=0), self.mask.mean(axis=0)
        held = (inside - whole) * self.n / (self.n - len(rows))
        return self._error(np.outer(np.ones(self.K), held))

    def _error(self, A: Floats) -> float:
        """The variance of tr(M⁻¹ A) by the delta method: each entry of M as a share of its class's rows."""
        if self.M is None or self.W is None or self.support is None:
            return 0.0
        variance = self.M * (1 - self.M) / self.support[:, None]
        return float((variance * (self.W @ A @ self.W).T ** 2).sum())

    # ---------------------------------------------------------------- what is chosen by x alone

    @lazy
    def _tails(self) -> list[tuple[int, int]]:
        """All ranks from some rank on; from the second on nothing can be missing."""
        return [(start, self.K) for start in self.starts if 2 <= start < self.K - 1]

    @lazy
    def _categories(self) -> list[tuple[str, Ints]]:
        """Predicted classes and bins of confidence that have enough rows."""
        edges = np.quantile(self.best, np.arange(1, _BINS) / _BINS)
        bins = np.searchsorted(edges, self.best, side="left")
        names = [f"quarter {b + 1} of rows by confidence" for b in range(_BINS)]
        predicted = [f"predicted class {name!r}" for name in self.classes]
        found = [*_members(bins, names), *_members(self.predicted, predicted)]
        return [(name, rows) for name, rows in found if len(rows) >= _FEWEST]


def below_zero(T: Floats, error: float = 0.0) -> float:
    """The p-value of "the mean of T is at least zero" for independent rows, with Hall's correction for skewness.

    One imaginary row at one (an inclusion more) keeps rare inclusions from looking certain. `error` is added to
    the variance of the mean.
    """
    return _studentise(np.append(T, 1.0), None, error)


def _studentise(x: Floats, times: Ints | None, error: float = 0.0) -> float:
    """The same of rows that are given with the imaginary one, each of them so many times."""
    n = len(x) if times is None else int(times.sum())
    mean = float(np.average(x, weights=times))
    centred = x - mean
    squares = centred * centred
    variance = float(np.average(squares, weights=times))
    skewness = float(np.average(squares * centred, weights=times)) / variance**1.5 if variance > 0 else 0.0
    scale = np.sqrt(variance * n / (n - 1) + n * error)
    u = mean / scale if scale > 0 else 0.0
    bent = u + skewness * u**2 / 3 + skewness**2 * u**3 / 27 + skewness / (6 * n)
    return float(stdtr(n - 1, np.sqrt(n) * bent))


def few_included(count: int, rows: Ints, size: int, others: int) -> float:
    """P(X ≤ count) for X a sum of independent hypergeometric counts: `size` labels of each row are looked at.

    `rows[w]` rows have w of their `others` wrong labels in S; labels among which the truth is have more. Exact
    by Fourier inversion, normal where the deviation is large; never below what the inversion can resolve.

    >>> round(few_included(0, np.array([0, 3]), size=1, others=2), 9)  # three rows, each misses it half the time
    0.125
    """
    rate = np.arange(len(rows)) / others
    mean = float((rows * rate).sum() * size)
    variance = float((rows * rate * (1 - rate)).sum() * size * (others - size) / max(others - 1, 1))
    deviation = np.sqrt(variance)
    if deviation > _WIDE:
        return max(float(ndtr((count + 0.5 - mean) / deviation)), _RESOLUTION)
    # A window around the mean: what lies outside is beyond the resolution.
    window = max(int(24 * deviation) + 40, size + 1)
    start = max(int(mean) - window // 2, 0)
    if count >= start + window:
        return 1.0
    law = _law(tuple(rows.tolist()), size, others, window)
    return float(np.clip(np.roll(law, -(start % window))[: max(count - start + 1, 0)].sum(), _RESOLUTION, 1.0))


@lru_cache(maxsize=256)
def _law(rows: tuple[int, ...], size: int, others: int, window: int) -> Floats:
    """The probabilities of a sum of hypergeometric counts, wrapped around the window; many tests share one."""
    transform = np.ones(window // 2 + 1, dtype=np.complex128)
    for wrong, times in enumerate(rows):
        if times:
            transform *= np.fft.rfft(_hypergeometric(wrong, size, others), window) ** times
    return frozen(np.fft.irfft(transform, window))


@lru_cache(maxsize=4096)
def _hypergeometric(inside: int, drawn: int, total: int) -> Floats:
    """P(j of the drawn ones are inside), j = 0..drawn."""
    j = np.arange(drawn + 1)
    j = j[(j <= inside) & (drawn - j <= total - inside)]
    law = np.zeros(drawn + 1)
    law[j] = np.exp(_choose(inside, j) + _choose(total - inside, drawn - j) - _choose(total, drawn))
    return frozen(law)


def _choose(n: int, k: Any) -> Any:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _two_sided(gap: float, variance: float, freedom: int) -> float:
    """The p-value of "the gap is zero"."""
    if variance <= 0:
        return 1.0 if gap == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(gap) / np.sqrt(variance)))


def _members(codes: Ints, names: list[str]) -> Iterator[tuple[str, Ints]]:
    """The rows of each category."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    return zip(names, np.split(order, ends[:-1]), strict=True)


def _ranks(low: int, high: int) -> str:
    return f"rank {low + 1}" if high - low == 1 else f"ranks {low + 1} to {high}"


def _suffix_sums(values: Array, edges: list[int]) -> Array:
    """The sums of each row from each edge on."""
    kind = np.int32 if values.dtype == bool else values.dtype
    sums: Array = np.add.reduceat(values, edges, axis=1, dtype=kind)
    return np.cumsum(sums[:, ::-1], axis=1, dtype=kind)[:, ::-1]
