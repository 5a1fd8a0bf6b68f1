"""Sums over rows of their step functions, at every threshold that can matter: counted, not sorted.

Row i contributes N_i(t) = Σ_{s_ij ≤ t} w_ij. Wanted are ΣN_i, ΣN_i² and ΣN_i·d_i at the scores t. All three jump at
single scores, and so are sums over all (n, K) entries up to t:

1. a pass over blocks of rows counts the jumps in cells of the scores, the leading bits of their float32, and how
   much of them rises: that bounds the sums inside a cell;
2. whoever asks says by these bounds which cells matter; a second pass counts in finer cells inside of them;
3. a third pass collects the entries of the finer cells that matter, and these alone are sorted.

Of any other cell its end is given alone. With cells chosen by what is looked for, the answer is exact. Counts of
blocks are added, in any order: rows may as well come from a stream that can be read again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from setwise._arrays import Bools, Floats, Ints, along_rows, blocks
from setwise.evidence.score_table import Table, row_order
from setwise.ranks import Ascending, sortable_bits

FEW = 2**16
"""Entries that are sorted at once, without cells."""
_FINER = 5  # bits by which the second pass tells more scores apart than the first

Columns: TypeAlias = tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class Steps:
    """The rows' step functions: N_i jumps by weights (n, K) at the scores of the labels, and ends at about d_i.

    `weigh` gives the weights of a block of rows. `new` is the d of a new row, on average over the steps that truths
    make; `spread` is the length R of the interval that holds N_i(t) − L·d_i for all t and all L in [0, 1], where it
    is known.
    """

    table: Table
    weigh: Callable[[slice], Floats]
    d: Floats
    new: float = 1.0
    spread: float = math.nan

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.d)

    @property
    def size(self) -> int:
        """How many steps there are."""
        return math.prod(self.table.shape)

    def parts(self, *, ordered: bool) -> Iterator[tuple[slice, Floats, Floats]]:
        """Blocks of rows with their scores and jumps (rows, steps), by score within each row if that is asked."""
        for rows in blocks(self.table, 2):
            scores, weights = self.table[rows], self.weigh(rows)
            if ordered and scores.shape[1] > 1:
                order = row_order(scores)
                scores, weights = along_rows(scores, order), along_rows(weights, order)
            yield rows, scores, weights


class Bounds:
    """The sums at the end of each cell, and how low and high they may be inside; one row for each kind of sum."""

    def __init__(self, jumps: Floats, rises: Floats) -> None:
        self._jumps, self._rises, self.reached = jumps, rises, np.cumsum(jumps, axis=1)

    @property
    def lowest(self) -> Floats:
        """As if all that rises in a cell came last."""
        return self.reached - self._rises

    @property
    def highest(self) -> Floats:
        """As if all that rises in a cell came first."""
        highest: Floats = self.reached - self._jumps
        highest += self._rises
        return highest


@dataclass
class CellCounts:
    """What was counted in each cell: `sums[:, j]` in the cell `start` + j.

    There are two rows for each column: the sums of all its entries, and of those that are positive.
    """

    start: int
    sums: Floats

    def add(self, cells: Ints, columns: Columns) -> None:
        """Counts a block of entries."""
        if not cells.size:
            return
        self._reach(int(cells.min()), int(cells.max()) + 1)
        place = cells.ravel().astype(np.intp)
        place -= self.start
        for j, column in enumerate(column.ravel() for column in columns):
            np.add.at(self.sums[2 * j], place, column)
            rises = np.flatnonzero(column > 0)
            np.add.at(self.sums[2 * j + 1], place.take(rises), column.take(rises))

    @property
    def bounds(self) -> Bounds:
        """The bounds on the sums of all columns."""
        return Bounds(self.sums[::2], self.sums[1::2])

    def _reach(self, low: int, high: int) -> None:
        """Makes room for the cells from `low` to below `high`."""
        width = self.sums.shape[1]
        if not width:
            self.start = low
        left, right = max(self.start - low, 0), max(high - self.start - width, 0)
        if left or right:
            self.sums, self.start = np.pad(self.sums, ((0, 0), (left, right))), self.start - left


def step_sums(steps: Steps, matters: Callable[[Bounds], Bools], *, products: bool = False) -> tuple[Floats, Floats]:
    """Thresholds in order, and ΣN at each as a (1, m) array; with `products` (ΣN, ΣN², ΣN·d) as a (3, m) array.

    `matters` chooses cells by the bounds on these sums. Of a run of cells that were not chosen the end is given,
    under the threshold before it.
    """
    if steps.size <= FEW:
        scores, jumps = _in_order(_entries(steps, products))
        return scores, _running(jumps)
    kinds = 3 if products else 1
    omitted = min(max(36 - steps.size.bit_length(), 11), 16)  # bits: about as many cells, whatever the size
    coarse = CellCounts(0, np.zeros((2 * kinds, 0)))
    for s, c in _entries(steps, products):
        coarse.add(sortable_bits(s) >> omitted, c)
    cells = _FineCells(coarse, matters(coarse.bounds), omitted)
    fine = CellCounts(0, cells.outside(coarse))
    del coarse
    for s, c in _entries(steps, products):
        fine.add(*cells.inside(s, c)[1:])
    chosen = matters(fine.bounds) & cells.split
    chosen[: 1 << _FINER] = True  # before the first threshold there is none
    runs = np.flatnonzero(np.diff(chosen, append=True) & ~chosen)  # where cells that were not chosen end
    skipped = np.diff(np.cumsum(np.where(chosen, 0.0, fine.sums[::2]), axis=1)[:, runs], prepend=0.0)
    del fine

    def collect() -> Iterator[tuple[Floats, Columns]]:
        for scores, columns in _entries(steps, products):
            found, cell, parts = cells.inside(scores, columns)
            wanted = np.flatnonzero(chosen.take(cell))
            yield found.take(wanted), tuple(part.take(wanted) for part in parts)

    scores, jumps = _in_order(collect())
    place = np.searchsorted(np.concatenate([cells.inside(scores[some], ())[1] for some in blocks(scores)]), runs)
    scores, jumps = np.insert(scores, place, scores[place - 1]), np.insert(jumps, place, skipped, axis=1)
    return scores, _running(jumps)


def sums_at(steps: Steps, thresholds: Floats) -> tuple[Floats, Floats]:
    """ΣN² and ΣN·end at some thresholds, given in order, and in the last place at the end of all steps."""
    ascending, bins = Ascending(thresholds), len(thresholds) + 1
    squares, ends = np.zeros(bins), np.zeros(bins)
    for _, scores, jumps in steps.parts(ordered=False):
        # Between two thresholds the order within a row does not count.
        labels = scores.shape[1]
        shift = (labels - 1).bit_length()
        place = ascending.count_below(scores)
        place <<= shift
        place |= np.arange(labels)
        place.sort(axis=1)
        ordered = along_rows(jumps, place & ((1 << shift) - 1))
        place >>= shift
        more_squares, more_ends = _products(ordered)
        squares += np.bincount(place.ravel(), more_squares.ravel(), minlength=bins)
        ends += np.bincount(place.ravel(), more_ends.ravel(), minlength=bins)
    return np.cumsum(squares), np.cumsum(ends)


class _FineCells:
    """Finer cells inside some of those that were counted in; the others between two of these make one cell."""

    def __init__(self, coarse: CellCounts, split: Bools, omitted: int) -> None:
        split[0], self.omitted = True, omitted
        parts = 1 << _FINER
        ends = np.cumsum(np.where(split, parts, np.append(False, split[:-1])))
        self.start, self.coarse = coarse.start, split
        self.base = ends - np.where(split, parts, 1)
        self.split = np.ones(ends[-1], dtype=bool)
        self.split[self.base[~split]] = False

    def outside(self, coarse: CellCounts) -> Floats:
        """What was counted in the cells that are not split, as sums of the finer ones."""
        others = np.flatnonzero(~self.coarse)
        counted = np.zeros((len(coarse.sums), len(self.split)))
        for into, sums in zip(counted, coarse.sums, strict=True):
            np.add.at(into, self.base[others], sums[others])
        return counted

    def inside(self, scores: Floats, columns: Columns) -> tuple[Floats, Ints, Columns]:
        """The scores in cells that were split, their cells numbered from zero, and their columns."""
        bits = sortable_bits(scores).ravel()
        coarse = (bits >> self.omitted).astype(np.intp)
        coarse -= self.start
        found = np.flatnonzero(self.coarse.take(coarse))
        cells = self.base.take(coarse.take(found))
        cells += (bits.take(found) >> (self.omitted - _FINER)) & ((1 << _FINER) - 1)
        return scores.ravel().take(found), cells, tuple(column.ravel().take(found) for column in columns)


def _entries(steps: Steps, products: bool) -> Iterator[tuple[Floats, Columns]]:
    """The scores of blocks of rows, and by how much the sums jump there."""
    for rows, scores, jumps in steps.parts(ordered=products):
        yield scores, (jumps, *_products(jumps, steps.d[rows])) if products else (jumps,)


def _products(jumps: Floats, d: Floats | None = None) -> tuple[Floats, Floats]:
    """By how much N² and N·d jump in each row; if d is not given, N times its end."""
    values = np.cumsum(jumps, axis=1)
    products = jumps * (values[:, -1] if d is None else d)[:, None]
    values *= 2
    values -= jumps
    values *= jumps  # N² − (N − w)²
    return values, products


def _running(jumps: Floats) -> Floats:
    """The sums of all jumps up to each, in place; with more digits, as rounding would add up over so many."""
    for row in jumps:
        total = np.longdouble(0)
        for some in blocks(row):
            reached = np.cumsum(row[some], dtype=np.longdouble) + total
            row[some], total = reached, reached[-1]
    return jumps


def _in_order(entries: Iterable[tuple[Floats, Columns]]) -> tuple[Floats, Floats]:
    """Different scores from the smallest on, and the sums of the columns at each."""
    parts, *columns = map(list, zip(*((s.ravel(), *(c.ravel() for c in of)) for s, of in entries), strict=True))
    scores = _join(parts)
    order = np.argsort(scores).astype(np.min_scalar_type(-len(scores)))  # all arrays here are as long as it
    scores = scores[order]
    first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1])).astype(order.dtype)
    scores = scores[first]
    sums = np.empty((len(columns), len(first)))
    for into, column in zip(sums, columns, strict=True):
        joined = _join(column)
        for some in blocks(into):
            start, stop = first[some.start], first[some.stop] if some.stop < len(first) else len(order)
            np.add.reduceat(joined.take(order[start:stop]), first[some] - start, out=into[some])
    return scores, sums


def _join(parts: list[Floats]) -> Floats:
    """The parts one after the other; each is let go once it is copied."""
    stop = sum(map(len, parts))
    joined = np.empty(stop, dtype=parts[0].dtype)
    while parts:
        part = parts.pop()
        joined[stop - len(part) : stop] = part
        stop -= len(part)
    return joined
