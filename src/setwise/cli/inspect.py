"""`setwise inspect`: what candidate sets look like."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from setwise import tables
from setwise.cli import options as opt

EXAMPLES = ("setwise inspect photos.csv --candidates labels --truth label",)


def inspect(
    *,
    file: Annotated[list[Path], opt.FILES],
    candidates: Annotated[str, opt.CANDIDATES],
    truth: Annotated[str | None, opt.TRUTH] = None,
    separator: Annotated[str, opt.SEPARATOR] = "|",
    text: opt.TextOptions,
    display: opt.ScreenOptions,
) -> None:
    """Describes candidates: how many there are, which labels are confused, what is missing."""
    from setwise.tables.rows import RowRequest, other_columns, read_rows  # Arrow, for files
    from setwise.tables.table_warnings import doubt_separator, identifiers

    screen = display.screen()
    source = text.files(file)
    with screen.working(f"reading {source}"):
        options: dict[str, Any] = {"separator": separator, "missing": "empty", "features": ()}
        request = RowRequest(source=source, candidates=candidates, truth=truth, **options)
        table = read_rows(request)
        found = tables.inspect(table)
    doubt_separator(table.candidates, separator)
    screen.show(found)
    given = {"separator": separator, **asdict(text)}
    told = [word for name, value in given.items() if value not in {None, "|"} for word in (f"--{name}", value)]
    named = list(map(str, file))
    left = other_columns(request)
    if left:
        ids = identifiers(source, sorted(left))
        ignored = [word for name in (truth, *ids) if name for word in ("--ignore", name)]
        words = ["fit", *named, "--candidates", candidates, *told, *ignored]
    else:  # no features beside the candidates
        words = ["fit", "FEATURES.csv", "--labels", named[0], "--candidates", candidates, *told]
    screen.say("", f"try:  setwise {shlex.join(words)} --out model/")
    screen.emit(found.to_dict())
