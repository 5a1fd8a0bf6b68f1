"""Answers of a language model as JSON lines: repeated answers, labels with probabilities, or a batch's output."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from setwise._arrays import frozen
from setwise.errors import DataError, reading_from
from setwise.labels.label_sets import Missing
from setwise.labels.spellings import doubt_spellings
from setwise.labels.vocabulary import Classes, is_missing
from setwise.labels.votes import MODEL, Votes
from setwise.tables.arrow_reading import file_text, reading
from setwise.tables.importers.imported import Imported, check_identifier, id_array
from setwise.tables.importers.llm_batches import FORMS, BatchReader, is_batch_line
from setwise.tables.json_objects import read_objects
from setwise.tables.table_files import TableFiles, is_path

_LABEL_FIELDS = ("label", "class", "name", "answer", "value")
_NUMBER_FIELDS = ("probability", "prob", "p", "score", "confidence", "weight")


def is_answer_lines(files: TableFiles) -> bool:
    """Whether `from_answers_jsonl` reads a file; lines with one label each are a long table instead."""
    path = files.paths[0]
    if files.form(path) != "jsonl":
        return False
    with reading(path, files), suppress(DataError, UnicodeError):  # reading it as a table raises the error
        first = next((found for line in _lines(files) if (found := _object(line, str(path))) is not None), {})
        return is_batch_line(first) or any(isinstance(first.get(name), (list, Mapping)) for name in FORMS)
    return False


def from_answers_jsonl(
    source: str | os.PathLike[str] | TableFiles | Iterable[str],
    *,
    ids: str = "id",
    rule: str = "union",
    classes: Classes = None,
    missing: Missing = "error",
    pattern: str | None = None,
) -> Imported:
    """Reads one object per line: an identifier with ``answers``, a list of labels, or with ``probabilities``.

    Answers may also be called ``labels``, probabilities ``prediction``, and probabilities may be a list of objects
    such as ``{"label": "cat", "probability": 0.7}``. Lines with the same identifier are further calls about the
    same row. An answer has the weight 1, and a label with a probability has that weight; `null` and empty text are
    not answers. Rules such as ``"at_least:2"`` add these weights.

    The output of a batch is read, too: chat completions with any number of choices, responses and messages. Its
    identifier is ``custom_id``, and its answers are free text, in which `classes` or `pattern` find the label.

    Parameters
    ----------
    source
        The file, or its lines.
    ids
        The field of the identifier.
    rule
        ``"union"``, ``"at_least:k"`` or ``"plurality"``.
    classes, missing
        The vocabulary, and what to do with rows without a label.
    pattern
        A regular expression for the label in free text, which is its first group or else the whole match.

    Examples
    --------
    >>> lines = ['{"id": 1, "answers": ["cat", "cat", "dog"]}',
    ...          '{"id": 2, "probabilities": {"cat": 0.7, "owl": 0.3}}']
    >>> from_answers_jsonl(lines).votes
    Votes(2 answers by 1 annotator on 2 rows, 3 classes): {cat: 0.666667, dog: 0.333333}, {cat: 0.7, owl: 0.3}
    """
    where = str(source) if is_path(source) or isinstance(source, TableFiles) else "the lines"
    if isinstance(source, TableFiles) and len(source.paths) > 1:
        raise DataError(f"{where}: lines of answers are read from one file", "put all lines into one")
    position: dict[Any, int] = {}
    rows, labels, weights = [], [], []
    batch: BatchReader | None = None
    for number, line in enumerate(_lines(source), 1):
        place = f"{where}: line {number}"
        found = _object(line, place)
        if found is None:
            continue
        if batch is None and not position and is_batch_line(found):
            batch, ids = BatchReader.of(pattern, classes, where), "custom_id"
        row = position.setdefault(check_identifier(found.get(ids), f"{place}: {ids!r}"), len(position))
        for label, weight in _answers(found, place) if batch is None else batch.read(found, place):
            rows.append(row)
            labels.append(label)
            weights.append(weight)
    if batch is not None:
        batch.report(where)
    texts = {label for label in labels if isinstance(label, str)}
    if twins := [label for label in labels if not isinstance(label, str) and str(label) in texts]:
        raise DataError(f"{where}: the label {twins[0]!r} also occurs as text; write it in quotes everywhere.")
    identifiers = frozen(id_array(list(position)))
    with reading_from(where):
        votes = Votes.of(
            len(position),
            np.array(rows, dtype=np.intp),
            labels,
            np.full(len(labels), MODEL, dtype=object),
            np.array(weights, dtype=float),
            classes=classes,
            items=identifiers,
        )
        if classes is None:
            doubt_spellings(votes.classes.tolist(), where)
        return Imported(votes.candidates(rule, missing=missing), identifiers, votes, name=ids)


def _lines(source: Any) -> Iterable[str]:
    if not (is_path(source) or isinstance(source, TableFiles)):
        return list(source)
    files = source if isinstance(source, TableFiles) else TableFiles((Path(source),))
    path = files.paths[0]
    with reading(path, files):
        return file_text(files, path).decode().split("\n")


def _object(line: str, place: str) -> Mapping[str, Any] | None:
    if not line.strip():
        return None
    found = read_objects(line, place)
    if not isinstance(found, Mapping):
        raise DataError(f"{place} is {type(found).__name__}, not an object.")
    return found


def _answers(found: Mapping[str, Any], place: str) -> Iterator[tuple[Any, float]]:
    """The labels of a line with their weights."""
    named = [name for name in FORMS if name in found]
    if len(named) != 1:
        raise DataError(f"{place}: expected either 'answers', a list, or 'probabilities', by label.")
    given = found[named[0]]
    listed = [] if given is None else given if isinstance(given, list) else [given]
    if named[0] == "probabilities" and not all(isinstance(one, Mapping) for one in listed):
        raise DataError(f"{place}: probabilities is {type(given).__name__}, not an object.")
    if not any(isinstance(one, Mapping) for one in listed):
        for label in listed:
            if not (is_missing(label) or label == ""):
                yield _label(label, place), 1.0
        return
    proposals = given.items() if isinstance(given, Mapping) else [_proposal(one, place) for one in listed]
    for label, value in proposals:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise DataError(f"{place}: the probability of {label!r} is {value!r}, not in [0, 1].")
        if value > 0:
            yield label, float(value)


def _proposal(one: Any, place: str) -> tuple[Any, Any]:
    """The label and the number of an object such as {"label": "cat", "probability": 0.7}."""
    fields = one if isinstance(one, Mapping) else {}
    label, number = (
        next((fields[name] for name in names if name in fields), None) for names in (_LABEL_FIELDS, _NUMBER_FIELDS)
    )
    if is_missing(label) or number is None:
        raise DataError(
            f"{place}: {one!r} has no label with a probability, as in {{'label': 'a', 'probability': 0.7}}."
        )
    return _label(label, place), number


def _label(label: Any, place: str) -> Any:
    if isinstance(label, (list, dict)):
        raise DataError(f"{place}: an answer is {label!r}; expected text or a number.")
    return label
