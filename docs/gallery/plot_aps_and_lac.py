"""
APS and LAC
===========

`lac` gives the smallest sets on average. `aps` adapts: certain rows get small sets and uncertain ones large ones,
so that coverage is more even among rows of different difficulty.
"""

# %%
# Precise labels here: they are the special case of one candidate per row.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import setwise

X, y = load_digits(return_X_y=True)
X /= 16
order = np.random.default_rng(5).permutation(len(y))
train, rest, new = order[:150], order[150:900], order[900:]
model = LogisticRegression(C=0.8).fit(X[train], y[train])
P, Q = model.predict_proba(X[rest]), model.predict_proba(X[new])
hard = np.argsort(np.argsort(-Q.max(axis=1))) * 4 // len(Q)  # quarters, from certain to uncertain

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
scores = {"lac": "lac", "aps": "aps", "raps": setwise.RAPS(penalty=0.1, free_ranks=1), "saps": "saps"}
for name, score in scores.items():
    calibration = setwise.conformalize(P, y[rest], conformity_score=score, random_state=0)
    sets = calibration.predict_set(Q, 0.9)
    result = setwise.evaluate(sets, y[new], by=hard)
    quarters = [result["by_category"][quarter]["coverage"] for quarter in range(4)]
    left.plot(range(1, 5), quarters, "o-", label=f"{name}: {result['mean_size']:.2f} digits per set")
    right.plot(range(1, 5), [sets.sizes[hard == quarter].mean() for quarter in range(4)], "o-", label=name)
    print(f"{name:5s} coverage {result['coverage']:.3f}, worst quarter {min(quarters):.3f}")
left.axhline(0.9, ls="--", color="grey")
left.set(xlabel="quarter of rows, from certain to uncertain", ylabel="coverage", xticks=range(1, 5))
right.set(xlabel="quarter of rows, from certain to uncertain", ylabel="mean size", xticks=range(1, 5))
left.legend()
right.legend()
fig.tight_layout()

# %%
# The noise of randomised scores is a function of the row. So a set depends neither on the batch nor on the order of
# rows:
calibration = setwise.conformalize(P, y[rest], conformity_score="aps", random_state=0)
together = calibration.predict_set(Q, 0.9)
one_by_one = [calibration.predict_set(Q[i : i + 1], 0.9)[0] for i in range(50)]
print([together[i] for i in range(50)] == one_by_one)
