"""Votes: the consensus and its speed beside crowd-kit, a million votes, sets and learning from real votes.

    python benchmarks/crowd.py --data DIR --keep

DIR holds {dog,duck}-answers.csv (question, worker, answer), {dog,duck}-truth.csv (question, truth) and cifar10n.npz
(X, P, votes, y); none of it is in the repository. Needs crowd-kit 1.4 (`pip install 'setwise[bench]'`).

Consensus: share of right labels of the majority (ties broken at random, expected), crowd-kit's DawidSkene and
`annotators`; seconds from the same frame, medians of turns taken in one process: of crowd-kit and of the annotator model
alone to the posterior and all accuracies, which is the same work, and of `annotators`, which also judges whether other
answers confirm that model, who copies whom, and how far annotators agree. Rank correlation of the accuracies of annotators
with 20 answers or more: in both models the posterior-weighted share of right answers. The differences from crowd-kit on so few items come with their exact
McNemar p-value. The annotator model's shrinkage (5) and start (vote shares) are those, of 56 settings compared, under
which held-out tenths of the answers of dog and duck are most probable. Truths do not enter that criterion; weaker
shrinkage (0.1) gives dog the accuracy of crowd-kit, and held-out answers a log likelihood lower by 0.07 per answer.

A million votes: 300,000 rows, 100 classes, 1,000 annotators right in 50 to 95 % of answers; time and peak memory of
`fit_annotators` in a process of its own (with the seconds its threads computed, and how many processes wanted a core,
since others may run beside it), and a tenth of it beside crowd-kit.

Sets: `cifar10n.npz`, LAC, level 0.90, 3,000 calibration rows, 5,000 others; P as is, cubed and square-rooted.
About one draw of verified rows in a hundred looks unlike the other rows. `auto` then guarantees nothing and warns; the draw
counts all the same.

Learning: `ConformalClassifier(strategy="crowd", assume="independent").fit(X, votes)` on 5,000 rows of `cifar10n.npz`
(a fifth to calibrate), with the default network and with scikit-learn's LogisticRegression, on 5,000 other rows; beside
the same learner with the majority vote of the same rows as label (ties broken at random), and the size of the sets
beside that of the oracle's: the same model, conformalized on the same rows with true labels.

`--keep` writes benchmarks/results/crowd.json; with `--only PART` that part alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest, spearmanr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from summary import machine

from setwise import ConformalClassifier, Votes, annotators, conformalize
from setwise.crowd.annotator_model import fit_annotators

RESULTS = Path(__file__).resolve().parent / "results" / "crowd.json"
LEVEL, CALIBRATION, TEST, VERIFIED = 0.9, 3_000, 5_000, 50
LEARNING_SPLITS = 10
POWERS = {"as is": 1.0, "cubed": 3.0, "square-rooted": 0.5}


def crowd_kit(frame):
    """Consensus of each task, and the accuracy of each worker."""
    from crowdkit.aggregation import DawidSkene

    fitted = DawidSkene().fit(frame)
    right = fitted.probas_.stack()[pd.MultiIndex.from_frame(frame[["task", "label"]])]
    return fitted.labels_, right.groupby(frame["worker"].to_numpy()).mean()


def annotator_model(frame):
    """The same by the annotator model alone."""
    votes = Votes.from_table(frame, item="task", annotator="worker")
    posterior = fit_annotators(votes).posterior
    right = np.bincount(votes.annotator, posterior[votes.row, votes.label]) / np.bincount(votes.annotator)
    return pd.Series(votes.classes[posterior.argmax(axis=1)], votes.items), pd.Series(right, votes.annotators)


def everything(frame):
    """All that `annotators` says without verified rows, which is no accuracy."""
    found = annotators(votes := Votes.from_table(frame, item="task", annotator="worker"))
    return pd.Series(found.consensus, votes.items), None


SIDES = {"crowd-kit": crowd_kit, "model": annotator_model, "setwise": everything}


def in_turns(functions, frame, turns):
    """Results, and the median seconds, of functions called in turn."""
    seconds, results = {name: [] for name in functions}, {}
    for _ in range(turns):
        for name, function in functions.items():
            start = time.perf_counter()
            results[name] = function(frame)
            seconds[name].append(time.perf_counter() - start)
    return results, {name: float(np.median(values)) for name, values in seconds.items()}


def consensus(data, name, turns=9):
    frame = pd.read_csv(data / f"{name}-answers.csv").rename(columns={"question": "task", "answer": "label"})
    truth = pd.read_csv(data / f"{name}-truth.csv").set_index("question").truth
    results, seconds = in_turns(SIDES, frame, turns)
    (theirs, their_accuracy), (_, my_accuracy), (mine, _) = results.values()
    counts = frame.groupby(["task", "label"]).size().unstack(fill_value=0).loc[truth.index]
    most = counts.eq(counts.max(axis=1), axis=0)
    majority = most.to_numpy()[np.arange(len(truth)), counts.columns.get_indexer(truth)] / most.sum(axis=1)
    many = frame.worker.value_counts()
    many = many[many >= 20].index
    right_mine, right_theirs = mine[truth.index] == truth, theirs[truth.index] == truth
    better, worse = int((right_mine & ~right_theirs).sum()), int((~right_mine & right_theirs).sum())
    true_accuracy = (frame.label == frame.task.map(truth)).groupby(frame.worker).mean()
    return {
        "data": name,
        "answers": len(frame),
        "items": len(truth),
        "annotators": int(frame.worker.nunique()),
        "majority": round(float(majority.mean()), 4),
        "crowd-kit": round(float(right_theirs.mean()), 4),
        "setwise": round(float(right_mine.mean()), 4),
        "right_only_in_setwise": better,
        "right_only_in_crowd-kit": worse,
        "mcnemar_p": round(binomtest(better, better + worse).pvalue, 3) if better + worse else 1.0,
        "annotators_with_20_answers": len(many),
        "rank_correlation": round(float(spearmanr(my_accuracy[many], their_accuracy[many])[0]), 4),
        "rank_correlation_with_truth": {
            "crowd-kit": round(float(spearmanr(their_accuracy[many], true_accuracy[many])[0]), 4),
            "setwise": round(float(spearmanr(my_accuracy[many], true_accuracy[many])[0]), 4),
        },
        "seconds": {side: round(value, 4) for side, value in seconds.items()},
        "times_as_fast": round(seconds["crowd-kit"] / seconds["model"], 1),
        "times_as_fast_everything": round(seconds["crowd-kit"] / seconds["setwise"], 1),
    }


def simulated(votes, rows, k=100, people=1_000, seed=0):
    rng = np.random.default_rng(seed)
    y, row = rng.integers(0, k, rows), rng.integers(0, rows, votes)
    who, accuracy = rng.integers(0, people, votes), rng.uniform(0.5, 0.95, people)
    label = np.where(rng.random(votes) < accuracy[who], y[row], rng.integers(0, k, votes))
    return y, row, who, label


def million():
    """Time and peak memory; run in a process of its own."""
    y, row, who, label = simulated(1_000_000, 300_000)
    votes = Votes.of(300_000, row, label, who, classes=range(100))
    start, used = time.perf_counter(), time.process_time()
    found = fit_annotators(votes)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "votes": 1_000_000,
        "rows": 300_000,
        "classes": 100,
        "annotators": 1_000,
        "accuracy": round(float((found.posterior.argmax(axis=1) == y).mean()), 4),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used, 1),
        "load_average": round(os.getloadavg()[0], 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
    }


def a_tenth():
    y, row, who, label = simulated(100_000, 30_000)
    frame = pd.DataFrame({"task": row, "worker": who, "label": label})
    results, seconds = in_turns(SIDES, frame, 1)
    return {
        "votes": 100_000,
        "rows": 30_000,
        "classes": 100,
        "annotators": 1_000,
        "accuracy": {
            name: round(float((labels.sort_index() == y[labels.sort_index().index]).mean()), 4)
            for name, (labels, _) in results.items()
        },
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "times_as_fast": round(seconds["crowd-kit"] / seconds["model"], 1),
        "times_as_fast_everything": round(seconds["crowd-kit"] / seconds["setwise"], 1),
    }


def sets(data, splits):
    """Coverage of the truth and of a random answer, and size, by rule and by what was done to P."""
    held = np.load(data / "cifar10n.npz")
    P, answers, y = held["P"].astype(float), held["votes"].astype(int), held["y"].astype(int)
    for name, power in POWERS.items():
        f, found = P**power / (P**power).sum(axis=1, keepdims=True), {}
        for split in range(splits):
            rng = np.random.default_rng(split)
            rows = rng.permutation(len(y))
            c, t = rows[:CALIBRATION], rows[CALIBRATION : CALIBRATION + TEST]
            votes = Votes.from_matrix(answers[c], classes=range(10))
            anonymous = Votes.from_counts(votes.counts)
            verified = np.full(CALIBRATION, None)
            verified[:VERIFIED] = y[c[:VERIFIED]]
            made = {
                "oracle": conformalize(f[c], y[c]),
                "max": conformalize(f[c], anonymous.candidates(), "max"),
                "votes": conformalize(f[c], anonymous, "votes"),
                "crowd": conformalize(f[c], anonymous, "crowd", assume="independent"),
                "verified alone": conformalize(f[c[:VERIFIED]], y[c[:VERIFIED]]),
                "auto with 50 verified rows": conformalize(f[c], anonymous, verified=verified),
            }
            for rule, calibration in made.items():
                mask = calibration.predict_set(f[t], LEVEL).to_mask()
                covered = mask[np.arange(TEST), y[t]].mean()
                answer = mask[np.arange(TEST)[:, None], answers[t]].mean()
                promised = calibration.guarantee(LEVEL).promised == LEVEL
                found.setdefault(rule, []).append((covered, answer, mask.sum(axis=1).mean(), promised))
        for rule, values in found.items():
            (coverage, answer, size, promised), spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
            yield {
                "probabilities": name,
                "rule": rule,
                "splits": splits,
                "coverage": round(float(coverage), 4),
                "coverage_sd": round(float(spread[0]), 4),
                "random_answer": round(float(answer), 4),
                "random_answer_sd": round(float(spread[1]), 4),
                "size": round(float(size), 3),
                "size_sd": round(float(spread[2]), 3),
                "promises_the_level_in": round(float(promised), 2),
            }


def learning(data, splits):
    """Accuracy from votes and from their majority; size of the sets beside the oracle's."""
    from setwise.learn import PartialLabelClassifier

    held = np.load(data / "cifar10n.npz")
    X, answers, y = held["X"].astype(float), held["votes"].astype(int), held["y"].astype(int)
    learners = {
        "default network": PartialLabelClassifier(),
        "LogisticRegression": LogisticRegression(max_iter=1000),
    }
    for name, learner in learners.items():
        found = []
        for split in range(splits):
            rng = np.random.default_rng(split)
            rows = rng.permutation(len(y))
            r, t = rows[:TEST], rows[TEST : 2 * TEST]
            votes = Votes.from_counts(Votes.from_matrix(answers[r], classes=range(10)).counts)
            model = ConformalClassifier(learner, "crowd", assume="independent", random_state=split).fit(X[r], votes)
            c = model.calibration_rows_
            kept = np.setdiff1d(np.arange(TEST), c)
            majority = (votes.counts[kept] + 0.5 * rng.random((len(kept), 10))).argmax(axis=1)
            seeded = clone(learner).set_params(random_state=split)
            baseline = (seeded.fit(X[r[kept]], majority).predict(X[t]) == y[t]).mean()
            P = model.predict_proba(X[t])
            ours = model.calibration_.predict_set(P, LEVEL).to_mask()
            oracle = conformalize(model.predict_proba(X[r[c]]), y[r[c]]).predict_set(P, LEVEL).to_mask()
            covered = [mask[np.arange(TEST), y[t]].mean() for mask in (ours, oracle)]
            sizes = [mask.sum(axis=1).mean() for mask in (ours, oracle)]
            found.append(((P.argmax(axis=1) == y[t]).mean(), baseline, *covered, *sizes))
        means, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        better = np.subtract(*np.array(found).T[:2])
        columns = ("accuracy", "majority_accuracy", "coverage", "oracle_coverage", "size", "oracle_size")
        yield {
            "learner": name,
            "splits": splits,
            **{column: round(float(mean), 4) for column, mean in zip(columns, means, strict=True)},
            **{f"{column}_sd": round(float(sd), 4) for column, sd in zip(columns, spread, strict=True)},
            "gain_in_accuracy": round(float(better.mean()), 4),
            "gain_se": round(float(better.std(ddof=1) / splits**0.5), 4),
            "size_by_oracle": round(float(means[4] / means[5]), 3),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--keep", action="store_true")
    parts = {
        "consensus": lambda given: [consensus(given.data, name) for name in ("dog", "duck")],
        "million": lambda _: million(),
        "tenth": lambda _: a_tenth(),
        "sets": lambda given: list(sets(given.data, given.splits)),
        "learning": lambda given: list(learning(given.data, min(given.splits, LEARNING_SPLITS))),
    }
    parser.add_argument("--only", choices=parts, help="one part; --keep leaves the others as they are")
    arguments = parser.parse_args()
    kept = json.loads(RESULTS.read_text()) if arguments.only and arguments.keep else {}
    if arguments.only:
        result = {arguments.only: parts[arguments.only](arguments)}
        result["later"] = kept.get("later", {}) | {arguments.only: machine("pandas", "crowd-kit")}
    else:
        alone = [sys.executable, __file__, "--only", "million"]
        own = json.loads(subprocess.run(alone, capture_output=True, text=True, check=True).stdout)
        result = {"machine": machine("pandas", "crowd-kit")}
        result |= {name: own["million"] if name == "million" else part(arguments) for name, part in parts.items()}
    print(json.dumps(result, indent=1, ensure_ascii=False))
    if arguments.keep:
        RESULTS.write_text(json.dumps(kept | result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
