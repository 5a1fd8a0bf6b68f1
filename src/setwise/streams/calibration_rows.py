"""`CalibrationRows`: calibration rows that arrive in batches, and merge; all of them, or a random sample.

Rows are kept as they were given and calibrated on at the end, by `conformalize`: what fits into memory gives the
same result bit for bit. Beyond the limit a uniform random sample of rows is kept: every row has a key, a hash of
the seed and of what identifies it, and the rows with the smallest keys stay (bottom-k sampling). The k smallest of
a union are among the k smallest of its parts, so merging is associative and commutative, and neither batches nor
their order nor who read them makes a difference. Keys know nothing of a row's content: a sample of exchangeable
rows is exchangeable, and calibrating on it is valid as it stands, with as many rows as were kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from setwise._arrays import Array, Floats, Ints, concatenate, frame_columns
from setwise.conformal.calibration import Calibration
from setwise.conformal.conformalize import conformalize, on_columns_of
from setwise.errors import InputError, Remedy
from setwise.evidence.row_facts import RowFacts, categories
from setwise.evidence.row_names import check_row_names
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, Classes, Vocabulary, label_vector, missing_labels
from setwise.labels.votes import Votes
from setwise.probabilities.dense import as_probabilities, precision_of
from setwise.probabilities.top_probabilities import TopK
from setwise.row_noise import Words, draw_seed, sampling_keys
from setwise.scores import Domain, Score
from setwise.strategies import Strategy, as_strategy

_BESIDE = 64  # bytes of a row beside its probabilities: key, id, candidates, facts
_SLACK = 1.25  # rows held over those allowed, before the largest keys are thrown away
_IDS = ("row_ids", "sampling_ids")
_NAMES = ("verified_probability", "by", "sample_weight", "groups", *_IDS)
_ALIKE = ("memory_limit", "max_rows", "domain")  # arguments that rows which merge share
_TORN = {  # facts that no sample of rows keeps
    "groups": "rows of one group belong together, and a sample of rows tears groups apart",
    "verified_probability": "verified rows are all kept, and a sample of the others changes the chances",
}


class CalibrationRows:
    """Calibration rows in batches: added, merged, pickled, and calibrated on at the end.

    Parameters
    ----------
    classes
        The K labels in the order of the columns, as in `conformalize`.
    memory_limit
        How many bytes rows may take, at the bytes of their probabilities and 64 more for each; beyond it a random
        sample of rows is kept. Large candidate sets, many votes and long ids come on top: how many rows are kept
        must not depend on what they hold.
    max_rows
        How many rows that is; by default what fits into `memory_limit`. Verified rows are kept in addition.
    random_state
        Seeds the sample, and by default the noise of randomised scores.
    domain
        Of the probabilities: ``"simplex"`` where rows sum to one, ``"unit"`` for ``LAC(domain="unit")``.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise import conformalize
    >>> from setwise.streams import CalibrationRows
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], size=1000)
    >>> y = P.argmax(axis=1)
    >>> rows, others = CalibrationRows(random_state=0), CalibrationRows(random_state=1)
    >>> rows.add(P[:400], y[:400])
    >>> others.add(P[400:], y[400:])
    >>> whole = rows.merge(others)
    >>> len(whole), whole.conformalize().threshold(0.9) == conformalize(P, y).threshold(0.9)
    (1000, True)

    Of more rows than are allowed a random sample is kept, and the guarantee says so:

    >>> few = CalibrationRows(max_rows=100, random_state=0)
    >>> few.add(P, y)
    >>> len(few), few.seen
    (100, 1000)
    >>> few.conformalize().guarantee().remarks[-1]
    'Calibrated on a random sample of 100 of the 1,000 rows.'
    """

    def __init__(
        self,
        *,
        classes: Classes = None,
        memory_limit: int = 2**30,
        max_rows: int | None = None,
        random_state: Any = None,
        domain: Domain = "simplex",
    ) -> None:
        if max_rows is not None and max_rows < 1:
            raise ValueError(f"max_rows: {max_rows}; at least one row is needed.")
        if domain not in get_args(Domain):
            raise ValueError(f"domain: {str(domain)[:40]!r} is not known; use 'simplex' or 'unit'.")
        if memory_limit < 1:
            raise ValueError(f"memory_limit: {memory_limit} bytes hold no row.")
        self.classes = Vocabulary.or_none(classes)
        self.memory_limit, self.domain = int(memory_limit), domain
        self.max_rows = None if max_rows is None else int(max_rows)
        self.seen = 0
        """How many rows were added in all."""
        self._seeds = frozenset([draw_seed(random_state)])
        self._seed = min(self._seeds)
        self._random = np.random.default_rng(self._seed)
        self._parts: list[_Rows] = []
        self._open = 0  # rows held that are not verified
        self._highest: np.uint64 | None = None  # no larger key is in the sample

    def add(
        self,
        probabilities: Any,
        candidates: Any,
        *,
        verified: Any = None,
        verified_probability: Any = None,
        by: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        row_ids: Any = None,
        sampling_ids: Any = None,
    ) -> None:
        """Adds a batch of rows; arguments as in `conformalize`.

        Parameters
        ----------
        probabilities, candidates, verified, verified_probability, by, sample_weight, groups, row_ids
            As in `conformalize`; ``by="predicted"`` and other words are for `conformalize` at the end.
        sampling_ids
            Integers or strings, all different, that identify rows wherever they come from, such as the number of
            the file and of the row. With them the rows kept, and their order, depend on nothing else; without,
            keys are drawn as rows arrive.
        """
        given = {
            "verified": verified,
            "verified_probability": verified_probability,
            "sample_weight": sample_weight,
            "by": by,
            "groups": groups,
        }
        check_row_names(probabilities=probabilities, candidates=candidates, row_ids=row_ids, **given)
        if isinstance(by, str):
            raise InputError(f"by: {by!r} is found once all rows are there", "pass it to conformalize")
        if isinstance(probabilities, TopK):
            raise InputError("probabilities: TopK is not added in batches", "pass all rows to setwise.conformalize")
        matrix = as_probabilities(probabilities, self.domain)
        n, k = matrix.shape
        sets = on_columns_of(probabilities, candidates, k, self.classes)
        if len(sets) != n:
            raise ValueError(f"candidates: {len(sets)} rows for {n} rows of probabilities.")
        if frame_columns(probabilities) is not None:
            matrix = as_probabilities(probabilities, self.domain, k, classes=sets.classes)
        votes = None
        if isinstance(candidates, Votes):
            votes = replace(candidates.recode(sets.vocabulary), vocabulary=sets.vocabulary, items=None)
        if verified is not None and missing_labels(label_vector(verified, "verified")).all():
            given["verified"] = None  # nobody checked a row of this batch
        facts = RowFacts.read(n, sets.vocabulary, **given)
        told = {
            "verified_probability": facts.chance,
            "by": facts.category,
            "sample_weight": facts.weight,
            "groups": None if groups is None else categories(groups, n, "groups"),
            "row_ids": None if row_ids is None else _one_per_row(row_ids, n, "row_ids"),
            "sampling_ids": None if sampling_ids is None else _one_per_row(sampling_ids, n, "sampling_ids"),
        }
        if sampling_ids is None:
            keys: Any = self._random.integers(2**64, size=n, dtype=np.uint64)
        else:
            keys = sampling_keys(told["sampling_ids"], self._seed)
        unchecked = np.full(n, MISSING, dtype=np.int32)
        rows = _Rows(
            keys,
            np.array(matrix, dtype=precision_of(probabilities)),
            sets if votes is None else votes,
            unchecked if facts.verified is None else facts.verified.astype(np.int32),
            {name: value.copy() for name, value in told.items() if value is not None},  # buffers may be used again
        )
        if self._parts:
            self._parts[0].check_alike(rows)
        self._hold([rows], self.seen + n)

    def empty_copy(self) -> CalibrationRows:
        """No rows, of which as many would be kept, by the same keys."""
        alike: dict[str, Any] = {name: getattr(self, name) for name in ("classes", *_ALIKE)}
        return CalibrationRows(**alike, random_state=self._seed)

    def merge(self, other: CalibrationRows) -> CalibrationRows:
        """The rows of both; associative, and with `sampling_ids` commutative too."""
        made = self.empty_copy()
        made.classes = self.classes or other.classes
        for name in _ALIKE:
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise ValueError(f"{name}: rows with {ours} and {theirs} do not merge.")
        keyed = self if self._parts or not other._parts else other  # the keys of rows that are there
        made._seeds, made._seed, made._random = self._seeds | other._seeds, keyed._seed, keyed._random
        if self._parts and other._parts:
            self._parts[0].check_alike(other._parts[0])
            self._check_seeds(other)
        made._highest = min((one._highest for one in (self, other) if one._highest is not None), default=None)
        made._hold([*self._parts, *other._parts], self.seen + other.seen)
        return made

    def conformalize(
        self, strategy: str | Strategy = "auto", conformity_score: str | Score = "lac", **declared: Any
    ) -> Calibration:
        """The calibration on these rows; `declared` are the other arguments of `setwise.conformalize`.

        Parameters
        ----------
        strategy, conformity_score
            As in `setwise.conformalize`.
        **declared
            `miss_rate`, `assume`, `missing`, ``by="label"``, ``"predicted"`` or ``"size"``; and `random_state`, by
            default that of these rows.
        """
        if not self._parts:
            raise ValueError("there are no rows; add some first.")
        rows = self._in_order()
        if self._sampled and declared.get("verified") is not None:
            problem = "verified: sets of right labels, but only a sample of the rows was kept"
            raise InputError(problem, Remedy("memory_limit", None, "to hold all rows"))
        checked = np.flatnonzero(rows.verified != MISSING)
        if self._sampled and len(checked):
            chosen = as_strategy(strategy)
            takes_them = () if "sample_weight" in rows.facts else ("auto", "rectified")
            if not (chosen.uses_verified_rows and takes_them):
                problem = (
                    f"verified: {len(checked):,} verified rows and a random sample of the others were kept, and "
                    f"strategy {chosen.name!r} would count the verified ones too often"
                )
                ways = [Remedy("strategy", name) for name in takes_them]
                raise InputError(problem, Remedy("memory_limit", None, "to hold all rows"), *ways)
        given: dict[str, Any] = {name: value for name, value in rows.facts.items() if name != "sampling_ids"}
        if len(checked):
            given["verified"] = np.full(len(rows), None, dtype=object)
            given["verified"][checked] = rows.answers.classes[rows.verified[checked]]
        given = {"random_state": self._seed} | given | declared
        made = conformalize(rows.matrix, rows.answers, strategy, conformity_score, **given)
        _ = made.evidence.predicted  # found now: the calibration keeps none of these rows
        if not self._sampled:
            return made
        return replace(made, setting=replace(made.setting, sampled=self.seen))

    def __len__(self) -> int:
        """How many rows are kept."""
        self._trim()
        return sum(map(len, self._parts))

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays of the rows take that are kept."""
        return sum(part.nbytes for part in self._parts)

    def __repr__(self) -> str:
        of = f" of {self.seen:,}" if self._sampled else ""
        return f"CalibrationRows({len(self):,}{of} rows)"

    # ---------------------------------------------------------------- helpers

    def _limit(self, rows: _Rows) -> int:
        """How many rows like these may be kept that are not verified."""
        if self.max_rows is not None:
            return self.max_rows
        k = int(rows.matrix.shape[1])
        return max(1, self.memory_limit // (k * rows.matrix.itemsize + _BESIDE))

    @property
    def _sampled(self) -> bool:
        """Whether rows were thrown away."""
        return len(self) < self.seen

    def _hold(self, rows: Sequence[_Rows], seen: int) -> None:
        """Adds rows, and throws those away whose keys are too large, once they are many."""
        if self._highest is not None:
            rows = [part.upto(self._highest) for part in rows]
        held = self._open + sum(part.open for part in rows)
        parts = [*self._parts, *rows]
        torn = [name for name in _TORN if parts and name in parts[0].facts]
        if torn and held > (limit := self._limit(parts[0])):  # what no sample of rows can stand for
            problem = f"{torn[0]}: more rows than fit into memory_limit ({limit:,}), and {_TORN[torn[0]]}"
            raise InputError(problem, Remedy("memory_limit", None, "to hold all rows"))
        self._parts, self._open, self.seen = parts, held, seen
        if parts and held > _SLACK * self._limit(parts[0]):
            self._trim()

    def _trim(self) -> None:
        """Throws away the rows beyond the limit."""
        if not self._parts or self._open <= (limit := self._limit(self._parts[0])):
            return
        keys = np.concatenate([part.key[part.verified == MISSING] for part in self._parts])
        self._highest = np.partition(keys, limit - 1)[limit - 1]
        rows = _Rows.concatenate([part.upto(self._highest) for part in self._parts])
        self._parts, self._open = [rows], rows.open

    def _check_seeds(self, other: CalibrationRows) -> None:
        """Keys of both must come from one hash, or from different draws."""
        identified = "sampling_ids" in self._parts[0].facts
        if identified and self._seed != other._seed:
            problem = "random_state: with sampling_ids both need the same, for a row to have one key"
            raise InputError(problem, Remedy("random_state", 0, "in both"))
        if not identified and self._seeds & other._seeds:
            problem = "random_state: both drew the same keys, so that a sample would depend on the places of rows"
            raise InputError(problem, "give each its own", "pass sampling_ids to add")

    def _in_order(self) -> _Rows:
        """All rows: by their ids where they have some, else as they came."""
        self._trim()
        rows = _Rows.concatenate(self._parts)
        self._parts = [rows]
        ids = rows.facts.get("sampling_ids")
        if ids is None:
            return rows
        order = np.argsort(ids, kind="stable")
        twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
        if len(twice):
            problem = f"sampling_ids: {ids[order][twice[0]].item()!r} identifies two rows"
            raise InputError(problem, "add every part once", "give every row its own")
        return rows if (np.diff(order) == 1).all() else rows.take(order)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as they were given: probabilities, candidates or votes, the position of the verified label, facts."""

    key: Words
    matrix: Floats
    answers: LabelSets | Votes
    verified: Ints
    facts: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.key)

    @property
    def open(self) -> int:
        """How many of them nobody checked."""
        return int((self.verified == MISSING).sum())

    def take(self, rows: Ints) -> _Rows:
        """Some rows, by their positions."""
        facts = {name: value[rows] for name, value in self.facts.items()}
        return _Rows(self.key[rows], self.matrix[rows], self.answers[rows], self.verified[rows], facts)

    def upto(self, highest: np.uint64) -> _Rows:
        """The rows with keys up to this one, and the verified ones."""
        kept = (self.key <= highest) | (self.verified != MISSING)
        return self if kept.all() else self.take(np.flatnonzero(kept))

    @classmethod
    def concatenate(cls, parts: Sequence[_Rows]) -> _Rows:
        """All rows."""
        if len(parts) == 1:
            return parts[0]
        kind: Any = type(parts[0].answers)
        return cls(
            np.concatenate([part.key for part in parts]),
            np.concatenate([part.matrix for part in parts]),
            kind.concatenate([part.answers for part in parts]),
            np.concatenate([part.verified for part in parts]),
            {name: concatenate([part.facts[name] for part in parts]) for name in parts[0].facts},
        )

    def check_alike(self, other: _Rows) -> None:
        """Refuses rows of another kind than these."""
        before, here = self._kinds, other._kinds
        if odd := [name for name in before if before[name] != here[name]]:
            problem = f"{odd[0]}: {here[odd[0]]} here, {before[odd[0]]} in the rows before"
            raise InputError(problem, "give all rows of one kind")
        if not self.answers.vocabulary.same_order(other.answers.vocabulary):
            ways = Remedy("classes", None, "to say which there are")
            raise InputError("candidates: other classes than in the rows before", ways)

    @property
    def _kinds(self) -> dict[str, str]:
        """What all rows have alike, by the name of the argument."""
        named = isinstance(self.answers, Votes) and self.answers.annotator is not None
        kinds = {name: "a value for each row" if name in self.facts else "nothing" for name in _NAMES}
        ids = {name: f"ids of the kind {self.facts[name].dtype.kind}" for name in _IDS if name in self.facts}
        return {
            "probabilities": f"{self.matrix.shape[1]} columns of {self.matrix.dtype}",
            "candidates": f"{type(self.answers).__name__}{' of named annotators' * named}",
            **(kinds | ids),
        }

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays take."""
        answers = self.answers
        held: Sequence[Any] = answers.rows if isinstance(answers, LabelSets) else (answers.row, answers.label)
        if isinstance(answers, Votes):
            held = [*held, *(a for a in (answers.annotator, answers.weight) if a is not None)]
        return sum(int(a.nbytes) for a in (self.key, self.matrix, self.verified, *self.facts.values(), *held))


def _one_per_row(values: Any, n: int, name: str) -> Array:
    held = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if held.shape != (n,):
        raise ValueError(f"{name}: expected one per row, {n} in all, got shape {held.shape}.")
    if held.dtype.kind in "iu":
        return held.astype(np.int64)  # signed and unsigned ones together would be rounded
    return held.astype(np.str_) if held.dtype == object and all(isinstance(v, str) for v in held) else held
