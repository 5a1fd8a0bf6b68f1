"""puncc: its split conformal classifiers around a trained predictor; RAPS with the values of its documentation."""

from __future__ import annotations

from functools import partial

import numpy as np

from ambiguous.split import both

SCORES = {"LAC": {}, "APS": {}, "RAPS": {"lambd": 1, "k_reg": 2}}


def sets(task, probabilities, labels, score, params):
    from deel.puncc import classification
    from deel.puncc.api.prediction import BasePredictor
    from peers import PassThrough

    class Predictor(BasePredictor):
        def predict(self, X, **kwargs):  # noqa: ARG002
            return self.model.predict_proba(X)

    np.random.seed(task.seed)  # noqa: NPY002 - the library's noise has no other seed
    model = getattr(classification, score)(
        Predictor(PassThrough(probabilities.shape[1]), is_trained=True), train=False, **params
    )
    model.fit(X_calib=probabilities, y_calib=labels)
    mask = np.zeros(task.new.shape, dtype=bool)
    for row, members in zip(mask, model.predict(task.new, alpha=round(1 - task.level, 12))[1], strict=True):
        row[members] = True
    return mask


for score, params in SCORES.items():
    both(f"puncc {score}", partial(sets, score=score, params=params), "puncc")
