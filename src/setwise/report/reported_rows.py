"""The rows that a report is about, with all that is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints
from setwise.errors import InputError, check_length
from setwise.evidence.row_facts import categories
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, UNKNOWN, Vocabulary, label_vector
from setwise.metrics import unknown_labels


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of the report and what is known of them, all of one length."""

    total: int
    numbers: Ints
    vocabulary: Vocabulary
    y: Array | None = None
    codes: Ints | None = None
    unknown: str | None = None  # of true labels outside the classes
    candidates: LabelSets | None = None
    images: Any = None
    by: Array | None = None
    weight: Floats | None = None
    row_ids: Any = None
    ids: Any = None
    group: Ints | None = None

    @classmethod
    def read(
        cls,
        n: int,
        vocabulary: Vocabulary,
        *,
        y: Any = None,
        candidates: Any = None,
        by: Any = None,
        groups: Any = None,
        **known: Any,
    ) -> Rows:
        """Checks that everything is about the same rows."""
        if n == 0:
            raise ValueError("there are no rows to report on.")
        truth = None if y is None else label_vector(y, "y")
        codes = None if truth is None else vocabulary.encode(truth)
        if codes is not None and (codes == MISSING).all():  # nobody knows any
            truth = codes = None
        if truth is not None and codes is not None and codes.max(initial=MISSING) == UNKNOWN:
            problem = f"y: none of its labels, such as {truth.tolist()[codes.argmax()]!r}, is a class of the sets"
            raise InputError(problem, f"write them as the classes are written ({vocabulary.classes.tolist()[0]!r})")
        unknown, strange = None, np.flatnonzero(codes == UNKNOWN)
        if truth is not None and len(strange):
            row = int(strange[0])
            unknown = unknown_labels(len(strange), truth.tolist()[row], row)
        sets = None
        if candidates is not None:
            sets = as_candidates(candidates, len(vocabulary), vocabulary.classes)
        for name in ("images", "row_ids", "ids"):
            if known.get(name) is not None:
                known[name] = np.asarray(known[name])
        for name, value in {"y": truth, "candidates": sets, **known}.items():
            if value is not None:
                check_length(name, value.shape[0], n, "rows of the report")
        category = None if by is None else categories(by, n)
        group = None if groups is None else np.unique(categories(groups, n, "groups"), return_inverse=True)[1]
        return cls(n, np.arange(n), vocabulary, truth, codes, unknown, sets, by=category, group=group, **known)

    @property
    def is_sample(self) -> bool:
        """Whether some rows were left out."""
        return len(self.numbers) < self.total

    def sample(self, most: int) -> Rows:
        """At most so many rows, drawn with a fixed seed."""
        if self.total <= most:
            return self
        taken = np.sort(np.random.default_rng(0).choice(self.total, max(most, 1), replace=False))
        parts = ("y", "codes", "candidates", "images", "by", "weight", "row_ids", "ids", "group")
        held: dict[str, Any] = {name: getattr(self, name) for name in parts}
        kept = {name: None if value is None else value[taken] for name, value in held.items()}
        return Rows(self.total, taken, self.vocabulary, **kept)
