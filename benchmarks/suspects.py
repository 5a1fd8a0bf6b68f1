"""Which labels of one annotator look wrong: how many of the wrong ones are found, and how many of those found are right.

    python benchmarks/suspects.py --data DIR [--draws 40] [--keep]

DIR holds crowd/cifar10n.npz (not in the repository): 10,000 photos, three answers each, probabilities of a network that
was trained on other photos. The given labels are the first answers, 17.5 % of them wrong; 500 rows are verified at
random. `recall` and `false` are means over draws, `above_bound` is the share of draws in which more labels were right
than the bound for the draw says. cleanlab, which guarantees nothing, stands beside it where it is installed.
`--keep` writes benchmarks/results/suspects.json.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from summary import machine, show

from setwise import MisuseWarning, Votes, suspects

RESULTS = Path(__file__).resolve().parent / "results" / "suspects.json"
VERIFIED, SHARES = 500, (0.1, 0.2)


def measure(name, given, y, draws, max_false, **sources):
    values = []
    for draw in range(draws):
        rows = np.random.default_rng(draw).permutation(len(y))[:VERIFIED]
        verified = np.full(len(y), None)
        verified[rows] = y[rows]
        found = suspects(given, verified, max_false=max_false, random_state=draw, **sources)
        wrong = given != y
        hidden = wrong.sum() - wrong[rows].sum()
        false = (~wrong[found.rows]).mean() if len(found) else 0.0
        values.append(
            (wrong[found.rows].sum() / hidden, false, len(found) > 0 and false > found.bound, found.bound)
        )
    recall, false, above, bound = np.array(values, dtype=float).T
    return {
        "from": name,
        "max_false": max_false,
        "draws": draws,
        "recall": round(float(recall.mean()), 4),
        "false": round(float(false.mean()), 4),
        "above_bound": round(float(above.mean()), 3),
        "bound": round(float(np.nanmean(bound)), 4),
    }


def beside(given, y, P):
    """What cleanlab finds from the same probabilities, without any verified row."""
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        return []
    found = find_label_issues(given, P)
    wrong = given != y
    figures = {"recall": round(float(found[wrong].mean()), 4), "false": round(float((~wrong)[found].mean()), 4)}
    return [{"from": "cleanlab, model", **figures}]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", MisuseWarning)  # one draw in a hundred looks chosen
    held = np.load(arguments.data / "crowd" / "cifar10n.npz")
    answers, y, P = held["votes"].astype(int), held["y"].astype(int), held["P"].astype(float)
    place = np.arange(answers.size)
    votes = Votes.of(len(y), place // answers.shape[1], answers.ravel(), classes=range(10))
    given = answers[:, 0]
    sources = {
        "votes and model": {"votes": votes, "probabilities": P},
        "votes": {"votes": votes},
        "model": {"probabilities": P},
    }
    cells = [
        measure(name, given, y, arguments.draws, share, **source)
        for share in SHARES
        for name, source in sources.items()
    ]
    show({"machine": machine(), "cells": cells + beside(given, y, P)}, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
