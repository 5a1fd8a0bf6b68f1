"""
A few verified labels
=====================

How the candidates arose is not known, and nothing can be declared. Then have some rows verified, drawn at random.
How many are worth their cost?
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import setwise

X, y = load_digits(return_X_y=True)
X /= 16
order = np.random.default_rng(3).permutation(len(y))
train, rest, new = order[:100], order[100:900], order[900:]
model = LogisticRegression(C=0.8).fit(X[train], y[train])
P, Q = model.predict_proba(X[rest]), model.predict_proba(X[new])

# %%
# Annotators kept whatever looked likely, and in 3 of 100 rows omitted the truth.
rng = np.random.default_rng(0)
candidates = (np.arange(10) == y[rest][:, None]) | (P > 0.1)
forgot = rng.random(len(rest)) < 0.03
candidates[forgot, y[rest][forgot]] = False
candidates[~candidates.any(axis=1)] = True

# %%
# `suggest_verification` draws the rows and estimates the gain.
suggestion = setwise.suggest_verification(model, X[rest], candidates, budget=50, random_state=0)
print(suggestion)

# %%
# The result for 20 to 400 verified rows, each drawn twenty times.
budgets = [20, 50, 100, 200, 400]
coverage, size = np.zeros((2, len(budgets), 20))
for b, budget in enumerate(budgets):
    for run in range(20):
        verified = np.full(len(rest), None, dtype=object)
        rows = rng.choice(len(rest), budget, replace=False)
        verified[rows] = y[rest][rows]
        calibration = setwise.conformalize(P, candidates, "rectified", verified=verified)
        result = setwise.evaluate(calibration.predict_set(Q, 0.9), y[new])
        coverage[b, run], size[b, run] = result["coverage"], result["mean_size"]
unaware = setwise.conformalize(P, candidates, miss_rate=0.03).predict_set(Q, 0.9)
oracle = setwise.conformalize(P, y[rest]).predict_set(Q, 0.9)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.errorbar(budgets, coverage.mean(axis=1), yerr=coverage.std(axis=1), fmt="o-", capsize=3)
left.axhline(0.9, ls="--", color="grey")
left.set(xlabel="verified rows of 800", ylabel="coverage: mean and spread over 20 draws")
right.plot(budgets, size.mean(axis=1), "o-", label="rectified")
right.axhline(unaware.sizes.mean(), color="tab:red", label="max, miss rate 0.03 declared")
right.axhline(oracle.sizes.mean(), color="tab:green", ls=":", label="all rows verified")
right.set(xlabel="verified rows of 800", ylabel="mean size of the sets")
right.legend()
fig.tight_layout()
for budget, c, s in zip(budgets, coverage.mean(axis=1), size.mean(axis=1), strict=True):
    print(f"{budget:4d} verified rows: coverage {c:.3f}, {s:.2f} digits per set")
print(f"   max, rate declared: {unaware.sizes.mean():.2f} digits per set")

# %%
# Coverage is right on average from the first rows on; more of them make it steadier.
