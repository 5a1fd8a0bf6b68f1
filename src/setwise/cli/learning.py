"""`setwise fit`: from a table with candidates to a model directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.options import (
    Assume,
    CalibrationSize,
    Candidates,
    Confidence,
    Device,
    Epochs,
    Features,
    File,
    Force,
    Groups,
    Ignore,
    Imputed,
    Json,
    Learner,
    Loss,
    Missing,
    MissRate,
    Network,
    OneHot,
    Preset,
    Quiet,
    Score,
    Seed,
    Separator,
    Strategy,
    Verified,
    strategy_of,
)
from setwise.cli.screen import Clock, Screen
from setwise.cli.threads import use_one_thread

if TYPE_CHECKING:
    from setwise.conformal import ConformalClassifier
    from setwise.data import Table

_MANY = 10_000  # rows from which more than one thread pays


def fit(
    file: File,
    candidates: Candidates,
    out: Annotated[Path, typer.Option("--out", help="The model directory to write.")],
    features: Features = None,
    ignore: Ignore = None,
    verified: Verified = None,
    groups: Groups = None,
    confidence: Confidence = 0.9,
    strategy: Strategy = "auto",
    score: Score = "lac",
    miss_rate: MissRate = 0.0,
    assume: Assume = "nothing",
    calibration_size: CalibrationSize = 0.2,
    learner: Learner = "network",
    network: Network = "auto",
    loss: Loss = "proden",
    epochs: Epochs = None,
    preset: Preset = None,
    impute: Imputed = None,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = "|",
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learns from candidate sets, calibrates on rows kept for it, and saves the model."""
    from setwise.cli.files import refuse_existing  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.conformal import ConformalClassifier  # noqa: PLC0415
    from setwise.persistence import check_target, save_model  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    refuse_existing(out, force=force)
    check_target(out)
    options = {"separator": separator, "missing": missing, "impute": _filling(impute)}
    options["categories"] = "onehot" if one_hot else None
    ignored = [*(ignore or []), *([groups] if groups else [])]
    with screen.working(f"reading {file}"):
        table, columns = _read(file, candidates, features, ignored, verified, options)
    numbers = _announce(screen, table, file)
    if len(table) < _MANY:
        use_one_thread()
    estimator = _learner(learner, network, loss, epochs, preset, device, watch=screen.shows_progress)
    chosen = strategy_of(strategy, confidence)
    model = ConformalClassifier(
        estimator, chosen, score, confidence, calibration_size, seed, miss_rate=miss_rate, assume=assume
    )
    clock = Clock()
    together = table.carried[groups] if groups else None
    model.fit(table.X, table.candidates, groups=together, verified=table.truth if verified else None)
    rate = model.covering_rate(table.X, table.candidates)
    screen.say(f"learned {_described(model)}: covering rate {rate:.2f}, {clock}")
    _name_features(model, table)
    save_model(model, out, {"file": file.name, "reading": _reading(table, columns)})
    report(screen, model.calibration_, confidence)
    screen.say(f"\nsaved to {out}   try:  setwise predict {out} new{file.suffix} --out sets{file.suffix}")
    found = {"covering_rate": rate, "seconds": round(clock.seconds, 3), "out": str(out)}
    screen.emit(numbers | found | summary(model.calibration_, confidence))


def report(screen: Screen, calibration: Any, confidence: float) -> None:
    """How it was conformalized and what may be claimed."""
    asked, used = calibration.strategy.name, calibration.rules[0].claimant.name
    shown = asked if asked == used else f"{asked} → {used}"
    screen.say(f"conformalized on {calibration.evidence.n:,} rows with strategy {shown}\n")
    screen.say(str(calibration.guarantee(confidence)))


def summary(calibration: Any, confidence: float) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "calibrated_on": calibration.evidence.n,
        "strategy": {"asked": calibration.strategy.name, "used": calibration.rules[0].claimant.name},
        "guarantee": calibration.guarantee(confidence).to_dict(),
    }


def _read(
    file: Path,
    candidates: str,
    features: list[str] | None,
    ignore: list[str],
    truth: str | None,
    options: dict[str, Any],
) -> tuple[Table, list[str] | None]:
    """The table, and the columns its features came from (None for files of arrays, which have no names)."""
    from setwise.cli.files import column_names, is_table  # noqa: PLC0415
    from setwise.data import read_table  # noqa: PLC0415

    if not is_table(file):
        return read_table(file, candidates=candidates, truth=truth, **options), None
    names = column_names(file)
    flags = [] if candidates in names else [n for n in names if n.startswith(f"{candidates.removesuffix(':')}:")]
    taken = {candidates, truth, *ignore, *flags}
    columns = features or [name for name in names if name not in taken]
    table = read_table(file, candidates=candidates, truth=truth, features=columns, carry=ignore, **options)
    if table.X.shape[1] == 0:
        raise ValueError(f"{file}: no column is left for the features.")
    return table, columns


def _described(model: ConformalClassifier) -> str:
    """What was learned, in brackets: loss and network, or the estimator's name."""
    fitted = model.estimator_
    if hasattr(fitted, "network_"):
        return f"({fitted.loss}, {fitted._settled['network']}), {fitted.n_iter_} epochs"
    last = fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted
    return f"({type(last).__name__})"


def _announce(screen: Screen, table: Table, file: Path) -> dict[str, Any]:
    """Says what was read, and returns it as numbers."""
    if table.candidates is None:
        raise ValueError(f"{file}: holds no candidates.")
    mean, (rows, width) = float(table.candidates.sizes.mean()), table.X.shape
    classes = table.candidates.n_classes
    screen.say(f"read {file}: {rows:,} rows, {width:,} features, {classes:,} classes, {mean:.1f} candidates a row")
    names = table.feature_names
    screen.say("features: " + ", ".join(names[:6]) + (", …" if len(names) > 6 else ""))
    return {"rows": rows, "features": width, "classes": classes, "candidates_a_row": mean}


def _reading(table: Table, columns: list[str] | None) -> dict[str, Any]:
    """How the next table is to be read."""
    return {
        "columns": columns,
        "imputed": dict(table.imputed),
        "categories": {name: list(values) for name, values in table.categories.items()},
    }


def _learner(
    learner: str, network: str, loss: str, epochs: int | None, preset: str | None, device: str, *, watch: bool
) -> Any:
    from setwise import learn  # noqa: PLC0415

    if learner == "em":
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

        base = LogisticRegression(max_iter=1000)
        return make_pipeline(StandardScaler(), learn.EMClassifier(base))
    if learner != "network":
        raise ValueError(f"--learner: {learner!r} is not known; use network or em.")
    return learn.PartialLabelClassifier(
        network, loss, epochs=epochs, preset=preset, device=device, verbose=int(watch)
    )


def _name_features(model: Any, table: Table) -> None:
    """The file's column names, so that the model knows them wherever it is loaded."""
    import numpy as np  # noqa: PLC0415

    names = np.array(table.feature_names, dtype=object)
    fitted = model.estimator_
    for part in (model, fitted, *([step for _, step in fitted.steps[:1]] if hasattr(fitted, "steps") else [])):
        if hasattr(part, "n_features_in_") and not hasattr(type(part), "feature_names_in_"):
            part.feature_names_in_ = names


def _filling(impute: str | None) -> Any:
    if impute is None or impute in {"median", "mean"}:
        return impute
    try:
        return float(impute)
    except ValueError:
        raise ValueError(f"--impute: {impute!r} is not median, mean or a number.") from None
