"""
A training loop of your own
===========================

`ProdenLoss` replaces the cross-entropy. It learns which of the candidates is the truth while the
network learns.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import setwise
from setwise.datasets import Random, contaminate
from setwise.learn import NaiveLoss, ProdenLoss

torch.set_num_threads(1)
X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
train, rest, new = order[:900], order[900:1400], order[1400:]
images = torch.tensor(X / 16, dtype=torch.float32)
candidates = contaminate(y, Random(p=0.3), n_classes=10, random_state=0)
mask = torch.tensor(candidates.to_mask())
print(f"{candidates.sizes.mean():.2f} candidates per digit")


# %%
# The loop is an ordinary one. The loss also takes the positions of the batch, because it keeps the last
# probabilities of each example.
def learn(loss, epochs=25):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    accuracy = []
    for _ in range(epochs):
        for batch in torch.randperm(len(train)).split(64):
            rows = torch.as_tensor(train)[batch]
            optimizer.zero_grad()
            loss(model(images[rows]), mask[rows], batch).backward()
            optimizer.step()
        accuracy.append((model(images[new]).argmax(dim=1).numpy() == y[new]).mean())
    return model, accuracy


fig, ax = plt.subplots(figsize=(6, 4))
for name, loss in {"ProdenLoss": ProdenLoss(n_examples=len(train)), "NaiveLoss (the average)": NaiveLoss()}.items():
    model, accuracy = learn(loss)
    ax.plot(accuracy, label=name)
    print(f"{name}: accuracy {accuracy[-1]:.3f}")
    if name == "ProdenLoss":
        best = model
ax.set(xlabel="epoch", ylabel="accuracy on new digits")
ax.legend()
fig.tight_layout()

# %%
# A trained module is only calibrated, on rows that it did not see.
conformal = setwise.ConformalClassifier(best, assume="uniform", random_state=0).fit(images[rest], candidates[rest])
result = conformal.evaluate(images[new], y[new])
print(f"coverage {result['coverage']:.3f}, {result['mean_size']:.2f} digits per set")
print(conformal.guarantee())
