"""ppi-python: prediction-powered inference by its authors, with the consensus as the prediction."""

from __future__ import annotations

import numpy as np

from ambiguous.questions.estimates import LEVEL
from ambiguous.registry import LARGE_SAMPLE, answers


def means(task, proxy, **options):
    """Value and ends of each figure; one with fewer than two rows on either side has none."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    found = np.full((len(task.figures), 3), np.nan)
    for place, figure in enumerate(task.figures):
        hits, predicted = task.hits(figure), getattr(figure, proxy).astype(float)
        seen = ~np.isnan(hits)
        if min(seen.sum(), (~seen).sum()) > 1:
            held = hits[seen], predicted[seen], predicted[~seen]
            lower, upper = ppi_mean_ci(*held, alpha=1 - LEVEL, **options)
            value = ppi_mean_pointestimate(*held, **options)
            found[place] = float(np.squeeze(value)), float(lower[0]), float(upper[0])
    return found


@answers(
    "estimates",
    "ppi-python prediction-powered, tuned",
    guarantee=LARGE_SAMPLE,
    needs=["verified"],
    package="ppi-python",
)
def tuned(task):
    return means(task, "sure")


@answers(
    "estimates",
    "ppi-python prediction-powered, tuned, yes or no",
    guarantee=LARGE_SAMPLE,
    needs=["verified"],
    package="ppi-python",
)
def binary(task):
    return means(task, "likely")


@answers(
    "estimates", "ppi-python prediction-powered", guarantee=LARGE_SAMPLE, needs=["verified"], package="ppi-python"
)
def plain(task):
    return means(task, "sure", lam=1)
