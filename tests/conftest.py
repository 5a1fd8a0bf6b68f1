import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


def simplex(rng, n, k, sharpness=2.0):
    """Probabilities of a plausible model."""
    logits = sharpness * rng.normal(size=(n, k))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def labels_from(rng, p):
    """Labels drawn from the probabilities."""
    return np.minimum((p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1), p.shape[1] - 1)


def candidates_from(rng, y, k, share=0.3):
    """The label itself, and each other one with a fixed probability."""
    mask = rng.random((len(y), k)) < share
    mask[np.arange(len(y)), y] = True
    return mask
