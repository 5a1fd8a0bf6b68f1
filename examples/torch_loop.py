"""A network and a training loop of your own, with `ProdenLoss` in place of the cross-entropy.

The loss takes logits, candidates, and the positions of the batch's examples, of which it remembers the last logits.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from setwise import ConformalClassifier
from setwise.datasets import Random, contaminate
from setwise.learn import ProdenLoss


def network():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 10),
    )


def main(epochs=8):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, rest, new = order[:900], order[900:1400], order[1400:]
    images = torch.tensor(X / 16, dtype=torch.float32)
    candidates = contaminate(y, Random(p=0.1), n_classes=10, random_state=0)
    mask = torch.tensor(candidates.to_mask())

    torch.manual_seed(0)
    model = network()
    loss, optimizer = ProdenLoss(n_examples=len(train)), torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(train)).split(64):
            rows = torch.as_tensor(train)[batch]
            optimizer.zero_grad()
            loss(model(images[rows]), mask[rows], batch).backward()
            optimizer.step()

    conformal = ConformalClassifier(model, strategy="mean", random_state=0)  # a trained module is only calibrated
    conformal.fit(images[rest], candidates[rest])
    accuracy = float((conformal.predict(images[new]) == y[new]).mean())
    result = conformal.evaluate(images[new], y[new])
    print(f"accuracy {accuracy:.3f}, coverage {result['coverage']:.3f}, {result['mean_size']:.2f} digits a set")
    print(conformal.guarantee())
    return {"coverage": result["coverage"], "mean_size": result["mean_size"], "n": result["n"]}


if __name__ == "__main__":
    main()
