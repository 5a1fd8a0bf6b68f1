"""`setwise suspects`: which given labels look wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from setwise.cli import options as opt
from setwise.labels.label_sets import LabelSets

EXAMPLES = (
    "setwise suspects labels.csv --given label --votes votes.csv --verified verified.csv --key id --out look.csv",
    "setwise suspects --probabilities scores.csv --given label --verified truth --out look.csv",
)


_MAX_FALSE = opt.option("--max-false SHARE", "Share of the labels found that may be right, on average over draws.")


def suspects(
    *,
    file: Annotated[list[Path] | None, opt.FILES] = None,
    given: Annotated[str, opt.option("--given COLUMN", "Column of the labels that may be wrong.")] = "label",
    probabilities: Annotated[Path | None, opt.PROBABILITIES] = None,
    about: opt.RowOptions,
    max_false: Annotated[float, _MAX_FALSE] = 0.1,
    out: Annotated[Path, opt.OUT_FILE],
    random_state: Annotated[int, opt.SEED] = 0,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Finds given labels that look wrong, so that few of them are right, and writes their rows."""
    from setwise.cli.outputs import refuse_taken, take, write_rows  # Arrow is loaded for files
    from setwise.decisions.suspects import suspects as find
    from setwise.streams import model_inputs as saved
    from setwise.streams.calibration_tables import ProbabilityTable
    from setwise.tables.arrow_reading import column_names
    from setwise.tables.rows import RowRequest, output_columns, read_rows

    screen = display.screen(out)
    if bool(probabilities) == bool(file):
        raise ValueError(
            "suspects: give a FILE with labels and --votes, or --probabilities FILE with labels in it."
        )
    if file and about.votes is None:
        raise ValueError(
            "suspects: name --votes FILE, or --probabilities FILE: one of them shows what looks wrong."
        )
    opt.refuse_existing(out, force=force)
    source = about.files(probabilities or file or [])
    if given not in (names := column_names(source)):
        raise ValueError(f"{source}: has no column {given!r}; name that of the labels with --given.")
    request = about.request(source, features=(), missing="empty")
    with screen.working("reading"):
        known: dict[str, Any] = {}
        if probabilities is not None:
            beside = {given, *filter(None, (about.key, request.truth))}
            classes = ProbabilityTable.of(source, beside).classes
            request = replace(request, classes=classes)
            known["probabilities"] = saved.all_probabilities(source, classes)
        rows = read_rows(request)
        columns = output_columns(source, rows)
        labels: Any = read_rows(RowRequest(source=source, truth=given, features=(), classes=request.classes)).truth
        if request.classes is not None:
            labels = LabelSets.from_labels(labels, request.classes)
        found = find(labels, rows.truth, rows.votes, max_false=max_false, random_state=random_state, **known)
    refuse_taken(names, ["proposed", "suspicion"])
    written = take(columns, found.rows) | {"proposed": found.proposed.tolist(), "suspicion": found.suspicion}
    write_rows(out, written, labels=["proposed"], separator=about.separator)
    screen.show(found)
    screen.say("", f"saved to {out} ({len(found):,} rows, the most suspect first)")
    numbers = {name: getattr(found, name) for name in ("max_false", "bound", "verified", "wrong")}
    result = {"rows": len(rows), "found": len(found), **numbers, "guarantee": found.guarantee.to_dict()}
    screen.emit(result | {"out": str(out)})
