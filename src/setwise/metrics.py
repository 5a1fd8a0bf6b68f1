"""`evaluate`: coverage and size of prediction sets; `SetSizeScorer`: model selection by set size."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Never

import numpy as np

from setwise._arrays import Array, Bools, Ints
from setwise.errors import InputError, MisuseWarning, Remedy, refuse_names
from setwise.evidence.row_facts import categories
from setwise.evidence.row_index import check_row_names
from setwise.labels.coerce import as_candidates, read_sets
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import UNKNOWN, Vocabulary, label_vector, missing_labels
from setwise.ranks import as_fraction, as_level, chance_of_so_few, clopper_pearson

_SIZE_BINS = ((0, 0), (1, 1), (2, 3), (4, 10), (11, 100), (101, 1000), (1001, None))


def evaluate(
    sets: Any,
    y: Any = None,
    *,
    candidates: Any = None,
    by: Any = None,
    delta: float = 0.05,
    **others: Never,
) -> dict[str, Any]:
    """Coverage and size of prediction sets, in all and by size, class and category, as a plain dictionary.

    Parameters
    ----------
    sets
        Prediction sets.
    y
        True labels; rows where it is None or NaN are left out of everything that needs truth. A label
        outside the vocabulary counts as missed and is reported under ``unknown_labels``.
    candidates
        Candidate sets of the same rows: how often the prediction set holds all of them and at least one of
        them, and the interval in which coverage then lies if the truth is a candidate.
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
    refuse_names(others, alpha="confidence_level", y_true="y", y_pred="sets", y_pred_set="sets")
    check_row_names(sets=sets, y=y, candidates=candidates, by=by)
    if not isinstance(sets, LabelSets):
        if np.ndim(sets) != 2:
            raise TypeError("sets: expected LabelSets or a mask, one row per example; see LabelSets.from_labels.")
        sets = LabelSets.from_mask(sets)
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


@dataclass(frozen=True)
class SetSizeScorer:
    """A scorer for scikit-learn's `GridSearchCV`: the smallest sets among the settings that cover.

    The value on held-out rows is minus the mean set size. Where coverage fails it is −1000·K·(1 + what coverage
    lacks) with K labels: below any setting that covers, and so is the mean over splits if one of them fails.

    Where y is exact (a label vector, sets of one label) a row is covered if its set holds the label. Where y is
    candidate sets, coverage is not observable. A setting whose `guarantee` is unconditional at this level then
    fails only if too few of its sets hold any candidate; any other must have enough sets that hold all candidates.

    A setting fails if it covers so few of m rows that a split conformal predictor of this level, calibrated on n
    examples, covers no more with a probability below `delta`. The number covered is Beta-binomial, m rows with
    Beta(r, n + 1 − r) and r = ⌈(n + 1)(level − slack)⌉, since calibration rows are random too. (A cross-conformal
    model has no exact law; n is then all its rows.) Held-out rows are taken as exchangeable: for groups allow some
    slack.

    Parameters
    ----------
    confidence_level
        The level of every setting; None is each model's own, and then sizes compare only if these are the same.
    slack
        How far coverage may lie below the level.
    delta
        How often, at most, a setting that covers exactly as it should is refused on a split.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from setwise import ConformalClassifier, SetSizeScorer
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 600)
    >>> X = 2 * np.eye(3)[y] + rng.normal(size=(600, 3))
    >>> model = ConformalClassifier(LogisticRegression(), random_state=0)
    >>> search = GridSearchCV(model, {"conformity_score": ["aps", "lac"]}, scoring=SetSizeScorer(0.9))
    >>> search.fit(X, y).best_params_
    {'conformity_score': 'lac'}
    """

    confidence_level: float | None = None
    slack: float = 0.0
    delta: float = 0.01

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The value of a fitted `ConformalClassifier`, or of a pipeline that ends in one."""
        while hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator.steps[-1][1]
        if not hasattr(estimator, "predict_set"):
            raise TypeError(f"estimator: {type(estimator).__name__} predicts no sets; use ConformalClassifier.")
        asked = estimator.confidence_level if self.confidence_level is None else self.confidence_level
        level = as_level(as_level(asked) - as_fraction(self.slack, "slack"), "confidence_level − slack")
        sets: LabelSets = estimator.predict_set(X, asked)
        promised = estimator.guarantee(asked).promised
        promises = promised is not None and promised >= float(level)
        covered = _covered(sets, y, promises=promises)
        n = sum(part.evidence.instances for part in estimator.calibration_.parts)
        if chance_of_so_few(int(covered.sum()), len(covered), n, level) < self.delta:
            if not promises and (read_sets(y, name="y").sizes > 1).any():
                problem = (
                    "y: candidate sets do not show whether the truth is covered, and this model's promise rests on "
                    "premises, so that its sets had to hold all candidates, and too few do"
                )
                warnings.warn(MisuseWarning(problem, "score on rows with known labels"), stacklevel=2)
            return -1000.0 * sets.n_classes * (1 + float(level) - float(covered.mean()))
        return -float(sets.sizes.mean())


def _covered(sets: LabelSets, y: Any, *, promises: bool) -> Bools:
    """Which rows count as covered: by the label where it is exact, else by any or by all candidates."""
    given = read_sets(y, name="y")
    if (given.sizes == 1).all():
        return sets.contains(given.to_labels())
    known = sets.classes.tolist()
    if not given.vocabulary.is_range:  # of labels that the model never saw none is in a set
        known += [label for label in given.classes.tolist() if label not in set(known)]
    own, sets = as_candidates(given, len(known), known, name="y"), sets.with_classes(known)
    inside: Bools = (own & sets).sizes > 0 if promises else own.issubset(sets)
    return inside


def _against_truth(sets: LabelSets, y: Any, group: Array | None, delta: float) -> dict[str, Any]:
    truth = label_vector(y, "y")
    if len(truth) != len(sets):
        raise ValueError(f"y: {len(truth)} labels for {len(sets)} sets; give one per row.")
    known = np.flatnonzero(~missing_labels(truth))
    if len(known) == 0:
        raise InputError("y: no row has a true label", Remedy("candidates", None, "to compare with candidate sets"))
    covered = sets.contains(truth)[known]
    codes, sizes = sets.vocabulary.encode(truth[known]), sets.sizes[known]
    if (codes == UNKNOWN).all():
        label, other = truth[known].tolist()[0], sets.classes.tolist()[0]
        problem = f"y: none of its labels, such as {label!r}, is a class of the sets: every row counts as missed"
        warnings.warn(MisuseWarning(problem, f"write them as the classes are written ({other!r})"), stacklevel=3)
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
