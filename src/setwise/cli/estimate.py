"""`setwise estimate`: how common classes are, and how often annotators, consensus, model and sets are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from setwise.cli import options as opt

EXAMPLES = (
    "setwise estimate answers.csv --item photo --verified verified.csv:bird --out figures.csv",
    "setwise estimate photos.csv --votes answers.csv --key photo --by camera --verified verified.csv",
    "setwise estimate sets.csv --candidates set --verified truth",
)
_BY = opt.option("--by COLUMN", "Column of categories, such as the camera: each gets figures of its own, too.")
_POSITIVE = opt.option(
    "--positive LABEL", "The label whose recall is the sensitivity, where there are two. Default: the last."
)


def estimate(
    *,
    file: Annotated[list[Path] | None, opt.FILES] = None,
    probabilities: Annotated[Path | None, opt.PROBABILITIES] = None,
    candidates: Annotated[str | None, opt.CANDIDATES] = None,
    by: Annotated[str | None, _BY] = None,
    groups: Annotated[str | None, opt.GROUPS] = None,
    positive: Annotated[str | None, _POSITIVE] = None,
    about: opt.OwnRowOptions,
    show_all: Annotated[bool, opt.SHOW_ALL] = False,
    out: Annotated[Path | None, opt.OUT_FILE] = None,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Estimates shares of labels and accuracies, with intervals, from answers and rows verified at random.

    FILE holds the answers, one per line. With --votes or --candidates it is the table of the rows.
    """
    import pyarrow as pa

    from setwise.cli.outputs import write_rows  # Arrow is loaded for files
    from setwise.crowd.estimates import estimate as estimates_of
    from setwise.labels.vocabulary import is_missing
    from setwise.streams.calibration_tables import ProbabilityTable
    from setwise.streams.model_inputs import all_probabilities
    from setwise.tables.label_notation import match_classes
    from setwise.tables.rows import read_rows

    screen = display.screen(out)
    opt.refuse_existing(out, force=force)
    if not about.verified:
        raise ValueError("--verified: answers alone do not show who is right; name a FILE with verified labels.")
    if about.votes is None and candidates is None:
        about, file = replace(about, votes=file), None  # type: ignore[arg-type]
    if (file and probabilities) or not (file or about.votes):
        raise ValueError("estimate: give a FILE of answers; with --votes or --candidates, one table of the rows.")
    source = about.files(probabilities or file)
    if source is None and (by or groups):
        option = "--by" if by else "--groups"
        raise ValueError(f"{option}: names a column of the rows. Give their table as FILE, and --votes FILE.")
    carried = [groups] if groups else []
    request = about.request(source, candidates=candidates, by=by, carry=carried, features=(), missing="empty")
    with screen.working("reading"):
        known: dict[str, Any] = {}
        if probabilities is not None:
            beside = set(filter(None, (about.key, request.truth, by, groups, candidates)))
            classes = ProbabilityTable.of(source, beside).classes
            request = replace(request, classes=classes)
            known["probabilities"] = all_probabilities(source, classes)
        rows = read_rows(request)
        answers: Any = rows.answers
        if positive is not None:
            known["positive"] = match_classes([positive], answers.classes)[0]
        known |= {"by": rows.by, "groups": rows.carried[groups] if groups else None}
        found = estimates_of(answers, rows.truth, **known)
    screen.show(found.describe(None) if show_all else found)
    if out is not None:
        texts = {"name", "label", "category"}
        columns = found.to_frame().items()
        written = {
            name: pa.array([None if is_missing(one) else str(one) for one in values] if name in texts else values)
            for name, values in columns
        }
        write_rows(out, written)
        screen.say("", f"saved to {out} ({len(found):,} figures)")
    screen.emit(found.to_dict() | {"out": out and str(out)})
