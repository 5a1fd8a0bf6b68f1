"""Small data that many tests share."""

import numpy as np

from setwise import LabelSets

NAMES = ["cat", "dog", "owl"]


def sample_rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = 2 * np.eye(3)[y] + rng.normal(size=(n, 3))
    mask = (np.eye(3)[y] + (rng.random((n, 3)) < 0.2)) > 0
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    return X, P, LabelSets.from_mask(mask, NAMES), y


def some_rows(n=300, d=5, k=4, p=0.4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, d)) + 4 * np.eye(d)[y]
    candidates = rng.random((n, k)) < p
    candidates[np.arange(n), y] = True
    return X, candidates, y
