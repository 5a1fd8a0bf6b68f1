"""Prediction sets on real panels of people and language models: what is guaranteed, and how large the sets are.

    python benchmarks/panel_sets.py --data DIR [--draws 200] [--keep]

DIR holds panels/ and crowd/ (not in the repository). Probabilities are the shares of a row's votes; of cifar10n those of
a network trained on other images. Two thirds of the rows calibrate (3,000 at most), the others are new.

Without verified rows: whether the data contradict that annotators err independently; for each strategy which one is in
force, what is guaranteed of the true label without a condition, under which conditions something is, and how often
sets of all rows contain the true label.

With 50 verified rows: coverage and size of the sets of `auto`, of `rectified`, and of split conformal prediction on the
verified rows alone, over draws of calibration and verified rows. No threshold is chosen by what came out smaller.
`--keep` writes benchmarks/results/panel_sets.json.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from summary import machine, show

from setwise import MisuseWarning, Votes, conformalize

RESULTS = Path(__file__).resolve().parent / "results" / "panel_sets.json"
LEVEL, VERIFIED, CALIBRATION = 0.9, 50, 3000
SETS = ("llmjudge", "media-bias-zero-shot", "media-bias-cot", "dog", "duck", "cifar10n")
WITHOUT = (("auto", "nothing"), ("auto", "independent"), ("votes", "nothing"), ("crowd", "independent"))


def panel(data, name):
    """Votes, probabilities, and positions of the true labels."""
    if name == "cifar10n":
        held = np.load(data / "crowd" / "cifar10n.npz")
        answers = held["votes"].astype(int)
        row = np.repeat(np.arange(len(answers)), answers.shape[1])
        return Votes.of(len(answers), row, answers.ravel(), classes=range(10)), held["P"].astype(float), held["y"]
    if name in {"dog", "duck"}:
        table, truth = (pd.read_csv(data / "crowd" / f"{name}-{part}.csv") for part in ("answers", "truth"))
        items = truth["question"].tolist()
        votes = Votes.from_table(table, item="question", annotator="worker", label="answer", items=items)
        y = votes.vocabulary.encode(truth["truth"].to_numpy())
    else:
        table = pd.read_csv(data / "panels" / f"{name}.csv", dtype=str)
        judges = table.columns[3:] if name == "llmjudge" else [c for c in table if c.endswith("_label")]
        classes = ["0", "1", "2", "3"] if name == "llmjudge" else ["0", "1"]
        answers = table[judges].where(table[judges].isin(classes))
        answered = answers.notna().any(axis=1)
        votes = Votes.from_matrix(answers[answered].to_numpy(dtype=object), classes=classes)
        y = table["human" if name == "llmjudge" else "label"][answered].astype(int).to_numpy()
    return votes, votes.counts / votes.counts.sum(axis=1, keepdims=True), y


def without_verified(votes, P, y):
    """What is in force and guaranteed for each strategy."""
    for strategy, assume in WITHOUT:
        made = conformalize(P, votes, strategy, assume=assume, classes=votes.classes.tolist())
        guarantee, mask = made.guarantee(LEVEL), made.predict_set(P, LEVEL).to_mask()
        truth = [claim for claim in guarantee.claims if claim.event == "truth"]
        own = next((p for claim in truth for p in claim.premises if p.name == "independent"), None)
        yield {
            "strategy": strategy,
            "assume": assume,
            "in_force": guarantee.strategy,
            "independence": "not in question" if own is None else f"{own.status}: {own.detail}",
            "guaranteed": guarantee.promised,
            "conditions": sorted({premise.name for claim in truth for premise in claim.conditions}),
            "says_what_to_do": "Verify" in str(guarantee),
            "coverage": round(float(mask[np.arange(len(y)), y].mean()), 4),
            "size": round(float(mask.sum(axis=1).mean()), 3),
        }


def with_verified(votes, P, y, draws):
    """Coverage and size of each rule, over draws of calibration and verified rows."""
    n, found = len(votes), {}
    size = min(2 * n // 3, CALIBRATION)
    names = votes.classes.tolist()
    for draw in range(draws):
        rows = np.random.default_rng(draw).permutation(n)
        c, t = rows[:size], rows[size:]
        verified = np.full(size, None)
        verified[:VERIFIED] = votes.classes[y[c[:VERIFIED]]]
        made = {
            "verified alone": conformalize(P[c[:VERIFIED]], verified[:VERIFIED].tolist(), classes=names),
            "rectified": conformalize(P[c], votes[c], "rectified", verified=verified, classes=names),
            "auto": conformalize(P[c], votes[c], verified=verified, classes=names),
        }
        for rule, calibration in made.items():
            mask = calibration.predict_set(P[t], LEVEL).to_mask()
            covered = mask[np.arange(len(t)), y[t]].mean()
            promised = calibration.guarantee(LEVEL).promised == LEVEL
            found.setdefault(rule, []).append((covered, mask.sum(axis=1).mean(), promised))
    alone = np.mean([size for _, size, _ in found["verified alone"]])
    for rule, values in found.items():
        coverage, mean, promised = np.array(values, dtype=float).T
        error = coverage.std(ddof=1) / draws**0.5
        yield {
            "rule": rule,
            "draws": draws,
            "calibration": size,
            "coverage": round(float(coverage.mean()), 4),
            "standard_error": round(float(error), 4),
            "spread": round(float(coverage.std(ddof=1)), 4),
            "kept": bool(coverage.mean() >= LEVEL - 3 * error),
            "size": round(float(mean.mean()), 3),
            "of_verified_alone": round(float(mean.mean() / alone), 4),
            "guarantees_the_level_in": round(float(promised.mean()), 3),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only", choices=SETS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", MisuseWarning)  # one draw in a hundred looks unlike the other rows
    result = {"machine": machine(), "sets": {}}
    for name in (arguments.only,) if arguments.only else SETS:
        held = panel(arguments.data, name)
        found = {"without_verified": [*without_verified(*held)]}
        found["with_verified"] = [*with_verified(*held, arguments.draws)]
        result["sets"][name] = found
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
