r"""Labels as delimited text, such as ``cat|dog``, so that any label comes back exactly as it was.

Inside a label, a backslash starts an escape. No escape contains the separator itself, so a column can be split
before it is decoded, and only its distinct labels are decoded:

======== =====================================================
``\\``   a backslash
``\s``   the separator
``\n``   a line feed; ``\r`` a carriage return, ``\t`` a tab
``\b``   a blank at the edge of a label (plain blanks are trimmed)
``\e``   nothing: the label that is the empty string
``\q7``  the text "7", not the number; also the text "[a]", not a list
``\j7``  the JSON value 7, among labels that are text
======== =====================================================

Bare labels are integers if every bare label of the column is one, and text otherwise. An empty cell has no labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from setwise.errors import InputError, Remedy
from setwise.labels.vocabulary import Classes, Vocabulary

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_BLANKS = " \t"


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
    numbers = all(_INTEGER.fullmatch(text) for text in bare)
    labels = [
        None if text is None else _decode(text, i, separator, numbers, escapes) for i, text in enumerate(texts)
    ]
    return match_classes(labels, classes)


def match_classes(labels: Sequence[Any], classes: Classes) -> list[Any]:
    """Replaces labels that are not classes but read like one (``7`` or ``7.0`` for "7") by that class.

    Frames write integers beside gaps as ``7.0``, and tables write True as ``true``.

    >>> match_classes(["7", "8.0", "9", None], [7, 8])
    [7, 8, '9', None]
    """
    if classes is None:
        return list(labels)
    known = classes.classes.tolist() if isinstance(classes, Vocabulary) else list(classes)
    exact = set(known)
    named: dict[str, Any] = {str(label).lower(): label for label in known if isinstance(label, bool)}
    named |= {str(label): label for label in known}

    def match(label: Any) -> Any:
        if label is None or label in exact:
            return label
        text = str(label)
        whole = text.removesuffix(".0")
        return named.get(text, named.get(whole, label) if _INTEGER.fullmatch(whole) else label)

    return [match(label) for label in labels]


def _encode(label: Any, separator: str) -> str:
    if not isinstance(label, str):
        if not isinstance(label, (int, float)):
            raise TypeError(f"labels: {label!r} is neither text nor a number; name the classes with text.")
        return "\\j" + json.dumps(label)
    if _INTEGER.fullmatch(label):
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
        return int(text) if numbers else text
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
            raise TokenError(
                position,
                f"has the label {text!r}, where {shown} is not an escape",
                "write a backslash as \\\\",
                Remedy("escapes", False, "if backslashes are plain text in this file"),
            )
        return meanings[found[1]]

    return _ESCAPE.sub(meaning, text)
