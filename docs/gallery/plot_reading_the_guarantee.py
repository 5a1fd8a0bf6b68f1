"""
Reading the guarantee
=====================

Every calibration states what is guaranteed, on which premises, and the status of each premise. Here is what its
numbers mean.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import beta

import setwise

rng = np.random.default_rng(0)


def rows(n):
    """A model whose probabilities are right, and candidates that contain the truth."""
    P = rng.dirichlet([0.3] * 5, size=n)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return P, y, (np.arange(5) == y[:, None]) | (rng.random((n, 5)) < 0.02)


P, y, S = rows(300)
calibration = setwise.conformalize(P, S)
print(calibration.guarantee(0.9))

# %%
# *Promise.* The first line is about the true label and rests on little: new examples from the same source, the
# truth among the candidates. The second is about all candidates, and is conditional, because it cannot be
# known how candidates will arise for new examples.
#
# *Given this calibration set.* The promise is an average over calibration sets. With these 300 rows you have one
# of them, and the chance of containing all candidates is a number near 0.9 that follows a Beta law. Draw a
# thousand calibration sets and look:
Q, truth, own = rows(20_000)
contained, covered = np.zeros((2, 1000))
for run in range(1000):
    P, y, S = rows(300)
    limit = setwise.conformalize(P, S).threshold(0.9)
    inside = limit >= 1 - Q
    contained[run] = (inside | ~own).all(axis=1).mean()
    covered[run] = inside[np.arange(len(Q)), truth].mean()

grid = np.linspace(0.8, 1, 400)
fig, ax = plt.subplots(figsize=(7, 4))
ax.hist(contained, bins=40, density=True, alpha=0.6, label="contains all candidates")
ax.plot(grid, beta(271, 30).pdf(grid), "k--", label="Beta(271, 30)")
ax.hist(covered, bins=40, density=True, alpha=0.6, label="contains the true label")
ax.axvline(0.9, ls=":", color="grey")
ax.set(xlabel="share of new examples, given the calibration set", ylabel="density", xlim=(0.82, 1.0))
ax.legend()
fig.tight_layout()
print(f"in 95 of 100 cases between {np.quantile(contained, 0.025):.3f} and {np.quantile(contained, 0.975):.3f}")

# %%
# *For the true label a floor.* The true label is one of the candidates, so it is covered more often: how much
# more, candidates cannot tell. What they can tell is the bracket, in which the coverage lies with 95 %
# confidence:
low, high = calibration.bracket(0.9)
print(f"bracket: {low:.3f} to {high:.3f}")

# %%
# The same as plain data, for a program:
plain = calibration.guarantee(0.9).to_dict()
for claim in plain["claims"]:
    print(claim["event"], claim["probability"], [premise["status"] for premise in claim["premises"]])
