"""The vocabulary of label sets in JSON, as files store it: the labels, their types and order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from setwise.errors import DataError, reading_from
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import Classes, Vocabulary
from setwise.tables.arrow_reading import CLASSES


def vocabulary_json(sets: LabelSets) -> str:
    """The classes of some sets as JSON: whether they were declared, and whether sets mean "every label seen"."""
    stored = {"classes": sets.classes.tolist(), "declared": sets.vocabulary.declared, "relative": sets.relative}
    return json.dumps(stored, ensure_ascii=False)


def parse_vocabulary(notes: Mapping[bytes, bytes], where: str) -> tuple[Vocabulary | None, bool]:
    """The vocabulary in the notes of a column, if they hold one, and whether sets mean "every label seen"."""
    if CLASSES not in notes:
        return None, False
    try:
        content = json.loads(notes[CLASSES])
        vocabulary = Vocabulary.declare(content["classes"])
        return replace(vocabulary, declared=bool(content["declared"])), bool(content.get("relative"))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{where}: the stored vocabulary cannot be read ({error}); pass classes.") from None


def over_classes(sets: LabelSets, relative: bool, classes: Classes, where: str) -> LabelSets:
    """Converts sets from their stored vocabulary to the classes that the reader declares, if any."""
    sets = replace(sets, relative=sets.relative or relative)
    if classes is None:
        return sets
    with reading_from(where):
        return sets.recode(Vocabulary.of(classes, ()))
