"""
A weak model gives large sets, not wrong ones
=============================================

The guarantee does not depend on the quality of the model; the size of the sets does.
"""

# %%
# Three models of digits, from poor to good: how much of the training data they see differs.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.datasets import Random, contaminate

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(1).permutation(len(y))
train, rest, new = order[:500], order[500:1100], order[1100:]
candidates = contaminate(y, Random(p=0.1), n_classes=10, random_state=0)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for rows in (30, 80, 500):
    model = LogisticRegression(C=0.01, max_iter=2000).fit(X[train[:rows]], y[train[:rows]])
    P, Q = model.predict_proba(X[rest]), model.predict_proba(X[new])
    calibration = setwise.conformalize(P, candidates[rest], "corrected", assume="uniform")
    name = f"{rows} rows, accuracy {model.score(X[new], y[new]):.2f}"
    setwise.plot_coverage(calibration, Q, y[new], label=name, ax=left)
    sets = calibration.predict_set(Q, 0.9)
    setwise.plot_sizes(sets, label=name, ax=right)
    result = setwise.evaluate(sets, y[new])
    print(f"{name}: coverage {result['coverage']:.3f}, {result['mean_size']:.2f} digits per set")
right.set_title("sizes at 0.9")
fig.tight_layout()

# %%
# All three lie on the line; the sets of the weak model are larger. Smaller sets need a better model; valid sets do
# not.
