"""`setwise contaminate` and `setwise convert`: tables with candidates out of other tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.options import File, Force, Json, MissRate, OutFile, Quiet, Seed, Separator
from setwise.cli.screen import Screen

if TYPE_CHECKING:
    from setwise.labels.label_sets import LabelSets

Column = Annotated[str, typer.Option("--column", help="The name of the column of candidates to write.")]


def contaminate(
    file: File,
    truth: Annotated[str, typer.Option("--truth", help="The column with the true label.")],
    out: OutFile,
    p: Annotated[float, typer.Option("--p", help="The probability with which a wrong label enters.")] = 0.1,
    probabilities: Annotated[
        Path | None,
        typer.Option(
            "--probabilities", help="A model's probabilities, one column a class: then what it confuses enters."
        ),
    ] = None,
    miss_rate: MissRate = 0.0,
    column: Column = "candidates",
    separator: Separator = "|",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Turns precise labels into candidate sets, to study what contamination does."""
    from setwise import data  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.cli.files import refuse_existing  # noqa: PLC0415
    from setwise.data.label_columns import truth_from_column  # noqa: PLC0415
    from setwise.labels.vocabulary import Vocabulary, missing_labels  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    refuse_existing(out, force=force)
    with screen.working(f"reading {file}"):
        table = _whole_table(file, out, text=[truth])
        _require(table, truth, file)
        y = truth_from_column(table[truth], where=f"{file}, column {truth!r}", separator=separator)
        unknown = missing_labels(y).nonzero()[0]
        if len(unknown):
            raise ValueError(f"{file}: row {unknown[0]} has no true label; contamination needs all of them.")
        vocabulary = Vocabulary.infer(y)
        how: Any = data.Random(p)
        if probabilities is not None:
            how = data.InstanceDependent(_matrix(probabilities, vocabulary.classes.tolist()))
        codes = vocabulary.encode(y)
        sets = data.contaminate(codes, how, len(vocabulary), miss_rate, random_state=seed).named(vocabulary)
        _write(out, sets, {name: table[name].combine_chunks() for name in table.column_names}, column, separator)
    _report(screen, sets, out, column)


def convert(
    file: Annotated[Path, typer.Argument(help="A table with candidates, votes, or a Label Studio export.")],
    out: OutFile,
    source: Annotated[
        str,
        typer.Option(
            "--from", help="table (with a column of candidates), votes (task, worker, label), label-studio."
        ),
    ] = "table",
    candidates: Annotated[str, typer.Option("--candidates", help="The column of candidates.")] = "candidates",
    rule: Annotated[
        str, typer.Option("--rule", help="Which answers become candidates: union, at_least:2, plurality.")
    ] = "union",
    task: Annotated[str, typer.Option("--task", help="Of votes: the column of tasks.")] = "task",
    worker: Annotated[str | None, typer.Option("--worker", help="Of votes: the column of annotators.")] = None,
    label: Annotated[str, typer.Option("--label", help="Of votes: the column of answers.")] = "label",
    column: Column = "candidates",
    separator: Separator = "|",
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Writes candidate sets in another format, or makes them out of annotators' answers."""
    from setwise import data  # noqa: PLC0415 - Arrow is loaded when a file is read
    from setwise.cli.files import refuse_existing  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    refuse_existing(out, force=force)
    with screen.working(f"reading {file}"):
        if source == "table":
            sets, carried = _from_table(file, out, candidates, separator)
        elif source in {"votes", "label-studio"}:
            if source == "votes":
                found = data.from_annotators_long(file, task=task, worker=worker, label=label, rule=rule)
            else:
                found = data.from_label_studio(file, rule=rule)
            sets, carried = found.candidates, {task: _arrow(found.ids)}
            if found.truth is not None:
                carried["truth"] = _arrow(found.truth)
        else:
            raise ValueError(f"--from: {source!r} is not known; use table, votes or label-studio.")
        _write(out, sets, carried, column, separator)
    _report(screen, sets, out, column)


def _from_table(file: Path, out: Path, candidates: str, separator: str) -> tuple[LabelSets, dict[str, Any]]:
    """Sets and all other columns of a table; of a file of arrays the features and the truth."""
    from setwise.data.arrow_tables import is_table  # noqa: PLC0415
    from setwise.data.tabular import Layout, interpret, read_table  # noqa: PLC0415

    if is_table(file):
        whole = _whole_table(file, out, text=[candidates])
        table = interpret(whole, Layout(candidates=candidates, features=[], separator=separator), str(file))
        start = f"{candidates.removesuffix(':')}:"
        others = [name for name in whole.column_names if name != candidates and not name.startswith(start)]
        carried = {name: whole[name].combine_chunks() for name in others}
    else:
        table = read_table(file)
        carried = {name: _arrow(table.X[:, j]) for j, name in enumerate(table.feature_names)}
        if table.truth is not None:
            carried["truth"] = _arrow(table.truth)
    if table.candidates is None:
        raise ValueError(f"{file}: holds no candidates.")
    return table.candidates, carried


def _whole_table(file: Path, out: Path, text: list[str]) -> Any:
    """The table; from text to text every column stays as it is written."""
    from setwise.data.arrow_tables import arrow_table, column_names, format_of  # noqa: PLC0415

    written = {"csv", "tsv"}
    verbatim = {format_of(file), format_of(out)} <= written
    return arrow_table(file, text=column_names(file) if verbatim else text)


def _require(table: Any, name: str, file: Path) -> None:
    if name not in table.column_names:
        raise ValueError(f"{file}: there is no column {name!r}; it has {', '.join(table.column_names[:8])}.")


def _matrix(file: Path, labels: list[Any]) -> Any:
    import numpy as np  # noqa: PLC0415

    from setwise.cli.outside import probability_batches  # noqa: PLC0415

    return np.concatenate([values for values, _ in probability_batches(file, labels, 65_536)])


def _write(out: Path, sets: LabelSets, carried: dict[str, Any], column: str, separator: str) -> None:
    from setwise.data.set_files import set_writer  # noqa: PLC0415

    with set_writer(out, column=column, separator=separator, sizes=False) as writer:
        writer.append(sets, carried)


def _report(screen: Screen, sets: LabelSets, out: Path, column: str) -> None:
    mean = float(sets.sizes.mean()) if len(sets) else 0.0
    screen.say(f"{len(sets):,} rows, {sets.n_classes:,} classes, {mean:.2f} candidates a row")
    screen.say(f"saved to {out}   try:  setwise inspect {out} --candidates {column}")
    screen.emit({"rows": len(sets), "classes": sets.n_classes, "candidates_a_row": mean, "out": str(out)})


def _arrow(values: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.array(values.tolist())
