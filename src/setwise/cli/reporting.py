"""`setwise report`: one HTML file about the sets of a model, of a calibration, of a table of sets, or of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from setwise.cli.options import By, Delimiter, Device, Force, Json, Quiet, Separator, Trusted, UnnamedFeatures
from setwise.cli.screen import Clock, Screen

RUN = "run.json"
"""In a run's folder: the names of its model and data, the columns, and the shape of images."""


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
    probabilities: Annotated[
        Path | None,
        typer.Option("--probabilities", help="For a calibration file: a table with one column a class."),
    ] = None,
    truth: Annotated[str | None, typer.Option("--truth", help="The column with the true label.")] = None,
    candidates: Annotated[
        str | None, typer.Option("--candidates", help="The column with the candidate sets of these rows.")
    ] = None,
    by: By = None,
    confidence: Annotated[
        float | None,
        typer.Option("--confidence", help="Where the slider starts. Default: the model's level, else 0.9."),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option("--image", help="Show features as an image of so many rows and columns, such as 28x28."),
    ] = None,
    features: UnnamedFeatures = None,
    trusted: Trusted = None,
    column: Annotated[str, typer.Option("--column", help="The column of sets, in a table of sets.")] = "labels",
    title: Annotated[str | None, typer.Option("--title", help="The headline.")] = None,
    separator: Separator = "|",
    delimiter: Delimiter = None,
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Writes a report for whoever must decide whether to trust the sets: one HTML file, complete in itself."""
    from setwise.cli.files import refuse_existing  # noqa: PLC0415
    from setwise.data.arrow_tables import is_table  # noqa: PLC0415 - Arrow is loaded for files

    screen, clock = Screen(quiet, as_json), Clock()
    refuse_existing(out, force=force)
    if not run.exists():
        raise ValueError(f"{run}: there is no such file or directory.")
    if (run / RUN).is_file():
        noted = json.loads((run / RUN).read_text(encoding="utf-8"))
        run, file = run / noted["model"], file or run / noted["data"]
        truth, candidates = truth or noted.get("truth"), candidates or noted.get("candidates")
        by, image, title = by or noted.get("by"), image or noted.get("image"), title or noted.get("title")
    columns = {"truth": truth, "candidates": candidates, "by": by, "separator": separator, "delimiter": delimiter}
    named = {} if title is None else {"title": title}
    with screen.working(f"reporting on {file or probabilities or run}"):
        if run.is_file() and probabilities is None and _is_sets(run, is_table):
            made = _of_sets(run, out, columns, column, confidence, named)
        elif probabilities is not None:
            made = _of_calibration(run, probabilities, out, columns, confidence, named)
        elif file is not None:
            given = {"features": features, "trusted": trusted, "device": device, "image": image}
            made = _of_model(run, file, out, columns, confidence, named, given)
        else:
            raise ValueError(
                f"{run}: give a FILE of new rows for a model, --probabilities FILE for a calibration, a table of "
                "sets, or the folder of a run."
            )
    size = made.stat().st_size
    screen.say(f"wrote {made} ({size / 1e6:.1f} MB) in {clock}; open it in a browser")
    screen.emit({"out": str(made), "bytes": size, "seconds": clock.seconds})


def report_on_calibration(path: Path, model: Any, X: Any, candidates: Any, by: Any = None) -> None:
    """For `setwise fit --report`: on the rows kept for calibration, which the model did not learn from.

    Their truth stays out of it, even where somebody checked: the thresholds were chosen on these very rows.
    """
    from setwise.cli.predicting import no_name_warnings  # noqa: PLC0415
    from setwise.report import report_model  # noqa: PLC0415 - templates are loaded when a report is made

    rows = getattr(model, "calibration_rows_", None)
    if rows is None:
        raise ValueError("--report: every row was learned from; use `setwise report` with new rows.")
    known = {} if by is None or isinstance(by, str) else {"by": [by[row] for row in rows.tolist()]}
    settings = {"rows": "those kept for calibration"}
    with no_name_warnings():
        report_model(path, model, X[rows], None, candidates[rows], settings=settings, **known)


def _is_sets(path: Path, is_table: Any) -> bool:
    try:
        return bool(is_table(path))
    except ValueError:  # a suffix that no table has: a calibration
        return False


def _of_model(
    model: Path,
    file: Path,
    out: Path,
    columns: dict[str, Any],
    confidence: float | None,
    named: dict[str, Any],
    given: dict[str, Any],
) -> Path:
    """Of a model directory and new rows."""
    import numpy as np  # noqa: PLC0415

    from setwise.cli.predicting import feature_batches, load_any, no_name_warnings  # noqa: PLC0415
    from setwise.report import report_model  # noqa: PLC0415 - templates are loaded when a report is made

    loaded = load_any(model, given["device"], given["trusted"])
    notes = (getattr(loaded, "notes_", {}) or {}).get("reading") or {}
    columns = columns | {name: columns[name] or notes.get(name) for name in ("by", "delimiter")}
    batches = feature_batches(file, loaded, given["features"], columns["delimiter"])
    X = np.concatenate([values for values, _ in batches])
    known = _answers(file, loaded.classes_.tolist(), columns)
    options = {**named, **known, "settings": {"model": model.name, "data": file.name}}
    names = given["features"] or list(getattr(loaded, "feature_names_in_", [])) or notes.get("columns")
    if names and len(names) == X.shape[1]:
        options["feature_names"] = names
    if given["image"]:
        options["images"] = X.reshape(len(X), *_shape(given["image"], X.shape[1]))
    if confidence is not None:
        options["confidence_level"] = confidence
    with no_name_warnings():
        return report_model(out, loaded, X, **options)


def _of_calibration(
    path: Path,
    probabilities: Path,
    out: Path,
    columns: dict[str, Any],
    confidence: float | None,
    named: dict[str, Any],
) -> Path:
    """Of a calibration file and the probabilities of new rows."""
    import numpy as np  # noqa: PLC0415

    from setwise.calibration.calibration import Calibration  # noqa: PLC0415
    from setwise.cli.outside import probability_batches  # noqa: PLC0415
    from setwise.cli.predicting import ROWS, calibration_in  # noqa: PLC0415
    from setwise.report import build_report  # noqa: PLC0415

    calibration = Calibration.load(calibration_in(path))
    labels = calibration.classes.tolist()
    batches = probability_batches(probabilities, labels, ROWS, columns["delimiter"])
    matrix = np.concatenate([values for values, _ in batches])
    known = _answers(probabilities, labels, columns)
    settings = {"calibration": path.name, "data": probabilities.name}
    level = 0.9 if confidence is None else confidence
    return build_report(out, calibration, matrix, confidence_level=level, settings=settings, **known, **named)


def _of_sets(
    path: Path, out: Path, columns: dict[str, Any], column: str, confidence: float | None, named: dict[str, Any]
) -> Path:
    """Of a table of sets, with the p-values that stand beside them where there are any."""
    from setwise.data import read_table  # noqa: PLC0415
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415
    from setwise.data.set_files import probability_columns, probability_labels  # noqa: PLC0415
    from setwise.report import report_sets  # noqa: PLC0415

    texts = [name for name in column_names(path, columns["delimiter"]) if name.startswith("p:")]
    classes = probability_labels(texts) if texts else None
    options: dict[str, Any] = {"separator": columns["separator"], "delimiter": columns["delimiter"]}
    options["missing"] = "empty"
    if classes is not None:
        options["classes"] = classes
    sets = read_table(path, candidates=column, features=[], **options).candidates
    if sets is None:
        raise ValueError(f"{path}: holds no sets.")
    if classes is None:  # text files hold only the labels that occur
        classes = sets.classes.tolist()
        if columns["candidates"]:
            given = read_table(path, candidates=columns["candidates"], features=[], **options).candidates
            known_labels = set(classes)
            classes += [label for label in given.classes.tolist() if label not in known_labels] if given else []
        sets = sets.with_classes(classes)
    known = _answers(path, classes, columns)
    if texts and (found := probability_columns(texts, classes)) is not None:
        known["p_values"] = read_table(path, features=found, delimiter=columns["delimiter"]).X
    return report_sets(out, sets, confidence_level=confidence, settings={"sets": path.name}, **known, **named)


def _answers(file: Path, classes: list[Any], columns: dict[str, Any]) -> dict[str, Any]:
    """Truth, candidates and categories of the rows, as far as columns are named; array files hold them unnamed."""
    from setwise.cli.declaring import categories_of  # noqa: PLC0415
    from setwise.data import read_table  # noqa: PLC0415
    from setwise.data.arrow_tables import is_table  # noqa: PLC0415

    if not is_table(file):
        table = read_table(file, classes=classes)
        return {"y": table.truth, "candidates": table.candidates}
    carry = [columns["by"]] if columns["by"] else []
    table = read_table(
        file,
        candidates=columns["candidates"],
        truth=columns["truth"],
        features=[],
        carry=carry,
        classes=classes,
        separator=columns["separator"],
        delimiter=columns["delimiter"],
        missing="empty",
    )
    known: dict[str, Any] = {"y": table.truth, "candidates": table.candidates}
    if carry:
        known["by"] = categories_of(table.carried[carry[0]].tolist(), carry[0], file)
    return known


def _shape(text: Any, width: int) -> tuple[int, ...]:
    """The shape of an image as it is written, 28x28 or 32x32x3."""
    sides: Iterable[Any] = text.lower().split("x") if isinstance(text, str) else text
    try:
        shape = tuple(int(side) for side in sides)
    except ValueError:
        raise ValueError(f"--image: {text!r} is not a shape such as 28x28.") from None
    product = 1
    for side in shape:
        product *= side
    if product != width or len(shape) not in {2, 3}:
        raise ValueError(f"--image: {text} is not the shape of {width} features.")
    return shape
