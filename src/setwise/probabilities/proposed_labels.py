"""The label that is proposed for a row, and how sure that is: one function for rows that are checked and others.

It never sees a verified label. Only the order of the confidences counts where labels are accepted by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Floats, Ints, entries
from setwise.labels.label_sets import LabelSets

_OUTSIDE = 0.05  # what a label outside the candidates counts beside one of them


@dataclass(frozen=True)
class Proposals:
    """Per row the position of a label, the confidence in it, and noise that breaks ties between confidences."""

    label: Ints
    confidence: Floats
    noise: Floats | None = None

    @property
    def found(self) -> Proposals:
        """These; others are found later (`LaterProposals`)."""
        return self

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Ints) -> Proposals:
        noise = None if self.noise is None else self.noise[rows]
        return Proposals(self.label[rows], self.confidence[rows], noise)

    @classmethod
    def concatenate(cls, parts: Sequence[Proposals]) -> Proposals:
        """The proposals of several batches below each other; all have noise, or none has."""
        noise = [part.noise for part in parts if part.noise is not None]
        return cls(
            np.concatenate([part.label for part in parts]),
            np.concatenate([part.confidence for part in parts]),
            np.concatenate(noise) if noise else None,
        )


def most_probable(probabilities: Floats) -> Proposals:
    """The most probable label and its probability."""
    label = probabilities.argmax(axis=1) if probabilities.shape[1] else np.arange(0)
    return Proposals(label, entries(probabilities, np.arange(len(label)), label).astype(np.float64))


def among_candidates(probabilities: Floats, candidates: LabelSets) -> Proposals:
    """The most probable candidate, and its share of the candidates' probability.

    Labels outside count a twentieth, so that a sole candidate is the surer the more probable it is.
    """
    inside = candidates.to_mask()
    weighed = np.where(inside, probabilities, _OUTSIDE * probabilities).astype(np.float64)
    label = np.where(inside, probabilities, -1).argmax(axis=1)
    own, total = weighed[np.arange(len(label)), label], weighed.sum(axis=1)
    return Proposals(label, np.divide(own, total, out=np.zeros(len(label)), where=total > 0))


def restrict(mask: Any, values: Any, inside: Any = None, *, allow_empty: bool = False) -> Any:
    """A mask cut down to labels inside; empty sets get the most probable of these. Arrays and tensors alike."""
    if inside is not None:
        mask &= inside
    if not allow_empty:
        empty = ~mask.any(1)
        allowed = values[empty]
        if inside is not None:
            allowed[~inside[empty]] = -1
        mask[empty, allowed.argmax(1)] = True
    return mask
