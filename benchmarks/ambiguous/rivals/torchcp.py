"""TorchCP: `SplitPredictor` with its scores of probabilities; RAPS and SAPS with the values of its documentation."""

from __future__ import annotations

from functools import partial

from ambiguous.split import both

SCORES = {
    "LAC": {},
    "APS": {},
    "RAPS": {"penalty": 0.1, "kreg": 1},
    "SAPS": {"weight": 0.2},
    "TOPK": {},
}


def sets(task, probabilities, labels, score, params):
    import torch
    from torchcp.classification import score as scores
    from torchcp.classification.predictor import SplitPredictor

    torch.manual_seed(task.seed)
    predictor = SplitPredictor(getattr(scores, score)("identity", **params), alpha=round(1 - task.level, 12))
    predictor.calculate_threshold(torch.from_numpy(probabilities), torch.from_numpy(labels))
    return predictor.predict_with_logits(torch.from_numpy(task.new)).numpy().astype(bool)


for score, params in SCORES.items():
    both(f"TorchCP {score}", partial(sets, score=score, params=params), "torchcp")
