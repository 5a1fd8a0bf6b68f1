"""Labels that look like one class written in two ways, or like no label at all: a warning names them."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable
from decimal import Context, Decimal
from typing import Any

from setwise.errors import Remedy, SpellingWarning

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")
_AROUND = " \t'\"`‘’“”[](){}"  # quotes and brackets of a list that was written as text
_SIGNS = {"?", "-", "--", "[]", "{}", "()", "set()"}
_NOTHING = _SIGNS | {"na", "n/a", "#n/a", "<na>", "nan", "nat", "none", "null", "nil"}


def doubt_spellings(labels: Iterable[Any], where: str, what: str = "classes") -> None:
    """Warns about labels that differ only in how they are written, and about those that mean "not known".

    `what` is what they name, such as annotators; only classes can mean "not known".

    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     doubt_spellings(["Cat", "cat ", "dog", "NA"], "y")
    >>> for warning in found:
    ...     print(warning.message)
    y: some classes differ only in how they are written: 'Cat' and 'cat '; write them alike.
    y: the class 'NA' looks like a missing label; leave it empty, or use classes=… to declare it a class.
    """
    alike: dict[str, dict[str, None]] = {}
    distinct = list(dict.fromkeys(labels))
    for label in distinct:
        if isinstance(label, (str, bytes, int)):
            alike.setdefault(_plain(label), {}).setdefault(repr(label))
    several = [" and ".join(sorted(found)) for found in alike.values() if len(found) > 1]
    if several:
        shown = ", ".join(several[:3]) + (", …" if len(several) > 3 else "")
        problem = f"{where}: some {what} differ only in how they are written: {shown}"
        warnings.warn(SpellingWarning(problem, "write them alike"), stacklevel=3)
    missing = [label for label in distinct if isinstance(label, str) and label.strip().casefold() in _NOTHING]
    if missing and what == "classes":
        declared = Remedy("classes", None, "to declare it a class")
        problem = f"{where}: the class {missing[0]!r} looks like a missing label"
        warnings.warn(SpellingWarning(problem, "leave it empty", declared), stacklevel=3)


def _plain(label: str | bytes | int) -> str:
    """A label without case, spaces, invisible characters, quotes, and needless zeros of a number."""
    text = label.decode(errors="replace") if isinstance(label, bytes) else str(label)
    seen = "".join(mark for mark in text if unicodedata.category(mark) != "Cf")
    plain = unicodedata.normalize("NFKC", " ".join(seen.split())).casefold()
    inside = plain.strip(_AROUND) or plain
    if not _NUMBER.fullmatch(inside):
        return inside
    return str(Decimal(inside).normalize(Context(prec=len(inside))))
