"""Krippendorff's alpha: agreement beyond chance, where people may answer different rows any number of times."""

from __future__ import annotations

import numpy as np

from setwise._arrays import Floats, Ints
from setwise.crowd.rectified_shares import single_answers
from setwise.labels.votes import Votes


def krippendorff_alpha(votes: Votes, *, ordered: bool = False) -> float:
    """1 − observed disagreement / disagreement by chance, without weights: 1 where all agree, 0 as by chance.

    Two different answers disagree by 1; with `ordered` by the square of how far apart their classes are (see
    `Vocabulary.scale`), so that neighbours hardly count. Of an annotator's labels of a row the weightiest counts.
    NaN where no row has two answers.

    Examples
    --------
    >>> from setwise import Votes
    >>> votes = Votes.from_lists([[1, 2], [2, 2], [4, 5], [5, 5]])
    >>> round(krippendorff_alpha(votes), 2), round(krippendorff_alpha(votes, ordered=True), 2)
    (0.36, 0.91)
    """
    row, label = votes.row, votes.label
    if votes.shared:  # nobody agrees with themselves
        row, _, label = single_answers(votes)
    cells, times = np.unique(row * votes.n_classes + label, return_counts=True)
    row, label = np.divmod(cells, votes.n_classes)
    several = np.bincount(row, times, len(votes))[row] > 1
    if not several.any():
        return float("nan")
    label, times = label[several], times[several]
    if (label == label[0]).all():
        return 1.0
    place = votes.vocabulary.scale[label] if ordered else None
    seen = _disagreement(np.unique(row[several], return_inverse=True)[1], label, times, place)
    return float(1 - seen / _disagreement(np.zeros_like(label), label, times, place))


def _disagreement(group: Ints, label: Ints, times: Ints, place: Floats | None) -> float:
    """Over all pairs within groups, with a pair's share of 1 / (size − 1); cells of a group may repeat a label."""
    size = np.bincount(group, times)
    if place is not None:  # 2m·Σ(v − mean)² is the sum over all m² pairs
        middle = np.bincount(group, times * place) / size
        return float((2 * size[group] * times * (place - middle[group]) ** 2 / (size[group] - 1)).sum())
    _, cell = np.unique(group * (label.max() + 1) + label, return_inverse=True)
    same = np.bincount(cell, times)[cell]
    return float((times * (size[group] - same) / (size[group] - 1)).sum())
