"""`setwise suggest`: draws rows to verify at random, and estimates how small sets would become."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from setwise._arrays import Array, Floats
from setwise.cli import options as opt

EXAMPLES = (
    "setwise suggest model/ votes.csv --candidates answers --key id --budget 50 --out to-verify.csv",
    "setwise suggest model/ calls.csv --votes votes.csv --key id --item call --budget 50 --out to-verify.json",
    "setwise suggest model.cal --probabilities scores.csv --labels answers.csv --key id --budget 50 --out rows.csv",
)
_ORDER = (
    "The rows are in random order. You may stop early, as long as the answers so far do not influence when you "
    "stop. If you inspect the sets before verifying more rows, use --look 1, --look 2, … in fit or conformalize."
)


def suggest(
    *,
    model: Annotated[Path, typer.Argument(help="Model directory or calibration file.", metavar="MODEL")],
    out: opt.OutTasks,
    pages: opt.PageOptions,
    budget: Annotated[int, typer.Option("--budget", metavar="NUMBER", help="Number of rows to verify.", min=1)],
    file: opt.OptionalFiles = None,
    probabilities: opt.OptionalProbabilities = None,
    candidates: opt.OptionalCandidates = None,
    labels: opt.Labels = None,
    votes: opt.VotesFile = None,
    key: opt.Key = None,
    vote_table: opt.OwnVoteOptions,
    verified: opt.Verified = None,
    from_name: opt.FromName = None,
    confidence_level: opt.ModelsConfidence = None,
    answer: opt.AnswerColumn = None,
    columns: opt.Features = None,
    trusted: opt.Trusted = None,
    separator: opt.Separator = "|",
    text: opt.TextOptions,
    random_state: opt.Seed = 0,
    device: opt.Device = "auto",
    force: opt.Force = False,
    display: opt.ScreenOptions,
) -> None:
    """Draws rows at random for you to verify, and estimates how much smaller sets become."""
    from setwise.cli.outputs import refuse_taken, take, write_rows  # Arrow is loaded for files
    from setwise.decisions.verification import suggest_verification
    from setwise.streams import model_inputs as saved
    from setwise.tables.rows import RowRequest, output_columns, read_rows

    screen = display.screen(out)
    if bool(probabilities) == bool(file):
        raise ValueError("suggest: give a FILE of rows for a model, or --probabilities FILE for a calibration.")
    opt.one_of(candidates or labels, votes, "--candidates (a column)")
    for target in filter(None, (out, pages.page)):
        opt.refuse_existing(target, force=force)
    source, labelled = text.files(probabilities or file or []), text.files(labels)
    with screen.working(f"reading {source}"):
        request = RowRequest(
            source=source,
            labels=labelled,
            votes=text.files(votes),
            vote_columns=vote_table.columns,
            **opt.verified_in(verified, text, source, labelled),
            from_name=from_name,
            key=key,
            candidates=candidates or (None if labels is None else "candidates"),
            features=(),
            separator=separator,
        )
        if probabilities is None:
            asked = saved.load_asked_model(model, device, trusted)
            level = asked.confidence_level if confidence_level is None else confidence_level
            X = saved.all_features(source, asked, columns)
        else:
            asked = _Stated(saved.load_calibration(model).classes)
            level = 0.9 if confidence_level is None else confidence_level
            X = saved.all_probabilities(source, asked.classes_.tolist())
        rows = read_rows(replace(request, classes=asked.classes_.tolist()))
        checked = rows.truth if verified else None
        known: dict[str, Any] = {"confidence_level": level, "verified": checked, "random_state": random_state}
        with saved.no_name_warnings():
            if probabilities is None:
                found = asked.suggest(X, rows.answers, budget, **known)
            else:
                found = suggest_verification(asked, X, rows.answers, budget, **known)
    # In random order: the first rows of the file are a random sample too.
    drawn = np.random.default_rng([random_state, 1]).permutation(found.rows)
    answer, taken = answer or request.truth or "verified", take(output_columns(source, rows), drawn)
    if answer == request.truth:
        taken.pop(answer, None)
    refuse_taken(taken, [answer, "chance"])
    more = {"chance": found.probability[drawn], **({} if out.suffix == ".json" else {answer: [""] * len(drawn)})}
    paged = pages.write(taken, asked.classes_.tolist(), source, key, separator=separator)
    write_rows(out, taken, more=more, separator=separator)
    chance, tasks = float(found.probability[drawn[0]]), out.suffix == ".json"
    screen.say(f"drew {len(drawn):,} of {len(rows):,} rows to verify, each with probability {chance:.3g}")
    screen.say(f"{found.gain}\n{_ORDER}")
    todo = "answer the tasks in Label Studio and export them as JSON" if tasks else f"fill in the column {answer!r}"
    answers = "export.json" if tasks else str(out) + ("" if answer == "verified" else f":{answer}")
    option = f"--verified {answers} --key {key or 'COLUMN'}"
    screen.say("\n".join(["", f"saved to {out}   then:  {todo}, and give fit or conformalize  {option}", *paged]))
    screen.emit(
        {
            "rows": len(rows),
            "drawn": len(drawn),
            "chance": chance,
            "verified": found.verified,
            "confidence_level": level,
            "size_now": found.size_now,
            "size_then": found.size_then,
            "curve": {str(count): size for count, size in found.curve.items()},
            "column": answer,
            "out": str(out),
        }
    )


@dataclass(frozen=True)
class _Stated:
    """A model that is known by its probabilities alone."""

    classes_: Array

    def predict_proba(self, X: Any) -> Floats:
        """The rows are the probabilities."""
        return np.asarray(X)
