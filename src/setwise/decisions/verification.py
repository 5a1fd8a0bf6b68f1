"""`suggest_verification`: which rows to have checked, and what that would be worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from setwise._arrays import Floats, Ints, frozen
from setwise.evidence.evidence import gather
from setwise.evidence.row_facts import present_rows
from setwise.labels.coerce import as_candidates
from setwise.probabilities import as_probabilities
from setwise.ranks import as_level, instances_needed
from setwise.scores import LAC
from setwise.strategies import Max, Setting
from setwise.strategies.curves import Curve
from setwise.strategies.posterior import padded, posterior_steps


@dataclass(frozen=True, eq=False)
class Suggestion:
    """Rows to verify, and the size of set to expect.

    Attributes
    ----------
    rows
        Positions of the rows to have checked, in order.
    probability
        With which probability each row was to be chosen; pass it on as ``verified_probability``.
    size_now, size_then
        The mean size of `max`'s sets on these rows, and of `rectified`'s if the model's probabilities are right.
    """

    rows: Ints
    probability: Floats
    size_now: float
    size_then: float
    confidence_level: float

    def __str__(self) -> str:
        return (
            f"Verify these {len(self.rows):,} rows and pass the labels as verified=… (and the chances as "
            f"verified_probability=…): at confidence {self.confidence_level:g} sets would shrink from "
            f"{self.size_now:.2f} to about {self.size_then:.2f} labels, if the model is about right."
        )


def suggest_verification(
    model: Any,
    X: Any,
    candidates: Any,
    budget: int,
    *,
    prefer: Literal["none", "uncertain"] = "none",
    confidence_level: float = 0.9,
    random_state: Any = None,
) -> Suggestion:
    """Draws rows to verify, and says what size of set the user would gain.

    Parameters
    ----------
    model
        Anything with ``predict_proba`` that was not trained on these rows.
    X, candidates
        The calibration rows and their candidate sets.
    budget
        How many rows can be verified.
    prefer
        ``"none"`` draws all rows with the same probability; ``"uncertain"`` prefers rows for which candidates and
        model leave open whether the truth would be in the set, which makes each label tell more.
    confidence_level
        The level that the sets are wanted for.
    random_state
        Seeds the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from setwise import suggest_verification
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 4, 900)
    >>> X = 2 * np.eye(4)[y] + rng.normal(size=(900, 4))
    >>> candidates = (np.arange(4) == y[:, None]) | (rng.random((900, 4)) < 0.3)
    >>> model = LogisticRegression().fit(X[:300], y[:300])
    >>> suggestion = suggest_verification(model, X[300:], candidates[300:], budget=50, random_state=0)
    >>> len(suggestion.rows), suggestion.size_then < suggestion.size_now
    (50, True)
    """
    level = as_level(confidence_level)
    P = as_probabilities(model.predict_proba(X))
    sets, _ = present_rows(as_candidates(candidates, P.shape[1], getattr(model, "classes_", None)), "error")
    n, fewest = len(sets), instances_needed(level)
    if len(P) != n:
        raise ValueError(f"candidates: {n} rows for {len(P)} rows of X.")
    if prefer not in {"none", "uncertain"}:
        raise ValueError(f"prefer: {prefer!r} is not known; use 'none' or 'uncertain'.")
    if not fewest <= budget <= n:  # type: ignore[operator]
        raise ValueError(
            f"budget: {budget} of {n} rows; confidence {float(level):g} needs at least {fewest} verified labels."
        )
    evidence = gather(LAC(), P, sets, needs=("every", "share"))
    limit = Curve(posterior_steps(evidence), "none", 0.05).threshold(level)
    scores, weights = padded(evidence)
    inside = (weights * (scores <= limit)).sum(axis=1).clip(0, 1)
    open_questions = np.sqrt(inside * (1 - inside)) if prefer == "uncertain" else np.zeros(n)
    chance = _chances(open_questions + max(float(open_questions.mean()), 1e-9) / 2, budget)
    now = Max().calibrate(evidence, Setting("lac", P.shape[1])).threshold(level)
    return Suggestion(
        frozen(_systematic(chance, budget, np.random.default_rng(random_state))),
        frozen(chance),
        float((now >= -P).sum(axis=1).mean()),
        float((limit >= -P).sum(axis=1).mean()),
        float(level),
    )


def _chances(size: Floats, budget: int) -> Floats:
    """Probabilities in proportion to size that add up to the budget, none above one."""
    chance = np.zeros(len(size))
    free = np.ones(len(size), dtype=bool)
    while True:
        chance[free] = size[free] * (budget - (~free).sum()) / size[free].sum()
        over = free & (chance > 1)
        if not over.any():
            return chance
        chance[over], free = 1.0, free & ~over


def _systematic(chance: Floats, budget: int, rng: np.random.Generator) -> Ints:
    """A sample of exactly `budget` rows in which each row has its chance: equal steps over shuffled chances."""
    order = rng.permutation(len(chance))
    edges = np.cumsum(chance[order])
    edges *= budget / edges[-1]  # the sum again, without rounding
    steps = rng.random() + np.arange(budget)
    return np.sort(order[np.minimum(np.searchsorted(edges, steps, side="right"), len(order) - 1)])
