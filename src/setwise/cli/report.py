"""`setwise report`: one HTML file about the sets of a model, of a calibration, of a table of sets, or of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli import options as opt
from setwise.cli.screen import Clock
from setwise.report import build_report, report_model, report_sets
from setwise.storage.container import reading_untrusted
from setwise.storage.directory import is_part_name

if TYPE_CHECKING:
    from setwise.tables.rows import RowRequest

EXAMPLES = (
    "setwise report model/ new.csv --truth label --out report.html",
    "setwise report model/ new.csv --ids id --out report.html",
    "setwise report model.cal --probabilities scores.csv --truth label --out report.html",
    "setwise report sets.csv --truth label --confidence 0.9 --out report.html",
    "setwise report sets.csv --labels truth.csv --truth label --key id --out report.html",
)
_RUN = "run.json"  # in a run's folder: the names of its model and data, the columns, and the shape of images
_WHAT = typer.Argument(
    help="Model directory (with FILE), calibration file (with --probabilities), table of sets that setwise "
    "predict wrote, or folder that setwise demo wrote.",
    metavar="RUN",
)
_IMAGE = opt.option(
    "--image ROWSxCOLUMNS", "Show the features of a row as an image of this size, such as 28x28.", opt.PRINTED
)


def report(
    *,
    run: Annotated[Path, _WHAT],
    file: Annotated[
        Path | None, typer.Argument(help="Rows that the model did not learn from.", metavar="FILE")
    ] = None,
    out: Annotated[Path, opt.option("--out FILE", "HTML file to write.")] = Path("report.html"),
    probabilities: Annotated[Path | None, opt.PROBABILITIES] = None,
    about: opt.KnownOptions,
    votes: Annotated[Path | None, opt.VOTES_FILE] = None,
    vote_table: opt.VoteOptions,
    ids: Annotated[
        str | None, opt.option("--ids COLUMN", "Column with the names of rows, which the page then shows.")
    ] = None,
    confidence_level: Annotated[float | None, opt.MODELS_CONFIDENCE] = None,
    image: Annotated[str | None, _IMAGE] = None,
    loading: opt.ModelOptions,
    title: Annotated[str | None, opt.option("--title TEXT", "Title of the page.", opt.PRINTED)] = None,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Writes a report on prediction sets, as one HTML page that opens offline."""
    screen, clock = display.screen(), Clock()
    opt.refuse_existing(out, force=force)
    if not run.exists():
        raise ValueError(f"{run}: there is no such file or directory.")
    if (run / _RUN).is_file():
        noted = _read_run(run / _RUN)
        run, file = run / noted["model"], file or run / noted["data"]
        image, title = image or noted.get("image"), title or noted.get("title")
        columns: dict[str, Any] = {
            name: getattr(about, name) or noted.get(name) for name in ("truth", "candidates", "by")
        }
        about = replace(about, **columns)
        loading = replace(loading, columns=loading.columns or [*filter(None, [noted.get("features")])])
    if about.key is not None and about.labels is None and votes is None:
        raise ValueError(
            "--key: matches the rows of --labels or --votes FILE, which is not given; leave out --key."
        )
    source = probabilities or (run if opt.is_table_file(run) else file)
    if source is None:
        raise ValueError(
            f"{run}: give a FILE of new rows for a model, --probabilities FILE for a calibration, a table of sets, "
            "or the folder of a run."
        )
    from setwise.tables.importers.vote_sources import import_votes  # Arrow, for files

    given = {"title": title, "confidence_level": confidence_level, "ids": ids, "groups": about.groups}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if votes is not None and about.key is None:  # about other rows
        options["votes"] = import_votes(about.files(votes), vote_table.columns).votes
    with screen.working(f"reporting on {source}"):
        request = about.request(
            about.files(source),
            votes=votes and about.key and about.files(votes),
            vote_columns=vote_table.columns,
            carry=list(filter(None, [ids, about.groups])),
            missing="empty",
        )
        if probabilities is not None:
            made = _of_calibration(out, run, request, options)
        elif source is run:
            made = _of_sets(out, about.column, request, options)
        else:
            made = _of_model(out, run, request, options, image, loading)
    size = made.stat().st_size
    screen.say(f"wrote {made} ({size / 1e6:.1f} MB) in {clock}; open it in a browser")
    screen.emit({"out": str(made), "bytes": size, "seconds": clock.seconds})


def _read_run(path: Path) -> dict[str, Any]:
    """What the folder of a run says about itself: names of parts inside it, and of columns."""
    with reading_untrusted(path, "run"):
        noted = json.loads(path.read_text(encoding="utf-8"))
        if not is_part_name(noted["model"]) or not is_part_name(noted["data"]):
            raise ValueError("model and data are no names of parts inside the folder")
        odd = [
            name
            for name in ("truth", "candidates", "by", "features", "title")
            if not isinstance(noted.get(name, ""), str)
        ]
        if odd:
            raise ValueError(f"{odd[0]} is no text")
        return dict(noted)


def _read_known(request: RowRequest, classes: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What is known of the rows, as reports take it, and the options, of which some name columns."""
    from setwise.tables.rows import read_rows  # Arrow is loaded for files

    rows = read_rows(replace(request, classes=classes.tolist()))
    carried = {name: rows.carried[options[name]] for name in ("ids", "groups") if name in options}
    return {"y": rows.truth, "candidates": rows.answers, "by": rows.by} | options | carried


def _of_model(
    out: Path, path: Path, request: RowRequest, options: dict[str, Any], image: Any, loading: opt.ModelOptions
) -> Path:
    """Of a model directory and new rows."""
    from setwise.streams import model_inputs as saved  # Arrow is loaded for files

    model, X = loading.load(path, request.source)
    request = replace(request, by=request.by or saved.category_column(model))
    options = _read_known(request, model.classes_, options)
    options["settings"] = {"model": path.name, "data": request.source.name}
    if image:
        options["images"] = X.reshape(len(X), *_shape(image, X.shape[1]))
    with saved.no_name_warnings():
        return report_model(out, model, X, **options)


def _of_calibration(out: Path, path: Path, request: RowRequest, options: dict[str, Any]) -> Path:
    """Of a calibration file and the probabilities of new rows."""
    from setwise.findings import Finding
    from setwise.probabilities.proposed_labels import most_probable
    from setwise.streams import model_inputs as saved  # Arrow is loaded for files

    calibration = saved.load_calibration(path)
    matrix = saved.all_probabilities(request.source, calibration.classes.tolist())
    if saved.is_calibration_data(calibration, most_probable(matrix)):
        calibration = calibration.withdraw(
            Finding(None, "these are the rows that it was calibrated on", len(matrix))
        )
    options = _read_known(request, calibration.classes, options)
    settings = {"calibration": path.name, "data": request.source.name}
    return build_report(out, calibration, matrix, settings=settings, **options)


def _of_sets(out: Path, column: str, request: RowRequest, options: dict[str, Any]) -> Path:
    """Of a table of sets, with the p-values that stand beside them where there are any."""
    from setwise.streams.comparison_notes import read_note  # Arrow is loaded for files
    from setwise.tables.set_files import read_predicted

    options["comparison"] = read_note(request.source)
    beside = str(request.candidates) if request.candidates and request.labels is None else None
    sets, p_values = read_predicted(request.source, column, candidates=beside, separator=request.separator)
    options = _read_known(request, sets.classes, options)
    return report_sets(out, sets, p_values=p_values, settings={"sets": request.source.name}, **options)


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
