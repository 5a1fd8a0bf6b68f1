"""Earlier versions beside the present one: calibration of 20,000 × 100 probabilities, and `fit` from 2,000 rows of votes.

    git worktree add /tmp/v0.1 988549b; git worktree add /tmp/v0.2 6b58658
    python benchmarks/earlier.py 0.1=/tmp/v0.1 0.2=/tmp/v0.2

Every version is a process of its own that works when it is asked to. They take turns, so that what the machine does
meanwhile touches all of them alike; the medians of the rounds are kept in `benchmarks/results/earlier.json`. The part
of the annotator model is its share of the calls of one profiled `fit`, times the median of `fit`.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "benchmarks" / "results" / "earlier.json"
ANNOTATORS = ("annotator_model.py", "dependence.py")
"""The modules that fit the annotator model and examine it, in whatever package they lie."""


def works():
    """What is timed, by name."""
    from sklearn.linear_model import LogisticRegression

    import setwise

    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(100, 0.1), 20_000)
    y = (P.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1).clip(0, 99)
    S = rng.random(P.shape) < 0.02
    S[np.arange(len(y)), y] = True
    truth = rng.integers(0, 5, 2_000)
    X = rng.normal(size=(2_000, 8)) + np.eye(5, 8)[truth]
    answers = np.where(rng.random((2_000, 5)) < 0.8, truth[:, None], rng.integers(0, 5, (2_000, 5)))
    verified = np.full(2_000, None)
    verified[:200] = truth[:200]

    def fit(**options):
        votes = setwise.Votes.from_matrix(answers, classes=range(5))
        model = setwise.ConformalClassifier(LogisticRegression(), random_state=0)
        return model.fit(X, votes, **options)

    calibrations = {
        "conformalize, exact labels": lambda: setwise.conformalize(P, y),
        "conformalize, candidate sets (max)": lambda: setwise.conformalize(P, S, "max"),
    }
    if not hasattr(setwise, "Votes"):
        return calibrations
    return calibrations | {
        "fit from votes": fit,
        "fit from votes and verified rows": lambda: fit(verified=verified),
    }


def share_of_annotators(work) -> float:
    """The share of a call's time that is spent below the annotator model."""
    profile = cProfile.Profile()
    profile.runcall(work)
    stats = pstats.Stats(profile)
    inside = {place for place in stats.stats if Path(place[0]).name in ANNOTATORS}
    entered = sum(
        times[3] for place in inside for caller, times in stats.stats[place][4].items() if caller not in inside
    )
    return entered / stats.total_tt


def serve() -> None:
    """Does what the lines of standard input name, and answers with seconds or a share."""
    warnings.simplefilter("ignore")
    known = works()
    for work in known.values():
        work()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        kind, _, name = line.strip().partition(" ")
        if kind == "share":
            print(share_of_annotators(known[name]), flush=True)
            continue
        start = time.perf_counter()
        known[name]()
        print(time.perf_counter() - start, flush=True)


class Version:
    """A process with one version of the package."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )
        self.names = json.loads(self.process.stdout.readline())

    def ask(self, kind: str, name: str) -> float:
        self.process.stdin.write(f"{kind} {name}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("versions", nargs="*", help="NAME=FOLDER of an earlier version")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    folders = {name: Path(folder) for name, _, folder in (text.partition("=") for text in given.versions)}
    versions = {name: Version(folder) for name, folder in {**folders, "now": ROOT}.items()}
    found = {}
    for name in versions["now"].names:
        rounds = given.rounds if name.startswith("conformalize") else max(given.rounds // 5, 1)
        times = {version: [] for version, process in versions.items() if name in process.names}
        for _ in range(rounds):
            for version, each in times.items():
                each.append(versions[version].ask("time", name))
        found[name] = {version: {"seconds": float(np.median(each))} for version, each in times.items()}
        if name.startswith("fit"):
            for version in times:
                process = versions[version]
                part = process.ask("share", name) * found[name][version]["seconds"]
                found[name][version]["annotator_model"] = part
        for version, values in found[name].items():
            print(f"{name:40}{version:>6}  " + "  ".join(f"{key} {value:.4f}" for key, value in values.items()))
    from summary import machine  # imports the package, which the processes above choose for themselves

    OUT.write_text(json.dumps({"machine": machine(), "results": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
