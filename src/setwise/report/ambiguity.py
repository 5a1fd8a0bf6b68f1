"""How candidate sets look: their sizes, and what is confused with what."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._arrays import Array
from setwise.conformal.calibration import Calibration
from setwise.labels.label_sets import LabelSets
from setwise.report.level_facts import histogram, size_bins


def candidate_facts(
    calibration: Calibration | None, candidates: LabelSets | None, truth: Array | None
) -> dict[str, Any] | None:
    """What is known of candidates: those of the new rows where given, else the sizes of the calibration rows'.

    Exact labels are no candidates to describe.
    """
    if candidates is None:
        sizes = None if calibration is None else calibration.evidence.sizes
        if calibration is None or sizes is None or (sizes == 1).all():
            return None
        return _sizes(sizes, len(calibration.vocabulary)) | {"of": "calibration", "pairs": []}
    from setwise.tables.inspection import inspect  # sparse products, needed here alone

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
