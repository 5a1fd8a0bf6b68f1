"""How often the intervals of `estimate` hold on real panels, and how wide they are beside verified rows alone.

    python benchmarks/estimates.py --data DIR [--draws 2000] [--designs 8000] [--keep]

DIR holds panels/llmjudge.csv, panels/media-bias-*.csv, crowd/dog-*.csv, crowd/duck-*.csv and crowd/cifar10n.npz (not in
the repository). A cell is a figure of a set: the share of a class, the accuracy of an annotator or of the consensus, with
m rows verified at random without replacement. `holds` is the share of draws whose interval contains the figure of all
rows, `width` the mean width over that of Clopper–Pearson on the verified rows alone. A cell may fall below .95 by three
standard errors. Fast counts stand in for `estimate`, to which the first draw of each set is compared. Then the exact
coverage, over all outcomes of a draw, of designs with all kinds of proxies. glide-py (power-tuned prediction-powered
inference) has the same proxies in fewer draws, where it is installed (Python 3.12); `refused` is how often it has no interval. `--keep` writes
benchmarks/results/estimates.json.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from ambiguous import data_sets
from scipy import sparse
from scipy.stats import hypergeom
from summary import machine, show

from setwise import MisuseWarning, estimate
from setwise.crowd.consensus import weigh_votes
from setwise.crowd.rectified_shares import rectify, single_answers
from setwise.ranks import binomial_bounds

RESULTS = Path(__file__).resolve().parent / "results" / "estimates.json"
PANELS = ("llmjudge", "media-bias-zero-shot", "media-bias-cot", "dog", "duck", "cifar10n")
SIZES, LEVEL, RIVAL_DRAWS = (50, 100, 200, 500), 0.95, 200
SHARES, JUDGES, ELSEWHERE = 0.85, 0.96, 1.02  # the widest that media bias and other sets may have from m = 200 on


class World:
    """The figures of a set: for each, which rows it is about, which are hits, and the proxy of each."""

    def __init__(self, votes, y):
        support = weigh_votes(votes)
        row, who, label = single_answers(votes)
        consensus, n, k = support.argmax(axis=1), len(votes), votes.n_classes
        every, most = np.arange(n), support.max(axis=1)
        parts = [(every, np.full(n, c), y == c, consensus == c) for c in range(k)]
        parts.append((every, np.full(n, k), consensus == y, most >= np.median(most)))
        parts.append((row, who + k + 1, label == y[row], consensus[row] == label))
        self.row, unit, self.hit, self.proxy = (np.concatenate(column) for column in zip(*parts, strict=True))
        self.names = [f"share of {c}" for c in votes.classes.tolist()] + ["accuracy of consensus"]
        self.names += [f"accuracy of {name}" for name in votes.annotators.tolist()]
        self.unit, width, self.n = unit, 2 * len(self.names), n
        cell = 2 * unit + self.proxy
        table = [
            sparse.csr_array((part.astype(float), (self.row, cell)), (n, width)) for part in (self.hit, cell >= 0)
        ]
        self.hits, self.rows = table
        self.size = np.bincount(cell, minlength=width).reshape(-1, 2)
        self.true = np.bincount(unit, self.hit) / self.size.sum(axis=1)

    def draws(self, m, count):
        """Counts of hits and verified rows in each draw, and the verified rows."""
        chosen = np.stack([np.random.default_rng(draw).permutation(self.n)[:m] for draw in range(count)])
        pick = sparse.csr_array(
            (np.ones(chosen.size), chosen.ravel(), np.arange(0, chosen.size + 1, m)), (count, self.n)
        )
        x, of = ((pick @ table).toarray().astype(np.intp).reshape(count, -1, 2) for table in (self.hits, self.rows))
        return x, of, chosen

    def measure(self, m, count):
        x, of, _ = self.draws(m, count)
        found = rectify(x, of, np.broadcast_to(self.size, x.shape))
        holds = ((found.lower - 1e-9 <= self.true) & (self.true <= found.upper + 1e-9)).mean(axis=0)
        alone = np.subtract(*reversed(binomial_bounds(x.sum(axis=-1), of.sum(axis=-1), 1 - LEVEL))).mean(axis=0)
        return holds, (found.upper - found.lower).mean(axis=0) / alone

    def compare(self, votes, y, m):
        """The first draw by `estimate` itself."""
        x, of, chosen = self.draws(m, 1)
        verified = np.full(self.n, None)
        verified[chosen[0]] = votes.classes[y[chosen[0]]]
        frame = estimate(votes, verified).to_frame()
        frame = frame[frame["what"].isin(["share", "accuracy"])]
        found = rectify(x, of, self.size[None])
        np.testing.assert_allclose(frame[["value", "lower", "upper"]], np.stack(found[:3], axis=-1)[0], atol=1e-12)

    def rival(self, m, count):
        """The same by glide: how often its interval holds, and its width, for figures about all rows."""
        from glide.estimators import PPIMeanEstimator

        whole = np.flatnonzero((self.size.sum(axis=1) == self.n) & (self.size > 0).all(axis=1))
        _, _, chosen = self.draws(m, count)
        held, width, refused = [], [], 0
        for unit in whole.tolist():
            mine_held = []
            mine = self.unit == unit
            hit, proxy = (np.zeros(self.n) for _ in range(2))
            hit[self.row[mine]], proxy[self.row[mine]] = self.hit[mine], self.proxy[mine]
            for draw in range(count):
                truth = np.full(self.n, np.nan)
                truth[chosen[draw]] = hit[chosen[draw]]
                try:
                    made = PPIMeanEstimator().estimate(truth, proxy).confidence_interval
                except ValueError:  # it has no interval where all verified rows are hits, or none is
                    refused += 1
                    continue
                mine_held.append(made.lower_bound <= self.true[unit] <= made.upper_bound)
                width.append(made.upper_bound - made.lower_bound)
            held.append(np.mean(mine_held) if mine_held else np.nan)
        return {
            "cells": len(whole),
            "draws": count,
            "holds_least": round(float(np.nanmin(held)), 4),
            "holds_mean": round(float(np.nanmean(held)), 4),
            "refused": round(refused / count / len(whole), 4),
            "width": round(float(np.mean(width)), 4),
        }


def exact_coverage(rows, hits, m):
    """The probability that the interval holds, over all ways to draw m rows of two strata."""
    rows, hits, held, mass = np.array(rows), np.array(hits), 0.0, 0.0
    share = hits.sum() / rows.sum()
    for inside in range(max(0, m - rows[0]), min(m, rows[1]) + 1):
        drawn = np.array([m - inside, inside])
        if (chance := hypergeom.pmf(inside, rows.sum(), rows[1], m)) < 1e-6:
            continue
        laws = [
            hypergeom.pmf(np.arange(count + 1), *of) for count, *of in zip(drawn, rows, hits, drawn, strict=True)
        ]
        likely = [np.flatnonzero(law > 1e-8) for law in laws]
        x = np.stack(np.meshgrid(*likely, indexing="ij"), axis=-1)
        law = np.multiply.outer(*(one[places] for one, places in zip(laws, likely, strict=True)))
        found = rectify(x, np.broadcast_to(drawn, x.shape), np.broadcast_to(rows, x.shape))
        held += chance * law[(found.lower - 1e-9 <= share) & (share <= found.upper + 1e-9)].sum()
        mass += chance * law.sum()
    return held / mass


def scan(designs):
    """The least exact coverage among designs: rare and common hits, useless, good and perverse proxies."""
    rng, found = np.random.default_rng(0), []
    while len(found) < designs:
        m = int(np.exp(rng.uniform(np.log(30), np.log(300))))
        n = int(np.exp(rng.uniform(np.log(1.05 * m), np.log(20_000))))
        one = max(1, round(n * rng.uniform(0.005, 0.5)))
        p = np.exp(rng.uniform(np.log(0.0005), np.log(0.5), 2))
        p = np.where(rng.random(2) < 0.3, 1 - p, p)
        kind = rng.random()
        p[1] = p[0] if kind < 0.3 else 1 - p[0] if kind < 0.5 else p[1]
        rows = (n - one, one)
        hits = tuple(round(size * share) for size, share in zip(rows, p, strict=True))
        found.append((exact_coverage(rows, hits, m), rows, hits, m))
    least = min(found)
    worst = {"rows": least[1], "hits": least[2], "verified": least[3]}
    return {"designs": designs, "least": round(float(least[0]), 4), "worst": worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--designs", type=int, default=8000)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", MisuseWarning)  # one draw in a hundred looks chosen
    try:
        import glide

        print(f"glide-py {glide.__version__} stands beside", file=sys.stderr)
    except ImportError:
        print("NO glide-py HERE: the rival is left out (pip install glide-py, Python 3.12)", file=sys.stderr)
        glide = None
    floor = LEVEL - 3 * (LEVEL * (1 - LEVEL) / arguments.draws) ** 0.5
    cells, below, wide = [], [], []
    for name in PANELS:
        panel = data_sets.load(name, arguments.data)
        votes, y = panel.votes, panel.y
        begun = time.perf_counter()
        world = World(votes, y)
        world.compare(votes, y, min(200, world.n // 2))
        for m in (size for size in SIZES if size < world.n):
            holds, width = world.measure(m, arguments.draws)
            share = np.array([one.startswith("share") for one in world.names])
            some = {"set": name, "verified": m}
            for kind, places in (("shares", share), ("accuracies", ~share)):
                limit = (SHARES if kind == "shares" else JUDGES) if name.startswith("media-bias") else ELSEWHERE
                ratio = float(width[places].mean())
                cells.append(some | {"figures": kind, "cells": int(places.sum()), "holds_least": round(float(holds[places].min()), 4),
                                     "holds_mean": round(float(holds[places].mean()), 4), "width": round(ratio, 4),
                                     "width_most": round(float(width[places].max()), 4)})  # fmt: skip
                wide += [
                    some | {"figure": world.names[one], "width": round(float(width[one]), 4), "limit": limit}
                    for one in np.flatnonzero(places & (width > limit) & (m >= 200))
                ]
            below += [
                some | {"figure": world.names[one], "holds": round(float(holds[one]), 4)}
                for one in np.flatnonzero(holds < floor)
            ]
            if glide is not None:
                cells[-1]["glide"] = world.rival(m, min(RIVAL_DRAWS, arguments.draws))
        print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    result = {
        "machine": machine(*(["glide-py"] if glide is not None else [])),
        "draws": arguments.draws,
        "floor": round(floor, 4),
        "cells": cells,
        "below": below,
        "too_wide": wide,
        "exact": scan(arguments.designs),
    }
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
