"""`setwise suggest`: rows to have checked, drawn at random, and what the checks would be worth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from setwise._arrays import Array, Floats
from setwise.cli import options as opt
from setwise.cli.screen import Screen

EXAMPLES = (
    "setwise suggest model/ votes.csv --candidates answers --key id --budget 50 --out to-verify.csv",
    "setwise suggest model/ calls.csv --votes votes.csv --key id --item call --budget 50 --out to-verify.json",
    "setwise suggest model.cal --probabilities scores.csv --labels answers.csv --key id --budget 50 --out rows.csv",
)
_ORDER = (
    "They are in random order: whoever stops early has a random sample still, unless the answers decide when. A "
    "number of checks fixed beforehand needs nothing more; whoever looks at the sets and then goes on uses "
    "--look 1, --look 2, … in fit or conformalize."
)


def suggest(
    model: Annotated[Path, typer.Argument(help="A model directory, or a calibration file.", metavar="MODEL")],
    out: opt.OutTasks,
    budget: Annotated[int, typer.Option("--budget", help="How many rows can be checked.", min=1)],
    file: opt.OptionalFiles = None,
    probabilities: opt.OptionalProbabilities = None,
    candidates: opt.OptionalCandidates = None,
    labels: opt.Labels = None,
    votes: opt.VotesFile = None,
    key: opt.Key = None,
    item: opt.OptionalItem = None,
    annotator: opt.OptionalAnnotator = None,
    label: opt.OptionalLabel = None,
    weight: opt.Weight = None,
    verified: opt.Verified = None,
    checks: opt.Checks = None,
    from_name: opt.FromName = None,
    confidence_level: opt.ModelsConfidence = None,
    answer: opt.AnswerColumn = None,
    columns: opt.Features = None,
    trusted: opt.Trusted = None,
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    random_state: opt.Seed = 0,
    device: opt.Device = "auto",
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Draws rows to have checked, all with the same chance, and estimates what the checks would be worth."""
    from setwise.cli.given_rows import Named, features_of, probabilities_in  # noqa: PLC0415
    from setwise.cli.table_columns import one_of, refuse_taken, write_rows  # noqa: PLC0415
    from setwise.decisions.verification import suggest_verification  # noqa: PLC0415
    from setwise.scale import saved_models as saved  # noqa: PLC0415 - Arrow is loaded for files

    screen = Screen(quiet, as_json, out)
    if bool(probabilities) == bool(file):
        raise ValueError("suggest: give a FILE of rows for a model, or --probabilities FILE for a calibration.")
    one_of(candidates or labels, votes, key, "--candidates (a column)")
    opt.refuse_existing(out, force=force)
    sources = (item, annotator, label, weight)
    text = (delimiter, encoding, decimal)
    named = Named(candidates, labels, votes, key, sources, verified, checks, from_name, separator, text)
    source = named.files(probabilities or file)
    with screen.working(f"reading {source}"):
        if probabilities is None:
            asked = saved.load_model(model, device, trusted)
            given = named.rows(source, asked.classes_.tolist(), "error")
            level = asked.confidence_level if confidence_level is None else confidence_level
            X = features_of(source, asked, columns)
        else:
            classes = saved.load_calibration(model).classes
            asked, level = _Stated(classes), 0.9 if confidence_level is None else confidence_level
            given = named.rows(source, classes.tolist(), "error")
            X = probabilities_in(source, classes.tolist())
        known = {"confidence_level": level, "verified": given.verified, "random_state": random_state}
        with saved.no_name_warnings():
            if probabilities is None:
                found = asked.suggest(X, given.y, budget, **known)
            else:
                found = suggest_verification(asked, X, given.y, budget, **known)
    # In random order: the first rows of the file are a random sample too.
    rows = np.random.default_rng([random_state, 1]).permutation(found.rows)
    answer, taken = answer or verified or "verified", given.take(rows)
    if answer == verified:
        taken.pop(answer, None)
    refuse_taken(taken, [answer, "chance"])
    more = {"chance": found.probability[rows], **({} if out.suffix == ".json" else {answer: [""] * len(rows)})}
    write_rows(out, taken, more=more, separator=separator)
    chance, tasks = float(found.probability[rows[0]]), out.suffix == ".json"
    screen.say(f"drew {len(rows):,} of {given.n:,} rows to have checked, each with probability {chance:.3g}")
    screen.say(f"once they are: {found.gain}\n{_ORDER}")
    todo = "answer the tasks in Label Studio and export them as JSON" if tasks else f"fill in the column {answer!r}"
    column_named = "" if tasks or answer == "verified" else f" --verified {answer}"
    option = f"--checks {'export.json' if tasks else out} --key {key or 'COLUMN'}{column_named}"
    screen.say(f"\nsaved to {out}   then:  {todo}, and give fit or conformalize  {option}")
    screen.emit(
        {
            "rows": given.n,
            "drawn": len(rows),
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
