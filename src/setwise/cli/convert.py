"""`setwise convert`: candidate sets in another format, or out of annotators' answers; and those answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise import data
from setwise.cli import options as opt
from setwise.cli.screen import Screen

if TYPE_CHECKING:
    from setwise.data.importers.imported import Imported
    from setwise.data.table_files import TableFiles
    from setwise.labels.label_sets import LabelSets
    from setwise.labels.votes import Votes

EXAMPLES = (
    "setwise convert votes.csv --from votes --out candidates.parquet",
    "setwise convert export.json --from label-studio --to votes --out votes.csv",
    "setwise convert export.json --from label-studio --key id --out candidates.csv",
    "setwise convert answers.jsonl --from answers --to probabilities --out probabilities.csv",
)


def convert(
    file: opt.Files,
    out: opt.OutFile,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="table (with a column of candidates), votes (one answer per line), label-studio, or answers (JSON "
            "lines of a language model: an id, and answers or labels with probabilities).",
        ),
    ] = "table",
    target: Annotated[
        str,
        typer.Option(
            "--to",
            help="candidates; of all but a table also votes (one answer per line), or probabilities (a column for "
            "each label: its share of the answers about the row, or of their probabilities).",
        ),
    ] = "candidates",
    candidates: opt.Candidates = "candidates",
    rule: Annotated[
        str, typer.Option("--rule", help="Which answers become candidates: union, at_least:2, plurality.")
    ] = "union",
    key: opt.Key = None,
    from_name: opt.FromName = None,
    item: opt.OptionalItem = None,
    annotator: opt.OptionalAnnotator = None,
    label: opt.OptionalLabel = None,
    missing: opt.Missing = "error",
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Writes candidate sets in another format, makes them out of annotators' answers, or writes those answers."""
    from setwise.cli.table_columns import (  # noqa: PLC0415 - Arrow is loaded
        answer_lines,
        exported,
        long_votes,
        write_candidates,
    )

    screen = Screen(quiet, as_json, out)
    opt.refuse_existing(out, force=force)
    if target not in {"candidates", "votes", "probabilities"} or (target != "candidates" and source == "table"):
        raise ValueError(f"--to: {target!r} cannot be made from {source}; use candidates, or --from votes.")
    files = opt.tables(file, delimiter, encoding, decimal)
    with screen.working(f"reading {files}"):
        if source == "table":
            sets, carried = _from_table(files, out, candidates, separator, missing)
        elif source in {"votes", "label-studio", "answers"}:
            options: dict[str, Any] = {"rule": rule, "missing": missing if target == "candidates" else "empty"}
            if source == "votes":
                found = long_votes(files, item or "task", annotator, label or "label", **options)
            elif source == "answers":
                found = answer_lines(files, key or item, **options)
            else:
                found = exported(files, key=key, from_name=from_name, **options)
            if target == "votes":
                _write_votes(screen, out, found.votes)
                return
            name = key or item or ("id" if source == "answers" else "task")
            if target == "probabilities":
                _write_shares(screen, out, name, found)
                return
            sets, carried = found.candidates, {name: _arrow(found.ids)}
            if found.truth is not None:
                carried["truth"] = _arrow(found.truth)
        else:
            raise ValueError(f"--from: {source!r} is not known; use table, votes, label-studio or answers.")
    write_candidates(screen, out, sets, carried, candidates, separator)


def _write_votes(screen: Screen, out: Path, votes: Votes | None) -> None:
    """Writes the answers themselves, as `setwise fit --votes` and `setwise annotators` read them."""
    from setwise.cli.table_columns import file_for  # noqa: PLC0415 - Arrow is loaded for files

    if votes is None:
        raise ValueError("--to: this file does not say who answered what.")
    with file_for(out) as place:
        data.write_votes(place, votes)
    screen.say(f"{len(votes.row):,} answers on {len(votes):,} rows, {votes.n_classes:,} classes")
    screen.say(f"saved to {out}   try:  setwise annotators {out} --item item --annotator worker --label label")
    screen.emit({"rows": len(votes), "classes": votes.n_classes, "answers": len(votes.row), "out": str(out)})


def _write_shares(screen: Screen, out: Path, name: str, found: Imported) -> None:
    """Writes which share of its answers each label of a row has, as `setwise conformalize` reads probabilities."""
    from setwise.cli.table_columns import writing  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.delimited import encode_labels  # noqa: PLC0415

    if found.votes is None:
        raise ValueError("--to: this file does not say who answered what.")
    counts, labels = found.votes.counts, found.votes.classes.tolist()
    total = counts.sum(axis=1, keepdims=True)
    if not total.all():
        raise ValueError(
            f"{name} {found.ids[total.argmin()]!r} has no answer, of which shares could be; leave it out."
        )
    columns = [f"p:{text}" for text in encode_labels(labels, "|")]
    with writing(out) as writer:
        writer.append_columns({name: _arrow(found.ids), **dict(zip(columns, (counts / total).T, strict=True))})
    screen.say(f"{len(counts):,} rows, a column of probabilities for each of {len(labels):,} labels")
    asked = f"--probabilities {out} --labels SETS.csv --key {name}"
    screen.say(f"saved to {out}   try:  setwise conformalize {asked} --out sets.cal")
    screen.emit({"rows": len(counts), "classes": len(labels), "out": str(out)})


def _from_table(
    file: TableFiles, out: Path, candidates: str, separator: str, missing: Any
) -> tuple[LabelSets, dict[str, Any]]:
    """Sets and all other columns of a table; of a file of arrays the features and the truth."""
    from setwise.cli.table_columns import sets_in, whole_table  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.arrow_tables import is_table  # noqa: PLC0415
    from setwise.data.tabular import Layout, interpret  # noqa: PLC0415

    if is_table(file):
        whole = whole_table(file, out, text=[candidates])
        layout = Layout(candidates=candidates, features=[], separator=separator, missing=missing)
        table = interpret(whole, layout, str(file))
        start = f"{candidates.removesuffix(':')}:"
        others = [name for name in whole.column_names if name != candidates and not name.startswith(start)]
        return sets_in(table), {name: whole[name].combine_chunks() for name in others}
    table = data.read_table(file)
    carried = {name: _arrow(table.X[:, j]) for j, name in enumerate(table.feature_names)}
    if table.truth is not None:
        carried["truth"] = _arrow(table.truth)
    return sets_in(table), carried


def _arrow(values: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - loaded for files

    return pa.array(values.tolist())
