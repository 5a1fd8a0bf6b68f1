"""The same work for setwise and its peers, in one process: calibrate on precise labels, then build sets.

Peers know precise labels only, so labels are precise here; what setwise does beyond that, calibration on
candidate sets, is measured against the cost of reading the probabilities once. Every figure is the best of
several runs, input validation included on all sides, and only ratios are compared. Run with `make bench`;
the figures go to benchmarks/results/peers.json, from which `summary.py` writes docs/benchmarks.md.

Aggregation of votes beside crowd-kit: from the same frame, medians of turns taken in one process; the annotator model alone
to the posterior and all accuracies, which is the same work, and all of `annotators`, which also judges whether other answers
confirm that model, who copies whom, and how far annotators agree. Real votes are read where SETWISE_DATA has them.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from crowd import simulated
from sklearn.base import BaseEstimator, ClassifierMixin

import setwise
from setwise.crowd.annotator_model import fit_annotators

ROOT = Path(__file__).resolve().parent.parent
LEVEL = 0.9
Work = Callable[[], Any]


class PassThrough(ClassifierMixin, BaseEstimator):
    """An estimator whose features are the probabilities."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)
        self.n_features_in_ = n_classes

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return np.asarray(X).argmax(axis=1)

    def __sklearn_is_fitted__(self):
        return True


def draw(n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a plausible model, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    return p, (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def best(work: Work, repeats: int) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def ours(score: str, P, y, Q) -> Work:
    return lambda: (
        setwise.conformalize(P, y, conformity_score=score, random_state=0).predict_set(Q, LEVEL).to_mask()
    )


def mapie(score: str, P, y, Q) -> Work:
    from mapie.classification import SplitConformalClassifier

    estimator = PassThrough(P.shape[1])
    params = {} if score == "lac" else {"include_last_label": "randomized"}
    # MAPIE's RAPS splits the calibration rows to tune its penalty, so it needs a size for that part.
    if score == "raps":
        from mapie.conformity_scores import RAPSConformityScore

        score = RAPSConformityScore(size_raps=0.2)

    def work():
        model = SplitConformalClassifier(
            estimator=estimator, confidence_level=LEVEL, conformity_score=score, prefit=True, random_state=0
        )
        model.conformalize(P, y)
        return model.predict_set(Q, conformity_score_params=params)[1][:, :, 0]

    return work


def puncc(score: str, P, y, Q) -> Work:
    from deel.puncc.api.prediction import BasePredictor
    from deel.puncc.classification import APS, LAC, RAPS

    class Predictor(BasePredictor):
        def predict(self, X, **kwargs):  # noqa: ARG002
            return self.model.predict_proba(X)

    predictor = Predictor(PassThrough(P.shape[1]), is_trained=True)
    made = {"lac": lambda: LAC(predictor, train=False), "aps": lambda: APS(predictor, train=False)}
    made["raps"] = lambda: RAPS(predictor, train=False, k_reg=5, lambd=0.01)

    def work():
        model = made[score]()
        model.fit(X_calib=P, y_calib=y)
        return model.predict(Q, alpha=1 - LEVEL)[1]

    return work


def torchcp(score: str, P, y, Q) -> Work:
    import torch
    from torchcp.classification.predictor import SplitPredictor
    from torchcp.classification.score import APS, LAC, RAPS

    made = {"lac": lambda: LAC("identity"), "aps": lambda: APS("identity")}
    made["raps"] = lambda: RAPS("identity", penalty=0.01, kreg=5)
    tensors = [torch.from_numpy(a) for a in (P, y, Q)]

    def work():
        predictor = SplitPredictor(made[score](), alpha=1 - LEVEL)
        predictor.calculate_threshold(tensors[0], tensors[1])
        return predictor.predict_with_logits(tensors[2]).numpy().astype(bool)

    return work


def crepes_p_values(P, y, Q) -> Work:
    from crepes import ConformalClassifier
    from crepes.extras import hinge

    fitted = ConformalClassifier().fit(hinge(P, np.arange(P.shape[1]), y))
    return lambda: fitted.predict_p(1 - Q, smoothing=False)


PEERS: dict[str, Callable[..., Work]] = {"MAPIE": mapie, "puncc": puncc, "TorchCP": torchcp}


def sets_table(n: int, k: int, repeats: int) -> list[dict[str, Any]]:
    """Calibration plus sets, for every score and peer."""
    P, y = draw(n, k, 0)
    Q, z = draw(n, k, 1)
    rows = []
    for score in ("lac", "aps", "raps"):
        row: dict[str, Any] = {"work": f"{score.upper()} calibration + sets, K = {k:,}"}
        row["setwise"] = best(ours(score, P, y, Q), repeats)
        row["coverage"] = float(ours(score, P, y, Q)()[np.arange(n), z].mean())
        for name, make in PEERS.items():
            try:
                work = make(score, P, y, Q)
                row[name] = best(work, max(2, repeats // 3))
            except ImportError:
                row[name] = None
        rows.append(row)
    return rows


def p_value_row(n: int, k: int, part: int) -> dict[str, Any]:
    """All p-values; crepes on a part of the rows, scaled up (its cost is proportional to the rows)."""
    P, y = draw(n, k, 0)
    Q, _ = draw(n, k, 1)
    calibration = setwise.conformalize(P, y)
    row: dict[str, Any] = {"work": f"all p-values, K = {k:,}"}
    row["setwise"] = best(lambda: calibration.predict_p(Q), 3)
    row["crepes"] = best(crepes_p_values(P, y, Q[:part]), 1) * n / part
    row["note"] = f"crepes timed on {part} of {n:,} rows and scaled up"
    return row


def candidate_rows(n: int, k: int, repeats: int) -> list[dict[str, Any]]:
    """`max` on candidate sets in passes of `probabilities.max(axis=1)`, and its peak extra memory."""
    rng = np.random.default_rng(0)
    P = rng.random((n, k), dtype=np.float32)
    P /= P.sum(axis=1, keepdims=True)
    mask = rng.random((n, k), dtype=np.float32) < 1.3 / (k - 1)
    mask[np.arange(n), rng.integers(0, k, n)] = True
    indptr, indices = setwise.LabelSets.from_mask(mask).rows
    vocabulary = setwise.LabelSets.from_mask(mask[:1]).vocabulary
    one_pass = best(lambda: P.max(axis=1), repeats)
    rows = []
    for name in ("mask", "compressed rows"):

        def candidates(name=name):
            return mask if name == "mask" else setwise.LabelSets(vocabulary, n, (indptr, indices))

        def work(candidates=candidates):
            return setwise.conformalize(P, candidates(), "max").threshold(LEVEL)

        seconds = best(work, repeats)
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append(
            {
                "work": f"max on {n:,} × {k} float32, candidates as {name}",
                "seconds": seconds,
                "passes": seconds / one_pass,
                "memory": peak / P.nbytes,
                "candidates_per_row": float(len(indices) / n),
            }
        )
    return rows


def crowd_kit(frame):
    """Consensus of each task, and the accuracy of each worker."""
    from crowdkit.aggregation import DawidSkene

    fitted = DawidSkene().fit(frame)
    right = fitted.probas_.stack()[pd.MultiIndex.from_frame(frame[["task", "label"]])]
    return fitted.labels_, right.groupby(frame["worker"].to_numpy()).mean()


def annotator_model(frame):
    """The same by the annotator model alone."""
    votes = setwise.Votes.from_table(frame, item="task", annotator="worker")
    posterior = fit_annotators(votes).posterior
    right = np.bincount(votes.annotator, posterior[votes.row, votes.label]) / np.bincount(votes.annotator)
    return pd.Series(votes.classes[posterior.argmax(axis=1)], votes.items), pd.Series(right, votes.annotators)


def everything(frame):
    """All that `annotators` says without verified rows, which is no accuracy."""
    return setwise.annotators(setwise.Votes.from_table(frame, item="task", annotator="worker")).consensus


def vote_frames() -> dict[str, tuple[pd.DataFrame, int]]:
    """Tables of votes, and how many turns each is worth."""
    frames, folder = {}, Path(os.environ.get("SETWISE_DATA", "../shared/data")) / "crowd"
    for name in ("dog", "duck"):
        if (file := folder / f"{name}-answers.csv").exists():
            frames[name] = pd.read_csv(file).rename(columns={"question": "task", "answer": "label"}), 9
    _, row, who, label = simulated(100_000, 30_000)
    frames["simulated, 100 classes"] = pd.DataFrame({"task": row, "worker": who, "label": label}), 1
    return frames


def aggregation_rows() -> list[dict[str, Any]]:
    """Seconds of crowd-kit's Dawid and Skene, of the annotator model and of `annotators`, on the same tables."""
    rows, sides = [], {"crowd-kit": crowd_kit, "model": annotator_model, "annotators": everything}
    for name, (frame, turns) in vote_frames().items():
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(turns):
            for side, work in sides.items():
                seconds[side].append(best(lambda work=work, frame=frame: work(frame), 1))
        people, items = (int(frame[column].nunique()) for column in ("worker", "task"))
        row = {"work": f"{name}: {len(frame):,} votes by {people:,} on {items:,}"}
        rows.append(row | {side: float(np.median(values)) for side, values in seconds.items()})
    return rows


def import_ratio(repeats: int) -> dict[str, float]:
    """Seconds of `import setwise` and of `import sklearn.base`, each in a fresh process."""
    code = {"setwise": "import setwise", "sklearn.base": "import sklearn.base"}
    return {
        name: best(lambda line=line: subprocess.run([sys.executable, "-c", line], check=True), repeats)
        for name, line in code.items()
    }


def machine() -> dict[str, str]:
    packages = ("setwise", "numpy", "scikit-learn", "mapie", "crepes", "puncc", "torchcp", "torch", "crowd-kit")
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": cpu,
        "python": platform.python_version(),
        **versions,
    }


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--classes", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--dry-run", action="store_true", help="print only, keep no results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"machine": machine(), "n": options.rows, "sets": [], "p_values": []}
    results["candidates"] = candidate_rows(50 * options.rows, 100, options.repeats)
    for k in options.classes:
        results["sets"] += sets_table(options.rows, k, options.repeats)
    results["imports"] = import_ratio(options.repeats)
    results["p_values"] = [p_value_row(options.rows, 100, 500)]
    results["aggregation"] = aggregation_rows()
    text = json.dumps(results, indent=1)
    print(text)
    if not options.dry_run:
        (ROOT / "benchmarks" / "results" / "peers.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
