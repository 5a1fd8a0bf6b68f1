"""What is measured of one trained cell: every strategy of the paper and the oracle, and how far premises hold.

Rows are scored once; a threshold then tells everything by comparison. With s the stored score −f, T = {s ≤ q}:
the truth is covered where s(x, y) ≤ q, all candidates are where their largest score is, one of them where
their smallest is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from setwise._arrays import Floats, Ints
from setwise.conformal.calibration import Calibration
from setwise.conformal.conformalize import conformalize
from setwise.evidence.evidence import gather
from setwise.labels.label_sets import LabelSets
from setwise.probabilities.dense import DenseRows
from setwise.ranks import as_level, rank
from setwise.scores import as_score
from setwise.strategies import Mixture, Strategy, as_strategy
from setwise.strategies.rank_strategies import epsilon_bound, size_certificate

STRATEGIES: Mapping[str, str | Strategy] = {
    "max": "max",
    "all": "all",
    "mean": "mean",
    "min": "min",
    "mu=0.3": Mixture(mu=0.3),
    "mu=0.5": Mixture(mu=0.5),
    "mu=0.7": Mixture(mu=0.7),
}
"""The paper's, by its names."""
ORACLE = "oracle"
"""Calibrated with the true labels: what precise data would give."""
LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99)
MUS = tuple(round(0.1 * step, 1) for step in range(11))


@dataclass(frozen=True, eq=False)
class Rows:
    """Logits (n, K), candidates and truth of calibration or test rows."""

    logits: Floats
    candidates: LabelSets
    y: Ints

    def probabilities(self, precision: type[np.floating[Any]] = np.float64) -> Floats:
        """In this precision throughout."""
        found: Floats = softmax(self.logits.astype(precision), axis=1)
        return found


def measure(calibration: Rows, test: Rows, epsilon: float) -> dict[str, Any]:
    """All that is reported of a cell beside the accuracies of its model."""
    level = as_level(round(1 - epsilon, 12))
    P, new = calibration.probabilities(), test.probabilities()
    every = conformalize(P, calibration.candidates, "all", verified=calibration.y)
    truth = LabelSets.from_labels(calibration.y, classes=range(P.shape[1]))
    by_name = {name: replace(every, strategy=as_strategy(how)) for name, how in STRATEGIES.items()}
    by_name[ORACLE] = conformalize(P, truth, "max")
    seen = _Seen(new, test.candidates, test.y)
    return {
        "n_calibration": len(P),
        "n_test": len(new),
        "strategies": {name: seen.at(cal, level) for name, cal in by_name.items()},
        "by_level": {name: seen.curve(cal, LEVELS) for name, cal in by_name.items()},
        "by_mu": seen.mixtures(every, level),
        "premises": premises(by_name, level),
        "float32": {name: single_precision(calibration, test, name, level) for name in ("max", "all")},
    }


class _Seen:
    """The scores of test rows, ordered once for all thresholds."""

    def __init__(self, probabilities: Floats, candidates: LabelSets, y: Ints) -> None:
        score = as_score("lac")
        self.scores = score.score(probabilities)
        evidence = gather(score, DenseRows(probabilities), candidates)
        truth = self.scores[np.arange(len(y)), y]
        self.low, self.high, self.truth = (np.sort(part) for part in (evidence.low, evidence.high, truth))
        self.ordered = np.sort(self.scores, axis=None)
        self.n = len(self.scores)

    def at(self, cal: Calibration, level: Any) -> dict[str, Any]:
        """Everything at one level."""
        q = float(_rule(cal).threshold(level))
        sizes = (self.scores <= q).sum(axis=1)
        return {
            "efficiency": float(sizes.mean()),
            "coverage": _share(self.truth, q),
            "all_candidates": _share(self.high, q),
            "any_candidate": _share(self.low, q),
            "threshold": q + cal.conformity_score.offset,
            "least_probability": max(-q, 0.0),  # q printed as 1 − f hides it where f is tiny
            "bracket": list(cal.bracket(level)),
            "sizes": np.bincount(sizes, minlength=self.scores.shape[1] + 1).tolist(),
        }

    def curve(self, cal: Calibration, levels: tuple[float, ...]) -> dict[str, list[float]]:
        """Coverage and mean size at each level."""
        return self._pairs([float(_rule(cal).threshold(as_level(level))) for level in levels])

    def mixtures(self, every: Calibration, level: Any) -> dict[str, list[float]]:
        """Coverage and mean size at each μ."""
        mixed = [replace(every, strategy=Mixture(mu=mu)) for mu in MUS]
        return self._pairs([float(_rule(cal).threshold(level)) for cal in mixed])

    def _pairs(self, thresholds: list[float]) -> dict[str, list[float]]:
        covered, sizes = (
            np.searchsorted(self.truth, thresholds, "right"),
            np.searchsorted(self.ordered, thresholds, "right"),
        )
        return {"coverage": (covered / self.n).round(6).tolist(), "size": (sizes / self.n).round(6).tolist()}


def premises(by_name: Mapping[str, Calibration], level: Any) -> dict[str, Any]:
    """How far the premises of the paper's theorems hold on the calibration rows, since truth is known here."""
    evidence = by_name["all"].evidence
    truth, sizes = evidence.truth, evidence.sizes
    assert truth is not None  # noqa: S101 - every row was verified
    certificate = size_certificate(_rule(by_name["all"]), level)
    limit = epsilon_bound(evidence.n, by_name["all"].setting.n_classes)
    q = float(by_name[ORACLE].threshold(level))
    rho = {
        name: float((truth > _rule(cal).scores).mean())
        for name, cal in by_name.items()
        if name not in {"all", ORACLE}
    }
    return {
        "rho": rho,
        "below_mean": rho["mean"],
        "below_one_over_size": float((-truth < 1 / sizes).mean()),
        "q_of_truth": q,
        "q_of_truth_at_most_half": q <= 0.5,
        "size_certificate": certificate.status == "shown by the data",
        "size_certificate_detail": certificate.detail,
        "epsilon_within_bound": 1 - level <= limit,
        "singletons": float((sizes == 1).mean()),
    }


def single_precision(calibration: Rows, test: Rows, strategy: str, level: Any) -> dict[str, Any]:
    """`max` or `all` as the public code computes them: 1 − f in single precision, compared as f ≥ 1 − q.

    Where f is below 6e-8 the difference is exactly 1; if the quantile is such a one, every label is admitted.
    """
    one = np.float32(1)
    strange = one - calibration.probabilities(np.float32)
    mask = calibration.candidates.to_mask()
    scores = np.where(mask, strange, -one).max(axis=1) if strategy == "max" else strange[mask]
    position = min(rank(len(scores), level), len(scores))
    q = np.partition(scores, position - 1)[position - 1]
    sets = test.probabilities(np.float32) >= one - q
    return {
        "efficiency": float(sets.sum(axis=1).mean()),
        "coverage": float(sets[np.arange(len(sets)), test.y].mean()),
        "threshold": float(q),
        "share_exactly_one": float((scores == one).mean()),
        "admits_everything": bool(q == one),
    }


def describe_sets(candidates: LabelSets) -> dict[str, Any]:
    """What Table 1 says of candidate sets, and a little more."""
    return {
        "n": len(candidates),
        "classes": candidates.n_classes,
        "average_size": float(candidates.sizes.mean()),
        "singletons": float((candidates.sizes == 1).mean()),
    }


def _rule(cal: Calibration) -> Any:
    """The one rule of a calibration without categories; those of the paper's strategies are ranks of scores."""
    return cal.rules[0]


def _share(ordered: Floats, q: float) -> float:
    return 1.0 if math.isinf(q) else float(np.searchsorted(ordered, q, "right") / len(ordered))
