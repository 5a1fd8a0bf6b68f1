"""`setwise annotators`: who answers well, how much annotators agree, and what they say together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise import data
from setwise.cli import options as opt
from setwise.cli.screen import Screen

if TYPE_CHECKING:
    from setwise.contamination.people import Annotators

EXAMPLES = (
    "setwise annotators votes.csv --item task --annotator worker --label label --out consensus.csv",
    "setwise annotators votes.csv --item task --annotator worker --label label --json",
)


def annotators(
    file: opt.File,
    item: opt.Item,
    annotator: opt.Annotator,
    label: opt.Label,
    weight: opt.Weight = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the consensus of each item, with its probabilities, there.")
    ] = None,
    delimiter: opt.Delimiter = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Describes annotators by their answers alone: accuracy, agreement, oddities; and their consensus."""
    from setwise.contamination.people import annotators as people_of  # noqa: PLC0415 - scipy's sparse matrices

    screen = Screen(quiet, as_json)
    if out is not None:
        opt.refuse_existing(out, force=force)
    with screen.working(f"reading {file}"):
        imported = data.from_annotators_long(
            file, task=item, worker=annotator, label=label, weight=weight, missing="empty", delimiter=delimiter
        )
        votes = imported.votes
        if votes is None or not len(votes.row):
            raise ValueError(f"{file}: there is no answer in the column {label!r}.")
        found = people_of(votes)
    screen.say(f"read {file}: {len(votes.row):,} answers")
    screen.say(repr(found))
    if out is not None:
        _write(out, item, imported.ids, found)
        screen.say(f"saved to {out}: the consensus of each item and the probability of each label")
    screen.emit(
        found.to_dict() | {"rows": len(found.consensus), "answers": len(votes.row), "out": out and str(out)}
    )


def _write(out: Path, item: str, ids: Any, found: Annotators) -> None:
    """The consensus of each item, and the probabilities of all labels given the answers."""
    from setwise.data.set_files import set_writer  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.labels.label_sets import LabelSets  # noqa: PLC0415

    agreed = LabelSets.from_labels(found.consensus, found.classes, missing="empty")
    with set_writer(out, column="consensus", sizes=False) as writer:
        writer.append(agreed, {item: ids.tolist()}, found.posterior)
