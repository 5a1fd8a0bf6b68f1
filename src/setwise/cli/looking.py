"""`setwise inspect` and `setwise evaluate`: what candidates look like, and what sets achieved."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from setwise.cli.options import Candidates, Delimiter, File, Json, Quiet, ReportTo, Separator
from setwise.cli.screen import Screen


def inspect(
    file: File,
    candidates: Candidates,
    truth: Annotated[str | None, typer.Option("--truth", help="The column with the true label.")] = None,
    separator: Separator = "|",
    delimiter: Delimiter = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Describes candidate sets: how many, how large, what is confused with what, what is missing."""
    from setwise.cli.declaring import doubt_separator  # noqa: PLC0415
    from setwise.data import inspect as look  # noqa: PLC0415
    from setwise.data import read_table  # noqa: PLC0415
    from setwise.data.arrow_tables import column_names, is_table  # noqa: PLC0415 - Arrow is loaded when a file is read

    screen = Screen(quiet, as_json)
    options: dict[str, Any] = {"separator": separator, "delimiter": delimiter, "missing": "empty"}
    with screen.working(f"reading {file}"):
        if is_table(file):
            column_names(file, delimiter)  # says so where columns are delimited otherwise
        table = read_table(file, candidates=candidates, truth=truth, features=[], **options)
        found = look(table)
    if table.candidates is not None:
        doubt_separator(table.candidates, separator)
    screen.say(str(found))
    told = "".join(
        f" {option} {shlex.quote(value)}"
        for option, value in (("--separator", separator), ("--delimiter", delimiter), ("--ignore", truth))
        if value not in {None, "|"}
    )
    screen.say(f"\ntry:  setwise fit {file} --candidates {candidates}{told} --out model/")
    screen.emit(found.to_dict())


def evaluate(
    sets: Annotated[Path, typer.Argument(help="A table that `setwise predict` wrote.", metavar="SETS")],
    truth: Annotated[str | None, typer.Option("--truth", help="The column with the true label.")] = None,
    candidates: Annotated[
        str | None, typer.Option("--candidates", help="A column with candidate sets, where no truth is known.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="A column of categories to evaluate one by one.")] = None,
    column: Annotated[str, typer.Option("--column", help="The column of sets.")] = "labels",
    report_to: ReportTo = None,
    separator: Separator = "|",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Coverage and size of prediction sets, against the truth or against candidate sets."""
    import setwise  # noqa: PLC0415
    from setwise.data import read_table  # noqa: PLC0415 - Arrow is loaded when a file is read

    if truth is None and candidates is None:
        raise ValueError("evaluate: give --truth COLUMN, or --candidates COLUMN where no truth is known.")
    screen = Screen(quiet, as_json)
    with screen.working(f"reading {sets}"):
        table = read_table(
            sets,
            candidates=column,
            truth=truth,
            features=[],
            carry=[by] if by else [],
            separator=separator,
            missing="empty",
        )
        given = None
        if candidates is not None:
            given = read_table(sets, candidates=candidates, features=[], separator=separator).candidates
        predicted = table.candidates
        if given is not None and predicted is not None:  # text files hold only the labels that occur
            known = predicted.classes.tolist()
            labels = [*known, *(label for label in given.classes.tolist() if label not in set(known))]
            predicted, given = predicted.with_classes(labels), given.with_classes(labels)
        result = setwise.evaluate(predicted, table.truth, candidates=given, by=table.carried[by] if by else None)
    _show(screen, result)
    if report_to is not None and predicted is not None:
        from setwise.report import report_sets  # noqa: PLC0415 - templates are loaded when a report is made

        groups = table.carried[by] if by else None
        report_sets(report_to, predicted, y=table.truth, candidates=given, by=groups, settings={"sets": sets.name})
        screen.say(f"wrote {report_to}")
    screen.emit(result)


def _show(screen: Screen, result: dict[str, Any]) -> None:
    screen.say(
        f"{result['n']:,} sets, {result['mean_size']:.2f} labels a row (median {result['median_size']:g}), "
        f"{result['singleton_rate']:.1%} with one label, {result['empty_rate']:.1%} with none"
    )
    if "coverage" in result:
        low, high = result["coverage_interval"]
        screen.say(
            f"coverage {result['coverage']:.4f} (between {low:.4f} and {high:.4f} in 95 of 100 cases) "
            f"on {result['n_truth']:,} rows with truth"
        )
        worst = result["worst_class"]
        if worst is not None:
            screen.say(f"worst class {worst['label']!r}: coverage {worst['coverage']:.4f} on {worst['n']:,} rows")
        if result["unknown_labels"]:
            screen.say(f"{result['unknown_labels']:,} true labels are in no set at all, and count as missed")
    for name, text in {
        "all_candidates_rate": "sets that hold all candidates",
        "any_candidate_rate": "sets that hold at least one candidate",
    }.items():
        if name in result:
            screen.say(f"{text}: {result[name]:.4f}")
    for category, cell in result.get("by_category", {}).items():
        screen.say(f"  {category}: coverage {cell['coverage']:.4f}, {cell['mean_size']:.2f} labels a row")
