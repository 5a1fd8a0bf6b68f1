"""The supermodel that the committed figures of contamination were made with: a 784-100-10 network on raw pixels whose confusions contaminate its own training set.

Its input is (x − shift) / scale with x in 0..255, not 0..1: the steep logits that follow are what makes the
candidate sets as small as the paper's. Torch trains it; the trained model is three arrays and needs numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from setwise._arrays import Array, Floats, frozen

PIXELS = {"mnist": (0.1307, 0.3081), "fashion_mnist": (0.1307, 0.3081), "kmnist": (0.5, 0.5)}
"""Shift and scale by which the paper feeds each benchmark set."""


@dataclass(frozen=True, eq=False)
class Supermodel:
    """A trained network with one hidden layer: softmax(relu(((x − shift) / scale) W + b) V + c)."""

    hidden: Floats = field(repr=False)
    hidden_bias: Floats = field(repr=False)
    output: Floats = field(repr=False)
    output_bias: Floats = field(repr=False)
    shift: float
    scale: float

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities, (n, K), in double precision from the exponential of the logits on."""
        rows: Array = np.asarray(X)
        out = np.empty((len(rows), len(self.output_bias)), dtype=np.float64)
        for start in range(0, len(rows), 4096):
            x = (rows[start : start + 4096].astype(np.float32) - np.float32(self.shift)) / np.float32(self.scale)
            x = np.maximum(x @ self.hidden + self.hidden_bias, 0)
            logits = (x @ self.output + self.output_bias).astype(np.float64)
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            out[start : start + 4096] = p / p.sum(axis=1, keepdims=True)
        return out

    def accuracy(self, X: ArrayLike, y: ArrayLike) -> float:
        """How often the most probable class is the true one."""
        return float((self.predict_proba(X).argmax(axis=1) == np.asarray(y)).mean())


def train_supermodel(
    X: ArrayLike,
    y: ArrayLike,
    *,
    shift: float = 0.1307,
    scale: float = 0.3081,
    n_classes: int | None = None,
    hidden_size: int = 100,
    epochs: int = 10,
    batch_size: int = 256,
    random_state: int = 0,
) -> Supermodel:
    """Trains a supermodel by the paper's recipe: Adam as it is, cross-entropy, ten epochs, batches of 256.

    Parameters
    ----------
    X, y
        Raw pixels 0..255, (n, d), and true labels 0..K−1.
    shift, scale
        The input is (X − shift) / scale; `PIXELS` has the paper's values by name.
    n_classes
        K; by default one more than the largest label.
    hidden_size, epochs, batch_size
        The recipe.
    random_state
        Seed of the initial weights and of the order of the rows.

    """
    import torch
    from torch import nn

    features = torch.as_tensor(np.ascontiguousarray(np.asarray(X)).copy())
    labels = torch.as_tensor(np.asarray(y).astype(np.int64))
    n, d = features.shape
    k = int(labels.max()) + 1 if n_classes is None else n_classes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_state)
        network = nn.Sequential(nn.Linear(d, hidden_size), nn.ReLU(), nn.Linear(hidden_size, k))
        optimizer = torch.optim.Adam(network.parameters())
        for _ in range(epochs):
            for rows in torch.split(torch.randperm(n), batch_size):
                x = (features[rows].to(torch.float32) - shift) / scale
                loss = nn.functional.cross_entropy(network(x), labels[rows])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
    weights = [frozen(w.detach().numpy().T.copy()) for w in network.parameters()]
    return Supermodel(weights[0], weights[1], weights[2], weights[3], shift=shift, scale=scale)
