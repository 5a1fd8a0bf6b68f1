"""`evaluate`: what prediction sets achieved, against the truth or against candidate sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._arrays import Array, Bools, Ints
from setwise.candidates import as_candidates
from setwise.inputs import categories
from setwise.labels import LabelSets
from setwise.ranks import clopper_pearson
from setwise.vocabulary import UNKNOWN, Vocabulary, label_vector, missing_labels

_SIZE_BINS = ((0, 0), (1, 1), (2, 3), (4, 10), (11, 100), (101, 1000), (1001, None))


def evaluate(
    sets: Any,
    y: Any = None,
    *,
    candidates: Any = None,
    by: Any = None,
    delta: float = 0.05,
) -> dict[str, Any]:
    """Coverage, size and their finer kin, as a plain dictionary.

    Parameters
    ----------
    sets
        Prediction sets.
    y
        True labels; rows where it is None or NaN are left out of everything that needs truth. A label
        outside the vocabulary counts as missed and is reported under ``unknown_labels``.
    candidates
        Candidate sets of the same rows: how often the prediction set holds all of them and at least one of
        them, and the bracket in which coverage must then lie if the truth is a candidate.
    by
        A category per row, for coverage and size by category.
    delta
        Exact binomial intervals miss with at most this probability.

    Examples
    --------
    >>> from setwise import LabelSets, evaluate
    >>> result = evaluate(LabelSets.from_lists([["cat", "dog"], ["dog"]]), ["cat", "cat"])
    >>> result["coverage"], result["mean_size"], result["singleton_rate"]
    (0.5, 1.5, 0.5)
    """
    sets = sets if isinstance(sets, LabelSets) else LabelSets.from_mask(sets)
    if len(sets) == 0:
        raise ValueError("sets: no rows to evaluate.")
    if not 0 < delta < 1:
        raise ValueError(f"delta: {delta} is not between 0 and 1.")
    if y is None and candidates is None:
        raise ValueError("evaluate: give y (true labels) or candidates (candidate sets).")
    sizes = sets.sizes
    result: dict[str, Any] = {
        "n": len(sets),
        "mean_size": float(sizes.mean()),
        "median_size": float(np.median(sizes)),
        "empty_rate": float((sizes == 0).mean()),
        "singleton_rate": float((sizes == 1).mean()),
    }
    group = None if by is None else categories(by, len(sets))
    if y is not None:
        result |= _against_truth(sets, y, group, delta)
    if candidates is not None:
        result |= _against_candidates(sets, candidates, group, delta)
    return result


def _against_truth(sets: LabelSets, y: Any, group: Array | None, delta: float) -> dict[str, Any]:
    truth = label_vector(y, "y")
    if len(truth) != len(sets):
        raise ValueError(f"y: {len(truth)} labels for {len(sets)} sets; give one a row.")
    known = np.flatnonzero(~missing_labels(truth))
    if len(known) == 0:
        raise ValueError("y: no row has a true label; pass candidates instead.")
    covered = sets.contains(truth)[known]
    codes, sizes = sets.vocabulary.encode(truth[known]), sets.sizes[known]
    bins = np.array([low for low, _ in _SIZE_BINS])
    names = [
        f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}" for low, high in _SIZE_BINS
    ]
    by_size = _shares(covered, sizes, np.searchsorted(bins, sizes, side="right") - 1, names)
    by_class = _shares(covered, sizes, codes, sets.classes.tolist())
    worst = min(by_class.items(), key=lambda item: item[1]["coverage"], default=None)
    result: dict[str, Any] = {
        "n_truth": len(known),
        "coverage": float(covered.mean()),
        "coverage_interval": clopper_pearson(int(covered.sum()), len(covered), delta),
        "unknown_labels": int((codes == UNKNOWN).sum()),
        "by_size": by_size,
        "worst_size_coverage": min(cell["coverage"] for cell in by_size.values()),
        "by_class": by_class,
        "worst_class": None if worst is None else {"label": worst[0], **worst[1]},
    }
    if group is not None:
        vocabulary = Vocabulary.infer(group)
        codes = vocabulary.encode(group)[known]
        result["by_category"] = _shares(covered, sizes, codes, vocabulary.classes.tolist())
    return result


def _against_candidates(sets: LabelSets, candidates: Any, group: Array | None, delta: float) -> dict[str, Any]:
    own = as_candidates(candidates, sets.n_classes, sets.classes)
    if len(own) != len(sets):
        raise ValueError(f"candidates: {len(own)} rows for {len(sets)} sets.")
    if (own.sizes == 0).any():
        row = int(np.flatnonzero(own.sizes == 0)[0])
        raise ValueError(f"candidates: row {row} is empty; leave it out of both, or use filled().")
    inside, touched = own.issubset(sets), (own & sets).sizes > 0
    result = _rates(inside, touched, delta)
    if group is not None:
        vocabulary = Vocabulary.infer(group)
        codes = vocabulary.encode(group)
        result["candidates_by_category"] = {
            label: _rates(inside[codes == code], touched[codes == code], delta)
            for code, label in enumerate(vocabulary.classes.tolist())
        }
    return result


def _rates(inside: Bools, touched: Bools, delta: float) -> dict[str, Any]:
    n = len(inside)
    lower = clopper_pearson(int(inside.sum()), n, delta)[0]
    upper = clopper_pearson(int(touched.sum()), n, delta)[1]
    return {
        "all_candidates_rate": float(inside.mean()),
        "any_candidate_rate": float(touched.mean()),
        "coverage_bracket": (lower, upper),
    }


def _shares(covered: Bools, sizes: Ints, codes: Ints, names: list[Any]) -> dict[Any, dict[str, float]]:
    """Number, coverage and mean size for every code that occurs."""
    kept = codes >= 0
    counts, hits, total = (
        np.bincount(codes[kept], weights=weights, minlength=len(names))
        for weights in (None, covered[kept].astype(float), sizes[kept].astype(float))
    )
    return {
        names[i]: {"n": int(counts[i]), "coverage": hits[i] / counts[i], "mean_size": total[i] / counts[i]}
        for i in np.flatnonzero(counts).tolist()
    }
