"""`Monitor`: notices, row by row, that new rows are no longer like the calibration rows.

A row's p-value is its rank among all rows seen so far, calibration rows and earlier new rows alike, with ties
broken at random:

    p_t = (#{i < t: c_i < c_t} + u_t·#{i ≤ t: c_i = c_t}) / t

where c is the cell of what is watched: the odds of the largest probability of the row, the position of its label,
and the distance of its features from those learned from (`feature_summary`), where the model knows them. A cell
holds the numbers that agree in their first 11 binary digits, which are 1,024 cells between x and 2x. Only counts
of cells are kept, so that neither the cost of a row nor the memory grows with the rows seen. The cell depends on
the row alone: if all rows come from one source, so do their cells, and p_1, p_2, … are independent and uniform,
exactly (Vovk, Gammerman and Shafer, 2005). Ranked among the calibration rows alone, or in cells chosen by their
values, they would not be.

A gambler who starts with 1 and stakes on each p_t at fair odds ever owns k with probability at most 1/k (Ville).
The bets are f(p) = 1 + ε(p − ½), and 1 ± (8·1{p in an eighth of [0, 1]} − 1)/10; the stake is spread over them
and over the row s after which a bet begins, w_s = 1/log₂(s + 2) − 1/log₂(s + 3):

    M_t = mean over bets of Σ_{s<t} w_s Π_{s<r≤t} f(p_r)  +  1/log₂(t + 2)

The gamblers, one for each column (for a cross-conformal classifier of each fold), see different p-values: each game
is fair to who has seen its own past alone, so that their mean need not be. An alarm is raised where one of k has
won k/δ.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints, check_sizes
from setwise._types import Candidates, Column, Features, Seed
from setwise.calibration.base import BaseCalibration
from setwise.calibration.new_rows import NewRows
from setwise.calibration.pooled import AnyCalibration
from setwise.drift.comparison import read_new_rows
from setwise.drift.feature_summary import FeatureSummary
from setwise.errors import InputError
from setwise.findings import format_p_value
from setwise.ranks import as_level
from setwise.row_noise import draw_seed, uniforms_of_ids
from setwise.storage.container import read_container, reading_untrusted, write_container
from setwise.storage.stored_arrays import check_array

FORMAT, VERSION = "setwise-monitor", 3
_TILTS = np.array([-1.75, -1.0, -0.5, 0.5, 1.0, 1.75])
_BINS, _STAKE = 8, 0.1
_MOST_ROWS, _SEEDS = 2**53, 2**63  # that a stored state may have seen, or name
_BLOCK = 256  # rows whose ranks among each other are counted at once, before they join the counts of cells
_DROPPED = 42  # bits of a float64 that do not tell its cell: sign, exponent and 10 of 52 further digits do
_CELLS = 2 ** (63 - _DROPPED)
_WATCHED = ("largest probability", "predicted label", "distance of its features")


@dataclass(frozen=True)
class MonitorState:
    """What is known after some rows.

    Attributes
    ----------
    rows
        How many new rows were seen.
    alarm
        Whether they were called different, now or before.
    first_row
        The position of the row at which that happened, from 0; None where it did not.
    p_value
        How probable what was seen at the worst moment so far is, at any time, if all rows come from one source.
    differs
        What spoke loudest.
    """

    rows: int
    alarm: bool
    first_row: int | None
    p_value: float
    differs: str

    def __str__(self) -> str:
        if not self.alarm:
            return f"No alarm after {self.rows:,} rows ({format_p_value(self.p_value)})."
        return (
            f"Alarm at row {self.first_row:,}: rows are no longer like the calibration rows; what differs is the "
            f"{self.differs} ({format_p_value(self.p_value)} after {self.rows:,} rows)."
        )


class Monitor:
    """Watches rows that arrive in time; made by `Calibration.monitor`.

    As long as rows come from the source of the calibration rows an alarm is raised with probability at most
    `delta`, however long it runs and whenever one looks. The result does not depend on how rows are cut into
    batches. Several threads may update one monitor. An update that is interrupted counts none of its
    rows, or, in its last moment, all: `state.rows` says which.
    """

    def __init__(
        self,
        calibration: AnyCalibration,
        *,
        delta: float = 0.05,
        random_state: Seed = None,
        resume: str | os.PathLike[str] | None = None,
        give: Callable[[Any], Any] | None = None,
        features: FeatureSummary | None = None,
    ) -> None:
        self.delta = float(as_level(delta, "delta"))
        if any(part.evidence.weight is not None or part.evidence.group is not None for part in calibration.parts):
            raise InputError("monitor: not available for weighted or grouped rows, which are not exchangeable")
        if selection := calibration.parts[0].judgement.selection:
            raise InputError(f"monitor: {selection}", "hold all rows, with CalibrationRows(memory_limit=…)")
        self._parts, self._give, self._seed = calibration.parts, give, draw_seed(random_state)
        self._reference = None
        distances = None
        if features is not None and features.distances is not None and _fits(features, self._parts):
            self._reference, distances = features.reference, features.distances
        games: list[_Game] = []
        for place, part in enumerate(self._parts):
            evidence = part.evidence
            if evidence.confidence is None or evidence.predicted is None:
                raise ValueError("this evidence does not keep what the model predicted; calibrate again.")
            watched = _cells(evidence.confidence, evidence.predicted, None if place else distances)
            codes = np.zeros(evidence.n, dtype=np.intp) if part.category is None else part.category
            games += [_Game.of(cells, codes, len(part.category_names)) for cells in watched]
        self._digest = _digest(games)
        self._progress = _Progress(tuple(games))  # replaced as a whole: whoever reads it meets no half of an update
        self._lock = threading.Lock()
        if resume is not None:
            self._restore(resume)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @property
    def state(self) -> MonitorState:
        """What is known so far."""
        return self._describe(self._progress)

    @property
    def alarm(self) -> bool:
        """Whether rows were called different, now or before."""
        return self._progress.first_row is not None

    def update(
        self, rows: Features, *, by: Column = None, candidates: Candidates = None, X: Features | None = None
    ) -> MonitorState:
        """Takes some more rows, in the order of their arrival: probabilities as for `Calibration.compare`.

        The monitor of a model takes their features. `X` are the features where `rows` are probabilities.
        """
        given: Any
        given, X = (rows, X) if self._give is None else (self._give(rows), rows)
        given = [given] if len(self._parts) == 1 else given
        if len(given) != len(self._parts):
            raise ValueError(f"probabilities: {len(given)} matrices for {len(self._parts)} folds.")
        columns: list[tuple[Ints, Ints]] = []
        for part, matrix in zip(self._parts, given, strict=True):
            new = _read(part, matrix, by, candidates)
            distances = self._distances(X, len(new)) if self._reference is not None and not columns else None
            codes = np.zeros(len(new), dtype=np.intp) if new.codes is None else new.codes
            if not columns and (codes < 0).any():
                odd = np.flatnonzero(codes < 0)
                found = f"{len(odd):,} new rows, such as row {odd[0]}, have a category without calibration rows"
                warnings.warn(f"by: {found}, and are not watched.", stacklevel=2)
            watched = _cells(new.predicted.confidence, new.predicted.label, distances)
            columns += [(cells, codes) for cells in watched]
        with self._lock:
            progress = self._progress
            for start in range(0, len(columns[0][0]), _BLOCK):
                block = slice(start, start + _BLOCK)
                progress = self._play(progress, [(cells[block], codes[block]) for cells, codes in columns])
            self._progress = progress
        return self._describe(progress)

    def _play(self, progress: _Progress, columns: Sequence[tuple[Ints, Ints]]) -> _Progress:
        """What is known after some more rows."""
        n, count, rows = len(columns[0][0]), len(columns), progress.rows
        noise = uniforms_of_ids(np.arange(rows * count, (rows + n) * count), n * count, self._seed).reshape(
            n, count
        )
        played = [
            game.play(*column, noise[:, place])
            for place, (game, column) in enumerate(zip(progress.games, columns, strict=True))
        ]
        every = np.stack([won for _, won in played])
        first_row, best, loudest = progress.first_row, progress.best, progress.loudest
        won = np.flatnonzero(every.max(axis=0) >= math.log(count / self.delta))
        if len(won) and first_row is None:
            first_row = rows + int(won[0])
        if every.max() > best:
            best, loudest = float(every.max()), int(every.max(axis=1).argmax())
        return _Progress(tuple(game for game, _ in played), rows + n, first_row, best, loudest)

    def _describe(self, progress: _Progress) -> MonitorState:
        p_value = min(1.0, len(progress.games) * math.exp(-progress.best))
        differs = _WATCHED[progress.loudest % (2 if self._reference is None else 3)]
        first_row = progress.first_row
        return MonitorState(progress.rows, first_row is not None, first_row, p_value, differs)

    def _distances(self, X: Any, n: int) -> Floats:
        found = None if self._reference is None or X is None else self._reference.distances(X)
        if found is None or len(found) != n:
            raise InputError("X: these features are not those of the calibration rows", "give them for every row")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state as one file, from which ``monitor(resume=path)`` goes on."""
        progress = self._progress
        header = {
            "format": FORMAT,
            "version": VERSION,
            "delta": self.delta,
            "seed": self._seed,
            "rows": progress.rows,
            "first_row": progress.first_row,
            "best": progress.best,
            "loudest": progress.loudest,
            "calibration": self._digest,
        }
        arrays: dict[str, Array] = {}
        for place, game in enumerate(progress.games):
            arrays |= {f"{name}.{place}": value for name, value in game.to_arrays().items()}
        write_container(path, header, arrays)

    def _restore(self, path: str | os.PathLike[str]) -> None:
        header, arrays = read_container(path, FORMAT, VERSION, again="start a new monitor")
        with reading_untrusted(path, FORMAT):
            if header["calibration"] != self._digest:
                raise ValueError(f"{path}: the state of a monitor of another calibration.")
            self.delta = float(as_level(header["delta"], "delta"))
            seed, rows, loudest = (header[name] for name in ("seed", "rows", "loudest"))
            first, best = header["first_row"], header["best"]
            numbers = (seed, rows, loudest, 0 if first is None else first)
            names = ("capital", "invested", "played", "cells", "counts", "lengths")
            games = tuple(
                game.restore(**{name: arrays[f"{name}.{place}"] for name in names})
                for place, game in enumerate(self._progress.games)
            )
            typed = all(type(number) is int for number in numbers) and type(best) is float
            known = typed and 0 <= best < math.inf and (first is None or 0 <= first < rows)
            if not known or not 0 <= rows <= _MOST_ROWS or not 0 <= seed < _SEEDS:
                raise ValueError(f"{path}: a {FORMAT} file whose parts do not belong together.")
            self._seed, self._progress = seed, _Progress(games, rows, first, best, loudest)


@dataclass(frozen=True, eq=False)
class _Progress:
    """What a monitor knows after some rows."""

    games: tuple[_Game, ...]
    rows: int = 0
    first_row: int | None = None
    best: float = 0.0
    loudest: int = 0


@dataclass(frozen=True, eq=False)
class _Seen:
    """The cells of the rows of a category: counted, and for the most recent rows as they came.

    `below` holds how many of the counted rows lie below each of `cells`, and how many there are.
    """

    cells: Ints
    below: Ints
    recent: Ints

    @classmethod
    def of(cls, cells: Ints) -> _Seen:
        return cls(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64), cells).count()

    def count(self) -> _Seen:
        """The same with all rows counted."""
        cells = np.union1d(self.cells, self.recent)
        old = self.below[np.searchsorted(self.cells, cells, side="right")]
        below = old + np.searchsorted(np.sort(self.recent), cells, side="right")
        return _Seen(cells, np.concatenate([[0], below]), self.recent[:0])

    def rank(self, x: Ints, noise: Floats) -> tuple[_Seen, Floats]:
        """What has been seen after some more rows, and their p-values, each among all before it."""
        recent = np.concatenate([self.recent, x])
        earlier = np.arange(len(recent)) < len(self.recent) + np.arange(len(x))[:, None]
        low, high = (np.searchsorted(self.cells, x, side=side) for side in ("left", "right"))
        below = self.below[low] + ((recent < x[:, None]) & earlier).sum(axis=1)
        equal = self.below[high] - self.below[low] + ((recent == x[:, None]) & earlier).sum(axis=1) + 1
        p: Floats = (below + noise * equal) / (self.below[-1] + len(self.recent) + np.arange(1, len(x) + 1))
        seen = _Seen(self.cells, self.below, recent)
        return (seen if len(recent) < _BLOCK else seen.count()), p


@dataclass(frozen=True, eq=False)
class _Game:
    """The rows of one calibration by one column: what was seen in each category, and the capital."""

    seen: tuple[_Seen, ...]
    played: int
    capital: Floats  # log Π f(p_r) of each bet
    invested: Floats  # log Σ w_s / Π_{r≤s} f(p_r)

    @classmethod
    def of(cls, cells: Ints, codes: Ints, categories: int) -> _Game:
        """The start, from the calibration rows."""
        capital = np.zeros(len(_TILTS) + 2 * _BINS)
        seen = tuple(_Seen.of(cells[codes == code]) for code in range(categories))
        return cls(seen, 0, capital, np.full(len(capital), -np.inf))

    def play(self, cells: Ints, codes: Ints, noise: Floats) -> tuple[_Game, Floats]:
        """The game after some rows, and the logarithm of M after each; rows of no known category do nothing."""
        known = codes >= 0
        seen, p = list(self.seen), np.empty(len(cells))
        for code in {*codes[known].tolist()}:
            rows = np.flatnonzero(codes == code)
            seen[code], p[rows] = seen[code].rank(cells[rows], noise[rows])
        played, capital, invested, won = self.bet(p[known])
        return _Game(tuple(seen), played, capital, invested), won[np.cumsum(known)]

    def bet(self, p: Floats) -> tuple[int, Floats, Floats, Floats]:
        """Rows, capital and investments after bets on some p-values; the logarithm of M before and after each."""
        tilted = _TILTS * (p[:, None] - 0.5)
        inside = np.arange(_BINS) == np.minimum((p * _BINS).astype(int), _BINS - 1)[:, None]
        binned = _STAKE * (_BINS * inside - 1)
        gains = np.log1p(np.concatenate([tilted, binned, -binned], axis=1))
        capital = np.cumsum(np.concatenate([self.capital[None], gains]), axis=0)
        played = self.played + np.arange(len(p) + 1)
        kept = 1 / np.log2(played + 2)
        begun = np.log(kept[:-1] - 1 / np.log2(played[:-1] + 3))[:, None] - capital[:-1]
        invested = np.logaddexp.accumulate(np.concatenate([self.invested[None], begun]), axis=0)
        own = np.logaddexp.reduce(capital + invested, axis=1) - math.log(capital.shape[1])
        won: Floats = np.logaddexp(own, np.log(kept))
        return int(played[-1]), capital[-1], invested[-1], won

    def to_arrays(self) -> dict[str, Array]:
        """What is kept in a file."""
        seen = [each.count() for each in self.seen]
        return {
            "capital": self.capital,
            "invested": self.invested,
            "played": np.array(self.played),
            "cells": np.concatenate([each.cells for each in seen]),
            "counts": np.concatenate([np.diff(each.below) for each in seen]),
            "lengths": np.array([len(each.cells) for each in seen]),
        }

    def restore(
        self, capital: Array, invested: Array, played: Array, cells: Array, counts: Array, lengths: Array
    ) -> _Game:
        """The game that was kept, if it is of one piece and began as this one."""
        check_array(cells, "cells", "i", (cells.size,), -_CELLS, _CELLS)
        check_array(counts, "counts", "i", (cells.size,), 1, _MOST_ROWS)
        check_array(capital, "capital", "f", self.capital.shape)
        check_sizes(lengths, cells.size)
        ends = np.cumsum(lengths)[:-1]
        each = [
            _Seen(cells.astype(np.int64), np.append(0, np.cumsum(counts)), cells[:0])
            for cells, counts in zip(np.split(cells, ends), np.split(counts, ends), strict=True)
        ]
        fits = (
            invested.shape == self.capital.shape
            and capital.dtype == invested.dtype == self.capital.dtype
            and bool((invested < np.inf).all())
            and played.shape == ()
            and len(each) == len(self.seen)
            and all((np.diff(seen.cells) > 0).all() for seen in each)
            and sum(counts.tolist()) == int(played) + sum(int(seen.below[-1]) for seen in self.seen)
        )
        if not fits:
            raise ValueError("its parts do not belong together")
        return _Game(tuple(each), int(played), capital, invested)


def _cells(confidence: Floats, label: Ints, distances: Floats | None) -> list[Ints]:
    """The cells of what is watched of some rows; odds tell 0.999 from 0.9999 as well as 0.001 from 0.0001."""
    p = np.minimum(confidence.astype(np.float64), 1.0)
    with np.errstate(divide="ignore"):
        watched = [p / (1 - p), label, *([] if distances is None else [distances])]
    return [values.astype(np.float64).view(np.int64) >> _DROPPED for values in watched]


def _fits(features: FeatureSummary, parts: Sequence[BaseCalibration]) -> bool:
    """Whether distances belong to the rows of the one calibration, or to any rows where there are no categories."""
    return len(parts) == 1 and (parts[0].category is None or features.rows == parts[0].evidence.n)


def _read(part: BaseCalibration, probabilities: Any, by: Any, candidates: Any) -> NewRows:
    rows = read_new_rows(part, probabilities, by=by, candidates=candidates)
    if rows.off:
        raise InputError(
            "probabilities: of another floating type than those of the calibration, so that ranks would differ",
            "pass them in the same type",
        )
    return rows


def _digest(games: Sequence[_Game]) -> str:
    """By which the calibration is recognised: its rows, before any new one was seen."""
    total = hashlib.sha256()
    for seen in (seen for game in games for seen in game.seen):
        total.update(seen.cells.tobytes() + seen.below.tobytes())
    return total.hexdigest()
