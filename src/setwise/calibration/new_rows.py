"""How a calibration reads new rows: in its precision, with their categories, weights, noise and candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints, on_device
from setwise._lazy import lazy
from setwise.crowd.annotator_model import AnnotatorParameters
from setwise.errors import InputError
from setwise.evidence.row_facts import categories, weights
from setwise.evidence.row_names import check_row_names
from setwise.labels.coerce import as_candidates
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Vocabulary
from setwise.labels.votes import Votes
from setwise.probabilities.base import Probabilities
from setwise.probabilities.dense import precision_of
from setwise.probabilities.proposed_labels import Proposals
from setwise.probabilities.readers import in_precision, read_mask, read_probabilities
from setwise.probabilities.top_probabilities import TopK
from setwise.scores import Score
from setwise.strategies.judgement import Setting

_AUTOMATIC = ("predicted", "size")  # categories that are found, for calibration and new rows alike


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads new rows as the calibration rows were read, and refuses what does not match these."""

    score: Score
    vocabulary: Vocabulary
    setting: Setting
    categories: Vocabulary | None  # of the calibration rows, where they have any
    weighted: bool  # whether these have weights
    annotators: AnnotatorParameters | None  # for votes of new rows, where verified rows have votes

    @property
    def requirements(self) -> tuple[str, ...]:
        """The arguments that `predict_set` requires because calibration used them."""
        used = {
            "by": self.setting.by == "given" and self.categories is not None,
            "candidates": self.setting.by == "size",
            "sample_weight": self.weighted,
            "row_ids": self.setting.named and self.score.randomized,
        }
        return tuple(name for name, holds in used.items() if holds)

    @property
    def without_categories(self) -> str:
        """Why categories of new rows are refused where the calibration knows none."""
        if self.setting.by == "label":
            return "by: calibrated by label, and nobody knows those of new rows; leave it out."
        return "by: calibrated without categories; pass by to conformalize first."

    def read(
        self,
        probabilities: Any,
        *,
        by: Any = None,
        candidates: Any = None,
        sample_weight: Any = None,
        row_ids: Any = None,
        device: bool = False,
    ) -> NewRows:
        """Reads the rows of one call; tensors stay on their device if `device`."""
        check_row_names(
            probabilities=probabilities, by=by, candidates=candidates, sample_weight=sample_weight, row_ids=row_ids
        )
        votes = candidates if isinstance(candidates, Votes) else None
        if votes is not None and device:
            raise InputError("candidates: votes need probabilities on the host", "pass probabilities.cpu().numpy()")
        sets = fill_candidates(candidates, self.vocabulary)
        rows, off = self._read_probabilities(probabilities, device=device)
        if sets is not None and len(sets) != len(rows):
            raise ValueError(f"candidates: {len(sets)} rows for {len(rows)} rows of probabilities.")
        return NewRows(self, rows, off, sets, votes, by, sample_weight, row_ids)

    def check_weighted(self, sample_weight: Any) -> None:
        """Refuses weights of new rows unless the calibration rows have weights too, and the reverse."""
        if (sample_weight is not None) != self.weighted:
            raise ValueError(
                "sample_weight: calibrated with weights, so new rows need theirs too."
                if sample_weight is None
                else "sample_weight: calibrated without weights; pass sample_weight to conformalize first."
            )

    def need_all_labels(self, what: str) -> None:
        """Refuses what needs the probabilities of all labels where only the largest ones are stored."""
        if self.setting.top:
            raise InputError(
                f"{what}: not defined where only the top {self.setting.top} labels have probabilities",
                "calibrate on the probabilities of all labels",
            )

    def _read_probabilities(self, probabilities: Any, *, device: bool) -> tuple[Probabilities, float]:
        """Probabilities in the precision of the calibration, and how far scores may be off."""
        domain, k, top = self.score.domain, len(self.vocabulary), self.setting.top
        given = probabilities.k if isinstance(probabilities, TopK) else 0
        if given != top or (given and probabilities.n_classes != k):
            raise InputError(
                f"probabilities: calibrated with those of {f'the top {top}' if top else 'all'} labels out of "
                f"{k:,}, got {f'the top {given}' if given else 'a column for each'}",
                f"pass TopK.of(probabilities, k={top})" if top else "pass the probabilities of all labels",
            )
        rows = read_probabilities(probabilities, domain, k, self.vocabulary.classes, device=device)
        return in_precision(rows, precision_of(probabilities), self.setting.precision)


@dataclass(frozen=True, eq=False)
class NewRows:
    """The rows of one call. What not every call needs is read, and refused, at first use."""

    reader: RowReader
    probabilities: Probabilities  # in the precision of the calibration
    off: float  # how far scores may be off where probabilities were passed in another floating type
    candidates: LabelSets | None  # all labels where a row has none; None where none were passed
    votes: Votes | None  # that the candidates come from, if there are any
    by: Any
    sample_weight: Any
    row_ids: Any

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def matrix(self) -> Floats:
        """The probabilities of all labels, on the host."""
        return self.probabilities.array

    @lazy
    def category(self) -> Array | None:
        """The category of each row; None where the calibration knows none."""
        reader, by = self.reader, self.by
        if by is None and reader.setting.by == "size" and self.candidates is None:
            raise ValueError(
                "by: calibrated by the number of candidates, so new rows need theirs too; pass candidates=… to "
                "predict_set, or by=…, how many each row has."
            )
        if by is None and reader.setting.by in _AUTOMATIC:
            by = automatic_categories(
                reader.setting.by, self.probabilities, reader.vocabulary.classes, self.candidates
            )
        if (by is None) != (reader.categories is None):
            raise ValueError(
                "by: calibrated by category, so new rows need theirs too; pass by=…"
                if by is None
                else reader.without_categories
            )
        return None if by is None else categories(by, len(self))

    @lazy
    def codes(self) -> Ints | None:
        """The position of each row's category among those of the calibration, `UNKNOWN` for others."""
        known, found = self.reader.categories, self.category
        return None if known is None or found is None else known.encode(found)

    @lazy
    def weight(self) -> Floats | None:
        """The weight of each row."""
        self.reader.check_weighted(self.sample_weight)
        return weights(self.sample_weight, len(self))

    @lazy
    def noise(self) -> Floats | None:
        """The uniform number of each row, drawn from its bits; where these were lost, 0 is valid."""
        randomized, named = self.reader.score.randomized, self.reader.setting.named
        if randomized and (self.row_ids is not None) != named:
            raise InputError(
                "row_ids: calibrated with ids, so new rows need theirs too, because ids seed the noise"
                if named
                else "row_ids: calibrated without ids, so the noise of new rows cannot be drawn from theirs",
                "give ids to calibration and new rows alike, or to neither",
            )
        if not randomized and self.row_ids is None:
            return None
        if self.off and self.row_ids is None:
            return np.zeros(len(self))
        return self.probabilities.uniforms(self.reader.setting.seed, self.row_ids)

    @lazy
    def scores(self) -> Floats:
        """The scores of all labels."""
        self.reader.need_all_labels("scores")
        return self.reader.score.score(self.matrix, u=self.noise) - self.off

    @lazy
    def predicted(self) -> Proposals:
        """The most probable label of each row, and its probability."""
        return self.probabilities.proposed.found

    @property
    def posterior_off(self) -> float:
        """How far scores of `posterior` may be off, which rests on a power of the probabilities."""
        people = self.reader.annotators
        return self.off if people is None else self.off * max(1.0, people.temperature)

    @lazy
    def posterior(self) -> Floats:
        """The probability of each label given the row's votes."""
        assert self.votes is not None  # noqa: S101 - only used for rows with votes
        assert self.reader.annotators is not None  # noqa: S101 - there are answers
        return self.reader.annotators.posterior(self.votes.recode(self.reader.vocabulary), self.matrix)


def fill_candidates(candidates: Any, vocabulary: Vocabulary) -> LabelSets | None:
    """The candidates of new rows; every label where a row has none."""
    if candidates is None:
        return None
    if on_device(candidates):
        candidates = read_mask(candidates)
    return as_candidates(candidates, len(vocabulary), vocabulary.classes).fill_empty()


def automatic_categories(by: str, rows: Probabilities, classes: Array, sets: LabelSets | None) -> Array:
    """The label predicted for each row, or the number of its candidates: the same for calibration and new rows."""
    if by == "predicted":
        return np.asarray(classes[rows.proposed.label])
    if by == "size" and sets is not None:
        return np.asarray(sets.sizes)
    raise ValueError(f"by: {by!r} is not known; use 'label', 'predicted', 'size', or one category per row.")
