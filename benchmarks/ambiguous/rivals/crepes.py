"""crepes: `WrapClassifier` around a fitted learner, with its two scores; p-values are smoothed by default."""

from __future__ import annotations

from functools import partial

from ambiguous.split import both


def sets(task, probabilities, labels, score, smoothing):
    from crepes import WrapClassifier, extras
    from peers import PassThrough

    model = WrapClassifier(PassThrough(probabilities.shape[1]))
    model.calibrate(probabilities, labels, nc=getattr(extras, score), seed=task.seed)
    return model.predict_set(task.new, labels=False, confidence=task.level, smoothing=smoothing)


for score in ("hinge", "margin"):
    both(f"crepes {score}", partial(sets, score=score, smoothing=True), "crepes")
    both(f"crepes {score}, not smoothed", partial(sets, score=score, smoothing=False), "crepes")
