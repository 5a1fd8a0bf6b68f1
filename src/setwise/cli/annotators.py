"""`setwise annotators`: who answers well, how much annotators agree, and what they say together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli import options as opt
from setwise.cli.screen import Screen

if TYPE_CHECKING:
    from setwise.contamination.people import Annotators

EXAMPLES = (
    "setwise annotators votes.csv --item task --annotator worker --label label --out consensus.csv",
    "setwise annotators votes.csv --item task --annotator worker --label label --json",
)


def annotators(
    file: opt.Files,
    item: opt.Item,
    annotator: opt.Annotator,
    label: opt.Label,
    weight: opt.Weight = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="List every annotator, not only the ten that come first.")
    ] = False,
    out: opt.OptionalOutFile = None,
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Describes annotators by their answers alone: accuracy, agreement, oddities; and their consensus."""
    from setwise.cli.table_columns import long_votes  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.contamination.people import annotators as people_of  # noqa: PLC0415 - scipy's sparse matrices

    screen = Screen(quiet, as_json, out)
    if out is not None:
        opt.refuse_existing(out, force=force)
    source = opt.tables(file, delimiter, encoding, decimal)
    with screen.working(f"reading {source}"):
        imported = long_votes(source, item, annotator, label, weight=weight, missing="empty")
        votes = imported.votes
        if votes is None or not len(votes.row):
            raise ValueError(f"{source}: there is no answer in the column {label!r}.")
        found = people_of(votes)
    screen.say(f"read {source}: {len(votes.row):,} answers")
    screen.say(found.described(None) if show_all else repr(found))
    if out is not None:
        _write(out, item, imported.ids, found)
        screen.say(f"saved to {out}: the consensus of each item and the probability of each label")
    screen.emit(
        found.to_dict() | {"rows": len(found.consensus), "answers": len(votes.row), "out": out and str(out)}
    )


def _write(out: Path, item: str, ids: Any, found: Annotators) -> None:
    """The consensus of each item, and the probabilities of all labels given the answers."""
    from setwise.cli.table_columns import writing  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.labels.label_sets import LabelSets  # noqa: PLC0415

    agreed = LabelSets.from_labels(found.consensus, found.classes, missing="empty")
    with writing(out, column="consensus", sizes=False) as writer:
        writer.append(agreed, {item: ids.tolist()}, found.posterior)
