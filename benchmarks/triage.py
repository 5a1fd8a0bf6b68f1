"""Accept or review on real votes: how many labels may be accepted, and how many of them are wrong.

    python benchmarks/triage.py --data DIR --keep

DIR holds cifar10n.npz (P, votes, y), which is not in the repository. In each draw 5,000 rows that nobody checked are
decided, beside 100 or 500 rows verified at random; the error that is allowed is 5 % or 2 %. Label and confidence come
from votes and model (the posterior of the annotator model), from votes alone, or from the model alone. Given are the
mean share accepted, the mean error among the accepted (zero where nothing is), how often it exceeds the error allowed,
and the mean of the 95 % bound printed beside. `accepted` keeps it in 19 of 20 draws, `overall` that of all rows,
and `average` on average.
`--keep` writes benchmarks/results/triage.json.

New rows with votes: sets at level 0.90 with 50 or 200 checks among 3,000 calibration rows, of 5,000 new rows that bring
their votes (`predict_set(P, candidates=votes)`), beside sets from P alone (`auto`) and from the posterior with true
labels of all calibration rows (the oracle).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from summary import machine, show

from setwise import MisuseWarning, Votes, conformalize, triage
from setwise.crowd.annotator_model import fit_annotators

RESULTS = Path(__file__).resolve().parent / "results" / "triage.json"
DECIDED, CHECKS, ERRORS, MODES = 5_000, (100, 500), (0.05, 0.02), ("overall", "accepted", "average")
LEVEL, CALIBRATION, NEW = 0.9, 3_000, 5_000


def read(data):
    """Probabilities, anonymous votes, and the truth."""
    held = np.load(data / "cifar10n.npz")
    answers, y = held["votes"].astype(int), held["y"].astype(int)
    place = np.arange(answers.size)
    votes = Votes.of(len(y), place // answers.shape[1], answers.ravel(), classes=range(10))
    return held["P"].astype(float), votes, y


def checked(y, m):
    verified = np.full(len(y), None)
    verified[:m] = y[:m]
    return verified


def measured(found, truth):
    """Share accepted, error among the accepted, and the bound that is printed beside it."""
    wrong = (found.labels != truth[found.rows])[found.accepted]
    bound = 1 - found.guarantee.claims[-1].probability if len(wrong) else np.nan
    return found.accepted.mean(), wrong.mean() if len(wrong) else 0.0, bound


def decisions(P, votes, y, draws):
    for m in CHECKS:
        found = {}
        for draw in range(draws):
            rows = np.random.default_rng(draw).permutation(len(y))[: DECIDED + m]
            p, v, truth, verified = P[rows], votes[rows], y[rows], checked(y[rows], m)
            both = conformalize(p, v, "max", verified=verified, random_state=draw)
            model = conformalize(p, np.ones(p.shape, dtype=bool), "max", verified=verified, random_state=draw)
            for error in ERRORS:
                for mode in MODES:
                    made = {
                        "votes and model": both.triage(max_error=error, mode=mode),
                        "votes": triage(v, verified, max_error=error, mode=mode, random_state=draw),
                        "model": model.triage(max_error=error, mode=mode),
                    }
                    for source, result in made.items():
                        found.setdefault((error, mode, source), []).append(measured(result, truth))
        for (error, mode, source), values in found.items():
            share, wrong, bound = np.array(values).T
            yield {
                "checks": m,
                "max_error": error,
                "mode": mode,
                "confidence": source,
                "draws": draws,
                "accepted": round(float(share.mean()), 4),
                "accepted_sd": round(float(share.std(ddof=1)), 4),
                "error": round(float(wrong.mean()), 4),
                "error_exceeds": round(float((wrong > error).mean()), 3),
                "bound_95": round(float(np.nanmean(bound)), 4) if (~np.isnan(bound)).any() else None,
            }


def new_rows_with_votes(P, votes, y, draws):
    for m in (50, 200):
        found = {}
        for draw in range(draws):
            rows = np.random.default_rng(draw).permutation(len(y))
            c, t = rows[:CALIBRATION], rows[CALIBRATION : CALIBRATION + NEW]
            made = conformalize(P[c], votes[c], verified=checked(y[c], m))
            people = fit_annotators(votes[c], P[c]).parameters
            oracle = conformalize(people.posterior(votes[c], P[c]), y[c])
            sets = {
                "votes of new rows": made.predict_set(P[t], LEVEL, candidates=votes[t]),
                "model alone": made.predict_set(P[t], LEVEL),
                "oracle with votes": oracle.predict_set(people.posterior(votes[t], P[t]), LEVEL),
            }
            for name, predicted in sets.items():
                found.setdefault(name, []).append((predicted.contains(y[t]).mean(), predicted.sizes.mean()))
        for name, values in found.items():
            (coverage, size), spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
            yield {
                "checks": m,
                "sets": name,
                "draws": draws,
                "coverage": round(float(coverage), 4),
                "coverage_sd": round(float(spread[0]), 4),
                "size": round(float(size), 3),
                "size_sd": round(float(spread[1]), 3),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", MisuseWarning)  # of one sample of checks in a hundred, that it looks chosen
    given = read(arguments.data)
    result = {"machine": machine(), "decisions": [], "new_rows_with_votes": []}
    for name, measure in {"decisions": decisions, "new_rows_with_votes": new_rows_with_votes}.items():
        for line in measure(*given, arguments.draws):
            print(line, file=sys.stderr, flush=True)
            result[name].append(line)
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
