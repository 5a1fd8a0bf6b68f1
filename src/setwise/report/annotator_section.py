"""The people behind votes: a line for each annotator, what they confuse, and how far they agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._arrays import Floats, Ints
from setwise._types import Column
from setwise.crowd.annotators import Annotators, annotators
from setwise.labels.votes import Votes

_PEOPLE = 200
_CLASSES = 16  # that a picture of confusions has room for
_PAIRS = 5  # that are named, unless they are confused more seldom than this:
_SELDOM = 0.005


def annotator_facts(
    votes: Votes | None, probabilities: Floats | None = None, verified: Column = None
) -> dict[str, Any] | None:
    """What `setwise.annotators` finds, as the page shows it; None where nobody answered.

    `probabilities` are those of a model that did not learn from these answers, `verified` the true labels.
    """
    if votes is None or not len(votes.row):
        return None
    found = annotators(votes, verified, probabilities)
    return {
        "answers": f"{votes.sizes.sum():,}",
        "rows": f"{np.count_nonzero(votes.sizes):,}",
        "total": len(found),
        "people": [_line(found, j) for j in found.worst_first[:_PEOPLE].tolist()],
        "told": [{"head": head, "text": text} for head, text in [*found.facts, *found.basis]],
        "measured": not np.isnan(found.accuracy).all(),
        "confusion": _picture(found),
    }


def _line(found: Annotators, j: int) -> dict[str, Any]:
    """One annotator: numbers to sort by, and as they are shown."""
    accuracy = float(found.accuracy[j])
    return {
        "name": str(found.names[j]),
        "answers": int(found.answers[j]),
        "value": -1.0 if np.isnan(accuracy) else round(accuracy, 5),
        "share": -1.0 if np.isnan(found.agreement[j]) else round(float(found.agreement[j]), 5),
        "agreed": "–" if np.isnan(found.agreement[j]) else f"{found.agreement[j]:.1%}",
        "accuracy": "–" if np.isnan(accuracy) else f"{accuracy:.1%}",
        "lower": round(float(found.lower[j]), 5),
        "interval": f"{found.lower[j]:.1%} to {found.upper[j]:.1%}",
        "flags": list(found.flags[j]),
    }


def _picture(found: Annotators) -> dict[str, Any]:
    """The confusions of all annotators together; of many classes those that are confused most."""
    table, names = np.nan_to_num(found.confusion()), [str(label) for label in found.classes.tolist()]
    wrong = np.where(np.eye(len(table), dtype=bool), 0.0, table)
    shown: Ints = np.sort(np.argsort(-np.maximum(wrong.max(axis=0), wrong.max(axis=1)), kind="stable")[:_CLASSES])
    most = np.argsort(-wrong, axis=None, kind="stable")[:_PAIRS]
    pairs = [pair for pair in zip(*np.divmod(most, len(table)), strict=True) if wrong[pair] >= _SELDOM]
    return {
        "total": len(names),
        "names": [names[k] for k in shown.tolist()],
        "cells": [
            [{"share": f"{100 * share:.0f}", "tint": round(share**0.5, 2)} for share in line]
            for line in table[np.ix_(shown, shown)].tolist()
        ],
        "pairs": [
            {"labels": [names[true], names[said]], "share": f"{wrong[true, said]:.1%}"} for true, said in pairs
        ],
    }
