"""`setwise conformalize`: probabilities from any model, calibrated on candidate sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import setwise
from setwise import data
from setwise.cli import options as opt
from setwise.cli.options import assume_of, strategy_of
from setwise.cli.screen import Screen, claims, show_claims
from setwise.errors import DataError, Remedy
from setwise.ranks import as_level

if TYPE_CHECKING:
    from setwise.data.table_files import TableFiles

EXAMPLES = (
    "setwise conformalize --probabilities scores.csv --labels answers.csv --key id --out model.cal",
    "setwise conformalize --probabilities scores.csv --votes votes.csv --key id --item call --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --key id --checks checks.csv --out m.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --by hospital --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --assume uniform --out model.cal",
)


def conformalize(
    probabilities: opt.Probabilities,
    out: Annotated[Path, typer.Option("--out", help="The calibration file to write.")],
    labels: opt.Labels = None,
    candidates: opt.Candidates = "candidates",
    votes: opt.VotesFile = None,
    item: opt.OptionalItem = None,
    annotator: opt.OptionalAnnotator = None,
    label: opt.OptionalLabel = None,
    weight: opt.Weight = None,
    key: opt.Key = None,
    carry: opt.Ignore = None,
    verified: opt.Verified = None,
    checks: opt.Checks = None,
    look: opt.Look = None,
    from_name: opt.FromName = None,
    by: opt.By = None,
    confidence_level: opt.Confidence = 0.9,
    strategy: opt.Strategy = "auto",
    conformity_score: opt.ConformityScore = "lac",
    miss_rate: opt.MissRate = 0.0,
    assume: opt.Assume = "nothing",
    missing: opt.Missing = "error",
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    random_state: opt.Seed = 0,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Calibrates the probabilities of a model of your own on candidate sets or votes; writes a calibration file."""
    from setwise.cli.table_columns import one_of, stands_for_prediction, with_checks  # noqa: PLC0415
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    one_of(labels, votes, key, "--labels (a file)")
    opt.refuse_existing(out, force=force)
    as_level(confidence_level)
    made = strategy_of(strategy, confidence_level, look)
    named = {"probabilities": probabilities, "labels": labels, "votes": votes, "checks": checks}
    files = {name: opt.tables(path, delimiter, encoding, decimal) for name, path in named.items() if path}
    with screen.working(f"reading {probabilities}"):
        predicted = all(
            stands_for_prediction(by, files[name]) for name in ("probabilities", "labels") if name in files
        )
        column_by, ignored = None if predicted else by, set(carry or [])
        with_truth = files["probabilities" if labels is None else "labels"]
        truth = None if checks and verified not in column_names(with_truth) else verified
        if labels is not None:
            options = {"candidates": candidates, "truth": truth, "separator": separator, "missing": missing}
            table, classes, known = _read(files["probabilities"], files["labels"], key, column_by, ignored, options)
        else:
            columns = (item, annotator, label, weight)
            table, classes, known = _with_votes(
                files["probabilities"], files["votes"], str(key), columns, column_by, truth, ignored
            )
            known["missing"] = missing
        told = {"checks": files.get("checks"), "separator": separator, "from_name": from_name}
        known["verified"] = with_checks(table, key, verified, classes, **told)
    matrix = table.X
    calibration = setwise.conformalize(
        matrix,
        strategy=made,
        conformity_score=conformity_score,
        miss_rate=miss_rate,
        assume=assume_of(assume, classes),
        random_state=random_state,
        **(known | {"by": by} if predicted else known),
    )
    calibration.save(out)
    screen.say(f"read {probabilities}: {len(matrix):,} rows, {len(classes):,} classes, such as {classes[0]!r}")
    show_claims(screen, calibration, confidence_level)
    screen.say(f"\nsaved to {out}   try:  setwise predict {out} --probabilities new.csv --out sets.csv")
    found = {"rows": len(matrix), "classes": classes, "out": str(out)}
    screen.emit(found | claims(calibration, confidence_level))


def _read(
    probabilities: TableFiles,
    labels: TableFiles,
    key: str | None,
    by: str | None,
    ignored: set[str],
    options: dict[str, Any],
) -> tuple[data.Table, list[Any], dict[str, Any]]:
    """Probabilities with verified labels, the classes of their columns, each row's candidates and category."""
    from setwise.cli.table_columns import categories_of, sets_in  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415
    from setwise.data.doubts import doubt_features  # noqa: PLC0415
    from setwise.data.key_join import matching_rows, refuse_other_order  # noqa: PLC0415
    from setwise.data.set_files import probability_labels  # noqa: PLC0415

    names, keys = column_names(probabilities), [key] if key else []
    beside = [by] if by in names else []  # categories may stand with the probabilities, or with the candidates
    columns = _class_columns(names, ignored | {*keys, *beside}, probabilities)
    classes = probability_labels(columns)
    table = data.read_table(probabilities, features=columns, carry=[*keys, *beside])
    doubt_features(table)
    with_answers = [by] if by and not beside else []
    answers = data.read_table(labels, features=[], carry=[*keys, *with_answers], classes=classes, **options)
    sets, truth = sets_in(answers), answers.truth
    if not key and len(answers) != len(table):
        problem = f"{labels}: {len(answers)} rows for {len(table)} rows of {probabilities}"
        raise DataError(problem, Remedy("key", None, "to match them"))
    rows: Any = slice(None)
    if not key:
        refuse_other_order(probabilities, labels)
    else:
        files: dict[str, Any] = {"source": str(probabilities), "other": str(labels)}
        rows = matching_rows(key, table.carried[key], answers.carried[key], all_used=True, **files)
    category = None
    if by:
        found, file = (table.carried[by], probabilities) if beside else (answers.carried[by][rows], labels)
        category = categories_of(found, by, file)
    table = replace(table, truth=None if truth is None else truth[rows])
    return table, classes, {"candidates": sets[rows], "by": category}


def _with_votes(
    probabilities: TableFiles,
    votes: TableFiles,
    key: str,
    columns: tuple[str | None, ...],
    by: str | None,
    verified: str | None,
    ignored: set[str],
) -> tuple[data.Table, list[Any], dict[str, Any]]:
    """The same with votes in place of candidates; verified labels and categories stand with the probabilities."""
    from setwise.cli.table_columns import categories_of, votes_of  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415
    from setwise.data.set_files import probability_labels  # noqa: PLC0415

    beside = [name for name in (key, by) if name]
    taken = ignored | {*beside, *([verified] if verified else [])}
    named = _class_columns(column_names(probabilities), taken, probabilities)
    classes = probability_labels(named)
    table = data.read_table(probabilities, features=named, carry=beside, truth=verified, classes=classes)
    category = categories_of(table.carried[by], by, probabilities) if by else None
    answers = votes_of(votes, key, table, columns, classes, absent=True)
    return table, classes, {"candidates": answers, "by": category}


def _class_columns(names: list[str], others: set[str], file: TableFiles) -> list[str]:
    """The columns that hold probabilities: those called p:class where there are any, else all others."""
    from setwise.data.arrow_tables import absent_column  # noqa: PLC0415 - Arrow is loaded for files

    absent = [name for name in others if name not in names]
    if absent:
        raise absent_column(absent[0], names, str(file))
    named = [name for name in names if name.startswith("p:")]
    columns = named or [name for name in names if name not in others]
    if "" in columns:
        problem = f"{file}: a column has no name, as the index that pandas writes"
        raise DataError(problem, Remedy("carry", "", "to leave it out"))
    if len(columns) < 2:
        raise ValueError(f"{file}: {len(columns)} column of probabilities; at least two classes are needed.")
    return columns
