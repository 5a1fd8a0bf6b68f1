"""crepes: `WrapClassifier` around a fitted learner, with its default score; p-values are smoothed by default."""

from __future__ import annotations

from functools import partial

from ambiguous.split import both


def sets(task, probabilities, labels, smoothing):
    from crepes import WrapClassifier
    from peers import PassThrough

    model = WrapClassifier(PassThrough(probabilities.shape[1]))
    model.calibrate(probabilities, labels, seed=task.seed)
    return model.predict_set(task.new, labels=False, confidence=task.level, smoothing=smoothing)


both("crepes hinge", partial(sets, smoothing=True), "crepes")
both("crepes hinge, not smoothed", partial(sets, smoothing=False), "crepes")
