"""`setwise demo`: handwritten digits whose labels are known only as candidate sets, from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from setwise import data, learn
from setwise.cli import options as opt
from setwise.cli.screen import Clock, Screen
from setwise.cli.threads import use_one_thread
from setwise.strategies import Mixture

EXAMPLES = ("setwise demo --out demo/",)
_TITLE = "Digits whose labels nobody knows exactly: can these sets be trusted?"
_CHECKED = 200  # rows whose true digit somebody looked up, for the strategy that asks for some


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where to write; an earlier demo there is replaced.")] = Path(
        "demo"
    ),
    level: opt.Confidence = 0.9,
    seed: opt.Seed = 0,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Learns from contaminated labels of scikit-learn's digits and compares all strategies on them."""
    from sklearn.frozen import FrozenEstimator  # noqa: PLC0415 - loaded when the demo runs

    from setwise.estimators.split import ConformalClassifier  # noqa: PLC0415

    screen, clock = Screen(quiet, as_json), Clock()
    out.mkdir(parents=True, exist_ok=True)
    parts = _digits(seed)
    X, candidates, _ = parts["train"]
    use_one_thread()
    screen.say(
        f"{len(X):,} images of digits. Nobody says which digit: each has {candidates.sizes.mean():.1f} candidates, "
        "one of them true, such as"
    )
    screen.say("  " + ", ".join("{" + ", ".join(map(str, row)) + "}" for row in candidates[:5].to_lists()))
    estimator = learn.PartialLabelClassifier(
        "mlp",
        "proden",
        "standard",
        (300,),
        epochs=40,
        random_state=seed,
        verbose=int(screen.shows_progress),
    )
    learned = estimator.fit(X, candidates)
    X_new, candidates_new, y_new = parts["new"]
    accuracy = float((learned.predict(X_new) == y_new).mean())
    screen.say(f"learned (proden, mlp): finds {accuracy:.1%} of the digits of {len(X_new):,} new images, {clock}\n")
    rows, results, calibrations = [], [], []
    for strategy, assume, verified in _strategies(parts["calibration"][2]):
        model = ConformalClassifier(FrozenEstimator(learned), strategy, assume=assume, random_state=seed)
        model.set_params(confidence_level=level).fit(*parts["calibration"][:2], verified=verified)
        row, result = _line(model, X_new, y_new, level)
        rows.append(row)
        results.append(result)
        calibrations.append(model.calibration_)
        if strategy == "max":
            kept = model
    held = len(parts["calibration"][0])
    screen.say(f"conformalized on {held} more images at confidence {level:g}, and tried on the new ones:\n")
    screen.table(["strategy", "coverage", "95 % interval", "mean size", "guaranteed"], rows, wide=4)
    screen.say("\nConditional: it rests on a premise that nobody here can check; `guarantee` names it.")
    screen.say("\nWhat may be claimed about the sets of the strategy max:\n" + str(kept.guarantee(level)))
    kept.save(out / "model")
    data.write_sets(out / "sets.csv", kept.predict_set(X_new, level), carry={"digit": y_new})
    np.savez(out / "new.npz", X=X_new, y=y_new, candidates=candidates_new.to_mask())
    run = {"model": "model", "data": "new.npz", "image": [8, 8], "title": _TITLE}
    (out / "run.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    shown = {"images": X_new.reshape(-1, 8, 8), "others": calibrations, "title": _TITLE}
    kept.report(out / "report.html", X_new, y_new, candidates_new, **shown)
    screen.say(f"\nwrote {out / 'report.html'}, {out / 'model'} and {out / 'sets.csv'} in {clock}")
    screen.say(f"try:  setwise evaluate {out / 'sets.csv'} --truth digit")
    screen.emit({"accuracy": accuracy, "strategies": results, "seconds": clock.seconds, "out": str(out)})


def _digits(seed: int) -> dict[str, tuple[Any, Any, Any]]:
    """Images, candidates and true digits to learn from, to calibrate on, and to try."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - loaded when the demo runs

    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    X = X + rng.normal(scale=4, size=X.shape)  # blurred, so that there is something to be unsure about
    candidates = data.contaminate(y, data.Random(p=0.1), n_classes=10, random_state=seed)
    order = rng.permutation(len(y))
    bounds = {"train": order[:797], "calibration": order[797:1297], "new": order[1297:]}
    return {name: (X[rows], candidates[rows], y[rows]) for name, rows in bounds.items()}


def _strategies(y: Any) -> list[tuple[Any, str, Any]]:
    """Each strategy, what is declared for it, and the verified labels it is given."""
    checked = [int(digit) if row < _CHECKED else None for row, digit in enumerate(y)]
    return [
        ("max", "nothing", None),
        ("all", "nothing", None),
        ("mean", "nothing", None),
        ("min", "nothing", None),
        (Mixture(mu=0.5), "nothing", None),
        (Mixture(mu="verified"), "nothing", checked),
        ("corrected", "uniform", None),
        ("rectified", "nothing", checked),
        ("posterior", "nothing", None),
    ]


def _line(model: Any, X: Any, y: Any, level: float) -> tuple[list[str], dict[str, Any]]:
    result, guarantee = model.evaluate(X, y), model.guarantee(level)
    low, high = result["coverage_interval"]
    promised = guarantee.promised
    row = [
        guarantee.strategy,
        f"{result['coverage']:.3f}",
        f"[{low:.3f}, {high:.3f}]",
        f"{result['mean_size']:.2f}",
        _promise(guarantee),
    ]
    kept = {name: result[name] for name in ("coverage", "coverage_interval", "mean_size")}
    return row, {"strategy": guarantee.strategy, **kept, "promised": promised}


def _promise(guarantee: Any) -> str:
    """What is guaranteed, in a few words."""
    if guarantee.promised is not None:
        return f"at least {guarantee.promised:.3f}"
    truth = [claim for claim in guarantee.claims if claim.event == "truth" and not claim.refuted]
    hedged = max((claim.probability for claim in truth if claim.probability is not None), default=None)
    return "nothing" if hedged is None else f"at least {hedged:.3f}, conditional"
