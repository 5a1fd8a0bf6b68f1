"""New rows that are not like the calibration rows: how often that is noticed, and how often falsely.

    python benchmarks/drift.py --data DIR --keep

DIR holds pll/*.mat and fashion_mnist/ (the folder that SETWISE_DATA names); none of it is in the repository.

File order: BirdSong, the first 4,000 rows to learn (EM with logistic regression, as `setwise fit --learner em` does) and
to calibrate (a fifth of them), the rest new, through the commands `fit`, `predict` and `report`; and the same with the
rows shuffled. Coverage is that of the sets at 0.90.

Random splits: logistic regression learned once from 3,000 rows (small sets: from 40 in 100) with their true labels; the
other rows are split at random into calibration and new rows, halves; `compare` on the model's answers, and with features.

Monitor: the same models. False alarms: 1,000 calibration rows and a stream of 10,000 others, drawn anew for each stream.
Noise: normal noise on the features, of the scale (in standard deviations of each feature) that costs the model 10 points
of accuracy, from the first row of the stream on or after 1,000 rows without; calibrated on a third of the rows not
learned from, at most 1,000; a stream is drawn without replacement from the others, at most 1,000 with noise (lost has
450, MSRCv2 700). The monitor watches largest probability, predicted label and the distance of features, as that of a model.
`--keep` writes benchmarks/results/drift.json.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import tempfile
import warnings
from functools import cache, partial
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from summary import machine, show

from setwise import conformalize
from setwise.datasets import load
from setwise.drift.comparison import RowTally
from setwise.drift.feature_summary import FeatureSummary, Reference
from setwise.drift.monitor import Monitor

RESULTS = Path(__file__).resolve().parent / "results" / "drift.json"
SETS = ("lost", "msrcv2", "birdsong", "fg_net", "italian")
LONG = ("italian", "fashion_mnist")
NOISY = ("lost", "msrcv2", "birdsong", "italian", "fashion_mnist")
DELTA, STREAM, WITHIN, COPIES = 0.05, 10_000, 1_000, 4


# -------------------------------------------------------------------- BirdSong in the order of its file


def table(path, rows, bird):
    """Features, candidates and truth of some rows as a CSV file."""
    names = [*(f"x{i}" for i in range(bird.X.shape[1])), "candidates", "truth"]
    lists = bird.candidates[rows].to_lists()
    lines = [
        ",".join([*map(repr, map(float, bird.X[row])), "|".join(f"c{label}" for label in held), f"c{bird.y[row]}"])
        for row, held in zip(rows, lists, strict=True)
    ]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")


def command(*arguments):
    from setwise.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([*map(str, arguments)])
    assert status == 0, err.getvalue()
    return out.getvalue()


def file_order(order):
    """What `predict` and the report say of the rows from the 4,001st on."""
    bird = load("birdsong")
    rows = np.arange(len(bird.y))
    if order == "shuffled":
        rows = np.random.default_rng(0).permutation(rows)
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        table(Path("old.csv"), rows[:4000], bird)
        table(Path("new.csv"), rows[4000:], bird)
        command(
            "fit", "old.csv", "--candidates", "candidates", "--ignore", "truth", "--learner", "em", "--out", "m"
        )
        said = json.loads(command("predict", "m", "new.csv", "--out", "sets.csv", "--json"))
        measured = json.loads(command("evaluate", "sets.csv", "--truth", "truth", "--json"))
        command("report", "m", "new.csv", "--truth", "truth", "--out", "report.html")
        page = Path("report.html").read_text(encoding="utf-8")
    return {
        "order": order,
        "rows": said["rows"],
        "p_value": said["comparison"]["p_value"],
        "refuted": said["comparison"]["refuted"],
        "refuted_in_report": "These rows differ from the calibration rows" in page,
        "promised": said["promised"],
        "coverage": round(measured["coverage"], 4),
        "text": said["comparison"]["text"],
    }


# -------------------------------------------------------------------- a model for each set


@cache
def material(name):
    """Rows not learned from: features, candidates, truth, probabilities; and the model."""
    rng = np.random.default_rng(1)
    bench = load(name)
    order = rng.permutation(len(bench.y))
    size = min(3000, int(0.4 * len(order)))
    learn, rest = order[:size], order[size:]
    X = bench.X.reshape(len(bench.X), -1).astype(np.float64)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=60)).fit(X[learn], bench.y[learn])
    classes = model.classes_
    held = np.isin(bench.y, classes)  # labels that no learning row has are left out
    rest = rest[held[rest]]
    y = np.searchsorted(classes, bench.y[rest])
    return X[rest], y, model.predict_proba(X[rest]), model, X[learn].std(axis=0), Reference.of(X[learn])


def split(name, seed):
    """Whether one random split was called different: by the model's answers, and with the features."""
    X, y, P, *_, reference = material(name)
    order = np.random.default_rng([seed, 2]).permutation(len(y))
    old, new = np.array_split(order, 2)
    cal = conformalize(P[old], y[old], "max")
    rows = RowTally(cal, FeatureSummary.of(X[old], reference))
    rows.add(P[new], X=X[new])
    return cal.compare(P[new]).refuted, rows.compare().refuted


def clean_stream(name, seed):
    """The row of a false alarm in a stream of 10,000, or None."""
    X, y, P, *_ = material(name)
    order = np.random.default_rng([seed, 3]).permutation(len(y))[: 1000 + STREAM]
    old, new = order[:1000], order[1000:]
    assert len(new) == STREAM
    return watching(name, old, seed).update(P[new], X=X[new]).first_row


def watching(name, old, seed):
    """The monitor of a model that was calibrated on these rows."""
    X, y, P, *_, reference = material(name)
    summary = FeatureSummary.of(X[old], reference)
    return Monitor(conformalize(P[old], y[old], "max"), delta=DELTA, random_state=seed, features=summary)


@cache
def noisy(name):
    """The rows with noise that costs 10 points of accuracy, several times, their probabilities; scale and loss."""
    X, y, P, model, spread, _ = material(name)
    rows = np.resize(np.random.default_rng(4).permutation(len(y)), 8000)
    noise = np.random.default_rng(5).normal(size=(len(rows), X.shape[1])) * spread
    before, low, high = (P[rows].argmax(axis=1) == y[rows]).mean(), 0.0, 8.0
    for _ in range(12):
        scale = (low + high) / 2
        lost = before - (model.predict_proba(X[rows] + scale * noise).argmax(axis=1) == y[rows]).mean()
        low, high = (scale, high) if lost < 0.10 else (low, scale)
    rng = np.random.default_rng(6)
    rows = np.tile(rng.permutation(len(y))[:8000], COPIES)
    changed = X[rows] + scale * spread * rng.normal(size=(len(rows), X.shape[1]))
    made = model.predict_proba(changed)
    lost = (P[rows].argmax(axis=1) == y[rows]).mean() - (made.argmax(axis=1) == y[rows]).mean()
    return rows, changed, made, scale, lost


def noisy_stream(name, late, seed):
    """After how many rows with noise an alarm came, after so many without; None for none, −1 for a false one."""
    X, y, P, *_ = material(name)
    rows, changed, made, *_ = noisy(name)
    rng = np.random.default_rng([seed, 7])
    order = rng.permutation(len(y))
    size = min(1000, len(y) // 3)
    old, others = order[:size], order[size:]
    before, others = others[:late], others[late:]
    held = len(rows) // COPIES  # the same rows come several times, each with noise of its own
    after = rng.permutation(np.flatnonzero(np.isin(rows[:held], others)))[:WITHIN]
    after = after + held * rng.integers(0, COPIES, len(after))
    watch = watching(name, old, seed)
    if late and watch.update(P[before], X=X[before]).alarm:
        return -1
    found = watch.update(made[after], X=changed[after]).first_row
    return None if found is None else found - late + 1


# -------------------------------------------------------------------- all of it


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", type=int, default=1000, help="random splits, and clean streams, over all sets")
    parser.add_argument("--noisy-runs", type=int, default=200, help="streams with noise, for each set")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    os.environ["SETWISE_DATA"] = arguments.data
    warnings.simplefilter("ignore", ConvergenceWarning)  # any model will do
    result = {"machine": machine(), "level": 0.01, "delta": DELTA}
    result["birdsong"] = [file_order(order) for order in ("file", "shuffled")]
    for name in {*SETS, *LONG, *NOISY}:
        material(name)  # before there are processes
    with multiprocessing.get_context("fork").Pool(arguments.processes) as pool:
        result["random_splits"] = []
        for name in SETS:
            found = np.array(pool.map(partial(split, name), range(arguments.runs // len(SETS)), chunksize=4))
            answers, features = found.sum(axis=0).tolist()
            row = {
                "set": name,
                "splits": len(found),
                "false_alarms": answers,
                "false_alarms_with_features": features,
            }
            result["random_splits"].append(row)
        result["clean_streams"] = []
        for name in LONG:
            found = pool.map(partial(clean_stream, name), range(arguments.runs // len(LONG)), chunksize=4)
            alarms = sum(row is not None for row in found)
            result["clean_streams"].append(
                {"set": name, "streams": len(found), "rows": STREAM, "false_alarms": alarms}
            )
    for name in NOISY:
        noisy(name)
    with multiprocessing.get_context("fork").Pool(arguments.processes) as pool:
        result["noise"] = []
        for name in NOISY:
            *_, scale, lost = noisy(name)
            for late in (0, 1000) if len(material(name)[1]) > 3000 else (0,):
                found = pool.map(partial(noisy_stream, name, late), range(arguments.noisy_runs), chunksize=4)
                rows = [np.inf if row is None else row for row in found if row != -1]
                middle = float(np.median(rows))
                result["noise"].append(
                    {
                        "set": name,
                        "noise_scale": round(float(scale), 3),
                        "accuracy_lost": round(float(lost), 4),
                        "clean_rows_before": late,
                        "streams": len(rows),
                        "false_alarms_before": len(found) - len(rows),
                        "noticed_within_1000": round(float(np.isfinite(rows).mean()), 3),
                        "median_rows": None if np.isinf(middle) else middle,
                    }
                )
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
