"""
Do the data refute what you declare?
====================================

`corrected` gives small sets if false labels become candidates at random. Annotators do not work like that: they
keep what looks likely. `setwise.diagnose` tests the declaration. It can refute it, but never confirm it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.datasets import Random, contaminate

X, y = load_digits(return_X_y=True)
X /= 16
order = np.random.default_rng(2).permutation(len(y))
train, rest, new = order[:400], order[400:1200], order[1200:]
model = LogisticRegression(C=1.3).fit(X[train], y[train])
P = model.predict_proba(X[rest])

# %%
# Two kinds of candidates of about the same size: at random, and from annotators who judge as another model does.
by_chance = contaminate(y[rest], Random(p=0.12), n_classes=10, random_state=0)
other = LogisticRegression(C=0.5).fit(X[train[:200]], y[train[:200]]).predict_proba(X[rest])
by_eye = (np.arange(10) == y[rest][:, None]) | (other > 0.12)
print(f"{by_chance.sizes.mean():.2f} candidates per row by chance, {by_eye.sum(axis=1).mean():.2f} by eye")

# %%
# How often is the label that the model ranks first, second, … a candidate? By chance every rank has at least the
# floor. By eye the low ranks fall below it, which refutes the
# declaration.
fig, ax = plt.subplots(figsize=(6, 4))
for name, sets in {"by chance": by_chance, "by eye": by_eye}.items():
    diagnosis = setwise.diagnose(P, sets)
    setwise.plot_inclusion(P, sets, label=f"{name}: {'refuted' if diagnosis.refuted else 'not refuted'}", ax=ax)
    print(f"{name}: {diagnosis.sentence}")
fig.tight_layout()

# %%
# A strategy that needs a refuted declaration raises an error. `"auto"` falls back to `max` and states why.
try:
    setwise.conformalize(P, by_eye, "corrected", assume="uniform")
except setwise.AssumptionRefuted as error:
    print(error)
print(setwise.conformalize(P, by_eye, assume="uniform").guarantee(0.9).remarks[0])
