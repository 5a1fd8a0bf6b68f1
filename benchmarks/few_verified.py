"""Few verified rows: what `auto` guarantees and gives, compared with other rules.

    python benchmarks/few_verified.py --keep

10 classes, 2,000 calibration rows of which m are verified, score LAC, level 0.90; the model's probabilities are right.
Candidates: "uniform", the truth and every other label with probability 0.3; "confusing", the same with 0.2 and in
four of five rows the model's top label besides; "top", the truth and the model's top label. Coverage and size are those of the threshold, on 400,000 new rows.

Synthetic-powered inference takes for synthetic scores those of one label per unverified row, drawn from the model's
probabilities among its candidates. SPI (Bashari, Maor Lotan, Lee, Dobriban and Romano, 2025, arXiv 2505.13432) clips
the quantile of the synthetic scores between two order statistics of the verified ones, given by windows of their
ranks at a parameter β; whatever the synthetic scores are, it covers with the share of ranks below the lower one. It is
run at the smallest level where that share is 0.90. GESPI (the same authors, 2025, arXiv 2509.20345) is the union of
the set of the verified rows at 0.90 with what their set at 0.90 + e and that of all scores pooled have in common.
`--keep` writes benchmarks/results/few_verified.json.
"""

from __future__ import annotations

import argparse
import functools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.special import gammaln
from summary import machine, show

from setwise import conformalize
from setwise.strategies import Rectified

RESULTS = Path(__file__).resolve().parent / "results" / "few_verified.json"
K, N, LEVEL = 10, 2_000, Fraction(9, 10)
BETAS, EXTRA = (0.1, 0.4, 0.8), (Fraction(1, 50), Fraction(1, 20))


def rows(rng, n, sharpness=2.0):
    logits = sharpness * rng.normal(size=(n, K))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p, np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), K - 1)


def candidates(rng, p, y, kind, share=0.3):
    shown = {"uniform": 0.0, "confusing": 0.8, "top": 1.0}[kind]  # how often the model's top label is a candidate
    mask = (np.arange(K) == y[:, None]) | (rng.random(p.shape) < (0.2 if kind == "confusing" else share))
    return mask | (np.arange(K) == p.argmax(axis=1)[:, None]) & (rng.random((len(p), 1)) < shown)


def smallest(scores, position):
    """The position-th smallest of scores in order."""
    return scores[position - 1] if position <= len(scores) else math.inf


def rank(n, level):
    return math.ceil((n + 1) * level)


@functools.cache
def windows(m, n, beta):
    """Between which ranks among n synthetic scores the r-th of m + 1 others falls, but for a probability of β."""

    def choose(a, b):
        return gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1)

    below, bounds = np.arange(n + 1), []
    for r in range(1, m + 2):
        law = choose(below + r - 1, r - 1) + choose(n - below + m + 1 - r, m + 1 - r) - choose(n + m + 1, m + 1)
        bounds.append(np.searchsorted(np.cumsum(np.exp(law)), [beta / 2, 1 - beta / 2]) + 1)
    return np.array(bounds).T


def spi(truth, synthetic, beta):
    """SPI at the smallest level where it covers with 0.90 whatever the synthetic scores are."""
    m, n = len(truth), len(synthetic)
    low, high = windows(m, n, beta)
    k = int(np.sort(high)[rank(m, LEVEL) - 1])
    floor, ceiling = smallest(truth, int((high <= k).sum())), smallest(truth, int((low <= k).sum()))
    return max(floor, min(smallest(synthetic, k + 1), ceiling))


def gespi(truth, synthetic, extra):
    pooled = np.sort(np.concatenate([truth, synthetic]))
    wide = smallest(truth, rank(len(truth), LEVEL + extra))
    together = smallest(pooled, rank(len(pooled), LEVEL + extra))
    return max(smallest(truth, rank(len(truth), LEVEL)), min(wide, together))


def thresholds(rng, kind, m):
    """The stored thresholds of one calibration sample, by rule."""
    p, y = rows(rng, N)
    mask = candidates(rng, p, y, kind)
    verified = np.full(N, np.nan)
    verified[:m] = y[:m]
    truth = np.sort(-p[np.arange(m), y[:m]])
    inside = np.where(mask, p, 0)
    inside /= inside.sum(axis=1, keepdims=True)
    drawn = np.minimum((inside.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1), K - 1)
    synthetic = np.sort(-p[np.arange(N), drawn][m:])
    auto = conformalize(p, mask, verified=verified)
    promised = auto.guarantee(0.9).promised  # withheld where the verified rows look chosen, in one of 100 draws
    assert promised == 0.9 or auto.setting.chosen
    found = {
        "verified rows alone": smallest(truth, rank(m, LEVEL)),
        "rectified": conformalize(p, mask, "rectified", verified=verified).threshold(0.9) - 1,
        "auto": auto.threshold(0.9) - 1,
        "max": conformalize(p, mask, "max").threshold(0.9) - 1,
    }
    found |= {f"SPI, β = {beta}": spi(truth, synthetic, beta) for beta in BETAS}
    found |= {f"GESPI, e = {float(extra)}": gespi(truth, synthetic, extra) for extra in EXTRA}
    tolerance = conformalize(p, mask, Rectified("finite"), verified=verified)
    found["rectified, finite margin"] = tolerance.rules[0].threshold(LEVEL)
    return found


def measured(kind, m, runs, truth):
    """One row for each rule: mean and spread of coverage over calibration samples, and mean size."""
    own, every = truth
    rng, found = np.random.default_rng([m, kind == "uniform"]), {}
    for _ in range(runs):
        for name, threshold in thresholds(rng, kind, m).items():
            coverage = np.searchsorted(own, threshold, side="right") / len(own)
            found.setdefault(name, []).append(
                (coverage, np.searchsorted(every, threshold, side="right") / len(own))
            )
    (_, alone_size), alone_sd = (
        np.mean(found["verified rows alone"], axis=0),
        np.std(found["verified rows alone"], axis=0)[0],
    )
    for name, pairs in found.items():
        coverage, size = np.array(pairs).T
        yield {
            "case": kind,
            "verified": m,
            "rule": name,
            "runs": runs,
            "coverage": round(float(coverage.mean()), 4),
            "coverage_se": round(float(coverage.std(ddof=1) / math.sqrt(runs)), 4),
            "coverage_sd": round(float(coverage.std(ddof=1)), 4),
            "at_least_level": round(float((coverage >= LEVEL).mean()), 3),
            "size": round(float(size.mean()), 3),
            "size_over_alone": round(float(size.mean() / alone_size), 3),
            "sd_over_alone": round(float(coverage.std() / alone_sd), 3),
        }


def high_level(runs):
    """Level 0.99 with 50 verified rows, where these do not suffice: `auto` beside `max`."""
    for kind, share, sharpness in (
        ("uniform", 0.3, 2.0),
        ("uniform", 0.1, 4.0),
        ("confusing", 0.2, 2.0),
        ("top", 0.0, 4.0),
    ):
        rng, sizes = np.random.default_rng(99), []
        for _ in range(runs):
            p, y = rows(rng, 2 * N, sharpness)
            mask, verified = candidates(rng, p, y, kind, share), np.full(N, np.nan)
            verified[:50] = y[:50]
            auto = conformalize(p[:N], mask[:N], verified=verified)
            plain = conformalize(p[:N], mask[:N], "max")
            assert auto.guarantee(0.99).promised == 0.99 or auto.setting.chosen
            sizes.append([each.predict_set(p[N:], 0.99).sizes.mean() for each in (auto, plain)])
        auto, plain = np.array(sizes).T
        yield {
            "case": f"{kind} {share}, sharpness {sharpness:g}",
            "runs": runs,
            "auto": round(float(auto.mean()), 3),
            "max": round(float(plain.mean()), 3),
            "larger_in": int((auto > plain).sum()),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    p, y = rows(np.random.default_rng(0), 400_000)
    truth = np.sort(-p[np.arange(len(y)), y]), np.sort(-p, axis=None)
    found = [
        row
        for kind in ("uniform", "confusing")
        for m in (20, 50, 200)
        for row in measured(kind, m, arguments.runs, truth)
    ]
    result = {
        "machine": machine(),
        "level": float(LEVEL),
        "rows": found,
        "level_0.99_50_verified": list(high_level(min(arguments.runs, 200))),
    }
    show(result, RESULTS if arguments.keep else None)


if __name__ == "__main__":
    main()
