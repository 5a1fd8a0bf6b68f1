"""Sums over rows of their step functions, at every threshold where they jump.

Row i contributes N_i(t) = Σ_{s_ij ≤ t} w_ij. Wanted are ΣN_i, ΣN_i² and ΣN_i·d_i at the scores t. All three jump at
single scores, and so are sums over all (n, K) entries in order. Of more entries than `EXACT` the scores are rounded
up to sixteen binary digits, so that fewer different ones are left; what is summed up to each of these is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from setwise._arrays import Floats, along_rows, blocks
from setwise.evidence.score_table import Table, row_order
from setwise.ranks import Ascending

EXACT = 2**22
"""Entries that are sorted at once; of more, thresholds are rounded by one part in 32,768 at most."""
_STEPS = 2**16

_Entries: TypeAlias = tuple[Floats, Iterable[Floats]]
"""Scores, and by how much each sum jumps there."""


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


def step_sums(steps: Steps, *, products: bool = False) -> tuple[Floats, Floats]:
    """Thresholds in order, and ΣN at each as a (1, m) array; with `products` (ΣN, ΣN², ΣN·d) as a (3, m) array."""
    entries: list[_Entries] = []
    held, many = 0, steps.size > EXACT
    for rows, scores, jumps in steps.parts(ordered=products):
        columns = (jumps, *_products(jumps, steps.d[rows])) if products else (jumps,)
        entries.append(((_round_up(scores) if many else scores).ravel(), [column.ravel() for column in columns]))
        held += scores.size
        if held > EXACT:
            entries = [_in_order(entries)]
            held = len(entries[0][0])
    scores, sums = _in_order(entries)
    # with more digits, as rounding would add up over so many
    return scores, np.cumsum(sums, axis=1, dtype=np.longdouble).astype(np.float64)


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


def _products(jumps: Floats, d: Floats | None = None) -> tuple[Floats, Floats]:
    """By how much N² and N·d jump in each row; if d is not given, N times its end."""
    values = np.cumsum(jumps, axis=1)
    products = jumps * (values[:, -1] if d is None else d)[:, None]
    values *= 2
    values -= jumps
    values *= jumps  # N² − (N − w)²
    return values, products


def _round_up(scores: Floats) -> Floats:
    """The scores at sixteen binary digits, so that small ones stay different."""
    mantissa, exponent = np.frexp(scores)
    rounded: Floats = np.ldexp(np.ceil(mantissa * _STEPS) / _STEPS, exponent)
    return rounded


def _in_order(entries: Sequence[_Entries]) -> tuple[Floats, Floats]:
    """Different scores from the smallest on, and the sums of the columns at each."""
    scores = np.concatenate([part for part, _ in entries])
    order = np.argsort(scores)
    scores = scores[order]
    first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
    columns = zip(*(columns for _, columns in entries), strict=True)
    return scores[first], np.stack([np.add.reduceat(np.concatenate(parts)[order], first) for parts in columns])
