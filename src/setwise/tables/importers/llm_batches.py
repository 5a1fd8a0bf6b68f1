"""The outputs of language models' batches: chat completions, responses and messages, with free text as answers.

An answer counts where it names one label; refusals, failed calls and answers that name several are counted.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from setwise.errors import DataError, InputError, MisuseWarning, Remedy
from setwise.labels.vocabulary import Classes, Vocabulary

_WAYS = (
    Remedy("classes", None, "to list the labels"),
    Remedy("pattern", None, "for the part that is the label, such as 'Label: (.+)'"),
)


FORMS = ("answers", "labels", "probabilities", "prediction")
"""The fields of lines that hold labels, and are no output of a batch."""


def is_batch_line(line: Mapping[str, Any]) -> bool:
    """Whether an object is one line of a batch's output; of a call that failed, it may hold the error alone."""
    told = {"response", "result"} if {*FORMS} & line.keys() else {"response", "result", "error"}
    return "custom_id" in line and bool(told & line.keys())


@dataclass(frozen=True)
class BatchReader:
    """Finds labels in answers, and counts the answers in which it finds none or several."""

    pattern: re.Pattern[str]
    labels: Mapping[str, Any] | None
    unread: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, pattern: str | None, classes: Classes, where: str) -> BatchReader:
        """A reader for labels that are listed, for what the first group of a pattern matches, or for both."""
        known = Vocabulary.or_none(classes)
        labels = None if known is None else {str(label).casefold(): label for label in known.classes.tolist()}
        if pattern is None and labels is None:
            raise DataError(f"{where}: its answers are free text", *_WAYS)
        listed = "|".join(map(re.escape, sorted(labels or (), key=len, reverse=True)))
        try:
            return cls(re.compile(pattern or rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE), labels)
        except re.error as error:
            raise InputError(f"pattern: {pattern!r} is not a regular expression ({error})") from None

    def read(self, line: Mapping[str, Any], place: str) -> Iterator[tuple[Any, float]]:
        """The labels that the answers of a line name, each with its weight.

        A weight is one; where the call returned log-probabilities of a listed label, the labels share it by these.
        """
        try:
            for text, tokens in _texts(line):
                yield from self._votes(text, tokens)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise DataError(f"{place}: is not a line as batches of a language model return it.") from None

    def _votes(self, text: str | None, tokens: Any) -> Iterator[tuple[Any, float]]:
        self.unread["answers"] += 1
        said = [(match[1] if match.re.groups else match[0]) for match in self.pattern.finditer(text or "")]
        found = {label.strip().rstrip(".,;!") for label in said or [text] if label}
        if self.labels is not None:
            found = {self.labels[label.casefold()] for label in found if label.casefold() in self.labels}
        elif not said:
            found = set()
        if len(found) == 1:
            (label,) = found
            yield from (self._shares(label, tokens) or {label: 1.0}).items()
            return
        kind = "several" if found else "none"
        self.unread[kind] += 1
        self.examples.setdefault(kind, " ".join((text or "no text").split())[:60])

    def _shares(self, label: Any, tokens: Any) -> dict[Any, float]:
        """The probabilities of labels at the token that starts the label; empty where there are none."""
        for token in tokens or () if self.labels is not None else ():
            start = token["token"].strip().casefold()
            if not (start and str(label).casefold().startswith(start)):
                continue
            shares: dict[Any, float] = {}
            for other in token.get("top_logprobs") or ():
                begun = [name for name in self.labels or () if name.startswith(other["token"].strip().casefold())]
                if not other["logprob"] <= 1e-6:  # one, rounded
                    raise ValueError(other["logprob"])
                if len(begun) == 1 and (share := math.exp(other["logprob"])) > 0:
                    named = (self.labels or {})[begun[0]]
                    shares[named] = shares.get(named, 0.0) + share
            return shares if label in shares else {}
        return {}

    def report(self, where: str) -> None:
        """Warns about answers that are left out."""
        for kind, what, ways in (
            ("none", "name none of the labels", ()),
            ("several", "name several labels", _WAYS[1:]),
        ):
            if self.unread[kind]:
                counted = (
                    f"{where}: {self.unread[kind]:,} of {self.unread['answers']:,} answers {what} and are left out"
                )
                problem = f"{counted}, such as {self.examples[kind]!r}"
                warnings.warn(MisuseWarning(problem, *ways), stacklevel=3)


def _texts(line: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """The answers of a line, each with its tokens; None for a call that failed."""
    if "result" in line:  # messages
        yield _join(line["result"].get("message", {}).get("content") or ()), None
        return
    body = (line.get("response") or {}).get("body") or {}
    if "output" in body:  # responses
        yield _join(part for item in body["output"] for part in item.get("content") or ()), None
    for choice in body.get("choices", () if "output" in body else ({"message": {}},)):  # chat completions
        text = choice["message"].get("content")
        yield (
            text if text is None or isinstance(text, str) else _join(text),
            (choice.get("logprobs") or {}).get("content"),
        )


def _join(parts: Any) -> str | None:
    return "\n".join(part["text"] for part in parts if "text" in part) or None
