"""`suspects`: which given labels look wrong, with few false alarms among them.

A row is the more suspect, the less votes, a model or both support its given label; no verified label takes part in
that. A false alarm is a row whose given label is right, so that this is triage with right and wrong exchanged
(`modes`). Row j has the p-value (1 + #verified rows with a right label that are at least as suspect) / (m + 1), and
Benjamini–Hochberg at `max_false` takes rows. The joint bounds say how many may be false alarms in this draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._arrays import Array, Floats, Ints, frame_columns, frozen
from setwise._types import Candidates, Column, ProbabilityRows, Seed
from setwise.crowd.consensus import weigh_votes
from setwise.crowd.verifiers import leave_out_verifiers
from setwise.decisions.modes import OrderedRows
from setwise.errors import InputError, Remedy, check_length
from setwise.evidence.evidence import gather
from setwise.evidence.row_facts import RowFacts
from setwise.evidence.row_names import check_row_names
from setwise.evidence.verified_rows import compare_verified, refuse_sole_answers, warn_about_choice
from setwise.findings import format_share
from setwise.guarantees import Claim, Guarantee, Premise, Printed, format_lines
from setwise.labels.coerce import as_candidates
from setwise.labels.vocabulary import MISSING, Classes
from setwise.labels.votes import Votes
from setwise.probabilities.dense import DenseRows, as_probabilities
from setwise.probabilities.proposed_labels import Proposals
from setwise.ranks import as_level
from setwise.row_noise import draw_seed, uniforms
from setwise.scores import LAC
from setwise.strategies.judgement import DELTA, Judgement, Setting


@dataclass(frozen=True, eq=False, repr=False)
class Suspects(Printed):
    """Rows whose given label looks wrong, the most suspect first.

    Attributes
    ----------
    rows
        Their positions; no verified row is among them. What follows is aligned with them.
    labels, proposed
        The label that was given, and the most probable other one.
    suspicion
        The probability against the given label, by which rows are ordered; only comparable within one answer.
    bound
        The share of them whose label may be right, in 19 of 20 draws of the verified rows; None without any.
    guarantee
        How many of them may be false alarms, and what that rests on.
    max_false, verified, wrong
        The share that was passed, how many rows are verified, and how many of these have a wrong label.
    """

    rows: Ints
    labels: Array
    proposed: Array
    suspicion: Floats
    bound: float | None
    guarantee: Guarantee
    max_false: float
    verified: int
    wrong: int

    def to_frame(self) -> Any:
        """A pandas frame with one line per row, the most suspect first."""
        import pandas as pd  # pandas is optional

        return pd.DataFrame(
            {"row": self.rows, "label": self.labels, "proposed": self.proposed, "suspicion": self.suspicion}
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        few = f"{self.wrong:,} of {self.verified:,} given labels that were verified are wrong"
        return "\n".join([f"{len(self):,} labels look wrong; {few}.", *format_lines(self.guarantee.lines)])

    def __repr__(self) -> str:
        return f"Suspects({len(self):,} labels, max_false={self.max_false:g})"


def suspects(
    labels: Candidates,
    verified: Column,
    votes: Votes | None = None,
    probabilities: ProbabilityRows | None = None,
    max_false: float = 0.1,
    *,
    classes: Classes = None,
    random_state: Seed = None,
) -> Suspects:
    """Finds given labels that look wrong, so that few of those it finds are right.

    Parameters
    ----------
    labels
        The given labels, one per row.
    verified
        The true label where a row is verified, None or NaN elsewhere. By passing it you state that the rows to
        verify were drawn at random.
    votes
        Who answered what; the given labels may be among the answers.
    probabilities
        (n, K) class probabilities of a model that was not trained on these rows.
    max_false
        The share of the labels found that may be right, on average over draws of the verified rows. The bound for
        this draw is printed first.
    classes
        The label of each column of `probabilities`. Default: the classes of `votes`, or the columns of a frame.
    random_state
        Seeds the noise that breaks ties.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 1000)
    >>> given = np.where(rng.random(1000) < 0.8, y, rng.integers(0, 3, 1000))
    >>> P = 0.9 * np.eye(3)[np.where(rng.random(1000) < 0.95, y, rng.integers(0, 3, 1000))] + 0.1 / 3
    >>> verified = np.full(1000, None)
    >>> verified[:200] = y[:200]
    >>> setwise.suspects(given, verified, probabilities=P, max_false=0.2, random_state=0)
    Suspects(128 labels, max_false=0.2)
    """
    check_row_names(labels=labels, verified=verified, votes=votes, probabilities=probabilities)
    error = as_level(max_false, "max_false")
    if votes is None and probabilities is None:
        ways = Remedy("votes", None, "for answers"), Remedy("probabilities", None, "for those of a model")
        raise InputError("suspects: nothing shows which labels look wrong", *ways)
    matrix = None if probabilities is None else as_probabilities(probabilities, "simplex")
    names: Any = classes
    if names is None:
        names = frame_columns(probabilities) if votes is None else votes.classes
    given = as_candidates(labels, len(names) if matrix is None else matrix.shape[1], names, name="labels")
    n = len(given)
    if (given.sizes != 1).any():
        row = int(np.flatnonzero(given.sizes != 1)[0])
        raise InputError(
            f"labels: row {row} has {given.sizes[row]} labels", "leave rows out that have no single label"
        )
    facts = RowFacts.read(n, given.vocabulary, verified=verified)
    if facts.verified is None:
        raise InputError("suspects needs verified labels", Remedy("verified", None, "for rows drawn at random"))
    if matrix is not None:
        check_length("probabilities", len(matrix), n, "labels")
    if votes is not None:
        check_length("votes", len(votes), n, "labels")
        votes = leave_out_verifiers(votes.recode(given.vocabulary), facts.verified)
        refuse_sole_answers("suspects", votes.candidates(missing="full"), facts.verified)
        support = weigh_votes(votes, matrix)
    else:
        support = np.asarray(matrix, dtype=float)
    codes, truth = given.rows[1].astype(np.intp), facts.verified
    evidence = gather(LAC(), DenseRows(support), given, RowFacts(verified=truth))
    chosen = warn_about_choice(compare_verified(evidence), chances=False, groups=False)
    judged = Judgement(evidence, Setting("", support.shape[1], checked=len(facts.verified_rows), chosen=chosen))
    noise = uniforms(np.empty((n, 0)), draw_seed(random_state), np.arange(n))
    right = Proposals(np.asarray(truth == codes, dtype=np.intp), 1 - support[np.arange(n), codes], noise)
    open_rows, checked = np.flatnonzero(truth == MISSING), facts.verified_rows
    ordered = OrderedRows(right[checked], np.zeros(len(checked), np.intp), right[open_rows], new=False, delta=DELTA)
    count = ordered.accept("average", error)
    rows = open_rows[ordered.order[:count]]
    others = support[rows].copy()
    others[np.arange(count), codes[rows]] = -1
    bound = ordered.wrong_in_this_draw(count) / count if count else None
    return Suspects(
        frozen(rows),
        given.classes[codes[rows]],
        given.classes[others.argmax(axis=1)] if count else given.classes[:0],
        frozen(right.confidence[rows]),
        bound,
        _guarantee(judged, count, bound, float(error)),
        float(error),
        len(checked),
        int((~ordered.wrong).sum()),
    )


def _guarantee(judged: Judgement, count: int, bound: float | None, error: float) -> Guarantee:
    """How many of the labels found may be right: in this draw first, then on average."""
    premises = (*judged.verification, Premise("labels_unseen", "assumed"))
    share = format_share(error)
    average = f"at most {share} of the labels found are right"
    note = "A draw in which none is found counts as 0 %"
    claims = [Claim("found", 1 - error, "conformal selection", premises, note, subject=average)]
    remarks: tuple[str, ...] = ()
    if bound is not None:
        most = (
            f"at most {round(bound * count):,} of the {count:,} labels found are right ({format_share(bound, 1)})"
        )
        claims.insert(
            0, Claim("found", 1 - bound, "joint hypergeometric laws", premises, delta=DELTA, subject=most)
        )
    else:
        claims = [claim for claim in claims if claim.refuted]
        remarks = (f"With at most {share} false alarms nothing is found; more verified rows find more.",)
    return Guarantee("Suspects", "", judged.setting.checked, 1 - error, tuple(claims), remarks=remarks)
