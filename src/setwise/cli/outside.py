"""`setwise conformalize`: probabilities from any model, given as a table with one column a class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from setwise.cli.options import (
    Assume,
    By,
    Confidence,
    Force,
    Json,
    Missing,
    MissRate,
    Quiet,
    Score,
    Seed,
    Separator,
    Strategy,
    strategy_of,
)
from setwise.cli.screen import Screen


def conformalize(
    probabilities: Annotated[
        Path,
        typer.Option("--probabilities", help="A table with one column a class, named as the class or p:class."),
    ],
    candidates: Annotated[Path, typer.Option("--candidates", help="A table with the candidates of the same rows.")],
    out: Annotated[Path, typer.Option("--out", help="The calibration file to write.")],
    column: Annotated[str, typer.Option("--column", help="The column of candidates.")] = "candidates",
    key: Annotated[
        str | None,
        typer.Option("--key", help="A column of both tables that matches their rows. Default: row by row."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="A column of the probabilities that is no class; repeat it."),
    ] = None,
    verified: Annotated[
        str | None, typer.Option("--verified", help="The candidates' column with labels somebody checked.")
    ] = None,
    by: By = None,
    confidence: Confidence = 0.9,
    strategy: Strategy = "auto",
    score: Score = "lac",
    miss_rate: MissRate = 0.0,
    assume: Assume = "nothing",
    missing: Missing = "error",
    separator: Separator = "|",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Calibrates the probabilities of a model of your own on candidate sets; writes a calibration file."""
    import setwise  # noqa: PLC0415
    from setwise.cli.declaring import assume_of, stands_for_prediction  # noqa: PLC0415
    from setwise.cli.files import refuse_existing  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.cli.learning import report, summary  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    refuse_existing(out, force=force)
    options = {"candidates": column, "truth": verified, "separator": separator, "missing": missing}
    with screen.working(f"reading {probabilities}"):
        predicted = all(stands_for_prediction(by, file) for file in (probabilities, candidates))
        column_by = None if predicted else by
        read = _read(probabilities, candidates, key, column_by, set(ignore or []), options)
        matrix, labels, sets, checked, category = read
    calibration = setwise.conformalize(
        matrix,
        sets,
        strategy_of(strategy, confidence),
        score,
        by=by if predicted else category,
        verified=checked,
        miss_rate=miss_rate,
        assume=assume_of(assume, labels),
        random_state=seed,
    )
    calibration.save(out)
    screen.say(f"read {probabilities}: {len(matrix):,} rows, {len(labels):,} classes, such as {labels[0]!r}")
    report(screen, calibration, confidence)
    screen.say(f"\nsaved to {out}   try:  setwise predict {out} --probabilities new.csv --out sets.csv")
    screen.emit({"rows": len(matrix), "classes": labels, "out": str(out)} | summary(calibration, confidence))


def probability_batches(
    file: Path, labels: list[Any], rows: int, delimiter: str | None = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Batches of probabilities, columns found by the names of the labels, with all other columns."""
    from setwise.data.arrow_tables import arrow_batches, column_names  # noqa: PLC0415
    from setwise.data.set_files import probability_columns  # noqa: PLC0415
    from setwise.data.tabular import Layout, interpret  # noqa: PLC0415

    names = column_names(file, delimiter)
    columns = probability_columns(names, labels)
    if columns is None:
        absent = next(label for label in labels if str(label) not in names and f"p:{label}" not in names)
        raise ValueError(
            f'{file} has no column "{absent}", a class of the calibration ({len(labels)} classes expected).'
        )
    carry = [name for name in names if name not in set(columns)]
    first = 0
    for batch in arrow_batches(file, rows, text=carry, delimiter=delimiter):
        table = interpret(batch.select(columns), Layout(features=columns), str(file), first)
        yield table.X, {name: batch[name].combine_chunks() for name in carry}
        first += len(batch)


def _read(
    probabilities: Path,
    candidates: Path,
    key: str | None,
    by: str | None,
    ignore: set[str],
    options: dict[str, Any],
) -> tuple[Any, list[Any], Any, list[Any] | None, list[str] | None]:
    """Probabilities, the labels of their columns, and for each row its candidates, verified label and category."""
    from setwise.cli.declaring import categories_of  # noqa: PLC0415
    from setwise.data import read_table  # noqa: PLC0415
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415
    from setwise.data.key_join import matching_rows  # noqa: PLC0415
    from setwise.data.set_files import probability_labels  # noqa: PLC0415

    names, keys = column_names(probabilities), [key] if key else []
    beside = [by] if by in names else []  # categories may stand with the probabilities, or with the candidates
    columns = _class_columns(names, ignore | {*keys, *beside}, probabilities)
    labels = probability_labels(columns)
    table = read_table(probabilities, features=columns, carry=[*keys, *beside])
    with_answers = [by] if by and not beside else []
    answers = read_table(candidates, features=[], carry=[*keys, *with_answers], classes=labels, **options)
    sets, truth = answers.candidates, answers.truth
    if sets is None:
        raise ValueError(f"{candidates}: holds no candidates.")
    if not key and len(answers) != len(table):
        raise ValueError(
            f"{candidates}: {len(answers)} rows for {len(table)} rows of {probabilities}; match them with --key."
        )
    rows: Any = slice(None)
    if key:
        files = {"source": str(probabilities), "other": str(candidates)}
        rows = matching_rows(key, table.carried[key], answers.carried[key], **files)
    category = None
    if by:
        found, file = (table.carried[by], probabilities) if beside else (answers.carried[by][rows], candidates)
        category = categories_of(found, by, file)
    return table.X, labels, sets[rows], None if truth is None else truth[rows].tolist(), category


def _class_columns(names: list[str], others: set[str], file: Path) -> list[str]:
    """The columns that hold probabilities: those called p:class where there are any, else all others."""
    absent = [name for name in others if name not in names]
    if absent:
        raise ValueError(f"{file}: there is no column {absent[0]!r}; it has {', '.join(names[:8])}.")
    named = [name for name in names if name.startswith("p:")]
    columns = named or [name for name in names if name not in others]
    if len(columns) < 2:
        raise ValueError(f"{file}: {len(columns)} column of probabilities; at least two classes are needed.")
    return columns
