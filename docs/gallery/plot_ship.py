"""
Ship a labelled data set
========================

Three answers for each of 4,000 texts, and 300 texts that somebody verified. How many labels may go into the data
set unseen, if at most 5 % of all labels may be wrong? And how many for other errors?
"""

# %%
# A language model is asked three times for the topic of each text. Its answers repeat the same mistakes, and some
# texts are hard. All of it is simulated, so that we can look at the truth.
import matplotlib.pyplot as plt
import numpy as np

import setwise

rng = np.random.default_rng(0)
topics = np.array(["health", "money", "space", "sport"])
true = rng.integers(0, 4, 4000)
hard = rng.random(4000) < 0.3
habit = np.where(rng.random(4000) < np.where(hard, 0.45, 0.98), true, rng.integers(0, 4, 4000))
answers = np.where(
    rng.random((4000, 3)) < np.where(hard, 0.5, 0.97)[:, None], habit[:, None], rng.integers(0, 4, (4000, 3))
)
votes = setwise.Votes.from_matrix(topics[answers], classes=topics)

# %%
# Draw the texts to verify at random, and decide all others.
verified = np.full(4000, None)
drawn = rng.choice(4000, 300, replace=False)
verified[drawn] = topics[true[drawn]]
decided = setwise.triage(votes, verified, max_error=0.05, random_state=0)
print(decided)

# %%
# The curve shows what other max errors would accept. All its points hold together, so you may choose by it.
print(decided.curve)

# %%
# Its bound against what is really wrong in the finished data set, which only a simulation knows.
chosen = [decided.choose(error) for error in decided.curve.max_error]
wrong = [float((each.accepted & (each.labels != topics[true[each.rows]])).sum()) / 4000 for each in chosen]
fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(decided.curve.unseen, decided.curve.bound, "o-", label="guaranteed, at most")
ax.plot(decided.curve.unseen, wrong, "x--", color="black", label="really wrong")
ax.plot(decided.accepted.mean(), decided.bound, "s", color="tab:red", label="5 %, fixed beforehand")
ax.set(xlabel="share of the other texts that nobody looks at", ylabel="share of all labels that are wrong")
ax.legend()
fig.tight_layout()

# %%
# The guarantee is about the draw of the verified rows: it may fail in one of 20 draws. Here are 400 draws.
errors = []
for seed in range(400):
    rows = np.random.default_rng(seed).choice(4000, 300, replace=False)
    known = np.full(4000, None)
    known[rows] = topics[true[rows]]
    found = setwise.triage(votes, known, max_error=0.05, random_state=0)
    errors.append((found.accepted & (found.labels != topics[true[found.rows]])).sum() / 4000)
fig, ax = plt.subplots(figsize=(7, 3))
ax.hist(errors, bins=30)
ax.axvline(0.05, color="tab:red", ls="--")
ax.set(xlabel="share of all labels that are wrong", ylabel="draws")
fig.tight_layout()
print(f"more than 5 % in {np.mean(np.array(errors) > 0.05):.1%} of 400 draws")
