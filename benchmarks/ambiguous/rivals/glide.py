"""glide-py: prediction-powered means of many kinds, with the consensus as the prediction. It needs Python 3.12."""

from __future__ import annotations

import numpy as np

from ambiguous.registry import LARGE_SAMPLE, answers


def intervals(task, estimate):
    """Value and ends of each figure; NaN where the library refuses one, as for constant labels or proxies."""
    found = np.full((len(task.figures), 3), np.nan)
    for place, figure in enumerate(task.figures):
        try:
            interval = estimate(task.hits(figure), figure).confidence_interval
        except ValueError:
            continue
        found[place] = interval.mean, interval.lower_bound, interval.upper_bound
    return found


@answers(
    "estimates", "glide prediction-powered, tuned", guarantee=LARGE_SAMPLE, needs=["verified"], package="glide-py"
)
def tuned(task):
    from glide.estimators import PPIMeanEstimator

    return intervals(task, lambda hits, figure: PPIMeanEstimator().estimate(hits, figure.sure))


@answers(
    "estimates", "glide prediction-powered, strata", guarantee=LARGE_SAMPLE, needs=["verified"], package="glide-py"
)
def stratified(task):
    from glide.estimators import StratifiedPPIMeanEstimator

    def estimate(hits, figure):
        halves = 2 * figure.sure.argsort().argsort() // len(hits)  # what the consensus finds less and more probable
        return StratifiedPPIMeanEstimator().estimate(hits, figure.sure, halves)

    return intervals(task, estimate)


@answers(
    "estimates",
    "glide prediction-powered, two proxies",
    guarantee=LARGE_SAMPLE,
    needs=["verified"],
    package="glide-py",
)
def several(task):
    from glide.estimators import MultiPPIMeanEstimator

    return intervals(
        task,
        lambda hits, figure: MultiPPIMeanEstimator().estimate(
            hits, np.column_stack([figure.sure, figure.likely.astype(float)])
        ),
    )


@answers("estimates", "glide predict then debias", guarantee=LARGE_SAMPLE, needs=["verified"], package="glide-py")
def debiased(task):
    from glide.estimators import PTDMeanEstimator

    return intervals(
        task, lambda hits, figure: PTDMeanEstimator().estimate(hits, figure.sure, random_seed=task.seed)
    )
