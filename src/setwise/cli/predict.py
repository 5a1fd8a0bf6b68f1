"""`setwise predict`: prediction sets for new rows, batch by batch, beside every column that is no feature."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setwise.cli import options as opt
from setwise.cli.screen import Clock, Screen
from setwise.ranks import doubt_level

if TYPE_CHECKING:
    from setwise.decisions.comparison import Comparison
    from setwise.guarantees import Guarantee
    from setwise.labels.label_sets import LabelSets

EXAMPLES = (
    "setwise predict model/ new.csv --out sets.csv",
    "setwise predict model/ new.parquet --out sets.parquet --confidence 0.95 --p-values",
    "setwise predict model.cal --probabilities scores.csv --by hospital --out sets.csv",
)


def predict(
    model: Annotated[Path, typer.Argument(help="A model directory, or a calibration file.", metavar="MODEL")],
    out: opt.OutFile,
    file: opt.OptionalFiles = None,
    probabilities: opt.OptionalProbabilities = None,
    confidence_level: opt.ModelsConfidence = None,
    by: opt.By = None,
    p_values: Annotated[
        bool, typer.Option("--p-values", help="Write one p-value per class beside the sets.")
    ] = False,
    columns: opt.Features = None,
    trusted: opt.Trusted = None,
    column: opt.SetsColumn = "labels",
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    device: opt.Device = "auto",
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Writes prediction sets for the rows of a table; identifiers, truth and other columns come along."""
    from setwise.cli import saved_models as saved  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.cli.table_columns import note_comparison, writing  # noqa: PLC0415
    from setwise.data.arrow_tables import row_count  # noqa: PLC0415
    from setwise.decisions.comparison import NewRows  # noqa: PLC0415 - as above
    from setwise.estimators.fingerprint import UsedRows  # noqa: PLC0415
    from setwise.evidence.row_digests import row_digests  # noqa: PLC0415

    screen, clock = Screen(quiet, as_json, out), Clock()
    if bool(probabilities) == bool(file):
        raise ValueError("predict: give a FILE of new rows for a model, or --probabilities FILE for a calibration.")
    opt.refuse_existing(out, force=force)
    source = opt.tables(probabilities or file or [], delimiter, encoding, decimal)
    totals = _Totals()
    known, digests = UsedRows(), []
    give: Callable[[Any], Any] = _same
    if probabilities is not None:
        asked: Any = saved.load_calibration(model)
        beside = NewRows(asked)
        level = 0.9 if confidence_level is None else confidence_level
        batches: Iterator[saved.Batch] = saved.probability_batches(source, asked.classes.tolist())
    else:
        loaded = saved.load_model(model, device, trusted)
        asked, give, beside = loaded.calibration_, loaded.predict_conformed, loaded.new_rows()
        level = loaded.confidence_level if confidence_level is None else confidence_level
        known = loaded.used_rows_
        batches = saved.feature_batches(source, loaded, columns)
        by = by or saved.reading_of(loaded).get("by")
    doubt_level(level)
    saved.check_askable(asked, model)
    saved.check_categories(asked, by, model)
    bar = screen.counting(f"predicting {source.name}", row_count(source))
    with saved.no_name_warnings(), bar as advance, writing(out, column=column, separator=separator) as writer:
        for values, carried in batches:
            options = _category(carried, by, source, totals.rows)
            matrix = give(values)
            sets: LabelSets = asked.predict_set(matrix, level, **options)
            p = asked.predict_p(matrix, **options) if p_values else None
            writer.append(sets, carried, p)
            beside.add(matrix, X=None if probabilities is not None else values, **options)
            digests.append(row_digests(values) if probabilities is None else None)
            totals.add(sets)
            advance(len(sets))
    found = totals.shares()
    screen.say(
        f"{found['rows']:,} rows at confidence {level:g}: {found['mean_size']:.2f} labels per row, "
        f"{found['singleton_rate']:.1%} with one label, {found['empty_rate']:.1%} with none, {clock}"
    )
    screen.say(f"saved to {out}   try:  setwise evaluate {out} --truth COLUMN")
    compared, used = beside.compare(), known.among(digests)
    note_comparison(out, compared)
    if used:
        warnings.warn(f"{source}: {used}, and nothing is promised for these rows.", stacklevel=2)
    made = asked.differing(used).guarantee(level) if used else compared.guarantee(level)
    screen.emit(
        found | _claimed(screen, compared, made, level, source) | {"out": str(out), "seconds": clock.seconds}
    )


def _claimed(screen: Screen, compared: Comparison, made: Guarantee, level: float, source: Any) -> dict[str, Any]:
    """What is promised for these rows; says so where they differ from the calibration rows."""
    if compared.refuted:
        warnings.warn(f"{source}: {compared}", stacklevel=3)
        screen.say(str(made))
    claimed: dict[str, Any] = {"confidence_level": level, "promised": made.promised, "delta": made.delta}
    if made.by_category:
        claimed["promised_by_category"] = {name: part.promised for name, part in made.by_category.items()}
    return claimed | {"comparison": compared.to_dict()}


def _category(carried: dict[str, Any], by: str | None, file: Any, first_row: int) -> dict[str, Any]:
    """The categories of some rows, as an option for whoever is asked for their sets."""
    from setwise.cli.table_columns import categories_of  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.data.arrow_tables import absent_column  # noqa: PLC0415

    if by is None:
        return {}
    if by not in carried:
        raise absent_column(by, [*carried], str(file), " with the categories of its rows (--by)")
    return {"by": categories_of(carried[by], by, file, first_row)}


def _same(values: Any) -> Any:
    return values


@dataclass
class _Totals:
    """What is known of all sets without keeping them."""

    counts: dict[int, int] = field(default_factory=dict)

    def add(self, sets: LabelSets) -> None:
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
