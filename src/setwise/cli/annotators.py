"""`setwise annotators`: how far annotators agree, how often each is right, and what they say together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from setwise.cli import options as opt
from setwise.labels.label_sets import LabelSets

EXAMPLES = (
    "setwise annotators answers.csv --verified verified.csv --key id --out consensus.csv",
    "setwise annotators answers.csv --item photo --annotator who --label bird --json",
    "setwise annotators export.json --key id",
)


def annotators(
    *,
    file: Annotated[list[Path], opt.FILES],
    about: opt.OwnRowOptions,
    ordered: Annotated[bool, opt.ORDERED] = False,
    show_all: Annotated[bool, opt.SHOW_ALL] = False,
    out: Annotated[Path | None, opt.OUT_FILE] = None,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Shows how far annotators agree and, with verified rows, how often each is right; writes their consensus."""
    from setwise.cli.outputs import writing  # Arrow is loaded for files
    from setwise.crowd.annotators import annotators as people_of  # scipy's sparse matrices
    from setwise.tables.rows import output_columns, read_rows

    screen = display.screen(out)
    opt.refuse_existing(out, force=force)
    if about.votes is not None:
        raise ValueError("--votes: FILE already names the answers; leave out --votes.")
    source = about.files(file)
    with screen.working(f"reading {source}"):
        rows = read_rows(replace(about, votes=source).request(None))
        if rows.votes is None or not len(rows.votes.row):
            raise ValueError(f"{source}: there is no answer.")
        found = people_of(rows.votes, rows.truth, ordered=ordered)
    screen.say(f"read {source}: {rows.votes.sizes.sum():,} answers")
    screen.show(found.describe(None) if show_all else found)
    if out is not None:
        agreed = LabelSets.from_labels(found.consensus, found.classes, missing="empty")
        with writing(out, column="consensus", sizes=False) as writer:
            writer.append(agreed, output_columns(None, rows), found.confidence)
        screen.say(f"saved to {out}: the consensus of each item and the confidence in each label")
    told = {"rows": len(found.consensus), "answers": int(rows.votes.sizes.sum()), "out": out and str(out)}
    screen.emit(found.to_dict() | told)
