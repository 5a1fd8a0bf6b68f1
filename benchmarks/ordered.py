"""Ordered classes: intervals by the ranked probability score beside ordered APS and LAC with its gaps filled.

    SETWISE_DATA=DIR python benchmarks/ordered.py --keep

LLMJudge: 33 language models rate how relevant 2,433 passages are, from 0 to 3; probabilities are the shares of their
answers with half an answer added, truth is the assessor's. Half of the rows calibrate. Rows of one query are alike, and
are split row by row: coverage is that of new passages for these queries, not of new queries. FG-NET: ages from 1,002
faces; half of the rows train a model, a quarter calibrates. The network learns from candidate sets, the logistic
regression from exact ages. Strategy `max`, which with exact labels is split conformal prediction.

Ordered APS (Lu, Angelopoulos and Pomerantz, 2022) grows from the most probable class to the more probable neighbour;
a label's score is the probability of the interval with which it enters. "LAC, filled" adds what lies between the labels
of a set; "LAC, filled first" calibrates these intervals. Distances are those of `evaluate(…, ordered=True)`, in steps
or years. ± is the standard error over splits. `--keep` writes benchmarks/results/ordered.json.
"""

from __future__ import annotations

import argparse
import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from summary import machine, show

from setwise import LAC, RPS, PartialLabelClassifier, conformalize, evaluate
from setwise.datasets import load

RESULTS = Path(__file__).resolve().parent / "results" / "ordered.json"
LEVELS = (0.8, 0.9)


def fill(mask):
    """What lies between the labels of each set, too."""
    return np.maximum.accumulate(mask, axis=1) & np.maximum.accumulate(mask[:, ::-1], axis=1)[:, ::-1]


@dataclass(frozen=True)
class OwnScore:
    """What scores share that are worked out for all labels."""

    domain: ClassVar[str] = "simplex"
    offset: ClassVar[float] = 0.0
    monotone: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False
    randomized: ClassVar[bool] = False

    def score(self, probabilities, labels=None, *, u=None):  # noqa: ARG002
        scores = self.of_all(np.asarray(probabilities, dtype=float))
        return scores if labels is None else scores[np.arange(len(scores)), labels]

    def below(self, probabilities, threshold, *, u=None):  # noqa: ARG002
        return self.score(probabilities) <= np.reshape(threshold, (-1, 1))


@dataclass(frozen=True)
class OrderedAPS(OwnScore):
    """The probability of the interval around the most probable class with which a label enters."""

    name: ClassVar[str] = "ordered APS"

    def of_all(self, p):
        rows, scores = np.arange(len(p)), np.empty_like(p)
        low = high = p.argmax(axis=1)
        mass = scores[rows, low] = p[rows, low]
        beside = np.pad(p, ((0, 0), (1, 1)), constant_values=-1.0)
        for _ in range(p.shape[1] - 1):
            down = beside[rows, low] > beside[rows, high + 2]
            label = np.where(down, low - 1, high + 1)
            low, high = np.minimum(low, label), np.maximum(high, label)
            mass = scores[rows, label] = mass + p[rows, label]
        return scores


@dataclass(frozen=True)
class FilledLAC(OwnScore):
    """The least LAC score at which a label lies between two labels of the set."""

    name: ClassVar[str] = "filled LAC"

    def of_all(self, p):
        left, right = (np.maximum.accumulate(side, axis=1) for side in (p, p[:, ::-1]))
        return -np.minimum(left, right[:, ::-1])


METHODS = {"RPS": RPS(), "ordered APS": OrderedAPS(), "LAC, filled": LAC(), "LAC, filled first": FilledLAC()}


def measure(matrix, calibrating, labels, truth):
    """Each method's sets for the rows after the first `calibrating`, calibrated on labels or candidates of these."""
    found = {}
    for name, score in METHODS.items():
        calibration = conformalize(matrix[:calibrating], labels, "max", score)
        for level in LEVELS:
            plain = calibration.predict_mask(matrix[calibrating:], level)
            sets = fill(plain)
            said = evaluate(sets, truth, ordered=True)
            measured = {key: said[key] for key in ("coverage", "mean_size", "distance", "distance_missed")}
            found[name, level] = {**measured, "filled": float((sets != plain).any(axis=1).mean())}
    return found


def llmjudge(splits):
    """Measurements for each split."""
    path = Path(os.environ["SETWISE_DATA"]) / "panels" / "llmjudge.csv"
    with path.open(newline="") as file:
        _, *lines = csv.reader(file)
    truth = np.array([int(line[2]) for line in lines])
    shares = np.array([[line[3:].count(label) + 0.125 for label in "0123"] for line in lines])
    shares /= shares.sum(axis=1, keepdims=True)
    half = len(truth) // 2
    for split in range(splits):
        rows = np.random.default_rng(split).permutation(len(truth))
        yield "LLMJudge, exact", measure(shares[rows], half, truth[rows[:half]], truth[rows[half:]])


def fg_net(data, split):
    """Measurements for one split."""
    rows = np.random.default_rng(split).permutation(len(data.y))
    learned, others = np.split(rows, [len(rows) // 2])
    quarter = len(others) // 2
    network = PartialLabelClassifier(random_state=split, device="cpu").fit(
        data.X[learned], data.candidates[learned]
    )
    exact = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
    exact.fit(data.X[learned], data.y[learned])
    columns = np.zeros((len(others), data.candidates.n_classes))
    columns[:, exact[-1].classes_] = exact.predict_proba(data.X[others])
    known, truth = others[:quarter], data.y[others[quarter:]]
    for model, matrix in (("network", network.predict_proba(data.X[others])), ("regression", columns)):
        for kind, labels in (("exact", data.y[known]), ("candidate sets", data.candidates[known])):
            yield f"FG-NET, {model}, {kind}", measure(matrix, quarter, labels, truth)


def main():
    """Prints the results, and keeps them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    data = load("fg_net")
    faces = Parallel(options.jobs)(delayed(lambda s: list(fg_net(data, s)))(s) for s in range(options.splits))
    cells = {}
    for setting, found in [*llmjudge(options.splits), *(one for split in faces for one in split)]:
        for (method, level), measured in found.items():
            cells.setdefault((setting, level, method), []).append(measured)
    rows = []
    for (setting, level, method), measured in sorted(cells.items(), key=lambda cell: cell[0][:2]):
        row = {"setting": setting, "level": level, "method": method, "splits": len(measured)}
        for key in measured[0]:
            values = np.array([one[key] for one in measured if one[key] is not None])
            row[key] = round(float(values.mean()), 4) if len(values) else None
            if key in ("coverage", "mean_size"):
                row[f"{key}_error"] = round(float(values.std(ddof=1) / np.sqrt(len(values))), 4)
        rows.append(row)
    show({"machine": machine("torch"), "rows": rows}, RESULTS if options.keep else None)


if __name__ == "__main__":
    main()
