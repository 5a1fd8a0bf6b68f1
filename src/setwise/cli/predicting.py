"""`setwise predict`: prediction sets for new rows, batch by batch, beside every column that is no feature."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.options import (
    By,
    Delimiter,
    Device,
    Force,
    Json,
    OutFile,
    Quiet,
    Separator,
    Trusted,
    UnnamedFeatures,
)
from setwise.cli.screen import Clock, Screen
from setwise.cli.threads import use_one_thread

if TYPE_CHECKING:
    from setwise.labels.label_sets import LabelSets

ROWS = 8192  # at a time: fewer are slower, more take memory and are no faster

Batch = tuple[Any, dict[str, Any]]
"""Features or probabilities of some rows, and the columns carried along."""


def predict(
    model: Annotated[Path, typer.Argument(help="A model directory, or a calibration file.", metavar="MODEL")],
    out: OutFile,
    file: Annotated[Path | None, typer.Argument(help="A table of new rows.", metavar="FILE")] = None,
    probabilities: Annotated[
        Path | None,
        typer.Option("--probabilities", help="For a calibration file: a table with one column a class."),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option("--confidence", help="How often sets shall contain the truth. Default: the model's."),
    ] = None,
    by: By = None,
    p_values: Annotated[
        bool, typer.Option("--p-values", help="Write one p-value a class beside the sets.")
    ] = False,
    features: UnnamedFeatures = None,
    trusted: Trusted = None,
    column: Annotated[str, typer.Option("--column", help="The name of the column of sets.")] = "labels",
    separator: Separator = "|",
    delimiter: Delimiter = None,
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Writes prediction sets for the rows of a table; identifiers, truth and other columns come along."""
    from setwise.cli.files import refuse_existing, row_count, sets_table, writing  # noqa: PLC0415
    from setwise.data.sources import format_of  # noqa: PLC0415 - Arrow is loaded when a file is read

    screen, clock = Screen(quiet, as_json), Clock()
    source = probabilities or file
    if source is None or (probabilities is not None and file is not None):
        raise ValueError("predict: give a FILE of new rows for a model, or --probabilities FILE for a calibration.")
    refuse_existing(out, force=force)
    form, totals = format_of(out), _Totals()
    if probabilities is not None:
        from setwise.calibration.calibration import Calibration  # noqa: PLC0415
        from setwise.cli.outside import probability_batches  # noqa: PLC0415

        asked: Any = Calibration.load(calibration_in(model))
        level = 0.9 if confidence is None else confidence
        batches: Iterator[Batch] = probability_batches(source, asked.classes.tolist(), ROWS, delimiter)
        give: Callable[[Any], Any] = _same
    else:
        loaded = load_any(model, device, trusted)
        asked, give = loaded.calibration_, loaded.predict_conformed
        level = loaded.confidence_level if confidence is None else confidence
        reading = loaded.notes_.get("reading") or {}
        batches = feature_batches(source, loaded, features, delimiter or reading.get("delimiter"))
        by = by or reading.get("by")
    if by is None and getattr(asked, "categories", None) is not None and asked.by == "given":
        raise ValueError(f"{model}: was calibrated by category; name the column of categories with --by.")
    bar = screen.counting(f"predicting {source.name}", row_count(source))
    with no_name_warnings(), bar as advance, writing(out, form) as append:
        for values, carried in batches:
            options = _category(carried, by, source, totals.rows)
            matrix = give(values)
            sets: LabelSets = asked.predict_set(matrix, level, **options)
            p = asked.predict_p(matrix, **options) if p_values else None
            append(sets_table(sets, carried, form, column=column, separator=separator, p_values=p))
            totals.add(sets)
            advance(len(sets))
    _report(screen, totals, asked.guarantee(level), level, out, clock)


def _category(carried: dict[str, Any], by: str | None, file: Path, first_row: int) -> dict[str, Any]:
    """The categories of some rows, as an option for whoever is asked for their sets."""
    if by is None:
        return {}
    if by not in carried:
        raise ValueError(f'{file} has no column "{by}" with the categories of its rows; name it with --by.')
    from setwise.cli.declaring import categories_of  # noqa: PLC0415

    return {"by": categories_of(carried[by], by, file, first_row)}


def load_any(model: Path, device: str, trusted: list[str] | None) -> Any:
    """The model of a directory, split or cross."""
    from setwise.estimators.cross import CrossConformalClassifier  # noqa: PLC0415
    from setwise.estimators.model_directory import read_head  # noqa: PLC0415
    from setwise.estimators.split import ConformalClassifier  # noqa: PLC0415

    if model.is_file():
        raise ValueError(f"{model}: is a file; a calibration file needs --probabilities FILE.")
    kind: Any = CrossConformalClassifier if "Cross" in read_head(model)["kind"] else ConformalClassifier
    loaded = kind.load(model, trusted=trusted)
    for part in getattr(loaded, "estimators_", [loaded.estimator_]):
        if hasattr(part, "device"):
            part.device = device
    if getattr(loaded.estimator_, "_settled", {}).get("network") == "linear":
        use_one_thread()
    return loaded


def calibration_in(path: Path) -> Path:
    """The calibration file itself, or the one in a model directory."""
    if not path.is_dir():
        return path
    from setwise.estimators.model_directory import read_head  # noqa: PLC0415

    return path / str(read_head(path)["members"][0]["calibration"])


def feature_batches(
    file: Path, model: Any, features: list[str] | None, delimiter: str | None = None
) -> Iterator[Batch]:
    """Batches of features by the names the model knows, in its order, with all other columns."""
    from setwise.cli.files import column_names, is_table, read_arrow  # noqa: PLC0415
    from setwise.data import read_table  # noqa: PLC0415
    from setwise.data.tables import Layout, interpret  # noqa: PLC0415

    if not is_table(file):
        table = read_table(file)
        yield table.X, {} if table.truth is None else {"y": _arrow(table.truth)}
        return
    reading = getattr(model, "notes_", {}).get("reading") or {}
    known = features or reading.get("columns") or list(getattr(model, "feature_names_in_", []))
    if not known:
        raise ValueError(
            f"the model was trained on arrays and knows no column names; name its {model.n_features_in_} features "
            "in order with --features."
        )
    names = column_names(file, delimiter)
    absent = [name for name in known if name not in names]
    if absent:
        raise ValueError(
            f'{file} has no column "{absent[0]}", which the model was trained on ({len(known)} features expected, '
            f"{len(known) - len(absent)} found)."
        )
    carry = [name for name in names if name not in set(known)]
    layout = Layout(
        features=known,
        carry=carry,
        impute=reading.get("imputed") or None,
        categories=reading.get("categories") or None,
        delimiter=delimiter,
    )
    first = 0
    for batch in read_arrow(file, layout, ROWS):
        table = interpret(batch.select(known), Layout(**_of(layout, carry=())), str(file), first)
        yield table.X, {name: batch[name].combine_chunks() for name in carry}
        first += len(batch)


def _of(layout: Any, **changes: Any) -> dict[str, Any]:
    return {name: getattr(layout, name) for name in layout.__dataclass_fields__} | changes


def _arrow(values: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.array(values.tolist())


def _same(values: Any) -> Any:
    return values


@contextmanager
def no_name_warnings() -> Iterator[None]:
    """Columns were matched by name already, so that arrays without names are right here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


@dataclass
class _Totals:
    """What is known of all sets without keeping them."""

    counts: dict[int, int] = field(default_factory=dict)

    def add(self, sets: LabelSets) -> None:
        import numpy as np  # noqa: PLC0415

        for size, count in zip(*np.unique(sets.sizes, return_counts=True), strict=True):
            self.counts[int(size)] = self.counts.get(int(size), 0) + int(count)

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    def shares(self) -> dict[str, Any]:
        rows = self.rows
        if rows == 0:
            raise ValueError("there are no rows to predict.")
        return {
            "rows": rows,
            "mean_size": sum(size * count for size, count in self.counts.items()) / rows,
            "singleton_rate": self.counts.get(1, 0) / rows,
            "empty_rate": self.counts.get(0, 0) / rows,
        }


def _report(screen: Screen, totals: _Totals, made: Any, level: float, out: Path, clock: Clock) -> None:
    found = totals.shares()
    screen.say(
        f"{found['rows']:,} rows at confidence {level:g}: {found['mean_size']:.2f} labels a row, "
        f"{found['singleton_rate']:.1%} with one label, {found['empty_rate']:.1%} with none, {clock}"
    )
    screen.say(f"saved to {out}   try:  setwise evaluate {out} --truth COLUMN")
    several = {name: claim.promised for name, claim in made.by_category.items()}
    promised = several or made.promised
    screen.emit(
        found | {"confidence_level": level, "promised": promised, "out": str(out), "seconds": clock.seconds}
    )
