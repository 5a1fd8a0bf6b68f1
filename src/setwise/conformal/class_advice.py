"""`class_advice`: what helps classes that are covered less often than the level, or that are in every set."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from setwise.calibration.base import BaseCalibration
from setwise.strategies.by_label import LabelRule, fewest_rows, format_classes

_LISTED = 10


def class_advice(
    calibration: BaseCalibration, by_class: Mapping[Any, Mapping[str, Any]], level: Fraction
) -> list[str]:
    """Sentences on what can be done, from the entry `by_class` of `evaluate`.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> P = np.random.default_rng(0).dirichlet([3, 1], size=200)
    >>> y = (np.arange(200) % 40 == 0).astype(int)
    >>> calibration = setwise.conformalize(P, y, by="label")
    >>> class_advice(calibration, setwise.evaluate(calibration.predict_set(P), y)["by_class"], Fraction(9, 10))
    ['Class 1 has 5 calibration rows: 4 more are needed for a threshold at 0.9.']
    """
    (rule, *others), label, needed = calibration.rules, calibration.evidence.label, fewest_rows(level)
    low = [name for name, cell in by_class.items() if (cell["coverage_interval"] or (0, 1))[1] < level]
    lines, short = [], {}
    if isinstance(rule, LabelRule):
        short = rule.short_classes(level)
    elif low and not others and not np.ndim(rule.threshold(level)):
        named = f"Covered less often than {float(level):.12g}: {format_classes([*map(repr, low)])}."
        if label is None:
            lines = [f'{named} Verify rows and use by="label".']
        else:
            lines = [f'{named} Use by="label" for a guarantee within each class.']
            counts = np.bincount(label[label >= 0], minlength=len(calibration.classes)).tolist()
            known = dict(zip(calibration.classes.tolist(), counts, strict=True))
            short = {name: known[name] for name in low if known[name] < needed}
    return lines + [
        f"Class {name!r} has {n:,} calibration rows: {needed - n:,} more are needed for a threshold at "
        f"{float(level):.12g}."
        for name, n in [*short.items()][:_LISTED]
    ]
