"""Votes from any source: a long table, answers of a language model, or a Label Studio export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from setwise.errors import InputError
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.labels.votes import doubt_copies
from setwise.tables.importers.annotator_tables import from_annotators_long
from setwise.tables.importers.imported import Imported
from setwise.tables.importers.label_studio import from_label_studio, is_export
from setwise.tables.importers.llm_answers import from_answers_jsonl, is_answer_lines
from setwise.tables.table_files import names_files, table_files


@dataclass(frozen=True)
class VoteColumns:
    """The columns of a long table of votes; None for the usual names.

    In free text of a language model, `pattern` or `classes`, all labels, find the label.
    """

    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    weight: str | None = None
    pattern: str | None = None
    classes: tuple[str, ...] | None = None


def import_votes(
    source: Any,
    columns: VoteColumns | None = None,
    key: str | None = None,
    classes: Classes = None,
    *,
    from_name: str | None = None,
) -> Imported:
    """Reads votes from any source; items without votes are kept.

    Parameters
    ----------
    source
        The file; for a long table, also several files or a frame.
    columns
        The columns of a long table; for an export, `label` is the name of the control. Labels that it lists are the
        vocabulary where `classes` is None.
    key
        The name of the identifier, unless `columns` has it: a field of the data of an export, or of a line.
    classes
        The vocabulary.
    from_name
        The control of an export.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "votes.jsonl")
    >>> _ = path.write_text('{"call": 7, "probabilities": {"cat": 0.7, "dog": 0.3}}')
    >>> import_votes(path, key="call").votes
    Votes(1 answers by 1 annotator on 1 rows, 2 classes): {cat: 0.7, dog: 0.3}
    """
    columns = columns or VoteColumns()
    told, known = Vocabulary.or_none(columns.classes), Vocabulary.or_none(classes)
    if told is not None and known is not None and {*map(str, known.classes)} != {*told.classes}:
        raise InputError("classes: the model has other labels", "leave them out")
    classes = told if known is None else known
    files = table_files(source) if names_files(source) else None
    names: dict[str, Any]
    if files is not None and is_export(files):
        names = {"key": key or columns.item, "from_name": columns.label or from_name}
        return from_label_studio(files, **names, classes=classes, missing="empty")
    if files is not None and is_answer_lines(files):
        names = {"ids": columns.item or key or "id", "pattern": columns.pattern}
        found = from_answers_jsonl(files, **names, classes=classes, missing="empty")
        doubt_copies(found.votes, f"{files}: ")
        return found
    names = {"annotator": columns.annotator, "label": columns.label, "weight": columns.weight}
    return from_annotators_long(source, item=columns.item or key, **names, classes=classes, missing="empty")
