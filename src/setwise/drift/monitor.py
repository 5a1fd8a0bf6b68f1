"""`Monitor`: notices, row by row, that new rows are no longer like the calibration rows.

A row's p-value is its rank among all rows seen so far, calibration rows and earlier new rows alike, with ties
broken at random:

    p_t = (#{i < t: x_i < x_t} + u_t·#{i ≤ t: x_i = x_t}) / t

where x is the largest probability of the row, the position of its label, or the distance of its features from those
learned from (`feature_summary`), where the model knows them. If all rows come from one source, p_1, p_2, … are
independent and uniform (Vovk, Gammerman and Shafer, 2005); ranked among the calibration rows alone they would not
be independent. A gambler who starts with 1 and stakes on each p_t at fair odds ever owns k with
probability at most 1/k (Ville). The bets are f(p) = 1 + ε(p − ½), and 1 ± (8·1{p in an eighth of [0, 1]} − 1)/10;
the stake is spread over them and over the row s after which a bet begins, w_s = 1/log₂(s + 2) − 1/log₂(s + 3):

    M_t = mean over bets of Σ_{s<t} w_s Π_{s<r≤t} f(p_r)  +  1/log₂(t + 2)

The gamblers, one for each column (for a cross-conformal classifier of each fold), see different p-values: each game
is fair to who has seen its own past alone, so that their mean need not be. An alarm is raised where one of k has
won k/δ.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints, check_sizes
from setwise._types import Candidates, Column, Features, Seed
from setwise.calibration.base import BaseCalibration
from setwise.calibration.pooled import AnyCalibration
from setwise.drift.comparison import read_new_rows
from setwise.drift.feature_summary import FeatureSummary
from setwise.errors import InputError
from setwise.findings import format_p_value
from setwise.ranks import as_level
from setwise.row_noise import draw_seed, uniforms
from setwise.storage.container import read_container, reading_untrusted, write_container
from setwise.storage.stored_arrays import check_array

FORMAT, VERSION = "setwise-monitor", 2
_TILTS = np.array([-1.75, -1.0, -0.5, 0.5, 1.0, 1.75])
_BINS, _STAKE = 8, 0.1
_MOST_ROWS, _SEEDS = 2**53, 2**63  # that a stored state may have seen, or name
_BLOCK = 256  # rows whose ranks among each other are counted at once
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
    batches.
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
        self._parts, self._give = calibration.parts, give
        self._seed, self._rows, self._best = draw_seed(random_state), 0, 0.0
        self._first_row: int | None = None
        self._loudest = 0
        self._reference = None
        columns = [[part.evidence.confidence, part.evidence.predicted] for part in self._parts]
        if features is not None and features.distances is not None and _fits(features, self._parts):
            self._reference = features.reference
            columns[0].append(features.distances)
        self._gamblers = [
            _Gambler(part, column) for part, watched in zip(self._parts, columns, strict=True) for column in watched
        ]
        self._digest = _digest(self._gamblers)
        if resume is not None:
            self._restore(resume)

    @property
    def state(self) -> MonitorState:
        """What is known so far."""
        count = len(self._gamblers)
        p_value = min(1.0, count * math.exp(-self._best))
        differs = _WATCHED[self._loudest % (2 if self._reference is None else 3)]
        return MonitorState(self._rows, self.alarm, self._first_row, p_value, differs)

    @property
    def alarm(self) -> bool:
        """Whether rows were called different, now or before."""
        return self._first_row is not None

    @property
    def _limit(self) -> float:
        """The logarithm of what one of the gamblers has to win for an alarm."""
        return math.log(len(self._gamblers) / self.delta)

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
        read = [_read(part, matrix, by, candidates) for part, matrix in zip(self._parts, given, strict=True)]
        n = len(read[0][1])
        if self._reference is not None:
            read[0][0].append(self._distances(X, n))
        if n == 0:
            return self.state
        numbers = np.arange(self._rows, self._rows + n)
        columns = [(column, codes) for values, codes in read for column in values]
        every = np.stack(
            [
                gambler.play(column, codes, uniforms(column, self._seed + place, numbers))
                for place, (gambler, (column, codes)) in enumerate(zip(self._gamblers, columns, strict=True))
            ]
        )
        won = np.flatnonzero(every.max(axis=0) >= self._limit)
        if len(won) and self._first_row is None:
            self._first_row = self._rows + int(won[0])
        if every.max() > self._best:
            self._best = float(every.max())
            self._loudest = int(every.max(axis=1).argmax())
        self._rows += n
        return self.state

    def _distances(self, X: Any, n: int) -> Floats:
        found = None if self._reference is None or X is None else self._reference.distances(X)
        if found is None or len(found) != n:
            raise InputError("X: these features are not those of the calibration rows", "give them for every row")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state as one file, from which ``monitor(resume=path)`` goes on."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "delta": self.delta,
            "seed": self._seed,
            "rows": self._rows,
            "first_row": self._first_row,
            "best": self._best,
            "loudest": self._loudest,
            "calibration": self._digest,
        }
        arrays: dict[str, Array] = {}
        for place, gambler in enumerate(self._gamblers):
            arrays |= {f"{name}.{place}": value for name, value in gambler.to_arrays().items()}
        write_container(path, header, arrays)

    def _restore(self, path: str | os.PathLike[str]) -> None:
        header, arrays = read_container(path, FORMAT, VERSION)
        with reading_untrusted(path, FORMAT):
            if header["calibration"] != self._digest:
                raise ValueError(f"{path}: the state of a monitor of another calibration.")
            self.delta = float(as_level(header["delta"], "delta"))
            self._seed, self._rows, self._best = int(header["seed"]), int(header["rows"]), float(header["best"])
            self._first_row, self._loudest = header["first_row"], int(header["loudest"])
            for place, gambler in enumerate(self._gamblers):
                names = ("capital", "invested", "played", "values", "lengths")
                gambler.restore(**{name: arrays[f"{name}.{place}"] for name in names})
            first, rows = self._first_row, self._rows
            known = first is None or 0 <= int(first) < rows
            if not known or not 0 <= rows <= _MOST_ROWS or not 0 <= self._seed < _SEEDS:
                raise ValueError(f"{path}: a {FORMAT} file whose parts do not belong together.")


class _Gambler:
    """The rows of one calibration by one column: all values seen, in order within categories, and the capital."""

    def __init__(self, part: BaseCalibration, column: Floats | Ints | None) -> None:
        if column is None:
            raise ValueError("this evidence does not keep what the model predicted; calibrate again.")
        codes = np.zeros(len(column), dtype=np.intp) if part.category is None else part.category
        count = len(part.category_names)
        self.seen: list[Floats] = [np.sort(column[codes == code].astype(np.float64)) for code in range(count)]
        self.played = 0
        self.capital = np.zeros(len(_TILTS) + 2 * _BINS)  # log Π f(p_r) of each bet
        self.invested = np.full(len(self.capital), -np.inf)  # log Σ w_s / Π_{r≤s} f(p_r)

    def play(self, column: Floats, codes: Ints, noise: Floats) -> Floats:
        """The logarithm of M after each row; a row of no known category changes nothing."""
        known = np.flatnonzero(codes >= 0)
        p = np.empty(len(column))
        for code in np.unique(codes[known]):
            rows = np.flatnonzero(codes == code)
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                p[block] = self._rank(code, column[block], noise[block])
        won = np.zeros(len(column))
        before = self.owned
        won[known] = self._bet(p[known])
        last = np.maximum.accumulate(np.where(codes >= 0, np.arange(len(column)), -1))
        carried: Floats = np.where(last >= 0, won[last], before)
        return carried

    def _rank(self, code: int, x: Floats, noise: Floats) -> Floats:
        """The p-values of some rows of one category, each among all before it."""
        seen = self.seen[code]
        earlier = np.tri(len(x), k=-1, dtype=bool)
        low, high = np.searchsorted(seen, x, side="left"), np.searchsorted(seen, x, side="right")
        below = low + ((x[None] < x[:, None]) & earlier).sum(axis=1)
        equal = high - low + ((x[None] == x[:, None]) & earlier).sum(axis=1) + 1
        self.seen[code] = np.sort(np.concatenate([seen, x]), kind="stable")
        p: Floats = (below + noise * equal) / (len(seen) + np.arange(1, len(x) + 1))
        return p

    def _bet(self, p: Floats) -> Floats:
        tilted = _TILTS * (p[:, None] - 0.5)
        inside = np.arange(_BINS) == np.minimum((p * _BINS).astype(int), _BINS - 1)[:, None]
        binned = _STAKE * (_BINS * inside - 1)
        gains = np.log1p(np.concatenate([tilted, binned, -binned], axis=1))
        capital = np.cumsum(np.concatenate([self.capital[None], gains]), axis=0)
        starts = self.played + np.arange(len(p))
        weights = 1 / np.log2(starts + 2) - 1 / np.log2(starts + 3)
        begun = np.log(weights)[:, None] - capital[:-1]
        invested = np.logaddexp.accumulate(np.concatenate([self.invested[None], begun]), axis=0)
        self.capital, self.invested, self.played = capital[-1], invested[-1], self.played + len(p)
        return self._logarithm(capital[1:], invested[1:], starts + 1)

    @property
    def owned(self) -> float:
        """The logarithm of M after the rows so far."""
        return float(self._logarithm(self.capital[None], self.invested[None], np.array([self.played]))[0])

    @staticmethod
    def _logarithm(capital: Floats, invested: Floats, played: Ints) -> Floats:
        kept = -np.log(np.log2(played + 2))
        own = np.logaddexp.reduce(capital + invested, axis=1) - math.log(capital.shape[1])
        total: Floats = np.logaddexp(own, kept)
        return total

    def to_arrays(self) -> dict[str, Array]:
        """What is kept in a file."""
        return {
            "capital": self.capital,
            "invested": self.invested,
            "played": np.array(self.played),
            "values": np.concatenate(self.seen),
            "lengths": np.array([len(values) for values in self.seen]),
        }

    def restore(self, capital: Array, invested: Array, played: Array, values: Array, lengths: Array) -> None:
        """Takes back what was kept, if it is of one piece."""
        check_array(values, "values", "f", (values.size,))
        check_sizes(lengths, values.size)
        parts = np.split(values, np.cumsum(lengths)[:-1])
        fits = (
            capital.shape == invested.shape == self.capital.shape
            and capital.dtype == invested.dtype == self.capital.dtype
            and played.shape == ()
            and len(parts) == len(self.seen)
        )
        if not fits:
            raise ValueError("its parts do not belong together")
        self.capital, self.invested, self.played, self.seen = capital, invested, int(played), parts


def _fits(features: FeatureSummary, parts: Sequence[BaseCalibration]) -> bool:
    """Whether distances belong to the rows of the one calibration, or to any rows where there are no categories."""
    return len(parts) == 1 and (parts[0].category is None or features.rows == parts[0].evidence.n)


def _read(part: BaseCalibration, probabilities: Any, by: Any, candidates: Any) -> tuple[list[Floats], Ints]:
    """The largest probability of each row, its label's position, and the rows' categories."""
    rows = read_new_rows(part, probabilities, by=by, candidates=candidates)
    codes = np.zeros(len(rows), dtype=np.intp) if rows.codes is None else rows.codes
    if rows.off:
        raise InputError(
            "probabilities: of another floating type than those of the calibration, so that ranks would differ",
            "pass them in the same type",
        )
    return [rows.predicted.confidence, rows.predicted.label.astype(np.float64)], codes


def _digest(gamblers: Sequence[_Gambler]) -> str:
    """By which the calibration is recognised: its rows, before any new one was seen."""
    total = hashlib.sha256()
    for gambler in gamblers:
        for values in gambler.seen:
            total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()
