"""Are the rows of the report like the calibration rows: what a comparison found, and a picture of it."""

from __future__ import annotations

from typing import Any

from setwise.drift.comparison import Comparison

_WIDTH, _HEIGHT = 400.0, 120.0


def row_comparison_facts(comparison: Comparison) -> dict[str, Any]:
    """The comparison as texts, and the two distributions of the largest probability as lines and numbers."""
    shares = [[count / max(sum(bars), 1) for count in bars] for bars in comparison.bars]
    highest = max(max(each) for each in shares) or 1.0
    return {
        "text": comparison.sentence,
        "refuted": comparison.refuted,
        "differs": str(comparison.differs or ""),
        "findings": [finding.sentence for finding in comparison.findings],
        "lines": None if comparison.m == 0 else [_steps(each, highest) for each in shares],
        "rows": [
            {
                "name": f"{i / len(shares[0]):.2f} to {(i + 1) / len(shares[0]):.2f}",
                "old": f"{old:.1%}",
                "new": f"{new:.1%}",
            }
            for i, (old, new) in enumerate(zip(*shares, strict=True))
            if old or new
        ],
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def _steps(shares: list[float], highest: float) -> str:
    """The outline of a histogram, as the points of an SVG line.

    >>> _steps([0.5, 1.0], 1.0)
    '0,120 0,60 200,60 200,0 400,0 400,120'
    """
    points, step = [(0.0, _HEIGHT)], _WIDTH / len(shares)
    for i, share in enumerate(shares):
        height = _HEIGHT * (1 - share / highest)
        points += [(i * step, height), ((i + 1) * step, height)]
    return " ".join(f"{x:g},{y:g}" for x, y in [*points, (_WIDTH, _HEIGHT)])
