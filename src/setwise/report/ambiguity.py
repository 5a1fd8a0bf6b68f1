"""How candidate sets look: their sizes, what is confused with what, and what a model's ranking says about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._arrays import Array, Floats
from setwise.conformal.calibration import Calibration
from setwise.labels.label_sets import LabelSets
from setwise.report.level_facts import histogram, size_bins, tidy_all

_RANKS = 30  # beyond that the curve says nothing more
_TESTED = 2_000_000  # labels of rows that the test looks at; of more a sample of rows is drawn


def candidate_facts(
    calibration: Calibration | None, candidates: LabelSets | None, probabilities: Floats | None, truth: Array | None
) -> dict[str, Any] | None:
    """What is known of candidates: those of the new rows where given, else the sizes of the calibration rows'.

    Exact labels are no candidates to describe.
    """
    if candidates is None:
        sizes = None if calibration is None else calibration.evidence.sizes
        if calibration is None or sizes is None or (sizes == 1).all():
            return None
        return _sizes(sizes, len(calibration.vocabulary)) | {"of": "calibration", "pairs": [], "gate": None}
    from setwise.tables.inspection import inspect  # sparse products, needed here alone

    miss_rate = 0.0 if calibration is None else float(calibration.setting.miss_rate)
    found = inspect(candidates, truth)
    pairs = [
        {"labels": [str(label) for label in pair.labels], "rows": f"{pair.rows:,}", "share": f"{pair.share:.1%}"}
        for pair in found.confused
    ]
    held = None
    if found.containment is not None:
        held = f"{found.containment:.2%} of the {found.truth_known:,} rows where it is known"
    return _sizes(candidates.sizes, candidates.n_classes) | {
        "of": "new",
        "pairs": pairs,
        "held": held,
        "never": [str(label) for label in found.never_occurs[:12]],
        "n_never": len(found.never_occurs),
        "gate": None if probabilities is None else _gate(probabilities, candidates, miss_rate),
    }


def _sizes(sizes: Any, n_classes: int) -> dict[str, Any]:
    starts, names = size_bins(n_classes)
    counts = histogram(sizes, starts)
    last = max(i for i, count in enumerate(counts, start=1) if count)
    return {
        "rows": len(sizes),
        "mean": f"{np.mean(sizes):.2f}",
        "single": f"{np.mean(sizes == 1):.1%}",
        "names": names[:last],
        "counts": counts[:last],
    }


def _gate(probabilities: Floats, candidates: LabelSets, miss_rate: float) -> dict[str, Any] | None:
    """How often the label that the model ranks first, second, … is a candidate, and what that refutes."""
    from setwise.contamination.diagnose import diagnose  # needed here alone

    kept = np.flatnonzero(candidates.sizes)
    if (candidates.sizes[kept] == 1).all():
        return None
    most = max(_TESTED // candidates.n_classes, 1)
    if len(kept) > most:
        kept = np.sort(np.random.default_rng(0).choice(kept, most, replace=False))
    found = diagnose(probabilities[kept], candidates[kept], miss_rate=miss_rate)
    return {
        "sentence": found.sentence,
        "rate": tidy_all(found.rate[:_RANKS]),
        "lower": tidy_all(found.lower[:_RANKS]),
        "upper": tidy_all(found.upper[:_RANKS]),
        "floor": tidy_all(found.floor[:_RANKS]),
    }
