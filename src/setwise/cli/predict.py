"""`setwise predict`: prediction sets for new rows, batch by batch, beside every column that is no feature."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli import options as opt
from setwise.cli.screen import Clock, Screen
from setwise.ranks import doubt_level
from setwise.streams.engines import run_local

if TYPE_CHECKING:
    from setwise.drift.comparison import Comparison
    from setwise.streams.batch_predictor import BatchPredictor
    from setwise.streams.predicted_parts import PredictedRows
    from setwise.tables.table_files import TableFiles

    _Found = tuple[PredictedRows, Comparison, int]
    """What was found of all rows, how these compare with the calibration rows, and how many files were kept."""

EXAMPLES = (
    "setwise predict model/ new.csv --out sets.csv",
    "setwise predict model/ new.parquet --out sets.parquet --confidence 0.95 --p-values",
    "setwise predict model.cal --probabilities scores.csv --by hospital --out sets.csv",
    "setwise predict model.cal --probabilities scores.csv --nodes tree.csv --at-most 2 --out sets.csv",
    "setwise predict model.cal --probabilities scores/ --out sets/ --resume",
    "setwise predict model.cal --probabilities scores/ --out sets/ --engine ray --address 10.0.0.7:6379",
)


def predict(
    *,
    model: Annotated[Path, typer.Argument(help="Model directory or calibration file.", metavar="MODEL")],
    out: Annotated[Path, opt.OUT_TABLE],
    file: Annotated[list[Path] | None, opt.FILES] = None,
    probabilities: Annotated[Path | None, opt.PROBABILITIES] = None,
    confidence_level: Annotated[float | None, opt.MODELS_CONFIDENCE] = None,
    by: Annotated[str | None, opt.BY] = None,
    p_values: Annotated[bool, opt.option("--p-values", "Also write one p-value for each class.")] = False,
    naming: opt.TreeOptions,
    loading: opt.ModelOptions,
    column: Annotated[str, opt.SETS_COLUMN] = "labels",
    separator: Annotated[str, opt.SEPARATOR] = "|",
    text: opt.TextOptions,
    runs: opt.RunOptions,
    display: opt.ScreenOptions,
) -> None:
    """Writes a prediction set for every row of a table, beside its other columns."""
    from setwise.streams.batch_predictor import BatchPredictor  # Arrow is loaded for files
    from setwise.streams.comparison_notes import write_note
    from setwise.tables.arrow_reading import row_count

    screen, clock = display.screen(out), Clock()
    if bool(probabilities) == bool(file):
        raise ValueError("predict: give a FILE of new rows for a model, or --probabilities FILE for a calibration.")
    in_parts = opt.is_folder(out)
    if not in_parts:
        if runs.resume:
            raise ValueError("--resume: completes a folder of files; name a folder with --out.")
        if runs.workers() is not run_local:
            raise ValueError("--engine: others than local write a folder of files; name a folder with --out.")
        opt.refuse_existing(out, force=runs.force)
    source = text.files(probabilities or file)
    asked: dict[str, Any] = {"by": by, "p_values": p_values, "column": column, **asdict(loading)}
    predictor = BatchPredictor(model, confidence_level, probabilities=probabilities is not None, **asked)
    doubt_level(predictor.confidence_level)
    predictor.check_categories()
    predictor.tree, predictor.at_most = naming.tree(predictor.calibration.classes.tolist())
    with screen.counting(f"predicting {source.name}", row_count(source)) as advance:
        if in_parts:
            found, compared, kept = _in_parts(predictor, source, out, advance, runs, separator)
        else:
            found, compared, kept = _in_one(predictor, source, out, advance, separator)
    level, shares = predictor.confidence_level, found.shares()
    screen.say(
        f"{shares['rows']:,} rows at confidence {level:.12g}: {shares['mean_size']:.2f} labels per row, "
        f"{shares['singleton_rate']:.1%} with one label, {shares['empty_rate']:.1%} with none, {clock}"
    )
    if kept:
        screen.say(f"{kept:,} of {len(source.paths):,} files were finished before, and are kept")
    screen.say(f"saved to {out}   try:  setwise evaluate {out} --truth COLUMN")
    if out != opt.STANDARD:
        write_note(out, compared)
    screen.emit(
        shares
        | _state_guarantee(screen, compared, level, source)
        | ({"files_kept": kept} if in_parts else {})
        | {"out": str(out), "seconds": clock.seconds}
    )


def _in_one(predictor: BatchPredictor, source: TableFiles, out: Path, advance: Any, separator: str) -> _Found:
    """All rows into one file."""
    from setwise.cli.outputs import writing  # Arrow is loaded for files
    from setwise.streams.comparison_notes import write_note
    from setwise.streams.predicted_parts import predict_table

    predictor.row_tally()  # what cannot be asked is refused before a file is opened
    with writing(out, column=predictor.column, separator=separator) as writer:
        found = predict_table(predictor, source, writer, advance)
        compared = _compare_rows(predictor, [found])
        if compared.refuted and out != opt.STANDARD:  # before the sets are in place: nobody finds them without it
            write_note(out, compared)
    return found, compared, 0


def _in_parts(
    predictor: BatchPredictor, source: TableFiles, out: Path, advance: Any, runs: opt.RunOptions, separator: str
) -> _Found:
    """Each file into one of a folder; finished ones are kept where that is asked for."""
    from setwise.streams.predicted_parts import PartWriter, PredictedRows, read_finished
    from setwise.streams.table_parts import check_complete, digest_of, open_folders, parts_of
    from setwise.tables.arrow_reading import column_names  # Arrow is loaded for files

    parts = parts_of(source, out)
    names = column_names(source)
    asked = digest_of(predictor.describe() | {"separator": separator, "columns of the first file": names}, source)
    engine = runs.workers(predictor.wanted_device)
    with open_folders({out: parts}, asked, force=runs.force, resume=runs.resume):
        done = {
            part.number: rows for part in parts if runs.resume and (rows := read_finished(part, asked, predictor))
        }
        kept = len(done)
        worker = PartWriter(predictor, asked, tuple(names), separator)
        for rows in done.values():
            advance(rows.rows)
        for part, rows in engine([part for part in parts if part.number not in done], worker):
            done[part.number] = rows
            advance(rows.rows)
        check_complete(parts, [part.out for part in parts])
    found = [done[part.number] for part in parts]
    total = PredictedRows(sum((rows.sizes for rows in found), Counter()))
    return total, _compare_rows(predictor, found), kept


def _compare_rows(predictor: BatchPredictor, found: list[PredictedRows]) -> Comparison:
    """How all rows compare with the calibration rows, those of finished files as they were counted then."""
    rows = predictor.row_tally()
    for part in found:
        rows.include(part.compared)
    return replace(rows.compare(), used=next((part.used for part in found if part.used is not None), None))


def _state_guarantee(screen: Screen, compared: Comparison, level: float, source: Any) -> dict[str, Any]:
    """What is promised for these rows; says so where they differ from the calibration rows, or are among them."""
    made = compared.guarantee(level)
    if compared.refuted:
        warnings.warn(f"{source}: {compared.sentence}", stacklevel=3)
        screen.show(made)
    claimed: dict[str, Any] = {"confidence_level": level, "promised": made.promised, "delta": made.delta}
    if made.by_category:
        claimed["promised_by_category"] = {name: part.promised for name, part in made.by_category.items()}
    return claimed | {"comparison": compared.to_dict()}
