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

from setwise._arrays import Bools, Floats, Ints, blocks, frozen
from setwise._lazy import lazy
from setwise.contamination.assumption import Assumption

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

    `values` are the u of above, or under uniform inclusion simply the mask: p then cancels in the excess over
    `floor`. Where M was estimated, `support` is how many rows its classes have.
    """

    def __init__(
        self,
        scores: Floats,
        mask: Bools,
        declared: Assumption,
        miss_rate: float,
        classes: list[Any],
    ) -> None:
        self.n, self.K = mask.shape
        self.mask, self.classes, self.M = mask, classes, declared.matrix
        self.W = None if self.M is None else np.linalg.inv(self.M)
        self.values = mask if self.W is None else mask @ self.W
        self.total = self.values.sum(axis=1)
        # What one label takes of a row's surplus: mean zero given x for any number; this one makes a uniform M
        # agree with "uniform" up to the factor 1/(1 − p).
        wrong = 0.0 if self.M is None else (self.M.sum() - np.trace(self.M)) / (self.K * (self.K - 1))
        self.share = 1 / ((self.K - 1) * (1 - wrong))
        self.floor = (self.total - 1 + (miss_rate if self.M is None else 0)) * self.share
        self.support = self.values.sum(axis=0).clip(min=1) if declared.estimated else None
        self.others = (mask.sum(axis=1) - 1).clip(min=0)  # wrong candidates, if the truth is one
        self.order = np.empty(mask.shape, dtype=np.int32)
        self.best = np.empty(self.n)
        for block in blocks(scores):
            self.order[block] = np.argsort(scores[block], axis=1, kind="stable")
            self.best[block] = scores[block].min(axis=1)
        ranks = np.arange(self.K) if self.K <= _POOLED else np.geomspace(1, self.K, _POOLED).astype(int) - 1
        self.starts: list[int] = np.unique(ranks).tolist()

    # ---------------------------------------------------------------- the families of tests

    def by_rank(self) -> list[Deficit]:
        """Each rank (or block of ranks), and all ranks from some rank on."""
        single = list(zip(self.starts, [*self.starts[1:], self.K], strict=True))
        return [
            self._deficit("rank", _ranks(low, high), self.order[:, low:high]) for low, high in single + self._tails
        ]

    def by_category(self) -> list[Deficit]:
        """Pooled low ranks within predicted classes and within bins of confidence."""
        return [
            self._deficit("category", f"{_ranks(low, self.K)}, {name}", self.order[:, low:], rows)
            for low in sorted({min(2, self.K - 1), self.K // 2})
            for name, rows in self._categories
        ]

    def by_label(self) -> list[Deficit]:
        """Each label over all rows."""
        return [
            self._deficit("label", f"the label {name!r}", np.full((self.n, 1), label, dtype=np.int32))
            for label, name in enumerate(self.classes)
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
        hits, least = np.zeros(self.K, dtype=np.int64), np.zeros(self.K)
        for block in blocks(self.order):
            hits += np.take_along_axis(self.mask[block], self.order[block], axis=1).sum(axis=0)
        if self.M is None:
            return hits, np.full(self.K, self.floor.mean())
        rarest = (self.M + 2 * np.eye(self.K)).min(axis=0)
        for block in blocks(self.order):
            least += rarest[self.order[block]].sum(axis=0)
        return hits, least / self.n

    def detectable(self, level: float, power: float) -> float:
        """The smallest excess inclusion of the top label that one of the rank tests would show so often.

        An excess e raises the floor of every other label; it shows where that outweighs the excess observed there
        (truths at low ranks, less what already hides behind them) by a margin of both errors.
        """
        quantiles = ndtri(1 - level) + ndtri(power)
        found = []
        for low, high in self._tails or [(self.K - 1, self.K)]:
            labels = self.order[:, low:high]
            drop = labels.shape[1] * self.share
            if self.W is not None:
                top = self.W[self.order[:, 0]]
                drop = float((drop * top.sum(axis=1) - np.take_along_axis(top, labels, axis=1).sum(axis=1)).mean())
            T = self._excess(labels, np.arange(self.n))
            if drop > 0:
                found.append((max(T.mean(), 0) + quantiles * T.std() / np.sqrt(self.n)) / drop)
        return float(min(found, default=np.inf))

    # ---------------------------------------------------------------- one test

    def _deficit(self, family: str, where: str, labels: Ints, rows: Ints | None = None) -> Deficit:
        """Whether these labels (some of each row) are candidates more rarely than they may be."""
        rows = np.arange(self.n) if rows is None else rows
        labels, size = labels[rows], labels.shape[1]
        T = self._excess(labels, rows)
        if self.M is not None:
            p_value = below_zero(T, self._error_of(labels, rows))
            return Deficit(family, where, len(rows), float(T.mean()), 0.0, p_value)
        expected = float(self.floor[rows].mean())
        count = int(self.mask[rows[:, None], labels].sum())
        p_value = below_zero(T)
        if p_value < _SILENT:
            p_value = max(p_value, few_included(count, np.bincount(self.others[rows]), size, self.K - 1))
        return Deficit(family, where, len(rows), float(T.mean() / size + expected), expected, p_value)

    def _excess(self, labels: Ints, rows: Ints) -> Floats:
        """By how much these labels of each row exceed what they must reach: mean zero or more given x."""
        seen = self.values[rows[:, None], labels].sum(axis=1)
        excess: Floats = seen - labels.shape[1] * self.floor[rows]
        return excess

    def _error_of(self, labels: Ints, rows: Ints) -> float:
        """What the error of an estimated M adds to the variance of the mean excess."""
        if self.support is None:
            return 0.0
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
        found = [*_members(bins, names), *_members(self.order[:, 0], predicted)]
        return [(name, rows) for name, rows in found if len(rows) >= _FEWEST]


def below_zero(T: Floats, error: float = 0.0) -> float:
    """The p-value of "the mean of T is at least zero" for independent rows, with Hall's correction for skewness.

    One imaginary row at one (an inclusion more) keeps rare inclusions from looking certain. `error` is added to
    the variance of the mean.
    """
    x = np.append(T, 1.0)
    n, mean = len(x), float(x.mean())
    centred = x - mean
    variance = float((centred**2).mean())
    skewness = float((centred**3).mean()) / variance**1.5 if variance > 0 else 0.0
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
