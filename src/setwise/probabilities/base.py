"""What calibrations ask of the probabilities of rows, whatever holds them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, Self

from setwise._arrays import Floats, Ints
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.probabilities.kept_arrays import LaterProposals
from setwise.probabilities.proposed_labels import Proposals
from setwise.scores import Score


class Probabilities(Protocol):
    """Probabilities of rows, checked: `DenseRows`, `TopK` or `DeviceRows`. Answers are equal to the last bit."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and classes."""

    @property
    def stored(self) -> int:
        """How many labels a row stores; 0 for all."""

    @property
    def array(self) -> Floats:
        """The (n, K) array on the host, where there is one."""

    @property
    def proposed(self) -> Proposals | LaterProposals:
        """The most probable label of each row, and its probability."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Ints) -> Self: ...

    def astype(self, dtype: Any) -> Self:
        """The same probabilities rounded to another type."""

    def uniforms(self, seed: int, row_ids: Any = None, *, distinct: bool = False) -> Floats:
        """One number in [0, 1) for each row, as `row_noise.uniforms` gives it."""

    def check_known(self, score: Score, needs: Collection[str], *, verified: bool, votes: bool) -> None:
        """Refuses what is not worked out of such rows: a score, columns of evidence, verified labels, votes."""

    def score_candidates(
        self, score: Score, candidates: LabelSets, u: Floats | None, *, every: bool
    ) -> tuple[Floats, Floats, Floats | None]:
        """The smallest and largest score over each row's candidates; with `every` those of all, row after row."""

    def score_labels(self, score: Score, labels: Ints, u: Floats | None) -> Floats:
        """The score of one label of each row."""

    def among(self, candidates: LabelSets) -> Proposals:
        """The most probable candidate of each row, and its share of the candidates' probability."""

    def values_of(self, candidates: LabelSets) -> Floats:
        """The probability of every candidate, row after row."""

    def totals(self) -> Floats:
        """The sum of each row."""

    def mask(
        self, score: Score, limits: Floats, u: Floats | None, inside: LabelSets | None, *, allow_empty: bool
    ) -> Any:
        """The labels whose scores are at most the limits (a number, one per row, or one per label), where they are.

        Cut down to the labels `inside`; empty sets get the most probable of these unless they are allowed.
        """

    def as_sets(self, mask: Any, vocabulary: Vocabulary) -> LabelSets:
        """What `mask` gave, as label sets."""
