"""`setwise inspect`: what candidate sets look like."""

from __future__ import annotations

import shlex
from typing import Any

from setwise import data
from setwise.cli import options as opt
from setwise.cli.screen import Screen

EXAMPLES = ("setwise inspect votes.csv --candidates answers --truth checked",)


def inspect(
    file: opt.File,
    candidates: opt.Candidates,
    truth: opt.OptionalTruth = None,
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Describes candidate sets: how many, how large, what is confused with what, what is missing."""
    from setwise.cli.table_columns import doubt_separator, sets_in  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.arrow_tables import column_names, is_table  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    options: dict[str, Any] = {"separator": separator, "delimiter": delimiter, "missing": "empty"}
    with screen.working(f"reading {file}"):
        if is_table(file):
            column_names(file, delimiter)  # raises where columns are delimited otherwise
        table = data.read_table(file, candidates=candidates, truth=truth, features=[], **options)
        found = data.inspect(table)
    doubt_separator(sets_in(table), separator)
    screen.say(str(found))
    told = "".join(
        f" {option} {shlex.quote(value)}"
        for option, value in (("--separator", separator), ("--delimiter", delimiter), ("--ignore", truth))
        if value not in {None, "|"}
    )
    screen.say(f"\ntry:  setwise fit {file} --candidates {candidates}{told} --out model/")
    screen.emit(found.to_dict())
