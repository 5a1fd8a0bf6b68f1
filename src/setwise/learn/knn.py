"""`PartialLabelKNN`: nearest neighbours that vote for all of their candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from setwise._arrays import blocks
from setwise.learn.base import CandidateClassifier
from setwise.learn.inputs import as_training_sets, read_array


class PartialLabelKNN(CandidateClassifier):
    """Votes Σ_j (1 − d_j / Σ d)·1{y ∈ S_j} over the k nearest rows (PL-kNN).

    Parameters
    ----------
    n_neighbors
        How many rows vote.

    Examples
    --------
    >>> import numpy as np
    >>> model = PartialLabelKNN(n_neighbors=2)
    >>> model.fit(np.array([[0.0], [0.2], [1.0], [1.1]]), [["a"], ["a", "b"], ["b"], ["b", "c"]])
    PartialLabelKNN(n_neighbors=2)
    >>> model.predict([[0.1], [1.0]]).tolist()
    ['a', 'b']
    """

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any) -> PartialLabelKNN:
        """Keeps the rows and their candidates; a label vector is exact labels."""
        rows = read_array(self, X, reset=True)
        sets = as_training_sets(y)
        if self.n_neighbors < 1:
            raise ValueError(f"n_neighbors: {self.n_neighbors} is not a positive number.")
        if len(sets) != len(rows):
            raise ValueError(f"y: inconsistent numbers of samples, {len(sets)} rows for {len(rows)} of X.")
        self.rows_ = rows.reshape(len(rows), -1)
        self.candidates_ = sets.to_mask()
        self.classes_ = np.array(sets.classes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The votes, scaled to sum to one."""
        check_is_fitted(self)
        new = read_array(self, X, reset=False)
        k = min(self.n_neighbors, len(self.rows_))
        neighbors = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(self.rows_)  # this merely looks at them
        distances, near = neighbors.kneighbors(new.reshape(len(new), -1))
        total = distances.sum(axis=1, keepdims=True)
        weights = 1 - np.divide(distances, total, out=np.zeros_like(distances), where=total > 0)
        if weights.shape[1] == 1:
            weights = np.ones_like(weights)
        votes = np.empty((len(new), len(self.classes_)))
        for block in blocks(near):
            votes[block] = np.einsum("ij,ijk->ik", weights[block], self.candidates_[near[block]])
        shares: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
        return shares
