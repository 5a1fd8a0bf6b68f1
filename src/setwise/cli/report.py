"""`setwise report`: one HTML file about the sets of a model, of a calibration, of a table of sets, or of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setwise.cli import options as opt
from setwise.cli.screen import Clock, Screen
from setwise.container import believing_nothing
from setwise.parts import is_part_name
from setwise.report import build_report, report_sets

if TYPE_CHECKING:
    from setwise.data.table_files import TableFiles

EXAMPLES = (
    "setwise report model/ new.csv --truth checked --out report.html",
    "setwise report model/ new.csv --ids id --out report.html",
    "setwise report model.cal --probabilities scores.csv --truth checked --out report.html",
    "setwise report sets.csv --truth checked --confidence 0.9 --out report.html",
    "setwise report sets.csv --labels checks.csv --truth checked --key id --out report.html",
)
_RUN = "run.json"  # in a run's folder: the names of its model and data, the columns, and the shape of images


def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="A model directory (with FILE), a calibration file (with --probabilities), a table of sets that "
            "`setwise predict` wrote, or the folder of a run such as `setwise demo` writes.",
            metavar="RUN",
        ),
    ],
    file: Annotated[
        Path | None, typer.Argument(help="For a model: rows it did not learn from.", metavar="FILE")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The HTML file to write.")] = Path("report.html"),
    probabilities: opt.OptionalProbabilities = None,
    truth: opt.OptionalTruth = None,
    candidates: opt.OptionalCandidates = None,
    labels: opt.Labels = None,
    votes: opt.VotesFile = None,
    key: opt.Key = None,
    item: opt.OptionalItem = None,
    annotator: opt.OptionalAnnotator = None,
    label: opt.OptionalLabel = None,
    weight: opt.Weight = None,
    by: opt.By = None,
    ids: Annotated[
        str | None,
        typer.Option("--ids", help="The column that names the rows, shown with them and in the review list."),
    ] = None,
    confidence_level: opt.ModelsConfidence = None,
    image: Annotated[
        str | None,
        typer.Option("--image", help="Show features as an image of so many rows and columns, such as 28x28."),
    ] = None,
    columns: opt.Features = None,
    trusted: opt.Trusted = None,
    column: opt.SetsColumn = "labels",
    title: Annotated[str | None, typer.Option("--title", help="The headline.")] = None,
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    device: opt.Device = "auto",
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Writes a report for whoever must decide whether to trust the sets: one HTML file, complete in itself."""
    screen, clock = Screen(quiet, as_json), Clock()
    opt.refuse_existing(out, force=force)
    if not run.exists():
        raise ValueError(f"{run}: there is no such file or directory.")
    if (run / _RUN).is_file():
        noted = _noted(run / _RUN)
        run, file = run / noted["model"], file or run / noted["data"]
        truth, candidates = truth or noted.get("truth"), candidates or noted.get("candidates")
        by, image, title = by or noted.get("by"), image or noted.get("image"), title or noted.get("title")
    if key is not None and labels is None and votes is None:
        raise ValueError(
            "--key: matches the rows of --labels or --votes FILE, which is not given; leave out --key."
        )
    tables = partial(opt.tables, delimiter=delimiter, encoding=encoding, decimal=decimal)
    beside = {"labels": labels and tables(labels), "key": key}
    named = {"truth": truth, "candidates": candidates, "by": by, "ids": ids, "separator": separator, **beside}
    given = {"title": title, "confidence_level": confidence_level}
    options = {name: value for name, value in given.items() if value is not None}
    if votes is not None:
        about = tables(file or probabilities or run) if key else None
        options |= _votes(tables(votes), (item, annotator, label, weight), key, about)
    with screen.working(f"reporting on {file or probabilities or run}"):
        if probabilities is not None:
            rows = opt.tables(probabilities, delimiter, encoding, decimal)
            made = _of_calibration(out, run, rows, named, options)
        elif opt.is_table_file(run):
            made = _of_sets(out, opt.tables(run, delimiter, encoding, decimal), column, named, options)
        elif file is not None:
            rows = opt.tables(file, delimiter, encoding, decimal)
            made = _of_model(out, run, rows, named, options, columns, image, device, trusted)
        else:
            raise ValueError(
                f"{run}: give a FILE of new rows for a model, --probabilities FILE for a calibration, a table of "
                "sets, or the folder of a run."
            )
    size = made.stat().st_size
    screen.say(f"wrote {made} ({size / 1e6:.1f} MB) in {clock}; open it in a browser")
    screen.emit({"out": str(made), "bytes": size, "seconds": clock.seconds})


def _noted(path: Path) -> dict[str, Any]:
    """What the folder of a run says about itself: names of parts inside it, and of columns."""
    with believing_nothing(path, "run"):
        noted = json.loads(path.read_text(encoding="utf-8"))
        if not is_part_name(noted["model"]) or not is_part_name(noted["data"]):
            raise ValueError("model and data are no names of parts inside the folder")
        odd = [name for name in ("truth", "candidates", "by", "title") if not isinstance(noted.get(name, ""), str)]
        if odd:
            raise ValueError(f"{odd[0]} is no text")
        return dict(noted)


def _votes(
    votes: TableFiles, columns: tuple[str | None, ...], key: str | None, file: TableFiles | None
) -> dict[str, Any]:
    """Votes of other rows; or, matched by a key, those of the rows of the file, in place of candidates."""
    from setwise.cli.table_columns import votes_of  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data import read_table  # noqa: PLC0415

    if key is None:
        return {"votes": votes_of(votes, None, None, columns)}
    table = read_table(file, features=[], carry=[key])
    return {"candidates": votes_of(votes, key, table, columns)}


def _of_model(
    out: Path,
    path: Path,
    file: TableFiles,
    named: dict[str, Any],
    options: dict[str, Any],
    columns: list[str] | None,
    image: Any,
    device: str,
    trusted: list[str] | None,
) -> Path:
    """Of a model directory and new rows."""
    from setwise.cli.table_columns import read_answers  # noqa: PLC0415
    from setwise.scale import saved_models as saved  # noqa: PLC0415 - Arrow is loaded for files

    model = saved.load_model(path, device, trusted)
    reading = saved.reading_of(model)
    named["by"] = named["by"] or reading.get("by")
    X = np.concatenate([values for values, _ in saved.feature_batches(file, model, columns)])
    options = read_answers(file, model.classes_.tolist(), **named) | options
    options["settings"] = {"model": path.name, "data": file.name}
    names = columns or list(getattr(model, "feature_names_in_", [])) or reading.get("columns")
    if names and len(names) == X.shape[1]:
        options["feature_names"] = names
    if image:
        options["images"] = X.reshape(len(X), *_shape(image, X.shape[1]))
    with saved.no_name_warnings():
        written: Path = model.report(out, X, **options)
        return written


def _of_calibration(
    out: Path, path: Path, probabilities: TableFiles, named: dict[str, Any], options: dict[str, Any]
) -> Path:
    """Of a calibration file and the probabilities of new rows."""
    from setwise.cli.table_columns import read_answers  # noqa: PLC0415
    from setwise.evidence.proposals import most_probable  # noqa: PLC0415
    from setwise.scale import saved_models as saved  # noqa: PLC0415 - Arrow is loaded for files

    calibration = saved.load_calibration(path)
    classes = calibration.classes.tolist()
    batches = saved.probability_batches(probabilities, classes)
    matrix = np.concatenate([values for values, _ in batches])
    if saved.calibrated_on(calibration, most_probable(matrix)):
        calibration = calibration.differing("these are the rows that it was calibrated on")
    options = read_answers(probabilities, classes, **named) | options
    settings = {"calibration": path.name, "data": probabilities.name}
    return build_report(out, calibration, matrix, settings=settings, **options)


def _of_sets(out: Path, path: TableFiles, column: str, named: dict[str, Any], options: dict[str, Any]) -> Path:
    """Of a table of sets, with the p-values that stand beside them where there are any."""
    from setwise.cli.table_columns import (  # noqa: PLC0415 - Arrow is loaded for files
        noted_comparison,
        read_answers,
        read_predicted,
    )

    options["comparison"] = noted_comparison(path)
    beside = named["candidates"] if named["labels"] is None else None
    sets, p_values = read_predicted(path, column, candidates=beside, separator=named["separator"])
    options = read_answers(path, sets.classes.tolist(), **named) | options
    return report_sets(out, sets, p_values=p_values, settings={"sets": path.name}, **options)


def _shape(text: Any, width: int) -> tuple[int, ...]:
    """The shape of an image as it is written, 28x28 or 32x32x3."""
    sides: Iterable[Any] = text.lower().split("x") if isinstance(text, str) else text
    try:
        shape = tuple(int(side) for side in sides)
    except ValueError:
        raise ValueError(f"--image: {text!r} is not a shape such as 28x28.") from None
    if math.prod(shape) != width or len(shape) not in {2, 3}:
        raise ValueError(f"--image: {text} is not the shape of {width} features.")
    return shape
