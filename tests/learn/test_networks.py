"""Modules that return an object with `logits`, as those of Hugging Face do."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from setwise import ConformalClassifier
from setwise.learn import PartialLabelClassifier


class Pixels(torch.nn.Module):
    """Numbers to an object with logits."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(3, 3)

    def forward(self, x):
        return SimpleNamespace(logits=self.head(x))


class Texts(torch.nn.Module):
    """Tokens to an object with logits."""

    def __init__(self):
        super().__init__()
        self.tokens, self.head = torch.nn.Embedding(30, 8), torch.nn.Linear(8, 3)

    def get_input_embeddings(self):
        return self.tokens

    def forward(self, input_ids):
        return SimpleNamespace(logits=self.head(self.tokens(input_ids).mean(dim=1)))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    candidates = np.eye(3)[y] + (rng.random((300, 3)) < 0.2) > 0
    return (
        2.5 * np.eye(3)[y] + rng.normal(size=(300, 3)),
        10 * y[:, None] + rng.integers(0, 10, (300, 4)),
        candidates,
        y,
    )


@pytest.mark.parametrize("network", [Pixels, Texts])
def test_such_a_module_is_trained_and_then_calibrated(rows, network):
    X, tokens, candidates, y = rows
    X = X if network is Pixels else tokens
    learner = PartialLabelClassifier(network, scale=None, epochs=25, learning_rate=0.05, random_state=0)
    assert (learner.fit(X[:200], candidates[:200]).predict(X[200:]) == y[200:]).mean() > 0.85
    trained = learner.network_.module
    model = ConformalClassifier(trained, random_state=0).fit(X[:200], candidates[:200])
    np.testing.assert_allclose(model.predict_proba(X), learner.predict_proba(X), atol=1e-6)
    assert model.predict_set(X[200:]).contains(y[200:]).mean() > 0.85


def test_tokens_that_were_scaled_are_refused(rows):
    _, tokens, candidates, _ = rows
    with pytest.raises(ValueError, match="network: it reads tokens, but X holds other numbers; use scale=None"):
        PartialLabelClassifier(Texts, scale="standard", epochs=1).fit(tokens, candidates)


def test_a_module_that_returns_neither_is_told_what_to_return(rows):
    X, _, candidates, _ = rows

    class Wrong(Pixels):
        def forward(self, x):
            return {"scores": self.head(x)}

    with pytest.raises(TypeError, match="network: it returned dict; return logits, or an object that holds them"):
        PartialLabelClassifier(Wrong, scale=None, epochs=1).fit(X, candidates)
    with pytest.raises(TypeError, match="network: it returned dict"):
        ConformalClassifier(Wrong(), random_state=0).fit(X, candidates)
