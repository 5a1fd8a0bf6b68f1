"""`setwise evaluate`: what prediction sets achieved, against the truth or against candidate sets."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

from setwise import metrics
from setwise.cli import options as opt
from setwise.cli.screen import Screen
from setwise.errors import DataError
from setwise.streams.engines import run_local

_WORST = 10  # classes that are shown
EXAMPLES = (
    "setwise evaluate sets.csv --truth label --json",
    "setwise evaluate sets.csv --truth label --by hospital",
    "setwise evaluate sets.csv --truth shown --right all",
    "setwise evaluate sets.csv --truth label --groups patient",
    "setwise evaluate sets.csv --truth stars --ordered --classes 'poor|fair|good|great'",
    "setwise evaluate sets.csv --labels truth.csv --truth label --key id",
)


def evaluate(
    *,
    file: Annotated[list[Path], opt.FILES],
    right: Annotated[str | None, opt.RIGHT] = None,
    about: opt.KnownOptions,
    ordered: Annotated[bool, opt.ORDERED] = False,
    classes: Annotated[str | None, opt.CLASSES] = None,
    engines: opt.EngineOptions,
    display: opt.ScreenOptions,
) -> None:
    """Measures coverage and size of prediction sets, against true labels or candidates."""
    from setwise.streams.comparison_notes import read_note  # Arrow is loaded for files
    from setwise.streams.evaluated_tables import evaluate_table
    from setwise.tables.rows import read_rows
    from setwise.tables.set_files import read_predicted
    from setwise.tables.table_files import MODEL_HEAD

    if model := next((one for one in file if Path(one, MODEL_HEAD).is_file()), None):
        remedy = "write them first: setwise predict MODEL FILE --out sets.csv"
        raise DataError(f"{model}: is a model, and evaluate reads prediction sets", remedy)
    truth, candidates, by = about.truth, about.candidates, about.by
    if truth is None and candidates is None:
        raise ValueError("evaluate: give --truth COLUMN, or --candidates COLUMN where no truth is known.")
    if right is not None and truth is None:
        raise ValueError("--right: counts labels of --truth COLUMN, which is not given; leave out --right.")
    if about.key is not None and about.labels is None:
        raise ValueError("--key: matches the rows of --labels FILE, which is not given; leave out --key.")
    screen, runs, sets = display.screen(), engines.workers(), about.files(file)
    told: dict[str, Any] = {"separator": about.separator, "classes": opt.split_labels(classes, about.separator)}
    with screen.working(f"reading {sets}"):
        if about.labels is None:
            told |= {"ordered": ordered, "engine": runs, "right": opt.right_of(right), "groups": about.groups}
            result = evaluate_table(sets, about.column, truth=truth, candidates=candidates, by=by, **told)
        else:
            if runs is not run_local:
                remedy = "leave out --engine"
                raise ValueError(f"--engine: --labels needs all rows in this process; {remedy}.")
            predicted, _ = read_predicted(sets, about.column, **told)
            carry = [about.groups] if about.groups else []
            several = {"classes": predicted.classes.tolist(), "several": right is not None}
            rows = read_rows(about.request(sets, carry=carry, **several))
            known: dict[str, Any] = {"y": rows.truth, "candidates": candidates and rows.candidates, "by": rows.by}
            known["groups"] = rows.carried[about.groups] if about.groups else None
            result = metrics.evaluate(predicted, **known, ordered=ordered, truth=opt.right_of(right))
        compared = read_note(sets)
    _show(screen, result)
    if compared is not None:
        warnings.warn(f"{sets}: {compared.sentence}", stacklevel=2)
        result["comparison"] = compared.to_dict()
    screen.emit(result)


def _show(screen: Screen, result: dict[str, Any]) -> None:
    if "coverage" in result:
        between = "no interval from fewer than 20 groups"
        if result["coverage_interval"] is not None:
            low, high = result["coverage_interval"]
            between = f"between {low:.4f} and {high:.4f} in 95 of 100 cases"
        screen.say(f"coverage {result['coverage']:.4f} ({between}) on {result['n_truth']:,} rows with truth")
    screen.say(
        f"{result['n']:,} sets, {result['mean_size']:.2f} labels per row (median {result['median_size']:g}), "
        f"{result['singleton_rate']:.1%} with one label, {result['empty_rate']:.1%} with none"
    )
    if "coverage" in result:
        shown = [*result["by_class"].items()][:_WORST]
        for name, cell in shown:
            ends = cell["coverage_interval"]
            between = "" if ends is None else f" (between {ends[0]:.4f} and {ends[1]:.4f})"
            screen.say(f"class {name!r}: coverage {cell['coverage']:.4f}{between} on {cell['n']:,} rows")
        if len(shown) < (classes := len(result["by_class"])):
            screen.say(f"these are the {_WORST} of {classes:,} classes that are covered least")
    _show_order(screen, result)
    for name, text in {
        "all_candidates_rate": "sets that contain all candidates",
        "any_candidate_rate": "sets that contain at least one candidate",
    }.items():
        if name in result:
            screen.say(f"{text}: {result[name]:.4f}")
    for category, cell in result.get("by_category", {}).items():
        screen.say(f"  {category}: coverage {cell['coverage']:.4f}, {cell['mean_size']:.2f} labels per row")


def _show_order(screen: Screen, result: dict[str, Any]) -> None:
    if result.get("distance") is not None:
        missed = result["distance_missed"]
        among = "" if missed is None else f", {missed:.3g} where the set misses it"
        screen.say(f"distance from the true label to its set {result['distance']:.3g}{among}")
    if "gap_rate" in result:
        screen.say(f"sets with gaps: {result['gap_rate']:.1%}")
