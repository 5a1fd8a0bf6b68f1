"""`EMClassifier`: partial labels for any scikit-learn classifier that takes `sample_weight`.

Each row stands once for each of its candidates, weighted by w ∝ 1{S}·p. Expectation: p from the classifier.
Maximisation: a weighted refit. The first weights are uniform over the candidates. Of votes the weights are how
probable the annotator model makes each label: at first given the answers alone, then also given p, recalibrated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from setwise._arrays import Array, Floats, Ints
from setwise.labels.votes import Votes
from setwise.learn.base import CandidateClassifier
from setwise.learn.validation import check_finite, read_candidates, vote_targets


class EMClassifier(MetaEstimatorMixin, CandidateClassifier):  # type: ignore[misc]
    """Learns any classifier from candidate sets by expectation maximisation.

    Parameters
    ----------
    estimator
        A classifier with `predict_proba` whose `fit` takes `sample_weight`; None is logistic regression.
    max_iter
        At most this many fits; the first gives all candidates of a row the same weight.
    tol
        Stop when the weights move by less than this on average.
    cv
        Number of folds, or a splitter of scikit-learn: a row's weights come from a classifier trained on the other
        folds. With 0 they come from the refit itself, which suits linear models; trees would only repeat what
        they were told.
    random_state
        Assigns rows to folds, where `cv` is a number.

    Attributes
    ----------
    estimator_
        The classifier of the last round.
    n_iter_
        How many fits were made.

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
        self, estimator: Any = None, *, max_iter: int = 10, tol: float = 1e-3, cv: Any = 5, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> EMClassifier:
        """Learns from rows X and their candidates y, or `Votes`; a label vector is exact labels."""
        base = LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator
        last = base.steps[-1][1] if hasattr(base, "steps") else base
        if not has_fit_parameter(last, "sample_weight"):
            raise TypeError(f"estimator: {type(last).__name__}.fit takes no sample_weight; use one that does.")
        X = self._features(X, reset=True)
        sets = read_candidates(y)
        if len(sets) != X.shape[0]:
            raise ValueError(f"y: inconsistent numbers of samples, {len(sets)} rows for {X.shape[0]} of X.")
        self.classes_ = np.array(sets.classes)
        mask = sets.to_mask()
        uniform = mask / mask.sum(axis=1, keepdims=True)
        weights = vote_targets(y, sets) if isinstance(y, Votes) else uniform
        folds = self._folds(X, mask)
        self.estimator_ = self._refit(base, X, weights)
        exact = bool((sets.sizes == 1).all()) and not isinstance(y, Votes)
        self.n_iter_ = 1
        for _ in range(1, 1 if exact else self.max_iter):
            p, before = self._predicted(base, X, weights, folds), weights
            if isinstance(y, Votes):
                weights = vote_targets(y, sets, p)
            else:
                total = (mask * p).sum(axis=1, keepdims=True)
                weights = np.divide(mask * p, total, out=uniform.copy(), where=total > 0)
            self.estimator_ = self._refit(base, X, weights)
            self.n_iter_ += 1
            if np.abs(weights - before).sum(axis=1).mean() < self.tol:
                break
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The base classifier's probabilities, one column per class; a class never learned has zero."""
        check_is_fitted(self)
        return self._probabilities(self.estimator_, self._features(X, reset=False))

    # ---------------------------------------------------------------- parts

    def _features(self, X: Any, *, reset: bool) -> Any:
        X = validate_data(self, X=X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        if sparse.issparse(X) and not np.isfinite(X.data).all():
            check_finite(X.toarray())
        elif not sparse.issparse(X):
            check_finite(X)
        return X

    def _folds(self, X: Any, mask: Array) -> list[Ints]:
        """The rows of each fold; no folds where rows are too few."""
        if not isinstance(self.cv, (int, np.integer)):  # one that stratifies does so by the first candidate
            return [held for _, held in check_cv(self.cv).split(X, mask.argmax(axis=1))]
        if self.cv < 2 or len(mask) < 2 * self.cv:
            return []
        part = check_random_state(self.random_state).permutation(np.arange(len(mask)) % self.cv)
        return [np.flatnonzero(part == fold) for fold in range(self.cv)]

    def _predicted(self, base: Any, X: Any, weights: Floats, folds: list[Ints]) -> Floats:
        """The probabilities of each row, by a classifier that learned from the other folds where there are any."""
        p = np.zeros(weights.shape) if folds else self._probabilities(self.estimator_, X)
        for held in folds:
            others = weights.copy()
            others[held] = 0.0
            p[held] = self._probabilities(self._refit(base, X, others), X[held])
        return p

    def _refit(self, base: Any, X: Any, weights: Floats) -> Any:
        """A clone fitted on (row, candidate) pairs; pairs of vanishing weight stay out."""
        rows, labels = np.nonzero(weights > 1e-6)
        name = f"{base.steps[-1][0]}__sample_weight" if hasattr(base, "steps") else "sample_weight"
        return clone(base).fit(X[rows], labels, **{name: weights[rows, labels]})

    def _probabilities(self, model: Any, X: Any) -> NDArray[np.float64]:
        p = np.zeros((X.shape[0], len(self.classes_)))
        p[:, model.classes_] = model.predict_proba(X)
        return p
