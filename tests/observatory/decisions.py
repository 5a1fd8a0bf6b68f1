"""One draw of verified rows of a cell about decisions: what was decided, and how many labels of it are wrong.

Rows stand in an order of confidence that has not seen which proposals are wrong. Wrong are those that the exact
rule finds hardest: as many of the most confident as may just be wrong, and as many more as may be verified. Or all
rows are wrong, or none, or all confidences are equal. The rows to decide are those at hand that are not verified,
or new ones.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from setwise import conformalize, suspects
from setwise.decisions import overall
from setwise.guarantees import Claim
from setwise.strategies.judgement import DELTA
from tests.observatory.cells import Cell

DECIDED = 200
LOOKS = 3


def decide(cell: Cell, rng: np.random.Generator) -> dict[str, Any]:
    """The guarantee, and the shares of labels that are right, by the event that a claim is about."""
    new, kind, m = cell.shape.startswith("to come"), cell.strategy.removeprefix("decide "), cell.n
    error = round(1 - cell.confidence, 6)
    confidence, wrong = _rows(cell, m, new, error)
    n = len(wrong)
    drawn = rng.permutation(n)
    truth = wrong.astype(int)  # label 0 is proposed for every row
    seed = int(rng.integers(2**31))
    if kind == "suspects":
        return _suspects(confidence, ~wrong, drawn[:m], error, seed)

    def triage(count: int, **options: Any) -> tuple[Any, Any]:
        """What is decided with so many verified rows, and which rows."""
        checked, others = drawn[:count], drawn[m:] if new else None
        P = np.column_stack([confidence, 1 - confidence])
        if new:
            made = conformalize(
                P[checked], np.ones((count, 2), bool), "max", verified=truth[checked], random_state=seed
            )
            made = made.triage(P[others], max_error=error, **options)
            return made, others[made.rows]
        labels = np.full(n, np.nan)
        labels[checked] = truth[checked]
        made = conformalize(P, np.ones((n, 2), bool), "max", verified=labels, random_state=seed)
        made = made.triage(max_error=error, **options)
        return made, made.rows

    if kind == "looks":
        for count in np.linspace(m / 4, m, LOOKS).astype(int).tolist():
            found, rows = triage(max(count, 1), look=LOOKS)
            if found.accepted.mean() > 0.5:
                break
    elif kind == "per class":
        found, rows = triage(m, by="predicted")
    else:
        found, rows = triage(m, mode=kind if kind in {"accepted", "average"} else "overall")
    total = len(rows) if new else n
    bad = int((wrong[rows] & found.accepted).sum())
    if kind == "curve":
        counts = [int((wrong[rows] & found.choose(e).accepted).sum()) for e in found.curve.max_error]
        holds = all(bad <= e * total + 1e-9 for bad, e in zip(counts, found.curve.max_error, strict=True))
        return _answer(found.guarantee, [Claim("overall", 1.0, "curve", delta=DELTA)], overall=float(holds))
    parts = [part for each in found.guarantee.parts for part in each.claims]
    claims = [replace(claim, premises=()) for claim in parts]
    if kind == "average" and not claims:  # a draw in which nothing is accepted counts as well
        claims = [Claim("accepted", 1 - error, "conformal selection")]
    right = 1 - bad / max(int(found.accepted.sum()), 1)
    return _answer(found.guarantee, claims, overall=1 - bad / max(total, 1), accepted=right)


def _answer(guarantee: Any, claims: list[Claim], **shares: float) -> dict[str, Any]:
    made = replace(guarantee, claims=tuple(claims), by_category={})
    return {"guarantee": made, **{name: np.array([share]) for name, share in shares.items()}}


def _rows(cell: Cell, m: int, new: bool, error: float) -> tuple[np.ndarray, np.ndarray]:
    """The confidence of every row, and whether its proposal is wrong."""
    n = DECIDED + m
    confidence, pattern = np.linspace(0.999, 0.501, n), cell.shape.partition(", ")[2]
    limit = int(Fraction(str(error)) * (DECIDED if new else n))
    allowed = overall.allowed_wrong(n, limit, m, DELTA)
    hardest = limit + 1 + (0 if allowed is None else allowed)
    if pattern in {"all wrong", "none wrong"}:
        return confidence, np.full(n, pattern == "all wrong")
    if pattern == "ties":
        confidence = np.full(n, 0.75)
    if pattern == "spread":  # about as many wrong as are allowed everywhere
        return confidence, np.floor(1.3 * error * np.arange(1, n + 1)) > np.floor(1.3 * error * np.arange(n))
    return confidence, np.arange(n) < hardest


def _suspects(
    confidence: np.ndarray, right: np.ndarray, checked: np.ndarray, error: float, seed: int
) -> dict[str, Any]:
    """Given labels of which the most suspect are right where proposals would be wrong."""
    given, truth = np.zeros(len(right), int), np.where(right, 1, 0)
    verified = np.full(len(right), np.nan)
    verified[checked] = truth[checked]
    P = np.column_stack([1 - confidence, confidence])  # the more suspect the given label 0, the more confident
    found = suspects(given, verified, probabilities=P, max_false=error, random_state=seed)
    false = float((truth[found.rows] == 0).mean()) if len(found) else 0.0
    claims = [replace(claim, premises=()) for claim in found.guarantee.claims]
    claims = claims or [Claim("found", 1 - error, "conformal selection")]
    return _answer(found.guarantee, claims, found=1 - false)
