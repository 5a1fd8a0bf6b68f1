"""`setwise suggest`: draws rows to verify at random, and estimates how small sets would become."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setwise._arrays import Ints
from setwise.cli import options as opt
from setwise.findings import join_names

if TYPE_CHECKING:
    from setwise.tables.rows import RowRequest
    from setwise.tables.tabular import Table

EXAMPLES = (
    "setwise suggest --votes export.json --key id --budget 50 --out to-verify.csv",
    "setwise suggest model/ photos.csv --candidates labels --key id --budget 50 --out to-verify.csv",
    "setwise suggest model/ photos.csv --votes answers.csv --key id --item photo --budget 50 --out to-verify.json",
    "setwise suggest model.cal --probabilities scores.csv --labels labels.csv --key id --budget 50 --out rows.csv",
)
_ORDER = (
    "The rows are in random order. You may stop early, as long as the answers so far do not influence when you "
    "stop. "
)
_SHOWN = 6

_MORE = "A larger budget with the same seed continues this draw."
_LOOKS = "If you inspect the sets before verifying more rows, use --look 1, --look 2, … in fit or conformalize."
_MODEL = typer.Argument(
    help="Model directory or calibration file. Leave it out for votes without a model.", metavar="[MODEL]"
)


def suggest(
    *,
    out: Annotated[Path, opt.OUT_TASKS],
    pages: opt.PageOptions,
    budget: Annotated[int, opt.option("--budget NUMBER", "Number of rows to verify.", min=1)],
    model: Annotated[Path | None, _MODEL] = None,
    file: Annotated[list[Path] | None, opt.FILES] = None,
    probabilities: Annotated[Path | None, opt.PROBABILITIES] = None,
    candidates: Annotated[str | None, opt.CANDIDATES] = None,
    labels: Annotated[Path | None, opt.LABELS] = None,
    about: opt.OwnRowOptions,
    confidence_level: Annotated[float | None, opt.MODELS_CONFIDENCE] = None,
    answer: Annotated[str | None, opt.VERIFIED_COLUMN] = None,
    loading: opt.ModelOptions,
    random_state: Annotated[int, opt.SEED] = 0,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Draws rows at random for you to verify, and estimates how much smaller sets become with a model."""
    from setwise.cli.outputs import refuse_taken, take, write_rows  # Arrow is loaded for files
    from setwise.decisions.verification import draw_to_verify
    from setwise.report.label_pages import telling_columns
    from setwise.tables.rows import output_columns, read_rows

    screen = display.screen(out)
    if model is not None and not file and about.votes is not None and opt.is_table_file(model):
        file, model = [model], None  # votes without a model
    if model is None and about.votes is None:
        raise ValueError("suggest: give a MODEL and rows, or --votes FILE for votes without a model.")
    if model is not None and bool(probabilities) == bool(file):
        raise ValueError("suggest: give a FILE of rows for a model, or --probabilities FILE for a calibration.")
    opt.one_of(candidates or labels, about.votes, "--candidates (a column)")
    for target in (out, pages.page):
        opt.refuse_existing(target, force=force)
    source, labelled = about.files(probabilities or file or None), about.files(labels)
    with screen.working(f"reading {source or about.votes}"):
        candidates = candidates or (None if labels is None else "candidates")
        request = about.request(source, labelled, candidates=candidates, features=())
        if model is None:
            models = {"confidence": confidence_level, "probabilities": probabilities, "features": loading.columns}
            if unused := [name for name, value in models.items() if value is not None]:
                raise ValueError(f"--{unused[0]}: has no effect without a MODEL; leave it out.")
            rows = read_rows(request)
            drawn = draw_to_verify(len(rows), budget, verified=rows.truth, random_state=random_state)
            numbers, gain = {"chance": budget / len(rows)}, ""
        else:
            asked = {"confidence_level": confidence_level, "random_state": random_state}
            features = None if probabilities else loading
            rows, drawn, gain, numbers = _of_model(model, request, budget, features, asked)
    answer, taken = answer or request.truth or "verified", take(output_columns(source, rows), drawn)
    if answer == request.truth:
        taken.pop(answer, None)
    tasks = out.suffix == ".json"
    draws = [f"{i} of {budget} from {len(rows)} rows, seed {random_state}" for i in range(1, budget + 1)]
    marks: dict[str, Any] = {"drawn": [True] * len(drawn), "draw": draws}
    refuse_taken(taken, [answer, "drawn", "draw"])
    answers: Any = rows.answers
    paged = pages.write(taken, answers.classes.tolist(), source, about.key, separator=about.separator, marks=marks)
    written = {**taken, **marks} | ({} if tasks else {answer: [""] * len(drawn)})
    write_rows(out, written, separator=about.separator, from_name=about.from_name)
    screen.say(
        f"drew {len(drawn):,} of {len(rows):,} rows to verify, each with probability {numbers['chance']:.3g}"
    )
    screen.say(f"{gain}{_ORDER}{_LOOKS if gain else _MORE}")
    if told := telling_columns(taken, answers.classes.tolist(), key=about.key, separator=about.separator):
        screen.say(
            f"{out} has columns that tell labels: {join_names(told, _SHOWN)}. Hide them from those who verify."
        )
    todo = "answer the tasks in Label Studio and export them as JSON" if tasks else f"fill in the column {answer!r}"
    filled = "export.json" if tasks else str(out) + ("" if answer == "verified" else f":{answer}")
    command = "triage" if model is None else "fit or conformalize"
    key = "" if model is None and about.key is None else f" --key {about.key or 'COLUMN'}"
    screen.say("", f"saved to {out}   then:  {todo}, and give {command}  --verified {filled}{key}", *paged)
    screen.emit(
        {"rows": len(rows), "drawn": len(drawn), "seed": random_state, **numbers, "column": answer, "out": str(out)}
    )


def _of_model(
    model: Path, request: RowRequest, budget: int, loading: opt.ModelOptions | None, options: dict[str, Any]
) -> tuple[Table, Ints, str, dict[str, Any]]:
    """The rows, those drawn of the answered ones, and what they are worth: in words, and as plain data."""
    from setwise.decisions.verification import suggest_verification
    from setwise.streams import model_inputs as saved
    from setwise.tables.rows import read_rows

    asked: Any
    if loading is not None:
        asked, X = loading.load(model, request.source)
        level = asked.confidence_level
    else:
        classes, level = saved.load_calibration(model).classes, 0.9
        asked = SimpleNamespace(classes_=classes, predict_proba=np.asarray)  # known by its probabilities alone
        X = saved.all_probabilities(request.source, asked.classes_.tolist())
    rows = read_rows(replace(request, classes=asked.classes_.tolist()))
    kept = np.arange(len(rows)) if rows.votes is None else np.flatnonzero(rows.votes.sizes)
    answered = rows.take(kept)
    known: dict[str, Any] = {"verified": answered.truth if request.truth or request.verified else None}
    known |= {**options, "confidence_level": options["confidence_level"] or level}
    with saved.no_name_warnings():
        if loading is not None:
            found = asked.suggest(X[kept], answered.answers, budget, **known)
        else:
            found = suggest_verification(asked, X[kept], answered.answers, budget, **known)
    numbers: dict[str, Any] = {"chance": len(found.rows) / (len(kept) - found.verified)}
    for name in ("verified", "confidence_level", "size_now", "size_then"):
        numbers[name] = getattr(found, name)
    numbers["curve"] = {str(count): size for count, size in found.curve.items()}
    return rows, kept[found.rows], f"{found.gain}\n", numbers
