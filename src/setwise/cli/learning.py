"""`setwise fit`: from a table with candidates to a model directory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.options import (
    Assume,
    By,
    CalibrationSize,
    Candidates,
    Confidence,
    Cross,
    Delimiter,
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
    ReportTo,
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
    by: By = None,
    confidence: Confidence = 0.9,
    strategy: Strategy = "auto",
    score: Score = "lac",
    miss_rate: MissRate = 0.0,
    assume: Assume = "nothing",
    calibration_size: CalibrationSize = 0.2,
    cross: Cross = None,
    learner: Learner = "auto",
    network: Network = "auto",
    loss: Loss = "proden",
    epochs: Epochs = None,
    preset: Preset = None,
    impute: Imputed = None,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = "|",
    delimiter: Delimiter = None,
    report_to: ReportTo = None,
    seed: Seed = 0,
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learns from candidate sets, calibrates on rows kept for it, and saves the model."""
    from setwise.cli.declaring import assume_of, categories_of, stands_for_prediction  # noqa: PLC0415
    from setwise.cli.files import refuse_existing  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.cli.reporting import report_on_calibration  # noqa: PLC0415
    from setwise.estimators.model_directory import check_target, save_model  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    for target in filter(None, (out, report_to)):
        refuse_existing(target, force=force)
    check_target(out)
    options = {"separator": separator, "delimiter": delimiter, "missing": missing, "impute": _filling(impute)}
    options["categories"] = "onehot" if one_hot else None
    category = None if by is None or stands_for_prediction(by, file, delimiter) else by
    ignored = list(dict.fromkeys([*(ignore or []), *(name for name in (groups, category) if name)]))
    with screen.working(f"reading {file}"):
        table, columns = _read(file, candidates, features, ignored, verified, options)
    numbers = _announce(screen, table, file)
    _doubt(table, separator)
    if len(table) < _MANY:
        use_one_thread()
    known = verified or assume != "nothing" or strategy not in {"auto", "max"} or score != "lac"
    if learner == "auto":
        learner = "network" if known or cross is not None else "covering"
    estimator = _learner(learner, network, loss, epochs, preset, device, watch=screen.shows_progress)
    assumed = assume_of(assume, table.candidates.classes.tolist()) if table.candidates is not None else assume
    made = {
        "strategy": strategy_of(strategy, confidence),
        "conformity_score": score,
        "miss_rate": miss_rate,
        "assume": assumed,
    }
    model = _conformal(cross, calibration_size)(estimator, confidence_level=confidence, random_state=seed, **made)
    clock = Clock()
    categories = categories_of(table.carried[category], category, file) if category else by
    with screen.working("learning") if learner == "em" else nullcontext():  # networks show how far they are
        model.fit(
            table.X,
            table.candidates,
            groups=table.carried[groups] if groups else None,
            verified=table.truth if verified else None,
            by=categories,
        )
    rate = model.covering_rate(table.X, table.candidates)
    screen.say(f"learned {_described(model)}: covering rate {rate:.2f}, {clock}")
    _name_features(model, table)
    reading = _reading(table, columns) | {"by": category, "delimiter": delimiter}
    save_model(model, out, {"file": file.name, "reading": reading})
    report(screen, model, confidence)
    if report_to is not None:
        report_on_calibration(report_to, model, table.X, table.candidates, categories)
        screen.say(f"\nwrote {report_to}, about the rows it was calibrated on")
    screen.say(f"\nsaved to {out}   try:  setwise predict {out} new{file.suffix} --out sets{file.suffix}")
    found = {"covering_rate": rate, "seconds": round(clock.seconds, 3), "out": str(out)}
    screen.emit(numbers | found | summary(model, confidence))


def report(screen: Screen, model: Any, confidence: float) -> None:
    """How a model or a calibration was conformalized and what may be claimed."""
    found, made = summary(model, confidence), model.guarantee(confidence)
    asked, used = found["strategy"]["asked"], found["strategy"]["used"]
    shown = asked if asked == used else f"{asked} → {used}"
    screen.say(f"conformalized on {found['calibrated_on']:,} rows with strategy {shown}\n")
    screen.say(str(made))


def summary(model: Any, confidence: float) -> dict[str, Any]:
    """The same for scripts; calibrated by category there is one guarantee a category."""
    parts = getattr(model, "calibration_", model).parts
    made = model.guarantee(confidence)
    return {
        "calibrated_on": sum(part.evidence.n for part in parts),
        "strategy": {"asked": parts[0].strategy.name, "used": made.strategy},
        "guarantee": made.to_dict(),
    }


def _conformal(cross: int | None, calibration_size: float) -> Callable[..., Any]:
    """What splits, learns and conformalizes: into two parts, or into folds."""
    if cross is not None:
        from setwise.estimators.cross import CrossConformalClassifier  # noqa: PLC0415 - loaded when asked for

        return partial(CrossConformalClassifier, cv=cross)
    from setwise.estimators.split import ConformalClassifier  # noqa: PLC0415

    return partial(ConformalClassifier, calibration_size=calibration_size)


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
    names = column_names(file, options["delimiter"])
    flags = [] if candidates in names else [n for n in names if n.startswith(f"{candidates.removesuffix(':')}:")]
    taken = {candidates, truth, *ignore, *flags}
    columns = features or [name for name in names if name not in taken]
    twice = next((name for name in columns if name in taken), None)
    if twice is not None:
        raise ValueError(f"--features: {twice!r} is named as something else too, and cannot be both.")
    table = read_table(file, candidates=candidates, truth=truth, features=columns, carry=ignore, **options)
    if table.X.shape[1] == 0:
        raise ValueError(f"{file}: no column is left for the features.")
    return table, columns


def _described(model: Any) -> str:
    """What was learned, in brackets: loss and network, or the estimator's name."""
    fitted = model.estimator_
    times = f"{len(model.estimators_)} × " if hasattr(model, "estimators_") else ""
    if hasattr(fitted, "network_"):
        kinds = dict.fromkeys(part._settled["network"] for part in getattr(model, "estimators_", [fitted]))
        return f"{times}({fitted.loss}, {' and '.join(kinds)}), {fitted.n_iter_} epochs"
    if hasattr(fitted, "predict_inclusion"):
        inner = fitted.posterior_
        return f"(covering, weight {fitted.weight_:g}; {inner.loss}, {inner._settled['network']})"
    last = fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted
    return f"{times}({type(last).__name__})"


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


def _doubt(table: Table, separator: str) -> None:
    """Warns of what looks like a mistake: labels read as one, or the truth among the features."""
    from setwise.cli.declaring import doubt_separator  # noqa: PLC0415

    if table.candidates is None:
        return
    doubt_separator(table.candidates, separator)
    labels = {str(label) for label in table.candidates.classes.tolist()}
    for name, values in table.categories.items():
        if set(values) <= labels:
            warnings.warn(
                f"the feature {name!r} holds labels; if it is the truth, new rows will lack it: leave it out with "
                f"--ignore {name}.",
                stacklevel=2,
            )


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
    if learner not in {"network", "covering"}:
        raise ValueError(f"--learner: {learner!r} is not known; use auto, covering, network or em.")
    plain = learn.PartialLabelClassifier(
        network, loss, epochs=epochs, preset=preset, device=device, verbose=int(watch)
    )
    if learner == "network":
        return plain
    return learn.CoveringClassifier(plain, device=device, verbose=int(watch))


def _name_features(model: Any, table: Table) -> None:
    """The file's column names, so that the model knows them wherever it is loaded."""
    import numpy as np  # noqa: PLC0415

    names = np.array(table.feature_names, dtype=object)
    models = getattr(model, "estimators_", [model.estimator_])
    firsts = [fitted.steps[0][1] for fitted in models if hasattr(fitted, "steps")]
    for part in (model, *models, *firsts):
        if hasattr(part, "n_features_in_") and not hasattr(type(part), "feature_names_in_"):
            part.feature_names_in_ = names


def _filling(impute: str | None) -> Any:
    if impute is None or impute in {"median", "mean"}:
        return impute
    try:
        return float(impute)
    except ValueError:
        raise ValueError(f"--impute: {impute!r} is not median, mean or a number.") from None
