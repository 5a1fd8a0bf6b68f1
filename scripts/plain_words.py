"""Sentences that the library can print, and which of them are not plain: too long, or in words that nobody uses.

    python scripts/plain_words.py [FILE OR FOLDER …]

Printed are the texts of errors, warnings and findings, the help of commands, and other texts in the source that
read like a sentence; docstrings and comments are not. A value that a text is filled with counts as one word, and so
do a list of names in parentheses and what stands between quotes or backticks.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "setwise"
LONGEST = 25
"""Words of a sentence."""

PHRASES = (
    "as those of these were",
    "not knowable here",
    "in words",
    "whoever",
    "speaks against",
    "as good as",
    "is said",
    "samples of checks",
    "calibration samples",
    "declared by you",
    "checks|checked",
    "promises?|promised",
    "claims?|claimed",
)
"""What no printed sentence holds, in whatever case: regular expressions of whole words."""

_PARTICIPLE = re.compile(
    "told|made|held|asked|given|found|kept|known|seen|said|shown|drawn|taken|written|chosen|built|brought|got|left|lost"
    "|met|sent|done|[a-z]{3,}ed"
)
_VALUES = {"property", "lazy", "cached_property"}  # what they decorate is named like a value

_VALUE = "VALUE"
_NOT_WORDS = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\([^)]*(?:,[^)]*){3,}\)")


@dataclass(frozen=True)
class Offence:
    """A sentence that is not plain."""

    path: Path
    line: int
    why: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}: {self.sentence}"


def printed_texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file that people may read, with their lines; values are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set(map(id, _docstrings(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node)} - {id(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        text = _text(node)
        if text is not None and len(text.split()) > 2:
            yield node.lineno, text  # type: ignore[attr-defined]


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Texts that stand alone: docstrings, and those of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _text(node: ast.AST) -> str | None:
    """A constant text, or one with values in it; nothing else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or _VALUE for part in node.values)
    return None


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text; a colon, the semicolons of a list and a new paragraph end one too."""
    text = re.sub(r"\n {15}", " ", text)  # a labelled line that was broken
    for part in re.split(r"(?<=[.!?])\s+|[:;]\s|\n", _NOT_WORDS.sub(_VALUE, text)):
        if part.strip():
            yield part.strip()


def offences_in(text: str) -> Iterator[tuple[str, str]]:
    """Why a text is not plain, and the sentence."""
    for sentence in sentences(text):
        words = re.findall(r"[\w’'%.…-]*\w[\w’'%.…-]*", sentence)
        if len(words) > LONGEST:
            yield f"{len(words)} words", sentence
        if sentence.startswith("Of "):
            yield "begins with “Of”", sentence
        for phrase in PHRASES:
            if re.search(rf"\b(?:{phrase})\b", sentence, re.IGNORECASE):
                yield f"“{phrase}”", sentence


def participles(where: Path = SOURCE) -> Iterator[tuple[Path, int, str]]:
    """Functions that are named by a participle alone, such as `told` or `_covered`: a function is a verb."""
    for file in sorted(where.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                name = node.name.strip("_")
                is_value = any(ast.unparse(each).split(".")[-1] in _VALUES for each in node.decorator_list)
                if not is_value and _PARTICIPLE.fullmatch(name):
                    yield file, node.lineno, node.name


def template_texts(path: Path) -> str:
    """What a page's template prints, one text per line; what it is filled with counts as one word."""
    text = re.sub(r"<(style|script)[ >].*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\{%.*?%\}", "\n", re.sub(r"\{\{.*?\}\}", _VALUE, text))
    text = re.sub(r"</?(?:strong|span|code|small|output|a)\b[^>]*>", "", text)
    labels = re.findall(r'(?:aria-label|alt|title)="([^"]*)"', text)
    return "\n".join([re.sub(r"<[^>]*>", "\n", text), *labels])


def offences(where: list[Path]) -> list[Offence]:
    """All of some files and folders."""
    files = sorted(file for path in where for file in ([path] if path.is_file() else path.rglob("*.py")))
    return [
        Offence(file, line, why, sentence)
        for file in files
        for line, text in printed_texts(file)
        for why, sentence in offences_in(text)
    ]


if __name__ == "__main__":
    found = offences([Path(name) for name in sys.argv[1:]] or [SOURCE])
    print(*found, f"{len(found)} sentences are not plain.", sep="\n")
    sys.exit(bool(found))
