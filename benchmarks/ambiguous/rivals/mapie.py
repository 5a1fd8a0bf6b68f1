"""MAPIE: `SplitConformalClassifier` around a fitted estimator, with each of its scores at its defaults.

`include_last_label` is True by default; "randomized" is the variant of the papers. RAPS tunes its penalty on a fifth
of the calibration rows.
"""

from __future__ import annotations

from functools import partial

from ambiguous.split import both

SCORES = {
    "LAC": ("lac", {}),
    "top-k": ("top_k", {}),
    "APS": ("aps", {}),
    "APS randomized": ("aps", {"include_last_label": "randomized"}),
    "RAPS": ("raps", {}),
    "RAPS randomized": ("raps", {"include_last_label": "randomized"}),
}


def sets(task, probabilities, labels, score, params):
    from mapie.classification import SplitConformalClassifier
    from peers import PassThrough

    model = SplitConformalClassifier(
        estimator=PassThrough(probabilities.shape[1]), confidence_level=task.level, conformity_score=score,
        prefit=True, random_state=task.seed,
    )  # fmt: skip
    model.conformalize(probabilities, labels)
    return model.predict_set(task.new, conformity_score_params=params)[1][:, :, 0]


for name, (score, params) in SCORES.items():
    both(f"MAPIE {name}", partial(sets, score=score, params=params), "mapie")
