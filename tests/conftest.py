import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# No test fails because the machine is slow.
settings.register_profile(
    "steady",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("steady")


LONG = ("tests/observatory", "tests/statistical")


def pytest_collection_modifyitems(items):
    """Begins with what takes longest, so that workers end together."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


def calls_in(work):
    """How many functions are called meanwhile: a measure of work that does not depend on the machine."""
    seen = []
    sys.setprofile(lambda _frame, event, _argument: seen.append(1) if event.endswith("call") else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(seen)


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
