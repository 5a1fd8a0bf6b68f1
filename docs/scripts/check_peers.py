"""Prints the facts of docs/comparison.md about MAPIE, TorchCP, crepes and puncc, as `make bench` installs them.

Run it in their environment: `.venv-bench/bin/python docs/scripts/check_peers.py`. It prints one line per fact.
"""

from __future__ import annotations

import datetime
import pickle
import warnings
from collections.abc import Callable
from importlib.metadata import distribution, version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
K = 100
P = rng.dirichlet(np.full(K, 0.1), size=4000)
y = (P.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
MASK = np.eye(K, dtype=bool)[y] | (rng.random((4000, K)) < 0.02)
OLD, NEW = slice(0, 2000), slice(2000, 2400)


class Probabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose features are the probabilities."""

    classes_ = np.arange(K)
    n_features_in_ = K

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Probabilities:  # noqa: ARG002, D102
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: D102
        return np.asarray(X)

    def predict(self, X: Any) -> Any:  # noqa: D102
        return np.asarray(X).argmax(axis=1)


def say(peer: str, fact: str, ask: Callable[[], Any]) -> None:
    """Prints what a call returns, raises or warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = ask()
        except Exception as error:  # noqa: BLE001 - an error is an answer too
            answer = f"{type(error).__name__}: {str(error).splitlines()[0][:70]}"
    warned = [str(w.message).splitlines()[0][:60] for w in caught if w.category is UserWarning]
    print(f"{peer:8s} {fact:28s} {answer}{f'  (warns: {warned[0]})' if warned else ''}")


def covered(sets: Any) -> float:
    """The share of new rows whose true label is in its set, a mask or lists of labels."""
    if isinstance(sets, np.ndarray):
        return round(float(sets[np.arange(400), y[NEW]].mean()), 3)
    return round(float(np.mean([truth in found for truth, found in zip(y[NEW], sets, strict=True)])), 3)


def mapie() -> None:
    """MAPIE."""
    import mapie.classification as module

    def calibrate(score: str = "lac", labels: Any = y[OLD], rows: Any = P[OLD]) -> Any:
        model = module.SplitConformalClassifier(
            Probabilities(), confidence_level=0.9, conformity_score=score, prefit=True, random_state=0
        )
        return model.conformalize(rows, labels)

    options = {"conformity_score_params": {"include_last_label": "randomized"}}

    def batches() -> bool:
        model = calibrate("aps")
        whole = model.predict_set(P[NEW], **options)[1]
        parts = [model.predict_set(P[i : i + 100], **options)[1] for i in range(2000, 2400, 100)]
        return bool((whole == np.concatenate(parts)).all())

    say("MAPIE", "classes", lambda: [n for n in dir(module) if n.endswith("Classifier") and n[0] != "_"])
    say("MAPIE", "candidate sets as a mask", lambda: calibrate(labels=MASK[OLD]))
    say("MAPIE", "p-values", lambda: hasattr(calibrate(), "predict_p"))
    say("MAPIE", "clone", lambda: clone(module.SplitConformalClassifier(Probabilities())))
    say("MAPIE", "five rows at 0.9", lambda: calibrate(labels=y[:5], rows=P[:5]).predict_set(P[NEW]))
    say("MAPIE", "APS alike in batches", batches)


def crepes() -> None:
    """Crepes."""
    from crepes import ConformalClassifier, WrapClassifier
    from crepes.extras import hinge

    def calibrate(labels: Any = y[OLD], rows: Any = P[OLD]) -> Any:
        return ConformalClassifier().fit(hinge(rows, np.arange(K), labels))

    few = {"confidence": 0.9, "smoothing": False}
    say("crepes", "candidate sets as a mask", lambda: calibrate(MASK[OLD]))
    say("crepes", "p-values", lambda: hasattr(calibrate(), "predict_p"))
    say("crepes", "clone", lambda: clone(WrapClassifier(Probabilities())))
    say(
        "crepes",
        "five rows at 0.9: set size",
        lambda: len(calibrate(y[:5], P[:5]).predict_set(1 - P[:1], **few)[0]),
    )


def puncc() -> None:
    """Puncc."""
    import deel.puncc.classification as module
    from deel.puncc.api.prediction import BasePredictor

    class Predictor(BasePredictor):  # type: ignore[misc]
        def predict(self, X: Any, **_: Any) -> Any:
            return self.model.predict_proba(X)

    def calibrate(kind: Any = module.LAC, labels: Any = y[OLD], rows: Any = P[OLD]) -> Any:
        model = kind(Predictor(Probabilities(), is_trained=True), train=False)
        model.fit(X_calib=rows, y_calib=labels)
        return model

    def one_by_one() -> float:
        model = calibrate(module.APS)
        return covered([model.predict(P[i : i + 1], alpha=0.1)[1][0] for i in range(2000, 2400)])

    say("puncc", "classes", lambda: [n for n in dir(module) if n in {"APS", "RAPS", "LAC", "ClasswiseLAC"}])
    say("puncc", "candidate sets as a mask", lambda: calibrate(labels=MASK[OLD]))
    say("puncc", "p-values", lambda: hasattr(calibrate(), "predict_p"))
    say("puncc", "clone", lambda: clone(calibrate()))
    say("puncc", "five rows at 0.9", lambda: calibrate(labels=y[:5], rows=P[:5]).predict(P[NEW], alpha=0.1))
    say("puncc", "APS coverage, one batch", lambda: covered(calibrate(module.APS).predict(P[NEW], alpha=0.1)[1]))
    say("puncc", "APS coverage, row by row", one_by_one)


def torchcp() -> None:
    """TorchCP."""
    import torch
    import torchcp.classification.predictor as predictors
    import torchcp.classification.score as scores

    def calibrate(score: Any, labels: Any = y[OLD], rows: Any = P[OLD]) -> Any:
        predictor = predictors.SplitPredictor(score, alpha=0.1)
        predictor.calculate_threshold(torch.tensor(rows), torch.tensor(labels))
        return predictor

    def few() -> float:
        sets = calibrate(scores.LAC("identity"), y[:5], P[:5]).predict_with_logits(torch.tensor(P[NEW]))
        return float(np.asarray(sets).sum(axis=1).mean())

    def batches() -> bool:
        torch.manual_seed(0)
        model = calibrate(scores.APS("identity"))
        whole = np.asarray(model.predict_with_logits(torch.tensor(P[NEW])))
        parts = [
            np.asarray(model.predict_with_logits(torch.tensor(P[i : i + 100]))) for i in range(2000, 2400, 100)
        ]
        return bool((whole == np.concatenate(parts)).all())

    say("TorchCP", "predictors", lambda: [n for n in dir(predictors) if n.endswith("Predictor")])
    say("TorchCP", "scores", lambda: [n for n in dir(scores) if n[0].isupper()])
    say("TorchCP", "candidate sets as a mask", lambda: calibrate(scores.LAC("identity"), MASK[OLD]))
    say("TorchCP", "p-values", lambda: hasattr(calibrate(scores.LAC("identity")), "predict_p"))
    say("TorchCP", "five rows at 0.9: set size", few)
    say("TorchCP", "APS alike in batches", batches)
    say("TorchCP", "pickle of a score", lambda: len(pickle.dumps(scores.LAC("identity"))))


def main() -> None:
    """All of them."""
    print(datetime.datetime.now(tz=datetime.UTC).date())
    for name in ("mapie", "torchcp", "crepes", "puncc"):
        found = distribution(name)
        scripts = [point.name for point in found.entry_points if point.group == "console_scripts"]
        licences = [p.name for p in found.files or () if "licen" in p.name.lower()]
        print(f"{name} {version(name)}; commands {scripts}; licence files {licences}")
    for ask in (mapie, torchcp, crepes, puncc):
        ask()


if __name__ == "__main__":
    main()
