"""
From votes to sets
==================

Five people label pictures of four kinds; one of them answers at random. What can be said of the people, and how
large must prediction sets be, with no true label at hand, and with a few?
"""

# %%
# Probabilities of a model, the truth, and what the five said, all made up, so that we can look at the truth.
import matplotlib.pyplot as plt
import numpy as np

import setwise

rng = np.random.default_rng(0)
kinds = np.array(["ant", "bee", "cat", "dog"])
P = rng.dirichlet(np.full(4, 0.4), size=6000)
y = (P.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1)
skill = [0.9, 0.8, 0.75, 0.7, 0.0]
said = np.where(rng.random((6000, 5)) < skill, y[:, None], rng.integers(0, 4, (6000, 5)))
known, new = slice(0, 2000), slice(2000, 6000)
people = ["ann", "bob", "cyd", "dan", "eve"]
votes = setwise.Votes.from_matrix(kinds[said[known]], classes=kinds, annotators=people)
print(votes)

# %%
# Who answers well? A hundred pictures were drawn at random and verified; crosses are the truth of all.
some = np.full(2000, None)
some[:100] = kinds[y[:100]]
found = setwise.annotators(votes, some)
print(found)
accuracy = (said[known] == y[known, None]).mean(axis=0)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
middle = np.arange(5)
left.errorbar(
    middle,
    found.accuracy,
    [found.accuracy - found.lower, found.upper - found.accuracy],
    fmt="o",
    label="by 100 verified, 95 %",
)
left.plot(middle, accuracy, "x", color="black", label="true")
left.set_xticks(middle, found.names)
left.set_ylabel("share of right answers")
left.legend()
right.imshow(found.confusion("dan"), vmin=0, vmax=1, cmap="Blues")
right.set_xticks(range(4), kinds)
right.set_yticks(range(4), kinds)
right.set_title("what dan says (columns) where a kind is true (rows)")
fig.tight_layout()

# %%
# Sets at level 0.9. The set of all answers covers nearly everything and says little. A promise about an answer
# drawn at random needs no assumption. The annotator model is declared, and comes close to what true labels would
# give; with fifty checks the promise is about the truth again, whatever annotators do.
verified = np.full(2000, None)
verified[:50] = kinds[y[:50]]
made = {
    "all answers": setwise.conformalize(P[known], votes.candidates(), "max"),
    "a random answer": setwise.conformalize(P[known], votes),
    "annotator model": setwise.conformalize(P[known], votes, assume="independent"),
    "fifty checks": setwise.conformalize(P[known], votes, verified=verified),
    "true labels": setwise.conformalize(P[known], kinds[y[known]], classes=kinds),
}
sizes, covered = [], []
for name, calibration in made.items():
    sets = calibration.predict_set(P[new])
    sizes.append(sets.sizes.mean())
    covered.append(sets.contains(kinds[y[new]]).mean())
    promised = calibration.guarantee().promised
    print(f"{name}: {sizes[-1]:.2f} kinds per set, coverage {covered[-1]:.3f}, promised {promised}")
fig, ax = plt.subplots(figsize=(7, 3))
ax.barh(list(made), sizes)
ax.set_xlabel("kinds per set")
ax.invert_yaxis()
fig.tight_layout()

# %%
# What the third of them rests on:
print(made["annotator model"].guarantee())
