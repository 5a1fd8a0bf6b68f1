"""Tables as commands read and write them: sets, truth, candidates, categories."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

import numpy as np

from setwise._arrays import Floats
from setwise._files import replacing, temporary
from setwise.cli.options import STANDARD
from setwise.cli.screen import Screen, to_standard_output
from setwise.container import read_json
from setwise.contamination.vote_doubts import doubt_repeated
from setwise.data import Table, from_annotators_long, from_answers_jsonl, from_label_studio, read_table
from setwise.data.arrow_tables import arrow_table, column_names, is_table
from setwise.data.check_files import merge_checks, read_checks
from setwise.data.importers.answer_lines import is_answer_lines
from setwise.data.importers.imported import Imported
from setwise.data.importers.label_studio import is_export
from setwise.data.key_join import matching_rows, refuse_other_order
from setwise.data.label_columns import categories_of
from setwise.data.set_files import SetWriter, p_value_columns, probability_labels, set_writer, written_form
from setwise.data.table_files import TableFiles
from setwise.data.task_files import write_tasks
from setwise.decisions.comparison import Comparison
from setwise.errors import DataError, MisuseWarning, Remedy
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes


def read_answers(
    file: Any,
    classes: Sequence[Any],
    *,
    truth: str | None = None,
    candidates: str | None = None,
    by: str | None = None,
    ids: str | None = None,
    labels: Any = None,
    key: str | None = None,
    separator: str = "|",
    missing: str = "empty",
) -> dict[str, Any]:
    """Truth, candidates, categories and names of the rows, as far as columns are named; files of arrays need none.

    They stand in the file, or in the table `labels`, whose rows are matched by `key` or follow those of the file;
    names stand in the file, categories in either.
    """
    source = file if labels is None else labels
    if not is_table(source):
        table = read_table(source, classes=classes)
        return {"y": table.truth, "candidates": table.candidates, "by": None}
    beside = [key] if key and labels is not None else []
    own = [ids] if ids else []
    if by and (labels is None or by not in column_names(labels)):
        own.append(by)
    there = own if labels is None else [by] if by and by not in own else []
    table = read_table(
        source,
        candidates=candidates,
        truth=truth,
        features=[],
        carry=list(dict.fromkeys([*there, *beside])),
        classes=classes,
        separator=separator,
        missing=missing,
    )
    rows: Any = slice(None)
    ours = table
    if labels is not None:
        ours = read_table(file, features=[], carry=list(dict.fromkeys([*own, *beside])))
        if key:
            files: dict[str, Any] = {"source": str(file), "other": str(labels)}
            rows = matching_rows(key, ours.carried[key], table.carried[key], all_used=True, **files)
        elif len(ours) != len(table):
            raise DataError(
                f"{labels}: {len(table)} rows for {len(ours)} rows of {file}", Remedy("key", None, "to match them")
            )
        else:
            refuse_other_order(file, labels)
    return {
        "y": None if table.truth is None else table.truth[rows],
        "candidates": None if table.candidates is None else table.candidates[rows],
        "by": _categories(by, ours, table, rows),
        **({"ids": ours.carried[ids]} if ids else {}),
    }


def _categories(by: str | None, ours: Table, theirs: Table, rows: Any) -> list[str] | None:
    """The categories of rows, from their own table or from the other one's `rows`."""
    if by is None:
        return None
    column = ours.carried[by] if by in ours.carried else theirs.carried[by][rows]
    return categories_of(column, by, ours.source if by in ours.carried else theirs.source)


def read_predicted(file: Any, column: str, *, candidates: str | None, separator: str) -> tuple[LabelSets, Any]:
    """A column of prediction sets, and the p-values that stand behind it as columns p:label, or None.

    The classes are those of the p-values; else those that occur, also among the candidates of the same rows.
    """
    names = column_names(file) if is_table(file) else []
    marked = p_value_columns(names, column)
    classes = probability_labels(marked) if marked else None
    options: dict[str, Any] = {"features": [], "separator": separator, "missing": "empty"}
    sets = sets_in(read_table(file, candidates=column, classes=classes, **options))
    if classes is None:
        classes = sets.classes.tolist()
        if candidates is not None:
            given = sets_in(read_table(file, candidates=candidates, **options))
            known = set(classes)
            classes += [label for label in given.classes.tolist() if label not in known]
        sets = sets.with_classes(classes)
    if not marked:
        return sets, None
    p: Any = read_table(file, features=marked).X
    if not _are_of(p, sets):
        problem = f"{file}: the columns {marked[0]!r}, … are not the p-values of its sets, and are not used"
        warnings.warn(MisuseWarning(problem, "put columns of your own before that of the sets"), stacklevel=3)
        return sets, None
    return sets, p


def _are_of(p: Floats, sets: LabelSets) -> bool:
    """Whether sets are those of p-values at one level: what is in a set has larger ones than what is in none."""
    held = sets.to_mask()
    return bool(p[held].min(initial=np.inf) >= p[~held].max(initial=-np.inf) - 1e-9)


def note_comparison(sets: Path, comparison: Comparison) -> None:
    """Writes beside a table of sets that its rows differ from the calibration rows; takes away what is not so."""
    if sets == STANDARD:
        return
    note = _note_beside(sets)
    if not comparison.refuted:
        note.unlink(missing_ok=True)
        return
    with replacing(note) as beside:
        beside.write_text(json.dumps(comparison.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def noted_comparison(sets: TableFiles) -> Comparison | None:
    """What `setwise predict` found of the rows of tables of sets, where they differ from the calibration rows."""
    # beside a file, or beside the folder of its parts, which may stand in folders inside
    named = dict.fromkeys(place for path in sets.paths for place in (path, *path.absolute().parents[:-1]))
    return next((found for found in map(note_beside, named) if found is not None), None)


def note_beside(sets: Path) -> Comparison | None:
    """The same of one file, or of the folder of all."""
    note = _note_beside(sets)
    if not note.is_file():
        return None
    try:
        return Comparison.from_dict(read_json(note.read_bytes()))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{note}: is not what `setwise predict` wrote ({error!r}); remove it.") from error


def _note_beside(sets: Path) -> Path:
    return sets.with_name(f"{sets.name}.differs.json")


def sets_in(table: Table) -> LabelSets:
    """The candidates of a table that must have some."""
    if table.candidates is None:
        raise ValueError(f"{table.source}: holds no candidates.")
    return table.candidates


def one_of(candidates: Any, votes: Any, key: str | None, other: str) -> None:
    """Refuses a command line that names neither candidates nor votes, both, or votes without a key."""
    if (candidates is None) == (votes is None):
        raise ValueError(f"give either {other} or --votes (a file with one answer per line).")
    if votes is not None and key is None:
        raise ValueError("--votes: answers are matched with the rows by an identifier; name its column with --key.")


def votes_of(
    file: Any,
    key: str | None,
    table: Table | None,
    columns: Sequence[str | None],
    classes: Sequence[Any] | None = None,
    *,
    absent: bool = False,
) -> Votes:
    """The votes in a file, all of them or those about the rows of another one, matched by its column `key`.

    With `absent` rows that the file does not have are rows without answers.
    """
    found = imported_votes(file, key, columns, classes)
    votes = cast("Votes", found.votes)
    if key is None or table is None:
        return votes
    files: dict[str, Any] = {"source": table.source, "other": str(file), "absent": absent, "all_used": True}
    return votes.at(matching_rows(key, table.carried[key], found.ids, **files))


def imported_votes(
    file: Any, key: str | None, columns: Sequence[str | None], classes: Sequence[Any] | None = None
) -> Imported:
    """The votes in a long table, in a language model's lines of answers, or in a Label Studio export with `key`.

    `columns` are those of items, annotators, labels and weights; items are called as the key unless named.
    """
    item, annotator, label, weight = columns
    if is_export(file):
        return exported(file, key=key or item, from_name=label, classes=classes, missing="empty")
    if is_answer_lines(file):
        found = answer_lines(file, item or key, classes=classes, missing="empty")
        doubt_repeated(cast("Votes", found.votes), str(file))
        return found
    told: dict[str, Any] = {"weight": weight, "classes": classes, "missing": "empty"}
    return long_votes(file, item or key or "item", annotator, label or "label", **told)


def answer_lines(file: TableFiles, item: str | None, **options: Any) -> Imported:
    """A language model's lines of answers."""
    if len(file.paths) > 1:
        raise DataError(f"{file}: lines of answers are read from one file", "put all lines into one")
    return from_answers_jsonl(file, ids=item or "id", **options)


def exported(file: TableFiles, **options: Any) -> Imported:
    """What annotators answered in a Label Studio export."""
    if len(file.paths) > 1:
        raise DataError(f"{file}: exports of Label Studio are read one by one", "export all tasks as one file")
    return from_label_studio(file.paths[0], **options)


def long_votes(file: Any, item: str, annotator: str | None, label: str, **options: Any) -> Imported:
    """The votes in a table with one answer per line; what helps with a column is an option here."""
    try:
        return from_annotators_long(file, task=item, worker=annotator, label=label, **options)
    except DataError as error:
        called = {"task": "item", "worker": "annotator"}
        ways = (
            replace(way, argument=called.get(way.argument, way.argument)) if isinstance(way, Remedy) else way
            for way in error.remedies
        )
        raise DataError(error.problem, *ways) from None


def answered(votes: Votes, file: Any, table: Any) -> LabelSets:
    """The labels that somebody gave each row of a table; a row without any cannot be learned from."""
    sets = votes.candidates(missing="empty")
    blank = np.flatnonzero(sets.sizes == 0)
    if len(blank):
        raise ValueError(
            f"{file}: row {blank[0]} of {table} has no answer ({len(blank)} such rows); leave them out."
        )
    return sets


def with_checks(
    table: Table, key: str | None, column: str | None, classes: Sequence[Any], *, checks: Any, **options: Any
) -> Any:
    """The verified labels of a table's rows: its own column and those in the file `checks`, as far as there are."""
    own = table.truth if column is not None else None
    if checks is None:
        return own
    if key is None:
        raise ValueError(
            "--checks: answers are matched with the rows by an identifier; name its column with --key."
        )
    if key not in table.carried:
        raise DataError(f"{table.source}: there is no column {key!r} to match the checks by.")
    if column is not None and own is None and is_export(checks):
        problem = f"{table.source}: there is no column {column!r}, and {checks} is an export, which has none"
        raise DataError(problem, "leave out --verified")
    given = {"key": key, "column": column or "verified", "source": table.source, **options}
    found = read_checks(checks, table.carried[key], classes, **given)
    return merge_checks(own, found, source=table.source, other=str(checks))


def refuse_taken(columns: Iterable[str], added: Sequence[str]) -> None:
    """Refuses a table that has one of the columns already that are to be written; --answer names the first."""
    if added[0] in added[1:]:
        problem = f"{added[0]!r} is the name of another column that is written"
        raise DataError(problem, Remedy("answer", None, "to call this one otherwise"))
    taken = next((name for name in added if name in columns), None)
    if taken is not None:
        renamed = [Remedy("answer", None, "to call ours otherwise")] if taken == added[0] else []
        raise DataError(f"there is a column {taken!r} already, and the answer needs it", "rename it", *renamed)


def write_rows(
    out: Path,
    columns: Mapping[str, Any],
    *,
    label: tuple[str, Any] | None = None,
    confidence: Any = None,
    more: Mapping[str, Any] | None = None,
    separator: str = "|",
    from_name: str | None = None,
    to_name: str = "text",
) -> None:
    """Writes rows with a label each (its column's name, and labels or None), its confidence, and `more` columns.

    A file that ends in .json holds tasks for Label Studio, in which the label is a prediction.
    """
    added = {} if label is None else {label[0]: label[1], "confidence": confidence}
    added |= more or {}
    if out.suffix == ".json":
        proposed = () if label is None else (label[1], confidence)
        write_tasks(out, {**columns, **(more or {})}, *proposed, from_name=from_name or "choice", to_name=to_name)
        return
    with writing(out, separator=separator) as writer:
        if label is not None:
            added[label[0]] = writer.label_column(label[1])
        writer.append_columns({**columns, **added})


def stands_for_prediction(by: str | None, file: Any) -> bool:
    """Whether `--by predicted` means the most probable label; a column of that name comes first."""
    return by == "predicted" and not (is_table(file) and by in column_names(file))


def whole_table(files: TableFiles, out: Path, text: list[str]) -> Any:
    """The table; from text to text every column stays as it is written."""
    forms = {"csv" if out == STANDARD else written_form(out), *map(files.form, files.paths)}
    return arrow_table(files, text=column_names(files) if forms <= {"csv", "tsv"} else text)


@contextmanager
def labels_were_read() -> Iterator[None]:
    """What looks odd about labels was said of their file already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="y: .*(how they are written|looks like a missing label)")
        yield


@contextmanager
def writing(out: Path, **options: Any) -> Iterator[SetWriter]:
    """A writer of sets to a file, or as CSV to standard output once all is written."""
    with file_for(out) as file, set_writer(file, **options) as writer:
        yield writer


@contextmanager
def file_for(out: Path) -> Iterator[Path]:
    """The file to write; for standard output one for CSV, which goes there once all is written."""
    if out != STANDARD:
        yield out
        return
    with temporary(Path(gettempdir()), "out", folder=True, private=True) as folder:
        beside = folder / "out.csv"
        yield beside
        with to_standard_output():
            if hasattr(sys.stdout, "buffer"):  # a table is UTF-8, whatever the terminal's encoding
                sys.stdout.flush()
                with beside.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                return
            with beside.open(encoding="utf-8", newline="") as text:
                shutil.copyfileobj(text, sys.stdout)


def write_candidates(
    screen: Screen, out: Path, sets: LabelSets, carried: dict[str, Any], column: str, separator: str
) -> None:
    """Writes the candidate sets beside the other columns, and says what was written."""
    with writing(out, column=column, separator=separator, sizes=False) as writer:
        writer.append(sets, carried)
    mean = float(sets.sizes.mean()) if len(sets) else 0.0
    screen.say(f"{len(sets):,} rows, {sets.n_classes:,} classes, {mean:.2f} candidates per row")
    screen.say(f"saved to {out}   try:  setwise inspect {out} --candidates {column}")
    screen.emit({"rows": len(sets), "classes": sets.n_classes, "candidates_per_row": mean, "out": str(out)})
