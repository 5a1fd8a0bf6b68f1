"""`setwise conformalize`: probabilities from any model, calibrated on candidate sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from setwise.cli import options as opt
from setwise.cli.screen import show_claims

EXAMPLES = (
    "setwise conformalize --probabilities scores.csv --labels answers.csv --key id --out model.cal",
    "setwise conformalize --probabilities scores.csv --votes votes.csv --key id --item call --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --key id --verified seen.csv --out m.cal",
    "setwise conformalize --probabilities scores.csv --candidates said --verified seen --right all --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --by hospital --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --assume uniform --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --nodes tree.csv --at-most 2 --out m.cal",
    "setwise conformalize --probabilities parts/ --candidates answers --memory-limit 4GB --out model.cal",
    "setwise conformalize --probabilities parts/ --candidates answers --engine ray --out model.cal",
)


def conformalize(
    *,
    probabilities: Annotated[Path, opt.PROBABILITIES],
    out: Annotated[Path, opt.option("--out FILE", "Calibration file to write.")],
    labels: Annotated[Path | None, opt.LABELS] = None,
    candidates: Annotated[str, opt.CANDIDATES] = "candidates",
    about: opt.RowOptions,
    carry: Annotated[list[str] | None, opt.IGNORE] = None,
    look: Annotated[int | None, opt.LOOK] = None,
    promise: opt.CalibrationOptions,
    missing: Annotated[str | None, opt.MISSING] = None,
    truth: Annotated[str | None, opt.RIGHT] = None,
    empty: Annotated[str, opt.EMPTY] = "error",
    random_state: Annotated[int, opt.SEED] = 0,
    memory_limit: Annotated[str, opt.MEMORY_LIMIT] = "1GB",
    engines: opt.EngineOptions,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Calibrates the probabilities of your own model on candidates or votes, and saves a calibration."""
    from setwise.streams.calibration_rows import CalibrationRows  # Arrow is loaded for files
    from setwise.streams.calibration_tables import ProbabilityTable, read_calibration_rows
    from setwise.tables.arrow_reading import column_names
    from setwise.tables.rows import other_columns, read_rows
    from setwise.tables.tabular import Layout, candidate_columns

    screen = display.screen()
    opt.refuse_existing(out, force=force)
    by, strategy, runs = promise.by, promise.strategy_at(look), engines.workers()
    source, labelled = about.files(probabilities), about.files(labels)
    names = column_names(source)
    own = labels is None and about.votes is None and bool(candidate_columns(names, candidates))
    if not own:
        opt.one_of(labels, about.votes, f"--labels (a file, as that of the probabilities lacks {candidates!r})")
    rows = CalibrationRows(memory_limit=opt.bytes_of(memory_limit), random_state=random_state)
    with screen.working(f"reading {probabilities}"):
        found_later = opt.is_found(by, *filter(None, (source, labelled)))
        left = "empty" if truth is not None and not about.verified else "error"  # --empty says what becomes of them
        reading: dict[str, Any] = {"candidates": candidates, "missing": missing or left}
        several: dict[str, Any] = {} if truth is None else {"truth": opt.right_of(truth)}
        columns = {"by": None if found_later else by, "carry": carry or [], "features": (), **reading}
        request = about.request(source, labelled, **columns, several=bool(several))
        beside = {*names} - {*other_columns(request)}
        table = ProbabilityTable.of(source, {*beside, *request.carry, *([about.key] if about.key else [])})
        known: dict[str, Any] | None = None  # of rows by their place, where it does not stand beside them
        if not own or request.verified is not None or several:
            found = read_rows(replace(request, carry=(), classes=table.classes))
            known = {"candidates": found.answers, "by": found.by}
            checked = found.truth if about.verified else None
            known["verified"] = None if several else checked
            several |= {"verified": checked} if several else {}
        layout = Layout(truth=None if several else request.truth, separator=about.separator, **reading)
        rows = read_calibration_rows(table, rows, known, layout, request.by, engine=runs)
    classes = table.classes
    declared = promise.declarations(classes) | ({"by": by} if found_later else {})
    declared |= {} if about.votes is None else {"missing": missing or "drop"}
    calibration = rows.conformalize(strategy, **declared, **several, empty=empty)
    calibration.save(out)
    screen.say(f"read {probabilities}: {rows.seen:,} rows, {len(classes):,} classes, such as {classes[0]!r}")
    claims = show_claims(screen, calibration, promise.confidence_level)
    screen.say("", f"saved to {out}   try:  setwise predict {out} --probabilities new.csv --out sets.csv")
    screen.emit({"rows": rows.seen, "classes": classes, "out": str(out)} | claims)
