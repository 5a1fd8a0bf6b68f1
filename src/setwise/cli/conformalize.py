"""`setwise conformalize`: probabilities from any model, calibrated on candidate sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise import data
from setwise.cli import options as opt
from setwise.cli.options import assume_of, strategy_of
from setwise.cli.screen import Screen, claims, show_claims
from setwise.errors import DataError, Remedy
from setwise.ranks import as_level
from setwise.scale.engines import engine_of

if TYPE_CHECKING:
    from setwise.data.table_files import TableFiles
    from setwise.scale.calibration_tables import ProbabilityTable

EXAMPLES = (
    "setwise conformalize --probabilities scores.csv --labels answers.csv --key id --out model.cal",
    "setwise conformalize --probabilities scores.csv --votes votes.csv --key id --item call --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --key id --checks checks.csv --out m.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --by hospital --out model.cal",
    "setwise conformalize --probabilities scores.csv --labels answers.csv --assume uniform --out model.cal",
    "setwise conformalize --probabilities parts/ --candidates answers --memory-limit 4GB --out model.cal",
    "setwise conformalize --probabilities parts/ --candidates answers --engine ray --out model.cal",
)


def conformalize(
    probabilities: opt.Probabilities,
    out: Annotated[Path, typer.Option("--out", help="The calibration file to write.")],
    labels: opt.Labels = None,
    candidates: opt.Candidates = "candidates",
    votes: opt.VotesFile = None,
    item: opt.OptionalItem = None,
    annotator: opt.OptionalAnnotator = None,
    label: opt.OptionalLabel = None,
    weight: opt.Weight = None,
    key: opt.Key = None,
    carry: opt.Ignore = None,
    verified: opt.Verified = None,
    checks: opt.Checks = None,
    look: opt.Look = None,
    from_name: opt.FromName = None,
    by: opt.By = None,
    confidence_level: opt.Confidence = 0.9,
    strategy: opt.Strategy = "auto",
    conformity_score: opt.ConformityScore = "lac",
    miss_rate: opt.MissRate = 0.0,
    assume: opt.Assume = "nothing",
    missing: opt.Missing = "error",
    separator: opt.Separator = "|",
    delimiter: opt.Delimiter = None,
    encoding: opt.Encoding = None,
    decimal: opt.Decimal = None,
    random_state: opt.Seed = 0,
    memory_limit: opt.MemoryLimit = "1GB",
    engine: opt.Engine = "local",
    address: opt.Address = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Calibrates the probabilities of a model of your own on candidate sets or votes; writes a calibration file."""
    from setwise.cli.table_columns import one_of, stands_for_prediction  # noqa: PLC0415
    from setwise.data.arrow_tables import column_names, has_column  # noqa: PLC0415
    from setwise.data.tabular import Layout  # noqa: PLC0415
    from setwise.scale.calibration_rows import CalibrationRows  # noqa: PLC0415
    from setwise.scale.calibration_tables import ProbabilityTable, read_rows  # noqa: PLC0415

    screen = Screen(quiet, as_json)
    opt.refuse_existing(out, force=force)
    as_level(confidence_level)
    runs = engine_of(engine, address)
    made = strategy_of(strategy, confidence_level, look)
    named = {"probabilities": probabilities, "labels": labels, "votes": votes, "checks": checks}
    files = {name: opt.tables(path, delimiter, encoding, decimal) for name, path in named.items() if path}
    own = labels is None and votes is None and _holds(column_names(files["probabilities"]), candidates)
    if not own:
        one_of(labels, votes, key, f"--labels (a file, as that of the probabilities lacks {candidates!r})")
    rows = CalibrationRows(memory_limit=opt.bytes_of(memory_limit), random_state=random_state)
    with screen.working(f"reading {probabilities}"):
        predicted = all(
            stands_for_prediction(by, files[name]) for name in ("probabilities", "labels") if name in files
        )
        column_by, ignored = None if predicted else by, set(carry or [])
        with_truth = files["probabilities" if labels is None else "labels"]
        truth = verified if verified and (not checks or has_column(with_truth, verified)) else None
        declared: dict[str, Any] = {"by": by} if predicted else {}
        known: dict[str, Any] | None = None  # of rows by their place, where it does not stand beside them
        options: dict[str, Any] = {
            "candidates": candidates,
            "truth": truth,
            "separator": separator,
            "missing": missing,
        }
        if own and checks is None:
            others = {*filter(None, (column_by, truth, key)), *_named(with_truth, candidates)}
            table = ProbabilityTable.of(files["probabilities"], ignored | others)
        elif votes is None:
            labelled = files.get("labels", files["probabilities"])
            table, known = _read(files["probabilities"], labelled, key, column_by, ignored, options)
        else:
            columns = (item, annotator, label, weight)
            table, known = _with_votes(
                files["probabilities"], files["votes"], str(key), columns, column_by, truth, ignored
            )
            declared["missing"] = missing
        if known is not None:
            told = {"checks": files.get("checks"), "separator": separator, "from_name": from_name}
            known["verified"] = _checked(known, table, key, verified, **told)
        rows = read_rows(table, rows, known, Layout(**options), column_by, engine=runs)
    classes = table.classes
    calibration = rows.conformalize(
        made,
        conformity_score,
        miss_rate=miss_rate,
        assume=assume_of(assume, classes),
        **declared,
    )
    calibration.save(out)
    screen.say(f"read {probabilities}: {rows.seen:,} rows, {len(classes):,} classes, such as {classes[0]!r}")
    show_claims(screen, calibration, confidence_level)
    screen.say(f"\nsaved to {out}   try:  setwise predict {out} --probabilities new.csv --out sets.csv")
    found = {"rows": rows.seen, "classes": classes, "out": str(out)}
    screen.emit(found | claims(calibration, confidence_level))


def _holds(names: list[str], candidates: str) -> bool:
    """Whether a table has the column of candidates, or multi-hot columns of that name."""
    start = candidates if candidates.endswith(":") else f"{candidates}:"
    return candidates in names or any(name.startswith(start) for name in names)


def _named(files: TableFiles, candidates: str) -> list[str]:
    """The columns that hold candidates."""
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415 - Arrow is loaded for files

    return [name for name in column_names(files) if _holds([name], candidates)]


def _checked(
    known: dict[str, Any], table: ProbabilityTable, key: str | None, verified: str | None, **told: Any
) -> Any:
    """The verified labels of all rows, of their own column and of a file of checks."""
    from setwise.cli.table_columns import with_checks  # noqa: PLC0415 - Arrow is loaded for files

    return with_checks(known.pop("rows"), key, verified, table.classes, **told)


def _read(
    probabilities: TableFiles,
    labels: TableFiles,
    key: str | None,
    by: str | None,
    ignored: set[str],
    options: dict[str, Any],
) -> tuple[ProbabilityTable, dict[str, Any]]:
    """Probabilities, and each row's candidates, category and other columns, which stand in another table."""
    from setwise.cli.table_columns import sets_in  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415
    from setwise.data.key_join import matching_rows, refuse_other_order  # noqa: PLC0415
    from setwise.data.label_columns import categories_of  # noqa: PLC0415
    from setwise.scale.calibration_tables import ProbabilityTable  # noqa: PLC0415

    names, keys = column_names(probabilities), [key] if key else []
    beside = [by] if by in names else []  # categories may stand with the probabilities, or with the candidates
    same = labels is probabilities
    others = {*_named(labels, options["candidates"]), *filter(None, (options["truth"],))} if same else set()
    table = ProbabilityTable.of(probabilities, ignored | others | {*keys, *beside})
    ours = table.beside([*keys, *beside])
    with_answers = [by] if by and not beside else []
    answers = data.read_table(labels, features=[], carry=[*keys, *with_answers], classes=table.classes, **options)
    sets, truth = sets_in(answers), answers.truth
    if not key and len(answers) != len(ours):
        problem = f"{labels}: {len(answers)} rows for {len(ours)} rows of {probabilities}"
        raise DataError(problem, Remedy("key", None, "to match them"))
    rows: Any = slice(None)
    if key is None and not same:
        refuse_other_order(probabilities, labels)
    elif key is not None and not same:
        files: dict[str, Any] = {"source": str(probabilities), "other": str(labels)}
        rows = matching_rows(key, ours.carried[key], answers.carried[key], all_used=True, **files)
    category = None
    if by:
        found, file = (ours.carried[by], probabilities) if beside else (answers.carried[by][rows], labels)
        category = categories_of(found, by, file)
    ours = replace(ours, truth=None if truth is None else truth[rows])
    return table, {"candidates": sets[rows], "by": category, "rows": ours}


def _with_votes(
    probabilities: TableFiles,
    votes: TableFiles,
    key: str,
    columns: tuple[str | None, ...],
    by: str | None,
    verified: str | None,
    ignored: set[str],
) -> tuple[ProbabilityTable, dict[str, Any]]:
    """The same with votes in place of candidates; verified labels and categories stand with the probabilities."""
    from setwise.cli.table_columns import votes_of  # noqa: PLC0415 - Arrow is loaded for files
    from setwise.data.label_columns import categories_of  # noqa: PLC0415
    from setwise.scale.calibration_tables import ProbabilityTable  # noqa: PLC0415

    beside = [name for name in (key, by) if name]
    taken = ignored | {*beside, *([verified] if verified else [])}
    table = ProbabilityTable.of(probabilities, taken)
    ours = table.beside(beside, verified, classes=table.classes)
    category = categories_of(ours.carried[by], by, probabilities) if by else None
    answers = votes_of(votes, key, ours, columns, table.classes, absent=True)
    return table, {"candidates": answers, "by": category, "rows": ours}
