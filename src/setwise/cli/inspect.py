"""`setwise inspect`: what candidate sets look like."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from setwise import data
from setwise.cli import options as opt
from setwise.cli.screen import Screen

if TYPE_CHECKING:
    from setwise.data.table_files import TableFiles

EXAMPLES = ("setwise inspect votes.csv --candidates answers --truth checked",)
_LOOKED_AT = 10_000


def inspect(
    file: opt.Files,
    candidates: opt.Candidates,
    truth: opt.OptionalTruth = None,
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Describes candidate sets: how many, how large, what is confused with what, what is missing."""
    from setwise.cli.table_columns import sets_in  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.arrow_tables import column_names, is_table  # noqa: PLC0415
    from setwise.data.doubts import doubt_separator  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    source = opt.tables(file, delimiter, encoding, decimal)
    with screen.working(f"reading {source}"):
        options: dict[str, Any] = {"separator": separator, "missing": "empty"}
        table = data.read_table(source, candidates=candidates, truth=truth, features=[], **options)
        found = data.inspect(table)
    doubt_separator(sets_in(table), separator)
    screen.say(str(found))
    given = (
        ("--separator", separator),
        ("--delimiter", delimiter),
        ("--encoding", encoding),
        ("--decimal", decimal),
    )
    told = [word for option, value in given if value not in {None, "|"} for word in (option, value)]
    named = list(map(str, file))
    start = f"{candidates.removesuffix(':')}:"
    left = {name for name in column_names(source) if not name.startswith(start)} if is_table(source) else {"X"}
    if left - {candidates, truth}:
        ids = _identifiers(source, candidates, sorted(left - {candidates, truth})) if is_table(source) else []
        ignored = [word for name in (truth, *ids) if name for word in ("--ignore", name)]
        words = ["fit", *named, "--candidates", candidates, *told, *ignored]
    else:  # no features beside the candidates
        words = ["fit", "FEATURES.csv", "--labels", named[0], "--candidates", candidates, *told]
    screen.say(f"\ntry:  setwise {shlex.join(words)} --out model/")
    screen.emit(found.to_dict())


def _identifiers(source: TableFiles, candidates: str, names: list[str]) -> list[str]:
    """The columns that look like identifiers in the first rows, and are not features."""
    from setwise.data.arrow_tables import arrow_batches  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.doubts import names_rows  # noqa: PLC0415

    first = next(arrow_batches(source, _LOOKED_AT, text=[candidates]))
    return [name for name in names if names_rows(name, first[name])]
