r"""Labels as text, such as ``cat|dog``, so that any label comes back exactly as it was.

All columns of labels in text files are read and written so: candidates, votes, true and verified labels. Blanks at
the edges of a label are trimmed, and a backslash in it starts an escape. No escape contains the separator itself,
so a column can be split before it is decoded, and only its distinct labels are decoded:

======== =====================================================
``\\``   a backslash
``\s``   the separator
``\n``   a line feed; ``\r`` a carriage return, ``\t`` a tab
``\b``   a blank at the edge of a label (plain blanks are trimmed)
``\e``   nothing: the label that is the empty string
``\q7``  the text "7", not the number; also the text "[a]", not a list
``\j7``  the JSON value 7, among labels that are text
======== =====================================================

Bare labels are integers if every bare label of the column is one (or ``7.0``, as frames with gaps write 7, but not
both), and text otherwise. An empty cell has no labels. A label that is no class but reads like one is that class.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from setwise.errors import InputError, Remedy
from setwise.labels.vocabulary import Classes, Vocabulary

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_WHOLE = re.compile(rf"({_INTEGER.pattern})(\.0)?")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_BLANKS, _BOOLEANS = " \t", ("True", "False")


class TokenError(InputError):
    """A piece of delimited text that is not a label; `position` is its place among the pieces."""

    def __init__(self, position: int, problem: str, *remedies: Remedy | str) -> None:
        super().__init__(problem, *remedies)
        self.position = position


def check_separator(separator: str) -> None:
    """Refuses separators that could be part of an escape or of a number."""
    if len(separator) != 1 or separator.isalnum() or separator in "\\\n\r-":
        raise ValueError(f"separator: {separator!r} cannot separate labels; use one character such as '|' or ';'.")


def encode_labels(labels: Iterable[Any], separator: str) -> list[str]:
    r"""The text of each label of a vocabulary.

    >>> print(*encode_labels(["a|b", "", "7"], "|"))
    a\sb \e \q7
    >>> encode_labels([7, 8], "|")
    ['7', '8']
    """
    listed = [label.item() if hasattr(label, "item") else label for label in labels]
    numbers = all(type(label) is int and _INTEGER.fullmatch(str(label)) for label in listed)
    return [str(label) if numbers else _encode(label, separator) for label in listed]


def encode_each(labels: Iterable[Any]) -> list[str]:
    r"""The text of each label in a form that shows its type without the other labels.

    >>> print(*encode_each(["a", 7, "7"]))
    a \j7 \q7
    """
    return [_encode(label, "|") for label in labels]


def decode_labels(
    texts: Sequence[str | None], separator: str, classes: Classes = None, *, escapes: bool = True
) -> list[Any]:
    r"""The labels that distinct pieces of delimited text stand for; None stays None.

    With `classes`, a piece that is not a class but reads like one (``7`` for "7") is that class.

    >>> decode_labels(["cat", "7"], "|"), decode_labels(["8", "7"], "|"), decode_labels([r"\q8", "7"], "|")
    (['cat', '7'], [8, 7], ['8', 7])
    """
    bare = {text.strip(_BLANKS) for text in texts if text is not None and not (escapes and "\\" in text)}
    numbers = all(map(_WHOLE.fullmatch, bare)) and len({text.removesuffix(".0") for text in bare}) == len(bare)
    known = set() if classes is None else {*_list(classes)}

    def decode(position: int, text: str) -> Any:
        try:
            return _decode(text, position, separator, numbers, escapes)
        except TokenError:
            if text.strip(_BLANKS) in known:
                return text.strip(_BLANKS)
            raise

    labels = [None if text is None else decode(position, text) for position, text in enumerate(texts)]
    return match_classes(labels, classes, separator)


def match_classes(labels: Sequence[Any], classes: Classes, separator: str = "|") -> list[Any]:
    r"""Replaces each label that is not a class by the one class that reads like it, if there is one.

    Labels read alike that differ in blanks at the edges, in how the notation writes them, or in type: frames write
    integers beside gaps as ``7.0``, and tables write True as ``true``.

    >>> match_classes(["7", "8.0", "9", None], [7, 8])
    [7, 8, '9', None]
    >>> match_classes(["owl ", "a|b"], ["owl", r"a\sb"])
    ['owl', 'a\\sb']
    """
    known = [] if classes is None else _list(classes)
    exact = {None, *known}
    if classes is None or all(label in exact for label in labels):
        return list(labels)
    alike: dict[str, list[Any]] = {}
    for label in known:
        for text in {_plain(label, separator), str(label)}:
            alike.setdefault(text, []).append(label)

    def match(label: Any) -> Any:
        found = [] if label in exact else alike.get(_plain(label, separator), [])
        return found[0] if len(found) == 1 else label

    return [match(label) for label in labels]


def _list(classes: Vocabulary | Iterable[Any]) -> list[Any]:
    return classes.classes.tolist() if isinstance(classes, Vocabulary) else list(classes)


def _plain(label: Any, separator: str) -> str:
    """What a label reads like, however it is written."""
    text = str(label)
    with suppress(TokenError):
        text = str(_decode(text, 0, separator, numbers=False, escapes=True))
    text = text.strip(_BLANKS)
    return text.removesuffix(".0") if _WHOLE.fullmatch(text) else text.lower() if text in _BOOLEANS else text


def _encode(label: Any, separator: str) -> str:
    if not isinstance(label, str):
        if not isinstance(label, (int, float)):
            raise TypeError(f"labels: {label!r} is neither text nor a number; name the classes with text.")
        return "\\j" + json.dumps(label)
    if _WHOLE.fullmatch(label):
        return "\\q" + label
    text = label.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    text = text.replace(separator, "\\s")
    if text[:1] == " ":
        text = "\\b" + text[1:]
    if text[-1:] == " ":
        text = text[:-1] + "\\b"
    if text[:1] in {"[", "(", "{"}:
        return "\\q" + text
    return text or "\\e"


def _decode(text: str, position: int, separator: str, numbers: bool, escapes: bool) -> Any:
    text = text.strip(_BLANKS)
    if not text:
        raise TokenError(position, "has an empty label between separators (an empty label is written \\e)")
    if not escapes or "\\" not in text:
        return int(text.removesuffix(".0")) if numbers else text
    if text == "\\e":
        return ""
    if text.startswith("\\q"):
        return _unescape(text[2:], position, separator)
    if text.startswith("\\j"):
        try:
            value = json.loads(text[2:])
        except ValueError:
            value = None
        if not isinstance(value, (int, float)):
            raise TokenError(position, f"has the label {text!r}, where a number should follow \\j")
        return value
    return _unescape(text, position, separator)


def _unescape(text: str, position: int, separator: str) -> str:
    meanings = {"\\": "\\", "s": separator, "n": "\n", "r": "\r", "t": "\t", "b": " "}

    def meaning(found: re.Match[str]) -> str:
        if found[1] not in meanings:
            shown = found[0] if found[0].isprintable() else repr(found[0])
            problem = f"has the label {text!r}, where {shown} is not an escape"
            raise TokenError(position, problem, "write a backslash as \\\\")
        return meanings[found[1]]

    return _ESCAPE.sub(meaning, text)
