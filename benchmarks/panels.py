"""Panels of people and language models: who is right how often, what they say together, how many votes that is.

    python benchmarks/panels.py --data DIR [--draws 200] [--keep]

DIR holds panels/ and crowd/ (not in the repository). In each draw some rows are verified at random. `held` is the
share of annotators whose 95 % interval holds their accuracy on the rows they answered, `width` its mean width beside
that of Clopper and Pearson on the verified rows alone. `right` is the share of rows where a consensus is right:
counting, the annotator model alone, what `setwise.annotators` finds without verified rows, and with them (a
tenth of the draws). `--keep` writes benchmarks/results/panels.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from panel_data import panels
from summary import machine, show

from setwise import annotators
from setwise.crowd.annotator_model import fit_annotators
from setwise.crowd.consensus import find_consensus
from setwise.crowd.rectified_shares import annotator_shares, single_answers
from setwise.crowd.resemblance import find_resemblance
from setwise.labels.vocabulary import MISSING
from setwise.ranks import binomial_bounds

RESULTS = Path(__file__).resolve().parent / "results" / "panels.json"


def share_right(values, y):
    """How often the label with the largest value is right; ties count in shares."""
    top = values >= values.max(axis=1, keepdims=True) - 1e-12
    return float((top[np.arange(len(y)), y] / top.sum(axis=1)).mean())


def rounded(value):
    """For JSON, which knows no NaN."""
    return None if np.isnan(value) else round(float(value), 2)


def measure(name, votes, y, draws):
    m = 100 if len(y) < 200 else 200
    row, who, label = single_answers(votes)
    people = len(votes.annotators)
    hits = y[row] == label
    accuracy = np.bincount(who, hits, people) / np.bincount(who, minlength=people)
    alone = find_consensus(votes)
    held, width, plain, learned = [], [], [], []
    for draw in range(draws):
        verified = np.full(len(y), MISSING)
        chosen = np.random.default_rng(draw).permutation(len(y))[:m]
        verified[chosen] = y[chosen]
        found = annotator_shares(votes, alone.confidence.argmax(axis=1), verified)
        known = found.verified > 0
        held.append(np.mean(((found.lower <= accuracy + 1e-12) & (accuracy <= found.upper + 1e-12))[known]))
        use = np.isin(row, chosen)
        low, high = binomial_bounds(
            np.bincount(who[use], hits[use], people), np.bincount(who[use], minlength=people), 0.05
        )
        width.append(np.mean((found.upper - found.lower)[known]))
        plain.append(np.mean((high - low)[known]))
        if draw < draws // 10:
            labels = np.full(len(y), None, dtype=object)
            labels[chosen] = votes.classes[y[chosen]]
            people_of = annotators(votes, labels)
            learned.append((share_right(people_of.confidence, y), people_of.effective_votes))
    return {
        "set": name,
        "annotators": people,
        "rows": len(y),
        "verified": m,
        "draws": draws,
        "held": round(float(np.mean(held)), 4),
        "width": round(float(np.mean(width)), 4),
        "clopper_pearson": round(float(np.mean(plain)), 4),
        "right_counting": round(share_right(votes.counts, y), 4),
        "right_model": round(share_right(fit_annotators(votes).posterior, y), 4),
        "right_consensus": round(share_right(alone.confidence, y), 4),
        "rule": alone.rule,
        "right_verified": round(float(np.mean(learned, axis=0)[0]), 4),
        "independence_refuted": bool(alone.dependence.refuted and alone.dependence.excess > 0),
        "effective_votes": rounded(alone.resemblance.effective_votes),
        "effective_votes_verified": rounded(np.nanmean(np.array(learned)[:, 1])),
        "effective_votes_truth": rounded(find_resemblance(votes, y).effective_votes),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    result = {"machine": machine(), "panels": []}
    for name, votes, y in panels(arguments.data):
        line = measure(name, votes, y, arguments.draws)
        print(line, flush=True)
        result["panels"].append(line)
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
