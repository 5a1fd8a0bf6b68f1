"""`setwise fit`: from a table with candidates to a model directory."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise import learn
from setwise.cli import options as opt
from setwise.cli.light_imports import load_sklearn, settle_arrow
from setwise.cli.options import assume_of, strategy_of
from setwise.cli.screen import Clock, Screen, claims, show_claims
from setwise.labels.vocabulary import missing_labels
from setwise.ranks import as_level
from setwise.report import report_model
from setwise.scale.threads import use_one_thread

if TYPE_CHECKING:
    from setwise.data import Table
    from setwise.data.table_files import TableFiles

EXAMPLES = (
    "setwise fit votes.csv --candidates answers --ignore id --out model/",
    "setwise fit votes.csv --candidates answers --cross 5 --out model/",
    "setwise fit votes.csv --candidates answers --by hospital --out model/",
    "setwise fit calls.csv --labels answers.csv --candidates answers --key id --out model/",
    "setwise fit calls.csv --votes votes.csv --key id --item call --annotator who --label bird --out model/",
    "setwise fit calls.csv --votes votes.csv --key id --item call --checks verified.csv --out model/",
    "setwise fit votes.csv --candidates answers --strategy corrected --assume rates.csv --out model/",
)
_LEARNERS = ("auto", "covering", "network", "em")
_MANY = 10_000  # rows from which more than one thread pays


def fit(
    file: opt.Files,
    out: Annotated[Path, typer.Option("--out", help="The model directory to write.")],
    candidates: opt.OptionalCandidates = None,
    labels: opt.Labels = None,
    votes: opt.VotesFile = None,
    key: opt.Key = None,
    item: opt.OptionalItem = None,
    annotator: opt.OptionalAnnotator = None,
    label: opt.OptionalLabel = None,
    weight: opt.Weight = None,
    features: opt.Features = None,
    carry: opt.Ignore = None,
    verified: opt.Verified = None,
    checks: opt.Checks = None,
    look: opt.Look = None,
    from_name: opt.FromName = None,
    groups: opt.Groups = None,
    by: opt.By = None,
    confidence_level: opt.Confidence = 0.9,
    strategy: opt.Strategy = "auto",
    conformity_score: opt.ConformityScore = "lac",
    miss_rate: opt.MissRate = 0.0,
    assume: opt.Assume = "nothing",
    calibration_size: opt.CalibrationSize = 0.2,
    cv: opt.Cross = None,
    learner: opt.Learner = "auto",
    network: opt.Network = "auto",
    loss: opt.Loss = "proden",
    epochs: opt.Epochs = None,
    preset: opt.Preset = None,
    impute: opt.Impute = None,
    categories: opt.OneHot = False,
    missing: opt.Missing = "error",
    classes: opt.Classes = None,
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    report_to: opt.ReportTo = None,
    random_state: opt.Seed = 0,
    device: opt.Device = "auto",
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Learns from candidate sets or votes, calibrates on rows kept for it, and saves the model."""
    from setwise.cli.table_columns import (  # noqa: PLC0415 - Arrow is loaded for files
        answered,
        labels_were_read,
        one_of,
        sets_in,
        stands_for_prediction,
        votes_of,
        with_checks,
    )

    load_sklearn()
    from setwise.estimators.model_directory import save_model  # noqa: PLC0415 - with scikit-learn as it is loaded

    screen = Screen(quiet, as_json)
    one_of(candidates, votes, key, "--candidates (a column)")
    _check_targets(out, report_to, force=force)
    network_options = {"network": network, "loss": loss, "epochs": epochs, "preset": preset}
    _check(confidence_level, learner, network_options)
    chosen = strategy_of(strategy, confidence_level, look)
    tables = partial(opt.tables, delimiter=delimiter, encoding=encoding, decimal=decimal)
    source = tables(file)
    column_by = None if by is None or stands_for_prediction(by, source) else by
    ignored = list(dict.fromkeys([*(carry or []), *filter(None, (groups, column_by, key))]))
    reading: dict[str, Any] = {
        "separator": separator,
        "missing": missing,
        "impute": _filling(impute),
        "categories": "onehot" if categories else None,
        "classes": None if classes is None else [label.strip() for label in classes.split(separator)],
        **({} if labels is None else {"candidates_file": tables(labels), "key": key}),
    }
    with screen.working(f"reading {source}"):
        table, columns = _read(source, candidates, features, ignored, verified, checks, reading)
        answers = None
        if votes is not None and key is not None:
            answers = votes_of(tables(votes), key, table, (item, annotator, label, weight), reading["classes"])
            table = replace(table, candidates=answered(answers, votes, source))
    numbers = _announce(screen, table, separator, doubt=features is None)
    if len(table) < _MANY and learner != "em":
        use_one_thread()
    sets, labelled = sets_in(table), sets_in(table).classes.tolist()
    reading = {"checks": checks and tables(checks), "separator": separator, "from_name": from_name}
    truth = with_checks(table, key, verified, labelled, **reading)
    made = {"strategy": chosen, "conformity_score": conformity_score, "assume": assume_of(assume, labelled)}
    if learner == "auto":
        learner = _default(truth, votes=answers is not None, **made)
    estimator = _estimator(learner, network_options, {"device": device, "verbose": int(screen.shows_progress)})
    made |= {"confidence_level": confidence_level, "miss_rate": miss_rate, "random_state": random_state}
    model = _conformal(estimator, cv, calibration_size, made)
    categorized = _categories(table, column_by, source) if column_by else by
    clock = Clock()
    with labels_were_read(), screen.working("learning", shows_itself=learner != "em"):  # networks have bars
        told = {"groups": table.carried[groups] if groups else None, "verified": truth, "by": categorized}
        model.fit(table.X, sets if answers is None else answers, **told)
    rate = model.score(table.X, sets)
    screen.say(f"learned {_described(model)}: covering rate {rate:.2f}, {clock}{_unused(model, truth)}")
    notes = {
        "columns": columns,
        "imputed": dict(table.imputed),
        "categories": {name: list(values) for name, values in table.categories.items()},
        "by": column_by,
    }
    save_model(model, out, {"file": source.name, "reading": notes}, table.feature_names)
    show_claims(screen, model, confidence_level)
    if report_to is not None:
        _report(report_to, model, table, categorized, answers)
        screen.say(f"\nwrote {report_to}, about the rows it was calibrated on")
    written = source.suffix if source.suffix in {".tsv", ".jsonl", ".parquet", ".feather", ".arrow"} else ".csv"
    screen.say(f"\nsaved to {out}   try:  setwise predict {out} new{source.suffix or '.csv'} --out sets{written}")
    found = {"covering_rate": rate, "seconds": round(clock.seconds, 3), "out": str(out)}
    screen.emit(numbers | found | claims(model, confidence_level))


def _check_targets(out: Path, report_to: Path | None, *, force: bool) -> None:
    """Refuses to write where something is, and a model where none can be."""
    from setwise.estimators.model_directory import check_target  # noqa: PLC0415 - scikit-learn is loaded

    for target in filter(None, (out, report_to)):
        opt.refuse_existing(target, force=force, folder=target is out)
    check_target(out)


def _check(confidence_level: float, learner: str, options: dict[str, Any]) -> None:
    """Refuses before anything is read or learned what cannot be, and options that would have no effect."""
    as_level(confidence_level)
    if learner not in _LEARNERS:
        raise ValueError(
            f"--learner: {learner!r} is not known; use {', '.join(_LEARNERS[:-1])} or {_LEARNERS[-1]}."
        )
    usual = {"network": "auto", "loss": "proden", "epochs": None, "preset": None}
    given = next((name for name, value in options.items() if value != usual[name]), None)
    if learner == "em" and given is not None:
        raise ValueError(f"--{given}: is for networks and has no effect with --learner em; leave out --{given}.")


def _read(
    file: TableFiles,
    candidates: str | None,
    features: list[str] | None,
    carry: list[str],
    truth: str | None,
    checks: Path | None,
    options: dict[str, Any],
) -> tuple[Table, list[str] | None]:
    """The table, and the columns its features came from (None for files of arrays, which have no names).

    The column `truth` may be one of the file `checks` alone.
    """
    from setwise.data import read_table  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.data.arrow_tables import column_names, has_column, is_table  # noqa: PLC0415

    settle_arrow()
    if not is_table(file):
        return read_table(file, candidates=candidates, truth=truth, **options), None
    names = column_names(file)
    told = [file, *([options["candidates_file"]] if "candidates_file" in options else [])]
    if truth and checks and not any(is_table(one) and has_column(one, truth) for one in told):
        truth = None
    start = None if candidates is None or candidates in names else f"{candidates.removesuffix(':')}:"
    flags = [] if start is None else [name for name in names if name.startswith(start)]
    taken = {candidates, truth, *carry, *flags}
    columns = features or [name for name in names if name not in taken]
    twice = next((name for name in columns if name in taken), None)
    if twice is not None:
        raise ValueError(f"--features: {twice!r} is named as something else too, and cannot be both.")
    table = read_table(file, candidates=candidates, truth=truth, features=columns, carry=carry, **options)
    if table.X.shape[1] == 0:
        raise ValueError(f"{file}: no column is left for the features.")
    return table, columns


def _announce(screen: Screen, table: Table, separator: str, *, doubt: bool) -> dict[str, Any]:
    """Says what was read, with doubts where something looks like a mistake, and returns it as numbers."""
    from setwise.cli.table_columns import sets_in  # noqa: PLC0415 - as in `_read`
    from setwise.data.doubts import doubt_features, doubt_separator  # noqa: PLC0415

    sets, names, (rows, width) = sets_in(table), table.feature_names, table.X.shape
    mean = float(sets.sizes.mean())
    classes = sets.n_classes
    told = f"{rows:,} rows, {width:,} features, {classes:,} classes, {mean:.1f} candidates per row"
    screen.say(f"read {table.source}: {told}")
    screen.say("features: " + ", ".join(names[:6]) + (", …" if len(names) > 6 else ""))
    doubt_separator(sets, separator)
    if doubt:
        doubt_features(table)
    return {"rows": rows, "features": width, "classes": classes, "candidates_per_row": mean}


def _filling(impute: str | None) -> Any:
    if impute is None or impute in {"median", "mean"}:
        return impute
    try:
        return float(impute)
    except ValueError:
        raise ValueError(f"--impute: {impute!r} is not median, mean or a number.") from None


def _default(truth: Any, **made: Any) -> str:
    """The library's own choice, by name, so that the options of networks apply to it."""
    from setwise.estimators.adapters import covers_whole_sets  # noqa: PLC0415 - scikit-learn is loaded

    checked = 0 if truth is None else sum(label is not None for label in truth.tolist())
    return "covering" if covers_whole_sets(checked=checked, **made) else "network"


def _estimator(learner: str, options: dict[str, Any], settings: dict[str, Any]) -> Any:
    """The learner of that name; `options` are those of networks."""
    if learner == "em":
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - loaded when asked for
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

        return make_pipeline(StandardScaler(), learn.EMClassifier(LogisticRegression(max_iter=1000), verbose=0))
    plain = learn.PartialLabelClassifier(**options, **settings)
    return plain if learner == "network" else learn.CoveringClassifier(plain, **settings)


def _conformal(estimator: Any, cv: int | None, calibration_size: float, made: dict[str, Any]) -> Any:
    """What splits, learns and conformalizes: into two parts, or into folds."""
    import setwise  # noqa: PLC0415 - scikit-learn is loaded

    if cv is not None:
        return setwise.CrossConformalClassifier(estimator, cv=cv, **made)
    return setwise.ConformalClassifier(estimator, calibration_size=calibration_size, **made)


def _unused(model: Any, truth: Any) -> str:
    """A line where more rows are checked than kept for calibration: the other checks are of no use."""
    rows = getattr(model, "calibration_rows_", None)
    if truth is None or rows is None:
        return ""
    checked = ~missing_labels(truth)
    had, kept = int(checked.sum()), int(checked[rows].sum())
    if not kept == len(rows) < had:
        return ""
    share = math.ceil(100 * had / len(truth)) / 100
    remedy = f"use --calibration-size {share:g} to keep all"
    return f"\n{kept:,} of {had:,} checked rows are kept for calibration: {remedy}"


def _described(model: Any) -> str:
    """What was learned, in brackets: loss and network, or the estimator's name."""
    from setwise.scale.saved_models import network_of  # noqa: PLC0415 - as in `_read`

    models = model.fitted_models
    fitted, times = models[0], f"{len(models)} × " if len(models) > 1 else ""
    if network_of(fitted):
        kinds = dict.fromkeys(filter(None, map(network_of, models)))
        return f"{times}({fitted.fitted_.settings.loss}, {' and '.join(kinds)}), {fitted.n_iter_} epochs"
    if hasattr(fitted, "predict_inclusion"):
        inner = fitted.posterior_
        return f"{times}(covering, weight {fitted.weight_:g}; {inner.loss}, {network_of(inner)})"
    last = fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted
    return f"{times}({type(last).__name__})"


def _report(path: Path, model: Any, table: Table, by: Any, votes: Any) -> None:
    """A report on the rows kept for calibration, which the model did not learn from.

    Their truth stays out of it, even where somebody checked: the thresholds were chosen on these very rows.
    """
    rows = getattr(model, "calibration_rows_", None)
    if rows is None or table.candidates is None:
        raise ValueError("--report: every row was learned from; use `setwise report` with new rows.")
    options: dict[str, Any] = {
        "settings": {"rows": "those kept for calibration"},
        "feature_names": list(table.feature_names),
    }
    known: dict[str, Any] = {} if by is None or isinstance(by, str) else {"by": [by[row] for row in rows.tolist()]}
    told = table.candidates[rows] if votes is None else votes[rows]
    report_model(path, model, table.X[rows], None, told, comparison=None, **options, **known)


def _categories(table: Table, by: str, source: TableFiles) -> list[str]:
    from setwise.data.label_columns import categories_of  # noqa: PLC0415 - Arrow is loaded for files

    return categories_of(table.carried[by], by, source)
