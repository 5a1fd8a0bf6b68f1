"""`EMClassifier`: partial labels for any scikit-learn classifier that takes `sample_weight`.

Each row stands once for each of its candidates, weighted by w ∝ 1{S}·p. Expectation: p from the classifier.
Maximisation: a weighted refit. The first weights are uniform over the candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from setwise._arrays import Bools, Floats, Ints
from setwise.learn.inputs import check_finite, read_candidates
from setwise.learn.scoring import CandidateClassifier


class EMClassifier(MetaEstimatorMixin, CandidateClassifier):  # type: ignore[misc]
    """Learns any classifier from candidate sets by expectation maximisation.

    Parameters
    ----------
    base_estimator
        A classifier with `predict_proba` whose `fit` takes `sample_weight`; None is logistic regression.
    n_iterations
        At most this many rounds after the first fit.
    tolerance
        Stop when the weights move by less than this on average.
    folds
        Weights come from a classifier that has not seen the row, trained on the other folds; with 0 from the
        refit itself, which suits linear models and misleads trees, who remember what they were told.
    random_state
        Assigns rows to folds.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learn import EMClassifier
    >>> X = np.array([[0.0], [0.1], [0.9], [1.0]] * 5)
    >>> y = [["a"], ["a", "b"], ["a", "b"], ["b"]] * 5
    >>> EMClassifier().fit(X, y).predict([[0.05], [0.95]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        base_estimator: Any = None,
        *,
        n_iterations: int = 10,
        tolerance: float = 1e-3,
        folds: int = 5,
        random_state: Any = None,
    ) -> None:
        self.base_estimator = base_estimator
        self.n_iterations = n_iterations
        self.tolerance = tolerance
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> EMClassifier:
        """Learns from rows X and their candidates y; a label vector is exact labels."""
        base = LogisticRegression(max_iter=1000) if self.base_estimator is None else self.base_estimator
        last = _last_step(base)
        if not has_fit_parameter(last, "sample_weight"):
            raise TypeError(f"base_estimator: {type(last).__name__}.fit takes no sample_weight; use one that does.")
        X = self._features(X, reset=True)
        sets = read_candidates(y)
        if len(sets) != X.shape[0]:
            raise ValueError(f"y: inconsistent numbers of samples, {len(sets)} rows for {X.shape[0]} of X.")
        self.classes_ = np.array(sets.classes)
        mask = sets.to_mask()
        weights = mask / mask.sum(axis=1, keepdims=True)
        parts = self._parts(len(mask))
        self.estimator_ = self._refit(base, X, weights)
        exact = bool((sets.sizes == 1).all())
        self.n_iter_ = 0
        for _ in range(0 if exact else self.n_iterations):
            before, weights = weights, self._expect(base, X, weights, mask, parts)
            self.estimator_ = self._refit(base, X, weights)
            self.n_iter_ += 1
            if np.abs(weights - before).sum(axis=1).mean() < self.tolerance:
                break
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The base classifier's probabilities, one column a class; a class never learned has zero."""
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

    def _parts(self, n: int) -> Ints | None:
        """The fold of each row; None where rows are too few for folds."""
        if self.folds < 2 or n < 2 * self.folds:
            return None
        parts: Ints = check_random_state(self.random_state).permutation(np.arange(n) % self.folds)
        return parts

    def _expect(self, base: Any, X: Any, weights: Floats, mask: Bools, parts: Ints | None) -> Floats:
        """New weights 1{S}·p, normalised; uniform where the classifier gives all candidates zero."""
        p = np.zeros(mask.shape)
        if parts is None:
            p = self._probabilities(self.estimator_, X)
        else:
            for part in range(self.folds):
                held = parts == part
                model = self._refit(base, X, np.where(held[:, None], 0.0, weights))
                p[held] = self._probabilities(model, X[held])
        inside = np.where(mask, p, 0.0)
        total = inside.sum(axis=1, keepdims=True)
        uniform = mask / mask.sum(axis=1, keepdims=True)
        return np.where(total > 0, inside / np.where(total > 0, total, 1.0), uniform)

    def _refit(self, base: Any, X: Any, weights: Floats) -> Any:
        """A clone fitted on (row, candidate) pairs; pairs of vanishing weight stay out."""
        rows, labels = np.nonzero(weights > 1e-6)
        name = f"{base.steps[-1][0]}__sample_weight" if hasattr(base, "steps") else "sample_weight"
        return clone(base).fit(X[rows], labels, **{name: weights[rows, labels]})

    def _probabilities(self, model: Any, X: Any) -> NDArray[np.float64]:
        p = np.zeros((X.shape[0], len(self.classes_)))
        p[:, model.classes_] = model.predict_proba(X)
        return p


def _last_step(model: Any) -> Any:
    """The classifier of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model
