"""Several right labels: sets that contain all of them, from a few verified rows, on photos and on doctors' diagnoses.

    python benchmarks/several_right.py --data DIR [--draws 200] [--splits 50] [--keep]

DIR holds experts/imagenet-real and experts/dermatology (not in the repository).

**Photos** (ReaL): raters said no, maybe or yes to labels of an image, and experts settled which labels are right. The
probabilities are those answers (of all five raters, or of two of them), smoothed towards how often the label gets a yes.
In each draw 500 images are verified, 3,500 others have the labels that raters were asked about as candidates, and 5,000
more are asked about. `share` of a rule is how many images have enough of their right labels in the set; `sizes` is the mean
size over that of sets calibrated on the right labels of all images. The raters' answers are also where the right labels come from,
so that sizes say nothing of models of images. `with none` draws among all images, of which an eighth shows none of the labels.

**Doctors**: one doctor of each case is held out, and the differential (a ranked list, or several conditions in one place) is
the set of right labels. The probabilities come from the other doctors: their conditions by the inverse of the rank, smoothed
by which conditions doctors of other cases name beside these, and by how often each is named. `monte carlo` is Monte Carlo conformal prediction
(Stutz, Roy, Matejovicova, Strachan, Cemgil and Doucet, 2023): one label of each calibration row is drawn by its plausibility,
the inverse of its rank, and the threshold is the ⌈(n + 1)·0.9⌉-th smallest of their scores. It guarantees such a drawn label,
not the differential.

`error` is the standard error of the mean over draws. `--keep` writes benchmarks/results/several_right.json.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path

import numpy as np
from summary import machine, show

from setwise import LabelSets, MisuseWarning, conformalize, evaluate
from setwise.scores import LAC

RESULTS = Path(__file__).resolve().parent / "results" / "several_right.json"
LEVEL, VERIFIED, OTHERS, ASKED = 0.9, 500, 3500, 5000
RULES = ("all", 0.5, "one")


def photos(folder, raters, *, with_none=False):
    """Probabilities by the answers of so many raters, the labels they were asked about, and the right labels."""
    held = np.load(folder / "votes.npz")
    listed = json.loads((folder / "real.json").read_text())
    images, row = np.unique(held["pair_image"], return_inverse=True)
    label, pair = held["pair_label"].astype(int), held["vote_pair"]
    nth = np.arange(len(pair)) - np.searchsorted(pair, pair)  # the votes stand pair by pair
    kept = nth < raters
    yes = np.bincount(pair[kept], held["vote_answer"][kept] / 2, minlength=len(label))
    usual = np.bincount(label, yes, 1000) / np.maximum(raters * np.bincount(label, minlength=1000), 1)
    P = np.zeros((len(images), 1000), dtype=np.float32)
    P[row, label] = (yes + usual[label]) / (raters + 1)
    asked = np.zeros(P.shape, dtype=bool)
    asked[row, label] = True
    right = LabelSets.from_lists([listed[image - 1] for image in images], range(1000)).to_mask()
    some = np.arange(len(images)) if with_none else np.flatnonzero(right.any(axis=1))
    return P[some], asked[some], right[some]


def verified_photos(folder, raters, draws, *, with_none=False):
    """What 500 verified images give, for each rule."""
    P, asked, right = photos(folder, raters, with_none=with_none)
    score, cells = LAC(domain="unit"), []
    shown = right.any(axis=1)
    empty = {"empty": "drop"} if with_none else {}
    for rule in RULES:
        whole = conformalize(P, right, "max", score, truth=rule, **empty)
        found = []
        for draw in range(draws):
            rows = np.random.default_rng(draw).permutation(len(P))
            own, new = rows[: VERIFIED + OTHERS], rows[VERIFIED + OTHERS :][:ASKED]
            new = new[shown[new]]
            known = [np.flatnonzero(right[i]).tolist() if n < VERIFIED else None for n, i in enumerate(own)]
            made = conformalize(P[own], asked[own], "auto", score, verified=known, truth=rule, **empty)
            sets, of_all = made.predict_set(P[new], LEVEL), whole.predict_set(P[new], LEVEL)
            truth = LabelSets.from_mask(right[new])
            result = evaluate(sets, truth, truth=rule)
            found.append((result["coverage"], result["mean_size"], of_all.sizes.mean()))
        share, size, size_of_all = np.array(found).T
        cells.append(
            {"raters": raters, "images": "with none" if with_none else "with right labels", "rule": str(rule)}
            | {"draws": draws, "share": mean(share), "error": error(share), "mean_size": mean(size)}
            | {"sizes": mean(size / size_of_all)}
        )
    return cells


def plausibility(answer, k=419):
    """The inverse of the rank of each condition of a differential, shared within a place; the sum is one."""
    weights = np.zeros(k)
    for place, group in enumerate(answer, 1):
        weights[group] += 1 / place / len(group)
    return weights / weights.sum()


def doctors(cases, rng):
    """Probabilities by the other doctors, the plausibilities of one who is held out, and a part of the cases to learn from."""
    order = rng.permutation(len(cases))
    learned, others = order[: len(cases) // 3], order[len(cases) // 3 :]
    beside = np.zeros((419, 419))
    for case in learned:
        opinions = [plausibility(answer) for answer in cases[case]]
        total = np.sum(opinions, axis=0)
        for one in opinions:
            beside += np.outer(one, total - one)
    usual = beside.sum(axis=0) + 0.5
    usual /= usual.sum()
    smoothed = (beside + 2 * usual) / (beside.sum(axis=1, keepdims=True) + 2)  # what another doctor says
    P, held = np.empty((2, len(others), 419))
    for i, case in enumerate(others):
        left_out = int(rng.integers(len(cases[case])))
        seen = np.mean([plausibility(a) for n, a in enumerate(cases[case]) if n != left_out], axis=0)
        P[i], held[i] = (seen + seen @ smoothed) / 2, plausibility(cases[case][left_out])
    return P, held


def differentials(folder, splits):
    """Sets that contain a held-out doctor's whole differential, and Monte Carlo conformal prediction."""
    cases = [case for case in json.loads((folder / "dermatology_selectors.json").read_text()) if len(case) > 1]
    found = {name: [] for name in (*map(str, RULES), "monte carlo")}
    for split in range(splits):
        rng = np.random.default_rng(split)
        P, held = doctors(cases, rng)
        n = len(P) // 2
        right = held > 0
        truth = LabelSets.from_mask(right[n:])
        for rule in RULES:
            sets = conformalize(P[:n], right[:n], truth=rule).predict_set(P[n:], LEVEL)
            found[str(rule)].append(judge(sets, truth, rule))
        drawn = (held[:n].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        scores = np.sort(1 - P[np.arange(n), drawn])
        limit = scores[math.ceil((n + 1) * LEVEL - 1e-9) - 1]
        found["monte carlo"].append(judge(LabelSets.from_mask(1 - P[n:] <= limit), truth, "all"))
    cells = []
    for name, values in found.items():
        own, whole, size = np.array(values).T
        cells.append(
            {"rule": name, "splits": splits, "share": mean(own), "error": error(own)}
            | {"whole": mean(whole), "mean_size": mean(size)}
        )
    return cells


def judge(sets, truth, rule):
    """How many sets have enough of the right labels, how many all, and how many labels they have."""
    result = evaluate(sets, truth, truth=rule)
    return result["coverage"], evaluate(sets, truth, truth="all")["coverage"], result["mean_size"]


def mean(values):
    return round(float(np.mean(values)), 4)


def error(values):
    return round(float(np.std(values, ddof=1) / math.sqrt(len(values))), 5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", MisuseWarning)  # one draw in a hundred looks chosen
    folder = arguments.data / "experts"
    doctors_ = differentials(folder / "dermatology", arguments.splits)
    images = folder / "imagenet-real"
    cells = [
        *verified_photos(images, 5, arguments.draws),
        *verified_photos(images, 2, arguments.draws),
        *verified_photos(images, 2, arguments.draws, with_none=True),
    ]
    result = {"machine": machine(), "level": LEVEL, "verified": VERIFIED, "photos": cells, "doctors": doctors_}
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
