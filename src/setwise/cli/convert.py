"""`setwise convert`: candidate sets in another format, or out of annotators' answers; and those answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setwise import tables
from setwise.cli import options as opt
from setwise.cli.screen import Screen

if TYPE_CHECKING:
    from setwise.labels.votes import Votes
    from setwise.tables.importers.imported import Imported

EXAMPLES = (
    "setwise convert votes.csv --from votes --out candidates.parquet",
    "setwise convert export.json --from label-studio --to votes --out votes.csv",
    "setwise convert export.json --from label-studio --key id --out candidates.csv",
    "setwise convert answers.jsonl --from answers --to probabilities --out probabilities.csv",
)
_SOURCE = opt.option(
    "--from KIND",
    "What FILE holds: table (with candidates), votes (one answer per line), label-studio, or answers. Answers are "
    "JSON lines of a language model: an id, with answers or with labels and probabilities.",
)
_TARGET = opt.option(
    "--to KIND",
    "What to write: candidates, votes or probabilities. Probabilities are the share that each label has of the "
    "answers to a row, one column per label. A table can only become candidates.",
)


def convert(
    *,
    file: Annotated[list[Path], opt.FILES],
    out: Annotated[Path, opt.OUT_FILE],
    source: Annotated[str, _SOURCE] = "table",
    target: Annotated[str, _TARGET] = "candidates",
    candidates: Annotated[str, opt.CANDIDATES] = "candidates",
    rule: Annotated[
        str, opt.option("--rule RULE", "Which answers become candidates: union, at_least:2, plurality.")
    ] = "union",
    key: Annotated[str | None, opt.KEY] = None,
    from_name: Annotated[str | None, opt.FROM_NAME] = None,
    vote_table: opt.OwnVoteOptions,
    missing: Annotated[str | None, opt.MISSING] = None,
    separator: Annotated[str, opt.SEPARATOR] = "|",
    text: opt.TextOptions,
    force: Annotated[bool, opt.FORCE] = False,
    display: opt.ScreenOptions,
) -> None:
    """Converts votes, Label Studio exports and language-model answers to candidates, votes or probabilities."""
    from setwise.cli.outputs import output_columns, write_candidates  # Arrow is loaded for files
    from setwise.tables.rows import RowRequest, other_columns, read_rows

    screen = display.screen(out)
    opt.refuse_existing(out, force=force)
    if target not in {"candidates", "votes", "probabilities"} or (target != "candidates" and source == "table"):
        raise ValueError(f"--to: {target!r} cannot be made from {source}; use candidates, or --from votes.")
    files = text.files(file)
    with screen.working(f"reading {files}"):
        if source == "table":
            reading: dict[str, Any] = {"separator": separator, "missing": missing or "error"}
            reading["classes"] = vote_table.labels(separator)
            request = RowRequest(source=files, candidates=candidates, features=(), **reading)
            whole = output_columns(files, out, text=[candidates])
            sets: Any = read_rows(request).candidates
            carried = {name: whole[name] for name in other_columns(request)}
        elif source in {"votes", "label-studio", "answers"}:
            columns = vote_table.columns
            options: dict[str, Any] = {"rule": rule, "missing": missing or "empty"}
            options["classes"] = vote_table.labels(separator)
            if source == "votes":
                named = {name: getattr(columns, name) for name in ("item", "annotator", "label", "weight")}
                found = tables.from_annotators_long(files, **named, **options)
            elif source == "answers":
                ids = key or columns.item or "id"
                found = tables.from_answers_jsonl(files, ids=ids, pattern=columns.pattern, **options)
            else:
                found = tables.from_label_studio(files, key=key, from_name=from_name, **options)
            if target == "votes":
                _write_votes(screen, out, found.votes)
                return
            if missing is None:
                found = found.drop_unanswered(str(files))
            name = key or columns.item or found.name
            if target == "probabilities":
                _write_shares(screen, out, name, found)
                return
            sets, carried = found.candidates, {name: _arrow(found.ids)}
            if found.truth is not None:
                carried["truth"] = _arrow(found.truth)
        else:
            raise ValueError(f"--from: {source!r} is not known; use table, votes, label-studio or answers.")
    write_candidates(screen, out, sets, carried, candidates, separator)


def _write_votes(screen: Screen, out: Path, votes: Votes) -> None:
    """Writes the answers themselves, as `setwise fit --votes` and `setwise annotators` read them."""
    from setwise.cli.outputs import file_for  # Arrow is loaded for files

    with file_for(out) as place:
        tables.write_votes(place, votes)
    answers = int(votes.sizes.sum())
    screen.say(f"{answers:,} answers on {len(votes):,} rows, {votes.n_classes:,} classes")
    screen.say(f"saved to {out}   try:  setwise annotators {out} --item item --annotator annotator --label label")
    screen.emit({"rows": len(votes), "classes": votes.n_classes, "answers": answers, "out": str(out)})


def _write_shares(screen: Screen, out: Path, name: str, found: Imported) -> None:
    """Writes which share of its answers each label of a row has, as `setwise conformalize` reads probabilities."""
    from setwise.cli.outputs import writing  # Arrow is loaded for files
    from setwise.crowd.consensus import answer_certainty, complete_shares
    from setwise.tables.label_notation import encode_labels

    counts, labels, certainty = found.votes.counts, found.votes.classes.tolist(), answer_certainty(found.votes)
    total = counts.sum(axis=1, keepdims=True)
    if not total.all():
        raise ValueError(
            f"{name} {found.ids[total.argmin()]!r} has no answer, so that its labels have no shares; leave it out."
        )
    columns = [f"p:{text}" for text in encode_labels(labels, "|")]
    shares = complete_shares(counts / total, certainty)
    with writing(out) as writer:
        writer.append_columns({name: _arrow(found.ids), **dict(zip(columns, shares.T, strict=True))})
    screen.say(f"{len(counts):,} rows, a column of probabilities for each of {len(labels):,} labels")
    asked = f"--probabilities {out} --labels SETS.csv --key {name}"
    screen.say(f"saved to {out}   try:  setwise conformalize {asked} --out sets.cal")
    screen.emit({"rows": len(counts), "classes": len(labels), "out": str(out)})


def _arrow(values: Any) -> Any:
    import pyarrow as pa  # loaded for files

    return pa.array(values.tolist())
