"""
Annotators who disagree
=======================

Five people look at each flower. Take a majority vote, or keep every answer as a candidate? A vote hides its own
mistakes: a model that learns from votes and is calibrated on votes covers the votes, not the truth.
"""

# %%
# Iris flowers with a little noise. Most people take the larger ones of versicolor for virginica.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.tables import from_annotators_long

names = np.array(["setosa", "versicolor", "virginica"])
rng = np.random.default_rng(0)
X, y = load_iris(return_X_y=True)
X, y = np.repeat(X, 10, axis=0) + 0.2 * rng.normal(size=(1500, 4)), np.repeat(y, 10)
order = rng.permutation(1500)
X, y = X[order], y[order]
large = (y == 1) & (X[:, 3] > 1.2)
wrong = rng.random((1500, 5)) < np.where(large, 0.65, 0.05)[:, None]
said = np.where(wrong, np.where(y == 0, 0, 3 - y)[:, None], y[:, None])

# %%
# Such data usually come with one answer per line.
imported = from_annotators_long(
    {
        "item": np.repeat(np.arange(1500), 5),
        "annotator": np.tile(["ann", "bob", "cyd", "dan", "eve"], 1500),
        "label": names[said].ravel(),
    }
)
candidates = imported.candidates
votes = names[np.array([np.bincount(row, minlength=3).argmax() for row in said])]
truth = names[y]
print(candidates)
print(f"the majority is wrong in {np.mean(votes != truth):.1%} of cases")
print(f"no annotator is right in {1 - candidates.contains(truth).mean():.1%} of cases")

# %%
# The same learner twice: on votes, and on candidate sets. For these we declare that the truth may be missing from
# 4 % of them.
known, new = slice(0, 900), slice(900, 1500)
learner = LogisticRegression(max_iter=500)
models = {
    "majority vote": setwise.ConformalClassifier(learner, random_state=0).fit(X[known], votes[known]),
    "candidate sets": setwise.ConformalClassifier(learner, miss_rate=0.04, random_state=0).fit(
        X[known], candidates[known]
    ),
}
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
setwise.plot_sizes(candidates, ax=left)
left.set_title("candidates a flower")
for name, model in models.items():
    P = model.predict_proba(X[new])
    setwise.plot_coverage(
        model.calibration_, P, truth[new], label=name, levels=np.arange(0.5, 0.96, 0.05), ax=right
    )
    result = model.evaluate(X[new], truth[new])
    print(f"{name}: coverage {result['coverage']:.3f} at 0.9, {result['mean_size']:.2f} species per set")
    print("   by species", {k: round(float(part["coverage"]), 2) for k, part in result["by_class"].items()})
fig.tight_layout()

# %%
# Sets of some new flowers: filled the prediction, framed what the annotators said, a dot the truth.
fig, ax = plt.subplots(figsize=(5, 6))
sets = models["candidate sets"].predict_set(X[new], 0.9)
rows = np.flatnonzero(y[new] > 0)[:15]
setwise.plot_sets(sets, truth[new], candidates=candidates[new], rows=rows, ax=ax)
fig.tight_layout()
