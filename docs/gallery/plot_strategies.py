"""
What a declaration gains
========================

The same model, the same rows, the same confidence. Only what is known about the candidates differs. Here false
labels enter at random, but each strategy uses only what is declared to it.
"""

# %%
# Handwritten digits; each gets its true label and each wrong one with probability 0.2.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.datasets import Random, contaminate

X, y = load_digits(return_X_y=True)
X /= 16
order = np.random.default_rng(0).permutation(len(y))
train, rest, new = order[:120], order[120:900], order[900:]
model = LogisticRegression(C=0.8).fit(X[train], y[train])
candidates = contaminate(y, Random(p=0.2), n_classes=10, random_state=0)
P, Q = model.predict_proba(X[rest]), model.predict_proba(X[new])

# %%
# Fifty rows, drawn at random, are verified. The oracle knows every true label.
verified = np.full(len(rest), None, dtype=object)
verified[:50] = y[rest][:50]
told = {
    "max (told nothing)": {"strategy": "max"},
    "all": {"strategy": "all"},
    "mean": {"strategy": "mean"},
    "min": {"strategy": "min"},
    "corrected (told: by chance)": {"strategy": "corrected", "assume": "uniform"},
    "rectified (told: 50 labels)": {"strategy": "rectified", "verified": verified},
}
calibrations = {name: setwise.conformalize(P, candidates[rest], **options) for name, options in told.items()}
calibrations["oracle (told everything)"] = setwise.conformalize(P, y[rest])

# %%
# Small and valid sets lie low and to the right of the line.
fig, ax = plt.subplots(figsize=(7, 4.5))
for name, calibration in calibrations.items():
    result = setwise.evaluate(calibration.predict_set(Q, 0.9), y[new])
    low, high = result["coverage_interval"]
    point = result["coverage"]
    ax.errorbar(point, result["mean_size"], xerr=[[point - low], [high - point]], fmt="o", capsize=3, label=name)
    print(f"{name:28s} coverage {point:.3f}   {result['mean_size']:.2f} digits per set")
ax.axvline(0.9, ls="--", color="grey")
ax.set(xlabel="coverage at confidence 0.9, with its 95 % interval", ylabel="mean size of the sets", yscale="log")
ax.legend(fontsize=8)
fig.tight_layout()

# %%
# `max` is valid without any assumption, at the price of large sets. With a declaration, or with a few verified
# labels, the sets are about as small as the oracle's. `min` looks as good here but guarantees nothing about
# the truth: on real candidate sets, whose wrong labels are those that look right, it covers too little.
