"""`setwise annotators`: who answers well, how much annotators agree, and what they say together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from setwise.cli import options as opt

if TYPE_CHECKING:
    from setwise.crowd.annotators import Annotators

EXAMPLES = (
    "setwise annotators answers.csv --out consensus.csv",
    "setwise annotators answers.csv --item photo --annotator who --label bird --json",
    "setwise annotators export.json --key id",
)


def annotators(
    *,
    file: opt.Files,
    vote_table: opt.OwnVoteOptions,
    key: opt.Key = None,
    show_all: opt.ShowAll = False,
    out: opt.OptionalOutFile = None,
    text: opt.TextOptions,
    force: opt.Force = False,
    display: opt.ScreenOptions,
) -> None:
    """Shows who answers well and how far annotators agree, and writes their consensus."""
    from setwise.crowd.annotators import annotators as people_of  # scipy's sparse matrices
    from setwise.tables import import_votes  # Arrow is loaded for files

    screen = display.screen(out)
    if out is not None:
        opt.refuse_existing(out, force=force)
    source = text.files(file)
    with screen.working(f"reading {source}"):
        imported = import_votes(source, vote_table.columns, key)
        votes = imported.votes
        if votes is None or not len(votes.row):
            raise ValueError(f"{source}: there is no answer.")
        found = people_of(votes)
    screen.say(f"read {source}: {votes.sizes.sum():,} answers")
    screen.say(found.describe(None) if show_all else repr(found))
    if out is not None:
        _write(out, vote_table.item or key or imported.name, imported.ids, found)
        screen.say(f"saved to {out}: the consensus of each item and the confidence in each label")
    screen.emit(
        found.to_dict() | {"rows": len(found.consensus), "answers": int(votes.sizes.sum()), "out": out and str(out)}
    )


def _write(out: Path, item: str, ids: Any, found: Annotators) -> None:
    """The consensus of each item, and the confidence in each label."""
    from setwise.cli.outputs import writing  # Arrow is loaded for files
    from setwise.labels.label_sets import LabelSets

    agreed = LabelSets.from_labels(found.consensus, found.classes, missing="empty")
    with writing(out, column="consensus", sizes=False) as writer:
        writer.append(agreed, {item: ids.tolist()}, found.confidence)
