"""How many labels of a finished data set nobody has to look at, with at most `max_error` of all of them wrong.

    python benchmarks/overall.py --data DIR [--draws 2000] [--keep]

DIR holds decisions/, panels/ and crowd/ (not in the repository). In each draw m rows are verified at random; the rest
is decided. `unseen` is the share of the unverified rows that are accepted, `broken` the share of draws in which more
than max_error of all rows are wrong and accepted. Orders, none of which sees the truth: the confidence of one model;
the share of votes, the posterior of the annotator model (with a classifier's probabilities where there are any), the
two mixed, the one of them that `setwise.triage` takes, and the best of three at a third of δ each. Beside it the
betting bound of *Probably Approximately Correct Labels* (Candès, Ilyas and Zrnic, 2025) on the same draws.
`--keep` writes benchmarks/results/overall.json.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from panel_data import panels
from summary import machine, show

from setwise import Votes
from setwise.crowd.annotator_model import fit_annotators
from setwise.crowd.consensus import weigh_votes
from setwise.decisions.modes import OrderedRows
from setwise.probabilities.proposed_labels import Proposals, most_probable

RESULTS = Path(__file__).resolve().parent / "results" / "overall.json"
DELTA = 0.05
CELLS = {
    "stance": ((0.05, 500), (0.05, 150), (0.05, 40)),
    "imagenetv2": ((0.05, 1000), (0.05, 500), (0.05, 40)),
    "cifar10n": ((0.05, 100), (0.02, 500)),
    "cifar10n, new rows": ((0.05, 100), (0.02, 500)),
    "llmjudge": ((0.2, 200), (0.1, 500)),
    "media-bias-zero-shot": ((0.1, 200), (0.05, 500)),
    "media-bias-cot": ((0.1, 200),),
    "dog": ((0.05, 200),),
}


def one_model(path, labels):
    """Proposals of one model with its confidence, and whether they are wrong."""
    table = pd.read_csv(path)
    wrong = (table["Y"] != table[labels]).to_numpy()
    return {"confidence": Proposals(np.zeros(len(table), int), table["confidence"].to_numpy())}, wrong[:, None]


def orders(votes, truth, probabilities=None):
    """Proposals in several orders, and whether each proposal is wrong."""
    counts = votes.counts
    share = counts / counts.sum(axis=1, keepdims=True)
    posterior = fit_annotators(votes, probabilities).posterior
    mixed = posterior**0.2 * share
    found = {"share": share, "posterior": posterior, "mix": mixed / mixed.sum(axis=1, keepdims=True)}
    made = {name: most_probable(values) for name, values in found.items()}
    made["triage"] = most_probable(weigh_votes(votes, probabilities))
    return made, np.column_stack([proposals.label != truth for proposals in made.values()])


def worlds(data):
    yield "stance", *one_model(data / "decisions" / "stance.csv", "Yhat (GPT4o)")
    yield "imagenetv2", *one_model(data / "decisions" / "imagenetv2.csv", "Yhat")
    held = np.load(data / "crowd" / "cifar10n.npz")
    answers, y = held["votes"].astype(int), held["y"].astype(int)
    place = np.arange(answers.size)
    votes = Votes.of(len(y), place // answers.shape[1], answers.ravel(), classes=range(10))
    for name in ("cifar10n", "cifar10n, new rows"):
        yield name, *orders(votes, y, held["P"].astype(float))
    for name, votes, truth in panels(data):
        if name in CELLS and name != "cifar10n":
            yield name, *orders(votes, truth)


def betting(wrong, error):
    """How many wrong verified rows, most confident first, pass before a bet at `error` no longer wins 1/δ.

    Row i of the columns of `wrong`: verified row i is wrong and at least as confident as the column's threshold.
    """
    m = len(wrong)
    seen = np.arange(1, m + 1)[:, None]
    mean = (0.5 + np.cumsum(wrong, axis=0)) / (seen + 1)
    spread = (0.25 + np.cumsum((wrong - mean) ** 2, axis=0)) / (seen + 1)
    before = np.vstack([np.full((1, wrong.shape[1]), 0.25), spread[:-1]])
    bet = np.minimum(np.sqrt(2 * np.log(1 / DELTA) / (m * before)), 0.75 / (1 - error))
    wealth = np.cumsum(np.log1p(bet * (error - wrong)), axis=0).max(axis=0)
    lost = np.flatnonzero(wealth < np.log(1 / DELTA))
    return int(lost[0]) if len(lost) else wrong.shape[1]


def by_betting(ranked, error, rng):
    """How many rows the betting bound accepts: thresholds from above until the first that it does not prove."""
    at = rng.permutation(ranked.m)  # the order in which rows were verified
    place = np.full(ranked.m, np.iinfo(int).max)
    place[ranked.contradicted] = np.arange(len(ranked.contradicted))
    columns = np.arange(min(len(ranked.contradicted), int(3 * error * ranked.m) + 20))
    counted = place[at][:, None] <= columns - 1  # without an error, with one, …
    passed = betting(np.column_stack([counted, place[at] <= columns[-1:].max(initial=-1)]).astype(float), error)
    return ranked.before(passed - 1) if passed else 0


def measure(name, proposals, wrong, error, m, draws):
    found = {}
    n, names, exact = len(wrong), list(proposals), Fraction(str(error))
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        drawn = rng.permutation(n)
        new = name.endswith("new rows")
        checked, rest = drawn[:m], drawn[m : m + 5000] if new else drawn[m:]
        noise = rng.random(n)
        taken = {}
        for column, (order, proposed) in enumerate(proposals.items()):
            noisy = Proposals(np.zeros(n, int), proposed.confidence, noise)
            for part in (1, 3) if len(names) > 1 else (1,):
                ranked = OrderedRows(
                    noisy[checked], wrong[checked, column].astype(int), noisy[rest], new, DELTA / part
                )
                count = ranked.accept("overall", exact)
                taken[order, part] = count, wrong[rest[ranked.order[:count]], column].sum(), ranked
        for order in names:
            found.setdefault(order, []).append(taken[order, 1][:2])
            if draw < draws // 4 and order == names[-1] and not new:
                ranked = taken[order, 1][2]
                count = by_betting(ranked, error, rng)
                broken = wrong[rest[ranked.order[:count]], names.index(order)].sum()
                found.setdefault("PAC labels", []).append((count, broken))
        if len(names) > 1:
            best = max(names[:3], key=lambda order: taken[order, 3][0])
            found.setdefault("best of three", []).append(taken[best, 3][:2])
    decided = len(rest)
    limit = int(exact * (decided if new else n))
    for order, values in found.items():
        counts, broken = np.array(values).T
        share = float((broken > limit).mean())
        yield {
            "set": name,
            "max_error": error,
            "verified": m,
            "order": order,
            "draws": len(values),
            "unseen": round(float(counts.mean() / decided), 4),
            "broken": round(share, 4),
            "kept": bool(share <= DELTA + 3 * np.sqrt(DELTA * (1 - DELTA) / len(values))),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    result = {"machine": machine(), "cells": []}
    for name, proposals, wrong in worlds(arguments.data):
        for error, m in CELLS[name]:
            for line in measure(name, proposals, wrong, error, m, arguments.draws):
                print(line, flush=True)
                result["cells"].append(line)
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
