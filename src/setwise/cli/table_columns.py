"""Tables as commands read and write them: sets, truth, candidates, categories; and what looks like a mistake."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from setwise._files import replacing
from setwise.cli.screen import Screen
from setwise.data import Table, from_annotators_long, read_table
from setwise.data.arrow_tables import arrow_table, column_names, format_of, is_table
from setwise.data.key_join import matching_rows
from setwise.data.set_files import probability_columns, probability_labels, set_writer
from setwise.decisions.comparison import Comparison
from setwise.labels.label_sets import LabelSets
from setwise.labels.votes import Votes


def read_answers(
    file: Path,
    classes: Sequence[Any],
    *,
    truth: str | None = None,
    candidates: str | None = None,
    by: str | None = None,
    separator: str = "|",
    delimiter: str | None = None,
    missing: str = "empty",
) -> dict[str, Any]:
    """Truth, candidates and categories of the rows, as far as columns are named; files of arrays need no names."""
    if not is_table(file):
        table = read_table(file, classes=classes)
        return {"y": table.truth, "candidates": table.candidates, "by": None}
    table = read_table(
        file,
        candidates=candidates,
        truth=truth,
        features=[],
        carry=[by] if by else [],
        classes=classes,
        separator=separator,
        delimiter=delimiter,
        missing=missing,
    )
    categories = categories_of(table.carried[by], by, file) if by else None
    return {"y": table.truth, "candidates": table.candidates, "by": categories}


def read_predicted(
    file: Path, column: str, *, candidates: str | None, separator: str, delimiter: str | None = None
) -> tuple[LabelSets, Any]:
    """A column of prediction sets, and the p-values that stand beside it as columns p:label, or None.

    The classes are those of the p-values; else those that occur, also among the candidates of the same rows.
    """
    names = column_names(file, delimiter) if is_table(file) else []
    marked = [name for name in names if name.startswith("p:")]
    classes = probability_labels(marked) if marked else None
    options: dict[str, Any] = {"features": [], "separator": separator, "delimiter": delimiter, "missing": "empty"}
    sets = sets_in(read_table(file, candidates=column, classes=classes, **options))
    if classes is None:
        classes = sets.classes.tolist()
        if candidates is not None:
            given = sets_in(read_table(file, candidates=candidates, **options))
            known = set(classes)
            classes += [label for label in given.classes.tolist() if label not in known]
        sets = sets.with_classes(classes)
    found = probability_columns(marked, classes) if marked else None
    return sets, None if found is None else read_table(file, features=found, delimiter=delimiter).X


def note_comparison(sets: Path, comparison: Comparison) -> None:
    """Writes beside a table of sets that its rows differ from the calibration rows; takes away what is not so."""
    note = _note_beside(sets)
    if not comparison.refuted:
        note.unlink(missing_ok=True)
        return
    with replacing(note) as beside:
        beside.write_text(json.dumps(comparison.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def noted_comparison(sets: Path) -> Comparison | None:
    """What `setwise predict` found of the rows of a table of sets, where they differ from the calibration rows."""
    note = _note_beside(sets)
    if not note.is_file():
        return None
    try:
        return Comparison.from_dict(json.loads(note.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{note}: is not what `setwise predict` wrote ({error!r}); remove it.") from error


def _note_beside(sets: Path) -> Path:
    return sets.with_name(f"{sets.name}.differs.json")


def sets_in(table: Table) -> LabelSets:
    """The candidates of a table that must have some."""
    if table.candidates is None:
        raise ValueError(f"{table.source}: holds no candidates.")
    return table.candidates


def one_of(candidates: Any, votes: Path | None, key: str | None, other: str) -> None:
    """Refuses a command line that names neither candidates nor votes, both, or votes without a key."""
    if (candidates is None) == (votes is None):
        raise ValueError(f"give either {other} or --votes (a file with one answer per line).")
    if votes is not None and key is None:
        raise ValueError("--votes: answers are matched with the rows by an identifier; name its column with --key.")


def votes_of(
    file: Path, key: str, table: Table, columns: Sequence[str | None], classes: Sequence[Any] | None
) -> Votes:
    """The votes in a long table about the rows of another one, matched by its column `key`.

    `columns` are those of items, annotators, labels and weights; items are called as the key unless named.
    """
    item, annotator, label, weight = columns
    options: dict[str, Any] = {"worker": annotator, "label": label or "label", "weight": weight}
    found = from_annotators_long(file, task=item or key, classes=classes, missing="empty", **options)
    rows = matching_rows(key, table.carried[key], found.ids, source=table.source, other=str(file))
    return cast("Votes", found.votes)[rows]


def categories_of(column: Any, name: str, file: Path, first_row: int = 0) -> list[str]:
    """A column of categories as text, so that 1 in Parquet is "1" in CSV; a row without one is named."""
    values = pc.cast(column if hasattr(column, "type") else pa.array(column, from_pandas=True), pa.string())
    texts: list[str] = values.to_pylist()
    gone = next((row for row, text in enumerate(texts) if not text), None)
    if gone is not None:
        raise ValueError(f"{file}, column {name!r}: row {first_row + gone} has no category; give it one.")
    return texts


def stands_for_prediction(by: str | None, file: Path, delimiter: str | None = None) -> bool:
    """Whether `--by predicted` means the most probable label; a column of that name comes first."""
    return by == "predicted" and not (is_table(file) and by in column_names(file, delimiter))


def doubt_separator(sets: LabelSets, separator: str) -> None:
    """Warns where no row has two candidates, but labels look as if something else stood between several."""
    if len(sets) == 0 or sets.sizes.max() > 1:
        return
    for mark in "|,;/+&":
        several = [label for label in sets.classes.tolist() if isinstance(label, str) and mark in label.strip(mark)]
        if several and mark != separator:
            warnings.warn(
                f"every row has one candidate, such as {several[0]!r}; if {mark!r} stands between labels, use "
                f"--separator {mark!r}.",
                stacklevel=2,
            )
            return


def doubt_features(table: Table) -> None:
    """Warns of text features that hold nothing but labels, as the truth would."""
    labels = {str(label) for label in sets_in(table).classes.tolist()}
    for name, values in table.categories.items():
        if set(values) <= labels:
            warnings.warn(
                f"the feature {name!r} holds labels; if it is the truth, new rows will lack it: leave it out with "
                f"--ignore {name}.",
                stacklevel=2,
            )


def whole_table(file: Path, out: Path, text: list[str]) -> Any:
    """The table; from text to text every column stays as it is written."""
    verbatim = {format_of(file), format_of(out)} <= {"csv", "tsv"}
    return arrow_table(file, text=column_names(file) if verbatim else text)


def write_candidates(
    screen: Screen, out: Path, sets: LabelSets, carried: dict[str, Any], column: str, separator: str
) -> None:
    """Writes the candidate sets beside the other columns, and says what was written."""
    with set_writer(out, column=column, separator=separator, sizes=False) as writer:
        writer.append(sets, carried)
    mean = float(sets.sizes.mean()) if len(sets) else 0.0
    screen.say(f"{len(sets):,} rows, {sets.n_classes:,} classes, {mean:.2f} candidates per row")
    screen.say(f"saved to {out}   try:  setwise inspect {out} --candidates {column}")
    screen.emit({"rows": len(sets), "classes": sets.n_classes, "candidates_per_row": mean, "out": str(out)})
