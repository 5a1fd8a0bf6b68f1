"""
The gate: do the data refute what you declare?
==============================================

`corrected` gives small sets if wrong labels become candidates by chance. Annotators do not work like that: they
keep what looks likely. `setwise.diagnose` asks the data. It can refute a declaration; it can never confirm one.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.data import Random, contaminate

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(2).permutation(len(y))
train, rest, new = order[:400], order[400:1200], order[1200:]
model = LogisticRegression(C=0.005, max_iter=500).fit(X[train], y[train])
P = model.predict_proba(X[rest])

# %%
# Two kinds of candidates of about the same size: by chance, and by annotators whose eyes are like those of
# another model.
by_chance = contaminate(y[rest], Random(p=0.12), n_classes=10, random_state=0)
other = LogisticRegression(C=0.002, max_iter=500).fit(X[train[:200]], y[train[:200]]).predict_proba(X[rest])
by_eye = (np.arange(10) == y[rest][:, None]) | (other > 0.12)
print(f"{by_chance.sizes.mean():.2f} candidates a row by chance, {by_eye.sum(axis=1).mean():.2f} by eye")

# %%
# How often is the label that the model ranks first, second, … a candidate? By chance every rank has at least the
# floor. By eye the low ranks starve, and that is what refutes.
fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, (name, sets) in zip(axes, {"by chance": by_chance, "by eye": by_eye}.items(), strict=True):
    diagnosis = setwise.diagnose(P, sets)
    diagnosis.plot(ax=ax)
    ax.set_title(f"{name}: {'refuted' if diagnosis.refuted else 'not refuted'}")
    print(f"{name}: {diagnosis.sentence}")
fig.tight_layout()

# %%
# `setwise.plot_inclusion` draws the same for several candidate sets on one pair of axes.
fig, ax = plt.subplots(figsize=(6, 4))
setwise.plot_inclusion(P, by_chance, label="by chance", ax=ax)
setwise.plot_inclusion(P, by_eye, label="by eye", ax=ax)
fig.tight_layout()

# %%
# A strategy that needs a refuted declaration refuses to work. `"auto"` falls back to `max`, and says why.
try:
    setwise.conformalize(P, by_eye, "corrected", assume="uniform")
except setwise.AssumptionRefuted as error:
    print(error)
print(setwise.conformalize(P, by_eye, assume="uniform").guarantee(0.9).remarks[0])
