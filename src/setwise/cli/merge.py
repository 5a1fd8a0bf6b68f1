"""`setwise merge`: accepted, verified and reviewed rows as one table that says where each label comes from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from setwise.cli import options as opt

EXAMPLES = (
    "setwise merge accepted.csv to-verify.csv review.csv --key id --out final.csv",
    "setwise merge accepted.csv to-verify.csv answers.json --rows items.csv --key id --out final.csv",
)
_FILE = typer.Argument(
    metavar="FILE[:COLUMN]...",
    help="What triage accepted, what you verified, and what you reviewed: tables and Label Studio exports. "
    "Default column: verified, label or answer.",
)
_ROWS = opt.option(
    "--rows FILE",
    "Table of all rows; its columns and order are kept. Default: the rows and shared columns of all files.",
)


def merge(
    *,
    file: Annotated[list[str], _FILE],
    out: Annotated[Path, opt.OUT_FILE],
    key: Annotated[str | None, opt.KEY] = None,
    rows: Annotated[Path | None, _ROWS] = None,
    from_name: Annotated[str | None, opt.FROM_NAME] = None,
    answer: Annotated[str | None, opt.ANSWER_COLUMN] = None,
    separator: Annotated[str, opt.SEPARATOR] = "|",
    text: opt.TextOptions,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Joins accepted, verified and reviewed rows into the final table, and says where each label comes from."""
    from setwise.cli.outputs import refuse_taken, write_rows  # Arrow is loaded for files
    from setwise.tables import merge_labels
    from setwise.tables.arrow_reading import column_names

    screen = display.screen(out)
    if key is None:
        raise ValueError("merge: rows are matched by an identifier; name its column with --key.")
    opt.refuse_existing(out, force=force)
    name, table = answer or "label", text.files(rows)
    if table is not None:
        refuse_taken(column_names(table), [name, "source", "drawn"])
    files = [(text.files(path), column) for path, column in map(opt.file_and_column, file)]
    with screen.working(f"merging {len(files)} files"):
        final = merge_labels(files, key=key, rows=table, answer=name, separator=separator, from_name=from_name)
        write_rows(out, final | {name: final[name].to_pylist()}, labels=[name], separator=separator)
    counts = Counter(final["source"].to_pylist())
    told = ", ".join(f"{counts[source]:,} {source}" for source in ("accepted", "verified", "reviewed"))
    screen.say(f"{counts.total():,} rows have one label each: {told}")
    screen.say(f"saved to {out}, with the columns {name}, source and drawn (at random)")
    screen.emit({"rows": counts.total(), **counts, "column": name, "out": str(out)})
