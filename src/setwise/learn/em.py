"""`EMClassifier`: partial labels for any scikit-learn classifier, and for any X that it reads.

Each row stands once for each of its candidates, weighted by w ∝ 1{S}·p. Expectation: p from the classifier.
Maximisation: a weighted refit. The first weights are uniform over the candidates. A forest only repeats the weights
that it learned from a row. Therefore the first p come from classifiers that have not learned from the row, and for
a classifier that memorises in this way all p do. For votes the weights are the probabilities of the labels under
the annotator model: at first given the answers alone, then also given such p, recalibrated.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.validation import _check_feature_names, _num_samples, check_is_fitted, has_fit_parameter

from setwise._arrays import Array, Floats, Ints
from setwise.crowd.annotator_model import own_fits
from setwise.errors import InputError
from setwise.labels.votes import Votes
from setwise.learn.base import CandidateClassifier, clone_unfitted
from setwise.learn.feature_errors import naming_features
from setwise.learn.inputs import as_training_sets
from setwise.progress_lines import lines_on_stderr

_COPIES = 3  # copies of each row for a classifier without sample_weight
_FEW_ROUNDS = 4


class EMClassifier(MetaEstimatorMixin, CandidateClassifier):  # type: ignore[misc]
    """Learns any classifier from candidate sets by expectation maximisation.

    X goes to the classifier as it is: an array, a sparse matrix, a frame of pandas or polars with columns of any
    type and missing values, a list of texts.

    Parameters
    ----------
    estimator
        A classifier, pipeline or search with `predict_proba`; None is logistic regression. One whose `fit` takes no
        `sample_weight` gets three copies of each row instead, with labels in proportion to the weights.
    max_iter
        Maximum number of rounds of weights; the first gives all candidates of a row the same weight. With votes, or
        with a classifier that memorises, there are at most 4.
    tol
        Stop when the weights move by less than this on average.
    cv
        Number of folds, or a splitter of scikit-learn. The weights of the second round come from classifiers that
        learned from the other folds. So do those of later rounds with votes, and with a classifier that memorises:
        weights of rows that it learned from move less than half as far as those of others. Otherwise, and with 0,
        they come from a classifier that learned from all rows. By default it is fitted at most 12 times
        (``cv + max_iter - 1``) or 10 times (``3 * cv + 1``).
    random_state
        Assigns rows to folds, where `cv` is a number.
    verbose
        None writes a line on stderr every 5 seconds, 0 is silent, and 1 writes a line for every fit.

    Attributes
    ----------
    estimator_
        The classifier of the last round, learned from all rows. Its own classes are positions in `learned_`.
    learned_
        The positions in `classes_` of the labels that it learned.
    memorises_
        Whether the classifier repeats the weights that it learned; None where that was not tested.
    n_iter_
        Number of rounds of weights.
    n_fits_
        Number of times a classifier was fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learn import EMClassifier
    >>> X = np.array([[0.0], [0.1], [0.9], [1.0]] * 5)
    >>> y = [["a"], ["a", "b"], ["a", "b"], ["b"]] * 5
    >>> EMClassifier().fit(X, y).predict([[0.05], [0.95]]).tolist()
    ['a', 'b']
    """

    reads_votes = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_iter: int = 10,
        tol: float = 1e-3,
        cv: Any = 3,
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> EMClassifier:
        """Learns from rows X and their candidates y, or `Votes`; a label vector is exact labels."""
        base = self._base()
        (X,) = indexable(X)
        sets = as_training_sets(y)
        if len(sets) != _num_samples(X):
            raise ValueError(f"y: inconsistent numbers of samples, {len(sets)} rows for {_num_samples(X)} of X.")
        self.classes_ = np.array(sets.classes)
        mask, votes = sets.to_mask(), own_fits(y) if isinstance(y, Votes) else None
        uniform = mask / mask.sum(axis=1, keepdims=True)
        weights = uniform if votes is None else votes.label_targets()
        folds = self._folds(X, mask)
        rounds = 1 if votes is None and (sets.sizes == 1).all() else self.max_iter
        rounds = rounds if votes is None else min(rounds, _FEW_ROUNDS)
        self.n_iter_, self.n_fits_ = 1, 0
        self.memorises_: bool | None = None
        fitted: tuple[Any, Ints] | None = None
        shown = nullcontext() if self.verbose is not None else lines_on_stderr(self._state)
        with naming_features(X), shown:
            while self.n_iter_ < rounds:
                if folds and (votes is not None or self.n_iter_ == 1 or self.memorises_):
                    p, seen = self._out_of_fold(base, X, weights, folds)
                else:
                    fitted = self._refit(base, X, weights)
                    p, seen = self._probabilities(*fitted, X), None
                before = weights
                weights = _restrict(p, uniform) if votes is None else votes.label_targets(p)
                moved = _distance(before, weights)
                if seen is not None and votes is None and self.memorises_ is None:
                    self.memorises_ = _distance(before, _restrict(seen, uniform)) < moved / 2
                    rounds = min(rounds, _FEW_ROUNDS) if self.memorises_ else rounds
                self.n_iter_ += 1
                if moved < self.tol:
                    break
                fitted = None
            self.estimator_, self.learned_ = self._refit(base, X, weights) if fitted is None else fitted
        _check_feature_names(self, X, reset=True)
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The base classifier's probabilities, one column per class; 0 for a class that was never learned."""
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        with naming_features(X):
            return self._probabilities(self.estimator_, self.learned_, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._base()).input_tags
        return tags

    # ---------------------------------------------------------------- parts

    def _base(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def _folds(self, X: Any, mask: Array) -> list[Ints]:
        """The rows of each fold; no folds where rows are too few."""
        if not isinstance(self.cv, (int, np.integer)):  # one that stratifies does so by the first candidate
            return [held for _, held in check_cv(self.cv).split(X, mask.argmax(axis=1))]
        if self.cv < 2 or len(mask) < 2 * self.cv:
            return []
        part = check_random_state(self.random_state).permutation(np.arange(len(mask)) % self.cv)
        return [np.flatnonzero(part == fold) for fold in range(self.cv)]

    def _out_of_fold(self, base: Any, X: Any, weights: Floats, folds: list[Ints]) -> tuple[Floats, Floats]:
        """The probabilities of each row, by a classifier that learned from the other folds, and by one of those."""
        unseen, seen = np.zeros(weights.shape), np.zeros(weights.shape)
        for held, other in zip(folds, [*folds[1:], folds[0]], strict=True):
            others = weights.copy()
            others[held] = 0.0
            fitted = self._refit(base, X, others)
            unseen[held] = self._probabilities(*fitted, _safe_indexing(X, held))
            seen[other] = self._probabilities(*fitted, _safe_indexing(X, other))
        return unseen, seen

    def _refit(self, base: Any, X: Any, weights: Floats) -> tuple[Any, Ints]:
        """A clone fitted on (row, candidate) pairs, and the labels that it learned."""
        self.n_fits_ += 1
        if self.verbose:
            sys.stderr.write(f"{self._state()}\n")
        argument = _weight_argument(base)
        rows, labels, given = _pairs(weights) if argument else (*_copies(weights), None)
        learned, codes = np.unique(labels, return_inverse=True)
        named = {} if given is None else {str(argument): given}
        return clone_unfitted(base).fit(_safe_indexing(X, rows), codes, **named), learned

    def _state(self) -> str:
        return f"EMClassifier: fit {self.n_fits_}, round {self.n_iter_} of at most {self.max_iter}"

    def _probabilities(self, model: Any, learned: Ints, X: Any) -> NDArray[np.float64]:
        if not hasattr(model, "predict_proba"):  # some have it only once they are fitted
            raise InputError(
                f"estimator: {type(model).__name__} gives no probabilities (it has no predict_proba)",
                "wrap it in sklearn.calibration.CalibratedClassifierCV",
            )
        found = model.predict_proba(X)
        p = np.zeros((len(found), len(self.classes_)))
        p[:, learned[np.asarray(model.classes_, dtype=int)]] = found
        return p


def _restrict(p: Floats, uniform: Floats) -> Floats:
    """The weights 1{S}·p, summing to one; uniform where p is 0 for all candidates."""
    own = np.where(uniform > 0, p, 0.0)
    total = own.sum(axis=1, keepdims=True)
    weights: Floats = np.divide(own, total, out=uniform.copy(), where=total > 0)
    return weights


def _distance(before: Floats, weights: Floats) -> float:
    return float(np.abs(weights - before).sum(axis=1).mean())


def _weight_argument(model: Any) -> str | None:
    """How `fit` takes weights: a pipeline hands them to its last step. None where it takes none."""
    steps = []
    while hasattr(model, "steps"):
        name, model = model.steps[-1]
        steps.append(name)
    return "__".join([*steps, "sample_weight"]) if has_fit_parameter(model, "sample_weight") else None


def _pairs(weights: Floats) -> tuple[Ints, Ints, Floats]:
    """Rows, labels and weights; pairs with almost no weight are left out."""
    rows, labels = np.nonzero(weights > 1e-6)
    return rows, labels, weights[rows, labels]


def _copies(weights: Floats) -> tuple[Ints, Ints]:
    """Rows and labels without weights: a pair of weight w occurs ⌊3w⌋ or ⌈3w⌉ times, a label as often as it weighs.

    Systematic resampling along each label's rows. Copies of a row stay together, so that folds cut in the order of
    the rows seldom part them.
    """
    copies = 1 if np.isin(weights, (0.0, 1.0)).all() else _COPIES
    steps = np.floor(np.cumsum(copies * weights.T).round(9) + 0.5)
    times = np.diff(steps, prepend=0.0).reshape(weights.T.shape).T.astype(int)
    rows, labels = np.nonzero(times)
    return np.repeat(rows, times[rows, labels]), np.repeat(labels, times[rows, labels])
