"""
A guarantee for each class
==========================

Nine out of ten over all patients may be ten out of ten for the common illness and six out of ten for the rare
one. ``by="label"`` guarantees the level for each true class, where labels are exact or some are verified; `by=`
does so for any category you can see.
"""

# %%
# Four illnesses, the last one rare and hard to tell from the third.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.datasets import Random, contaminate

rng = np.random.default_rng(0)
y = rng.choice(4, size=12_000, p=[0.4, 0.3, 0.2, 0.1])
centres = np.array([[0, 0], [3, 0], [0, 3], [1, 4.0]])
X = centres[y] + rng.normal(size=(12_000, 2))
train, rest, new = slice(0, 1000), slice(1000, 7000), slice(7000, 12_000)
model = LogisticRegression().fit(X[train], y[train])
P, Q = model.predict_proba(X[rest]), model.predict_proba(X[new])
candidates = contaminate(y[rest], Random(p=0.15), n_classes=4, random_state=0)
names = ["common", "frequent", "seldom", "rare"]

# %%
# `corrected` rests on the uniform contamination that is declared, and guarantees the average. A third of the rows
# are verified for the other two, which need no assumption: one guarantees the average, the other each class.
verified = np.where(rng.random(6000) < 1 / 3, y[rest], np.nan)
options = {
    "corrected": {"strategy": "corrected", "assume": "uniform"},
    "verified": {"verified": verified},
    "by label": {"by": "label", "verified": verified},
}
fig, ax = plt.subplots(figsize=(8, 4))
for shift, (name, chosen) in enumerate(options.items()):
    calibration = setwise.conformalize(P, candidates, **chosen)
    result = setwise.evaluate(calibration.predict_set(Q, 0.9), y[new])
    coverage = [result["by_class"][k]["coverage"] for k in range(4)]
    ax.bar(np.arange(4) + 0.25 * (shift - 1), coverage, width=0.25, label=name)
    size = result["mean_size"]
    print(
        f"{name:21s} coverage {result['coverage']:.3f}, worst class {min(coverage):.3f}, {size:.2f} labels per set"
    )
ax.axhline(0.9, ls="--", color="grey")
ax.set(ylabel="coverage at confidence 0.9", xticks=range(4), xticklabels=names, ylim=(0.4, 1.01))
ax.legend(loc="lower left")
fig.tight_layout()

# %%
# The guarantee for each class costs size, and the more so the fewer rows a class has. What the last one claims:
print(calibration.guarantee(0.9))
