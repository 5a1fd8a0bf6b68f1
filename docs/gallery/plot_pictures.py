"""
Plots of sets and coverage
==========================

Five functions draw on matplotlib axes that you give them and return these axes, so that plots can be combined
and styled.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import setwise

rng = np.random.default_rng(0)
X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X) + 1.0 * rng.normal(size=X.shape)  # blurred, so that there is something to see
names = np.array(["barolo", "grignolino", "barbera"])
order = rng.permutation(len(y))
train, rest, new = order[:50], order[50:110], order[110:]
model = LogisticRegression().fit(X[train], y[train])
candidates = (np.arange(3) == y[:, None]) | (rng.random((len(y), 3)) < 0.2)
P, Q = model.predict_proba(X[rest]), model.predict_proba(X[new])
calibration = setwise.conformalize(P, candidates[rest], assume="uniform", classes=names)

# %%
# Coverage, sizes, how often the model's choices are candidates, and the sets themselves.
fig, axes = plt.subplots(2, 2, figsize=(10, 8))
setwise.plot_coverage(calibration, Q, names[y[new]], ax=axes[0, 0])
setwise.plot_sizes(candidates[rest], label="candidates", ax=axes[0, 1])
setwise.plot_sizes(calibration.predict_set(Q, 0.9), label="prediction sets at 0.9", ax=axes[0, 1])
setwise.plot_inclusion(P, candidates[rest], ax=axes[1, 0])
setwise.plot_sets(
    calibration.predict_set(Q, 0.9), names[y[new]], candidates=candidates[new], rows=12, ax=axes[1, 1]
)
fig.tight_layout()

# %%
# Without the truth `plot_coverage` draws the interval that candidates alone prove, here on the same axes.
fig, ax = plt.subplots(figsize=(6, 4))
setwise.plot_coverage(calibration, Q, ax=ax)
setwise.plot_coverage(calibration, Q, names[y[new]], label="with the truth", ax=ax)
ax.set_title("What can be proved without a single true label")
fig.tight_layout()

# %%
# `plot_coverage_by_class` shows the classes with the lowest coverage first. The guarantee is an average over all
# rows: for a single class the coverage may be lower. Here are 100 classes, ten of which look like ten others.
n = 6000
centres = rng.normal(size=(100, 8))
centres[50:60] = centres[40:50] + 0.4 * rng.normal(size=(10, 8))
kind = rng.integers(0, 100, n)
distance = ((centres[kind][:, None] + 0.5 * rng.normal(size=(n, 1, 8)) - centres) ** 2).sum(axis=2)
P = np.exp(-2 * distance)
P /= P.sum(axis=1, keepdims=True)
classes = np.array([f"kind {k:02d}" for k in range(100)])
calibration = setwise.conformalize(P[:1000], classes[kind[:1000]], classes=classes)
sets = calibration.predict_set(P[1000:], 0.9)
setwise.plot_coverage_by_class(sets, classes[kind[1000:]], confidence_level=0.9)

# %%
# With more than 30 classes `plot_sets` leaves out the labels that occur in none of the rows.
setwise.plot_sets(sets, classes[kind[1000:]])
