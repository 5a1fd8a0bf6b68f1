"""`setwise fit`: from a table with candidates to a model directory."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from setwise import learn
from setwise.cli import options as opt
from setwise.cli.screen import Clock, Screen, show_claims
from setwise.errors import SpellingWarning
from setwise.findings import join_names
from setwise.labels.vocabulary import missing_labels
from setwise.learn.feature_frame import FeatureFrame
from setwise.learn.threads import use_one_thread

if TYPE_CHECKING:
    from setwise.tables import Table
    from setwise.tables.rows import RowRequest

EXAMPLES = (
    "setwise fit photos.csv --candidates labels --ignore id --out model/",
    "setwise fit photos.csv --candidates labels --ignore id --cross 5 --out model/",
    "setwise fit photos.csv --candidates labels --ignore id --by hospital --out model/",
    "setwise fit photos.csv --labels labels.csv --candidates labels --key id --out model/",
    "setwise fit photos.csv --votes answers.csv --key id --item photo --annotator who --label bird --out model/",
    "setwise fit photos.csv --votes answers.csv --key id --item photo --verified verified.csv --out model/",
)
_LEARNERS = ("auto", "covering", "network", "em")
_MANY = 10_000  # rows from which more than one thread pays


def fit(
    *,
    file: Annotated[list[Path], opt.FILES],
    out: Annotated[Path, opt.option("--out FOLDER", "Model directory to write.")],
    candidates: Annotated[str | None, opt.CANDIDATES] = None,
    labels: Annotated[Path | None, opt.LABELS] = None,
    about: opt.OwnRowOptions,
    features: Annotated[list[str] | None, opt.FEATURES] = None,
    carry: Annotated[list[str] | None, opt.IGNORE] = None,
    look: Annotated[int | None, opt.LOOK] = None,
    groups: Annotated[str | None, opt.GROUPS] = None,
    promise: opt.CalibrationOptions,
    calibration_size: Annotated[float, opt.CALIBRATION_SIZE] = 0.2,
    cv: Annotated[int | None, opt.CROSS] = None,
    learner: Annotated[str, opt.LEARNER] = "auto",
    networks: opt.NetworkOptions,
    impute: Annotated[str | None, opt.IMPUTE] = None,
    categories: Annotated[bool, opt.ONE_HOT] = False,
    missing: Annotated[str | None, opt.MISSING] = None,
    truth: Annotated[str | None, opt.RIGHT] = None,
    random_state: Annotated[int, opt.SEED] = 0,
    device: Annotated[str, opt.DEVICE] = "auto",
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Learns from candidates or votes, calibrates on rows kept for that, and saves a model."""
    import setwise  # scikit-learn is loaded
    from setwise.estimators.model_directory import check_target, save_model

    screen = display.screen()
    opt.one_of(candidates, about.votes, "--candidates (a column)")
    opt.refuse_existing(out, force=force, folder=True)
    check_target(out)
    _check(learner, networks)
    by, strategy = promise.by, promise.strategy_at(look)
    source, labelled = about.files(file), about.files(labels)
    column_by = None if by is None or opt.is_found(by, source) else by
    reading: dict[str, Any] = {
        "missing": missing or "error",
        "impute": _filling(impute),
        "categories": "onehot" if categories else None,
        "classes": about.labels(about.separator),
        "as_frame": categories or impute is not None,
        "several": truth is not None,
        "candidates": candidates,
        "by": column_by,
        "carry": [*(carry or []), *([groups] if groups else [])],
        "features": features or None,
    }
    request = about.request(source, labelled, **reading)
    with screen.working(f"reading {source}"):
        table = _read(request, missing)
    numbers = _announce(screen, table, about.separator)
    if len(table) < _MANY and learner != "em":
        use_one_thread()
    sets: Any = table.candidates
    classes_there = sets.classes.tolist()
    verified = table.truth if about.verified else None
    made = {"strategy": strategy, **promise.declarations(classes_there)}
    if learner == "auto":
        learner = _default(verified, made, votes=about.votes is not None)
    estimator = _estimator(learner, networks, {"device": device, "verbose": int(screen.shows_progress)})
    made |= {"confidence_level": promise.confidence_level, "random_state": random_state}
    kind: Any = setwise.ConformalClassifier if cv is None else setwise.CrossConformalClassifier
    made |= {"calibration_size": calibration_size} if cv is None else {"cv": cv}
    model = kind(_encoding(estimator, reading["impute"], table), **made)
    clock = Clock()
    # networks have bars of their own
    with warnings.catch_warnings(), screen.working("learning", shows_itself=learner != "em"):
        warnings.simplefilter("ignore", SpellingWarning)  # it was said of the file already
        told: dict[str, Any] = {"groups": table.carried[groups] if groups else None, "verified": verified}
        told["by"] = table.by if column_by else by
        if table.votes is not None and missing == "full" and cv is None:
            told["missing"] = missing
        if truth is not None:
            told["truth"] = opt.right_of(truth)
        model.fit(table.X, table.answers, **told)
    rate = model.score(table.X, sets)
    unused = _describe_unused(model, verified)
    screen.say(f"learned {_describe_learner(model)}: covering rate {rate:.2f}, {clock}{unused}")
    model.summary_ |= {"file": source.name} | ({"by": column_by} if column_by else {})
    save_model(model, out, table.feature_names)
    claims = show_claims(screen, model, promise.confidence_level)
    written = source.suffix if source.suffix in {".tsv", ".jsonl", ".parquet", ".feather", ".arrow"} else ".csv"
    screen.say("", f"saved to {out}   try:  setwise predict {out} new{source.suffix or '.csv'} --out sets{written}")
    found = {"covering_rate": rate, "seconds": round(clock.seconds, 3), "out": str(out)}
    screen.emit(numbers | found | claims)


def _check(learner: str, networks: opt.NetworkOptions) -> None:
    """Refuses a learner that is not known, and options that would have no effect on it."""
    if learner not in _LEARNERS:
        raise ValueError(
            f"--learner: {learner!r} is not known; use {', '.join(_LEARNERS[:-1])} or {_LEARNERS[-1]}."
        )
    usual = asdict(opt.NetworkOptions())
    given = next((name for name, value in asdict(networks).items() if value != usual[name]), None)
    if learner == "em" and given is not None:
        raise ValueError(f"--{given}: is for networks and has no effect with --learner em; leave out --{given}.")


def _read(request: RowRequest, stops: str | None) -> Table:
    """The rows, whose features are by default all columns that are named nothing else."""
    from setwise.tables.rows import read_rows  # Arrow is loaded for files

    rows = read_rows(request)
    if rows.X.shape[1] == 0:
        alone = "" if rows.votes is None else " Votes alone need no model: use setwise triage --votes."
        raise ValueError(f"{rows.source}: no column is left for the features.{alone}")
    if rows.votes is not None:
        if stops is None:  # a row that nobody answered cannot be learned from
            rows = rows.take(np.flatnonzero(rows.votes.sizes))
        votes: Any = rows.votes
        rows = replace(rows, candidates=votes.candidates(missing=stops or "error"))
    return rows


def _announce(screen: Screen, table: Table, separator: str) -> dict[str, Any]:
    """Says what was read, with doubts where something looks like a mistake, and returns it as numbers."""
    from setwise.tables.table_warnings import doubt_separator

    sets: Any = table.candidates
    names, (rows, width) = table.feature_names, table.X.shape
    mean = float(sets.sizes.mean())
    classes = sets.n_classes
    told = f"{rows:,} rows, {width:,} features, {classes:,} classes, {mean:.1f} candidates per row"
    screen.say(f"read {table.source}: {told}")
    screen.say("features: " + join_names(names, 6))
    doubt_separator(sets, separator)
    return {"rows": rows, "features": width, "classes": classes, "candidates_per_row": mean}


def _filling(impute: str | None) -> Any:
    if impute is None or impute in {"median", "mean"}:
        return impute
    try:
        return float(impute)
    except ValueError:
        raise ValueError(f"--impute: {impute!r} is not median, mean or a number.") from None


def _default(truth: Any, made: dict[str, Any], *, votes: bool) -> str:
    """The library's own choice, by name, so that the options of networks apply to it."""
    from setwise.estimators.default_learner import covers_whole_sets  # scikit-learn is loaded

    checked = 0 if truth is None else sum(label is not None for label in truth.tolist())
    told = {name: made[name] for name in ("strategy", "conformity_score", "assume")}
    return "covering" if covers_whole_sets(n_verified=checked, votes=votes, **told) else "network"


def _estimator(learner: str, networks: opt.NetworkOptions, settings: dict[str, Any]) -> Any:
    if learner == "em":
        from sklearn.linear_model import LogisticRegression  # loaded when asked for
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), learn.EMClassifier(LogisticRegression(max_iter=1000), verbose=0))
    plain = learn.PartialLabelClassifier(**asdict(networks), **settings)
    return plain if learner == "network" else learn.CoveringClassifier(plain, **settings)


def _encoding(learner: Any, impute: Any, table: Table) -> Any:
    """The learner, behind what fills gaps and encodes text where columns were read as they are."""
    from sklearn.pipeline import Pipeline  # scikit-learn is loaded

    from setwise.learn.column_encoder import ColumnEncoder

    if not isinstance(table.X, FeatureFrame):
        return learner
    steps = learner.steps if isinstance(learner, Pipeline) else [("learner", learner)]
    return Pipeline([("columns", ColumnEncoder(impute, table.categories or None)), *steps])


def _describe_unused(model: Any, truth: Any) -> str:
    """A line where more rows are verified than kept for calibration: the others are of no use."""
    rows = getattr(model, "calibration_rows_", None)
    if truth is None or rows is None:
        return ""
    checked = ~missing_labels(truth)
    had, kept = int(checked.sum()), int(checked[rows].sum())
    if not kept == len(rows) < had:
        return ""
    share = math.ceil(100 * had / len(truth)) / 100
    remedy = f"use --calibration-size {share:g} to keep all"
    return f"\n{kept:,} of {had:,} verified rows are kept for calibration: {remedy}"


def _describe_learner(model: Any) -> str:
    """What was learned, in brackets: loss and network, or the estimator's name."""
    from setwise.estimators.adapters import last_step  # scikit-learn is loaded
    from setwise.streams.model_inputs import network_of  # as in `_read`

    fitted, times = model.fitted_models, f"{len(model.fitted_models)} × " if len(model.fitted_models) > 1 else ""
    last = last_step(fitted[0])
    if network_of(last):
        kinds = dict.fromkeys(filter(None, map(network_of, fitted)))
        return f"{times}({last.fitted_.settings.loss}, {' and '.join(kinds)}), {last.n_iter_} epochs"
    if hasattr(last, "predict_inclusion"):
        inner = last.posterior_
        return f"{times}(covering, weight {last.weight_:g}; {inner.loss}, {network_of(inner)})"
    return f"{times}({type(last).__name__})"
