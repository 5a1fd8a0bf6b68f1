"""What the data show against a premise: how certainly, in how many rows, and a sentence about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """What the rows show against a premise."""

    p_value: float | None  # None where rows were recognised, which is no matter of chance
    sentence: str
    size: int = 0  # how many rows show it; 0 where it is a matter of all rows

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Finding:
        """A finding out of what `dataclasses.asdict` gave; refuses anything else."""
        p_value, sentence, size = plain["p_value"], plain["sentence"], plain["size"]
        if p_value is not None and not (isinstance(p_value, float) and 0 <= p_value <= 1):
            raise ValueError(f"{p_value!r} is no p-value")
        if not isinstance(sentence, str) or not sentence or type(size) is not int or size < 0:
            raise ValueError("a finding is a sentence and a number of rows")
        return cls(p_value, sentence, size)

    def __str__(self) -> str:
        return self.sentence


def format_p_value(p_value: float) -> str:
    """A p-value as it is printed everywhere.

    >>> format_p_value(0.0314), format_p_value(2e-9)
    ('p = 0.031', 'p < 0.001')
    """
    return f"p = {p_value:.2g}" if p_value >= 0.001 else "p < 0.001"


def format_share(share: float, digits: int = 2) -> str:
    """A share as a percentage of at most so many decimals, as it is printed everywhere.

    >>> format_share(0.95), format_share(0.21149), format_share(2 / 3, 1)
    ('95 %', '21.15 %', '66.7 %')
    """
    text = f"{100 * share:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def join_names(names: Sequence[str], most: int) -> str:
    """The first names of a list, each in one line, and a sign that there are more.

    >>> join_names(["ann", "bob", "cyd"], 2)
    'ann, bob, …'
    """
    return ", ".join(" ".join(name.split()) for name in names[:most]) + (", …" if len(names) > most else "")
