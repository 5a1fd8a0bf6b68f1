"""Annotators whose answers are the verified labels: they stand among the votes, and would confirm themselves.

An annotator who answered hardly any but verified rows, and gave each its verified label, is one of them where so
many verified rows are very improbable among as many rows drawn at random (the hypergeometric distribution).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from setwise._arrays import Bools, Ints, frozen
from setwise.errors import InputError, MisuseWarning
from setwise.evidence.row_facts import RowFacts
from setwise.labels.label_sets import LabelSets
from setwise.labels.vocabulary import MISSING, UNKNOWN, Vocabulary, label_vector
from setwise.labels.votes import Votes
from setwise.ranks import hypergeometric_cdf

_RARE = 1e-6  # the probability that one of the annotators answered by chance what was verified
_BESIDE = 0.1  # the share of other rows that such an annotator may have answered
_NAMED = 3


def leave_out_verifiers(votes: Votes, verified: Ints | None) -> Votes:
    """The votes without annotators who gave the `verified` labels (codes over theirs), whom a warning names.

    Where a verified row has no other answers, these replaced them: the votes then stay as they are.
    """
    found = np.zeros(0, dtype=bool) if verified is None else _find(votes, verified)
    if verified is None or not found.any() or votes.annotator is None:
        return votes
    keep = ~found[votes.annotator]
    answered = np.bincount(votes.row[keep], minlength=len(votes)) > 0
    if not answered[verified != MISSING].all():
        return votes
    names = votes.annotators[found].tolist()
    who = ", ".join(map(repr, names[:_NAMED])) + (", …" if len(names) > _NAMED else "")
    problem = (
        f"verified: the answers of annotator {who} are the verified labels. They are left out, because no row may "
        "confirm its own proposal"
    )
    warnings.warn(MisuseWarning(problem, "leave them out of the votes"), stacklevel=4)
    kept, place = votes.keep(keep), np.cumsum(~found) - 1
    return replace(kept, annotator=frozen(place[kept.who]), annotators=frozen(votes.annotators[~found]))


def add_verified(votes: Votes, verified: Any) -> tuple[Votes, RowFacts]:
    """The votes without annotators who gave the verified labels, and these labels, over the classes of the votes.

    A verified label that nobody answered is one more class, unless the classes of the votes are declared or none of
    the verified labels is among them, as where they are spelled in another way.
    """
    if not votes.n_classes:
        raise InputError("votes: there is no answer", "pass votes with answers")
    if verified is not None and not votes.vocabulary.declared:
        given = label_vector(verified, "verified")
        codes = votes.vocabulary.encode(given)
        rows = np.flatnonzero(codes == UNKNOWN)
        if len(rows) and (codes >= 0).any():
            new = given[rows].tolist()
            problem = f"verified: row {rows[0]} holds {new[0]!r}, which nobody answered; it counts as a class"
            warnings.warn(MisuseWarning(problem, "correct it if it is misspelled"), stacklevel=4)
            votes = votes.recode(Vocabulary.infer([*votes.classes.tolist(), *new]))
    facts = RowFacts.read(len(votes), votes.vocabulary, verified=verified)
    return leave_out_verifiers(votes, facts.verified), facts


def with_votes(facts: RowFacts, votes: Votes, sets: LabelSets) -> tuple[RowFacts, LabelSets]:
    """Facts with votes, and their candidates, both without annotators who gave the verified labels."""
    left = leave_out_verifiers(votes, facts.verified)
    return replace(facts, votes=left), sets if left is votes else left.candidates(missing="empty")


def _find(votes: Votes, verified: Ints) -> Bools:
    """Which annotators gave the verified labels."""
    people, n = len(votes.annotators), len(votes)
    if votes.annotator is None or not people:
        return np.zeros(0, dtype=bool)
    checked = verified != MISSING
    right = votes.label == verified[votes.row]
    wrong = np.bincount(votes.annotator[checked[votes.row] & ~right], minlength=people)
    row, who = np.divmod(np.unique(votes.row * people + votes.annotator), people)
    answered = np.bincount(who, minlength=people)
    inside = np.bincount(who[checked[row]], minlength=people)
    likely = np.flatnonzero((wrong == 0) & (inside > 0) & (answered - inside <= _BESIDE * answered))
    rows, drawn = np.full_like(likely, n), np.full_like(likely, checked.sum())
    chance = 1 - hypergeometric_cdf(inside[likely] - 1, rows, drawn, answered[likely])
    found = np.zeros(people, dtype=bool)
    found[likely] = chance * people < _RARE
    return found
