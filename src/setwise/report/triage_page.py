"""A page on a triage for those who pay for the labels: what is accepted and guaranteed, and what it saves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from setwise.decisions.modes import ALONE
from setwise.decisions.triage import Triage
from setwise.findings import format_share
from setwise.report.html_pages import fill_page
from setwise.storage.atomic_files import replacing

_LEFT, _RIGHT, _TOP, _BELOW = 52.0, 402.0, 24.0, 196.0  # the frame of the curve in its template
_FIRST, _COLUMNS = 20, 6  # rows to look at first that are listed, and their columns
_MARKS = 160  # characters of a cell that are shown


def write_triage_page(
    path: str | os.PathLike[str],
    triage: Triage,
    columns: Mapping[str, Any] | None = None,
    proposed: Sequence[Any] = (),
    confidence: Sequence[float | None] = (),
) -> Path:
    """Writes a page on a triage: three sentences, the curve, the guarantee, and the rows to look at first.

    `columns` are those of the rows to review, those to look at first on top, with the `proposed` labels (None for
    none) and the `confidence` in them; the page lists the first rows and columns.

    >>> import numpy as np, setwise, tempfile
    >>> votes = setwise.Votes.from_lists([["a", "a", "b"], ["b", "b", "b"]] * 200)
    >>> verified = np.array(["a", "b"] * 50 + [None] * 300, dtype=object)
    >>> page = write_triage_page(tempfile.mkdtemp() + "/page.html", setwise.triage(votes, verified))
    >>> "Nobody has to look at 300 of the 300 other rows" in page.read_text(encoding="utf-8")
    True
    """
    table = pa.table(dict(list((columns or {}).items())[:_COLUMNS]))
    taken = int(triage.accepted.sum())
    left = max(table.num_rows, len(triage) - taken)
    share = format_share(taken / max(taken + left, 1), 1)
    first = table.slice(0, _FIRST).to_pylist()
    facts = {
        "title": "What is accepted, and what may be wrong",
        "sentences": [
            f"{taken:,} labels are accepted, {left:,} rows go to review, and {triage.verified:,} were verified.",
            _first_sentence(triage),
            f"Nobody has to look at {taken:,} of the {taken + left:,} other rows ({share}).",
        ],
        "guarantees": [(f"Category {name}", each.guarantee.lines) for name, each in triage.by_category.items()]
        or [("", triage.guarantee.lines)],
        "names": [*table.column_names, "proposed", "confidence"],
        "rows": [
            [*map(_short, row.values()), _short(label), "" if sure is None else f"{sure:.2f}"]
            for row, label, sure in zip(first, proposed, confidence, strict=False)
        ],
        "left": left,
        "curve": None,
    }
    with replacing(path) as beside:
        beside.write_text(fill_page("triage_page", facts | _curve(triage)), encoding="utf-8")
    return Path(path)


def _first_sentence(triage: Triage) -> str:
    """The first sentence of the guarantee, or what stands in its place."""
    if triage.by_category:
        return "What is guaranteed is stated below for each category."
    label, text = triage.guarantee.lines[0]
    first = text.split(". ")[0].removesuffix(".")
    return f"{first[0].upper()}{first[1:]}." if label in {"Guaranteed", "Note"} else f"{label}: {first}."


def _curve(triage: Triage) -> dict[str, Any]:
    """The error bound against the share of rows unseen, as a table and as points; and this decision."""
    curve = triage.curve if len(triage) else None
    if curve is None:
        return {}
    top = max(float(curve.bound.max()), triage.bound or 0.0, 0.01)

    def at(share: float, error: float) -> tuple[float, float]:
        return round(_LEFT + share * (_RIGHT - _LEFT), 1), round(_BELOW - error / top * (_BELOW - _TOP), 1)

    shown = triage.bound is not None and triage.accepted.any()
    errors, taken, unseen = curve.max_error.tolist(), curve.accepted.tolist(), curve.unseen.tolist()
    return {
        "curve": [
            (format_share(error), f"{count:,}", format_share(share, 1))
            for error, count, share in zip(errors, taken, unseen, strict=True)
        ],
        "alone": ALONE,
        "points": [at(*pair) for pair in zip(unseen, curve.bound.tolist(), strict=True)],
        "ring": at(float(triage.accepted.mean()), float(triage.bound or 0)) if shown else None,
        "errors": [(at(0, error)[1], format_share(error, 1)) for error in (0, top / 2, top)],
        "shares": [(at(share, 0)[0], f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)],
    }


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _MARKS else f"{text[: _MARKS - 1]}…"
