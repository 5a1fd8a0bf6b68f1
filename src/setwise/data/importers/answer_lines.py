"""A language model's answers as JSON lines: repeated answers, or labels with their probabilities."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setwise._arrays import frozen
from setwise.data.arrow_tables import reading
from setwise.data.importers.imported import Imported, id_array
from setwise.data.table_files import is_path
from setwise.errors import DataError, reading_from
from setwise.labels.label_sets import Missing
from setwise.labels.vocabulary import Classes, is_missing
from setwise.labels.votes import Votes


def from_answers_jsonl(
    source: str | os.PathLike[str] | Iterable[str],
    *,
    ids: str = "id",
    rule: str = "union",
    classes: Classes = None,
    missing: Missing = "error",
) -> Imported:
    """One object per line: an identifier with ``answers``, a list of labels, or ``probabilities``, by label.

    Lines with the same identifier are further calls about the same example. An answer counts one, a label with a
    probability counts that much; `null` is no answer. Rules such as ``"at_least:2"`` add these weights.

    Parameters
    ----------
    source
        The file, or its lines.
    ids
        The name of the identifier.
    rule
        ``"union"``, ``"at_least:k"`` or ``"plurality"``.
    classes, missing
        The vocabulary, and what to do with rows that keep no label.

    Examples
    --------
    >>> lines = ['{"id": 1, "answers": ["cat", "cat", "dog"]}',
    ...          '{"id": 2, "probabilities": {"cat": 0.7, "owl": 0.3}}']
    >>> from_answers_jsonl(lines).votes
    Votes(5 answers on 2 rows, 3 classes): {cat: 2, dog: 1}, {cat: 0.7, owl: 0.3}
    """
    where = str(source) if is_path(source) else "the lines"
    position: dict[Any, int] = {}
    rows, labels, weights = [], [], []
    for number, line in enumerate(_lines(source), 1):
        place = f"{where}: line {number}"
        found = _object(line, place)
        if found is None:
            continue
        row = position.setdefault(_identifier(found, ids, place), len(position))
        for label, weight in _answers(found, place):
            rows.append(row)
            labels.append(label)
            weights.append(weight)
    identifiers = frozen(id_array(list(position)))
    counted = np.array(weights, dtype=float)
    with reading_from(where):
        votes = Votes.of(
            len(position),
            np.array(rows, dtype=np.intp),
            labels,
            weight=None if (counted == 1).all() else counted,
            classes=classes,
            items=identifiers,
        )
        return Imported(votes.candidates(rule, missing=missing), identifiers, votes=votes)


def _lines(source: Any) -> Iterable[str]:
    if not is_path(source):
        return list(source)
    with reading(Path(source)):
        return Path(source).read_text(encoding="utf-8").split("\n")


def _object(line: str, place: str) -> Mapping[str, Any] | None:
    if not line.strip():
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place} is not JSON ({error}).") from None
    if not isinstance(found, Mapping):
        raise DataError(f"{place} is {type(found).__name__}, not an object.")
    return found


def _identifier(found: Mapping[str, Any], ids: str, place: str) -> Any:
    value = found.get(ids)
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise DataError(f"{place}: {ids!r} is {value!r}; expected a number or text.")
    return value


def _answers(found: Mapping[str, Any], place: str) -> Iterator[tuple[Any, float]]:
    """The labels of a line with their weights."""
    if ("answers" in found) == ("probabilities" in found):
        raise DataError(f"{place}: expected either 'answers' or 'probabilities'.")
    if "answers" in found:
        answers = found["answers"]
        for label in [] if answers is None else answers if isinstance(answers, list) else [answers]:
            if not is_missing(label):
                yield _label(label, place), 1.0
        return
    proposals = found["probabilities"]
    if proposals is None:
        return
    if not isinstance(proposals, Mapping):
        raise DataError(f"{place}: probabilities is {type(proposals).__name__}, not an object.")
    for label, value in proposals.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise DataError(f"{place}: the probability of {label!r} is {value!r}, not in [0, 1].")
        if value > 0:
            yield label, float(value)


def _label(label: Any, place: str) -> Any:
    if isinstance(label, (list, dict)):
        raise DataError(f"{place}: an answer is {label!r}; expected text or a number.")
    return label
