"""Accept or review: which proposed labels may be accepted unseen, so that few labels are wrong.

Every row has a proposed label and a confidence in it, by one function that treats verified and other rows alike and
never sees a verified label. The verified rows, drawn at random, show how often proposals are wrong; `modes` says
how many of the most confident rows that allows to accept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from setwise._arrays import Array, Bools, Floats, Ints, frozen
from setwise._lazy import lazy
from setwise._types import Candidates, Column, Features, ProbabilityRows, Seed
from setwise.calibration.base import BaseCalibration
from setwise.calibration.new_rows import NewRows
from setwise.calibration.pooled import BasePooledCalibration
from setwise.crowd.consensus import weigh_votes
from setwise.crowd.verifiers import add_verified
from setwise.crowd.vote_warnings import warn_of_unanswered
from setwise.decisions.modes import ErrorCurve, Mode, OrderedRows, as_error
from setwise.drift.comparison import Comparison, RowTally
from setwise.errors import InputError, Remedy, check_length
from setwise.evidence.evidence import Evidence, gather
from setwise.evidence.row_facts import RowFacts, categories
from setwise.evidence.row_names import check_row_names
from setwise.evidence.verified_rows import compare_verified, refuse_written, warn_about_choice
from setwise.findings import format_share
from setwise.guarantees import Claim, Guarantee, Premise, Printed, format_lines
from setwise.labels.vocabulary import MISSING, Vocabulary, label_vector
from setwise.labels.votes import Votes
from setwise.probabilities.dense import DenseRows, as_probabilities
from setwise.probabilities.proposed_labels import Proposals, among_candidates, most_probable
from setwise.row_noise import draw_seed, uniforms
from setwise.scores import LAC
from setwise.strategies.judgement import DELTA, Judgement, Setting
from setwise.strategies.new_row_votes import check_answered

Extra = Literal["nothing", "candidates", "votes"]
"""What new rows come with beside their probabilities."""

_LOOKED_AT = 3  # contradicted proposals that are named
_WORTH_IT = 0.05  # by how much more rows must be accepted that verifying twice as many is worth a sentence
_FAR = 2.0  # times the error on average, beyond which the bound of a draw is remarked


@dataclass(frozen=True, eq=False, repr=False)
class Triage(Printed):
    """Which rows may be accepted with which label, and which go to review.

    Attributes
    ----------
    rows
        The positions of the rows that were decided: among the rows passed, or, where none were, among the
        calibration rows, of those that are not verified. All that follows has one entry for each, in this order.
    labels
        The proposed label.
    confidence
        The confidence in it, by which rows are accepted; only comparable within one triage.
    accepted
        Whether it may be accepted.
    guarantee
        How many labels may be wrong, and what that rests on.
    mode, max_error
        The mode and the max error that were passed.
    verified
        How many verified rows the guarantee rests on.
    bound
        The share of labels that may be wrong in 19 of 20 draws of the verified rows: of all rows in mode
        ``"overall"``, else of the accepted ones. None where that is unknown, or differs between categories.
    deciding
        The positions of the verified rows that decide: those whose label contradicts a confident proposal.
    by_category
        The triage of each category, where `by` was passed.
    """

    rows: Ints
    labels: Array
    confidence: Floats
    accepted: Bools
    guarantee: Guarantee
    mode: Mode
    max_error: float
    verified: int
    bound: float | None
    deciding: Ints
    by_category: Mapping[Any, Triage] = field(default_factory=dict)
    decision: _Decision | None = None

    @property
    def threshold(self) -> float:
        """The lowest confidence that is accepted; infinite where nothing is."""
        return float(self.confidence[self.accepted].min(initial=math.inf))

    @lazy
    def curve(self) -> ErrorCurve | None:
        """How many labels each of several max errors would accept; None where `by_category` has one for each.

        All its bounds hold together: you may look at it and then choose, with `choose`. They do not hold together
        with this first decision, which accepts a little more at its max error. Settle before you look whether you
        take it, or choose from the curve alone. A max error from anywhere else, after a look at what was accepted,
        is another look.
        """
        return None if self.decision is None else self.decision.ranked.curve(self.decision.error)

    def choose(self, max_error: float) -> Triage:
        """The decision at a max error of the curve, in mode ``"overall"``; it may be chosen by the curve.

        That of the first decision is one of them, and accepts a little less here. To keep the first decision if you
        like it and else choose is no rule that the guarantee covers: settle before you look.
        """
        if self.decision is None or self.curve is None:
            raise InputError("choose: categories have a curve each", "choose in by_category")
        places = np.flatnonzero(np.isclose(self.curve.max_error, float(max_error), rtol=0, atol=1e-12))
        if not len(places):
            listed = ", ".join(f"{error:g}" for error in self.curve.max_error)
            raise InputError(f"max_error: {max_error} is not on the curve", f"choose one of {listed}")
        decision = replace(self.decision, mode="overall", error=as_error(max_error, "overall")[0])
        return decision.triage(int(self.curve.accepted[places[0]]))

    @property
    def review(self) -> Ints:
        """The positions (as in `rows`) to review, the least confident first: there a look changes most labels."""
        return self.rows[self._left]

    @property
    def _left(self) -> Ints:
        """Which entries are not accepted, in the order of review."""
        left = np.flatnonzero(~self.accepted)
        return left[np.argsort(self.confidence[left], kind="stable")]

    def to_frame(self) -> Any:
        """A pandas frame with one line per row; `review` is the place in the list of rows to review, from 1 on."""
        import pandas as pd  # pandas is optional

        place = pd.array([pd.NA] * len(self.rows), dtype="Int64")
        place[self._left] = np.arange(1, len(self._left) + 1)
        return pd.DataFrame(
            {
                "row": self.rows,
                "label": self.labels,
                "confidence": self.confidence,
                "accepted": self.accepted,
                "review": place,
            }
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        if not len(self):
            return "No row is left to decide."
        taken = int(self.accepted.sum())
        decided = self.decision or next(iter(self.by_category.values())).decision
        kind = "new" if decided is not None and decided.ranked.new else "unverified"
        head = f"{taken:,} of the {len(self):,} {kind} labels accepted, {len(self) - taken:,} to review."
        if self.by_category:
            return "\n".join([head, *str(self.guarantee).splitlines()[1:]])
        return "\n".join([head, *format_lines(self.guarantee.lines)])

    def __repr__(self) -> str:
        taken = int(self.accepted.sum())
        return f"Triage({taken:,} of {len(self):,} accepted, mode={self.mode!r}, max_error={self.max_error:g})"


def triage(
    votes: Votes,
    verified: Column,
    probabilities: ProbabilityRows | None = None,
    max_error: float = 0.05,
    mode: Mode = "overall",
    *,
    by: Column = None,
    look: int = 1,
    random_state: Seed = None,
) -> Triage:
    """Decides which rows may be accepted with the label that their annotators give them, and which go to review.

    Use this with votes alone; with a calibrated model use `Calibration.triage`, which also decides new rows.

    Parameters
    ----------
    votes
        Who answered what.
    verified
        The true label where a row is verified, None or NaN elsewhere. By passing it you state that the rows to
        verify were drawn at random.
    probabilities
        (n, K) class probabilities of a model that was not trained on the verified labels. With a good model more
        labels are accepted.
    max_error
        Which share of the labels may be wrong.
    mode
        ``"overall"``: of all rows in 19 of 20 draws of the verified rows, where accepted rows keep their label, and
        verified and reviewed ones are right. ``"accepted"``: of the accepted rows in 19 of 20 draws. ``"average"``:
        of the accepted rows on average over draws; a draw in which nothing is accepted counts as zero.
    by
        A category per row, or ``"predicted"`` for the proposed label: each is decided by its own verified rows, and
        the guarantee holds within each.
    look
        How many looks you plan, if you verify more rows and decide again: the guarantee holds at whichever you
        stop. They share what may fail; in mode ``"average"`` each decides at `max_error` divided by their number,
        for averages add up. Draw one random order of the rows at the start, verify along it, and fix the numbers of
        rows beforehand.
    random_state
        Seeds the noise that breaks ties between confidences.

    Examples
    --------
    >>> import numpy as np, setwise
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 1000)
    >>> answers = np.where(rng.random((1000, 3)) < 0.8, y[:, None], rng.integers(0, 3, (1000, 3)))
    >>> votes = setwise.Votes.from_matrix(answers)
    >>> verified = np.full(1000, None)
    >>> verified[:100] = y[:100]
    >>> setwise.triage(votes, verified, max_error=0.05, random_state=0)
    Triage(886 of 900 accepted, mode='overall', max_error=0.05)
    """
    if not isinstance(votes, Votes):
        raise InputError("votes: expected Votes", "for candidate sets use the triage of what conformalize returns")
    check_row_names(votes=votes, verified=verified, probabilities=probabilities)
    votes, facts = add_verified(votes, verified)
    n, k = votes.shape
    matrix = None
    if probabilities is not None:
        matrix = as_probabilities(probabilities, "simplex", k, classes=votes.classes)
        check_length("probabilities", len(matrix), n, "rows of votes")
    if by is not None and not isinstance(by, str):
        by = categories(by, n)
    known = np.arange(n) if matrix is not None else np.flatnonzero(votes.sizes)  # of others nothing is known
    if len(known) < n:
        warn_of_unanswered(n - len(known), n)
        votes, facts = votes[known], facts.take(known)
    posterior = weigh_votes(votes, matrix)
    sets = votes.candidates(missing="full")
    facts = RowFacts(verified=facts.verified, posterior=posterior, position=known)
    evidence = gather(LAC(), DenseRows(posterior), sets, facts)
    refuse_written(evidence)
    chosen, seed = (
        warn_about_choice(compare_verified(evidence, votes=votes), chances=False, groups=False),
        draw_seed(random_state),
    )
    setting = Setting("", k, votes=True, checked=len(facts.verified_rows), chosen=chosen, seed=seed)
    judged, model = Judgement(evidence, setting), matrix is not None
    return triage_calibration_rows(judged, votes.classes, max_error, mode, by=by, look=look, model=model)


def triage_calibration_rows(
    judged: Judgement,
    classes: Array,
    max_error: float,
    mode: Mode,
    *,
    by: Column = None,
    look: int = 1,
    random_state: Seed = None,
    model: bool = True,
) -> Triage:
    """Decides the calibration rows that are not verified: they and the verified rows are one population."""
    evidence, setting = judged.evidence, judged.setting
    label = _add_verified(judged)
    if setting.sampled:
        problem = f"triage: only a random sample of the {setting.sampled:,} calibration rows was kept"
        raise InputError(problem, Remedy("probabilities", None, "for the rows to decide"))
    if evidence.truth is None or evidence.consensus is None or evidence.consensus_confidence is None:
        raise InputError(
            "triage: every calibration row has its label, so that none is left to decide",
            Remedy("probabilities", None, "for new rows"),
        )
    refuse_written(evidence, written=setting.written)
    # Noise belongs to the row, verified or not, in a stream of its own: a user who draws the rows to verify with
    # the same seed would otherwise choose them by it.
    seed = setting.seed if random_state is None else draw_seed(random_state)
    noise = uniforms(np.empty((evidence.n, 0)), seed, np.arange(evidence.n))
    proposed = Proposals(evidence.consensus, evidence.consensus_confidence, noise)
    open_rows = np.flatnonzero(label == MISSING)
    verified_rows = np.flatnonzero(label != MISSING)
    blind = Premise("labels_unseen" if model else "unseen_by_annotators", "assumed")

    def claim(event: Literal["accepted", "overall"], probability: float, source: str, **options: Any) -> Claim:
        return Claim(event, probability, source, (*judged.verification, blind), **options)

    looks, (error, mode) = _as_looks(look), as_error(max_error, mode)
    ranked = OrderedRows(
        proposed[verified_rows], label[verified_rows], proposed[open_rows], new=False, delta=DELTA / looks
    )
    numbers, verified = _positions(evidence, open_rows), _positions(evidence, verified_rows)
    decision = _Decision(numbers, verified, ranked, classes, mode, error, claim, looks)
    if by is None or isinstance(by, str):
        return _decide_by(decision, by)
    n, given = evidence.n, label_vector(by, "by")
    if evidence.position is not None:  # how many rows were passed is not known, but they reach that far
        n = max(int(evidence.position.max(initial=-1)) + 1, len(given))
    of_row = categories(given, n)
    return _decide_within(decision, of_row[numbers], of_row[verified])


def triage_folds(
    calibration: BasePooledCalibration, verified: Column, max_error: float, mode: Mode, **options: Any
) -> Triage:
    """Decides the rows of all folds that are not verified; `verified` are the labels of the others."""
    evidence = calibration.evidence
    labels = RowFacts.read(evidence.n, calibration.vocabulary, verified=verified).verified
    truth = None if labels is None else np.where(labels == MISSING, np.nan, evidence.low)
    held = None if labels is None else np.asarray(evidence.consensus == labels)
    evidence = replace(evidence, label=labels, truth=truth, held=held)
    refuse_written(evidence)
    count = 0 if labels is None else int((labels != MISSING).sum())
    chosen = warn_about_choice(compare_verified(evidence), chances=False, groups=False)
    setting = replace(calibration.parts[0].setting, checked=count, chosen=chosen)
    judged = Judgement(evidence, setting)
    return triage_calibration_rows(judged, calibration.classes, max_error, mode, **options)


def triage_new_rows(
    calibration: BaseCalibration,
    probabilities: ProbabilityRows,
    candidates: Candidates,
    max_error: float,
    mode: Mode,
    *,
    comparison: Comparison | None = None,
    tally: RowTally | None = None,
    X: Features | None = None,
    **options: Any,
) -> Triage:
    """Decides new rows, after comparing them with the calibration rows where no `comparison` is passed.

    `tally` counts them for that, with their features `X`; `options` are those of `triage_proposals`.
    """
    calibration.reader.need_all_labels("triage")
    rows = calibration.reader.read(probabilities, candidates=candidates)
    proposed, extra = propose_labels(calibration, rows)
    if comparison is None and len(rows) and not calibration.setting.differs:
        tally = RowTally(calibration, by_category=False) if tally is None else tally
        comparison = tally.add_read([rows], X=X).compare()
    return triage_proposals(calibration, proposed, extra, max_error, mode, comparison=comparison, **options)


def propose_labels(calibration: BaseCalibration, rows: NewRows) -> tuple[Proposals, Extra]:
    """The labels proposed for a batch of new rows, and what these rows come with."""
    proposed, off = rows.predicted, rows.off
    extra: Extra = "nothing"
    if rows.votes is not None:
        check_answered(calibration.evidence)
        proposed, extra, off = most_probable(rows.posterior), "votes", rows.posterior_off
    elif rows.candidates is not None:
        proposed, extra = among_candidates(rows.matrix, rows.candidates), "candidates"
    if calibration.evidence.noise is not None and not calibration.setting.named:
        proposed = replace(proposed, noise=uniforms(rows.matrix, calibration.setting.seed))
    if off:  # a row that equals a verified one must not seem surer because it was rounded
        proposed = replace(proposed, confidence=proposed.confidence - off)
    return proposed, extra


def triage_proposals(
    calibration: BaseCalibration,
    rows: Proposals,
    extra: Extra,
    max_error: float,
    mode: Mode,
    *,
    by: Column = None,
    look: int = 1,
    random_state: Seed = None,
    comparison: Comparison | None = None,
) -> Triage:
    """Decides all new rows together, by the labels that `propose_labels` gave."""
    judged = calibration.judgement
    if comparison is not None and not judged.setting.differs:
        judged = replace(judged, setting=replace(judged.setting, differs=comparison.differs))
    evidence, setting = judged.evidence, judged.setting
    label = _add_verified(judged)
    if extra != "nothing":
        refuse_written(evidence, written=setting.written)
    proposed, confidence = {
        "nothing": (evidence.predicted, evidence.confidence),
        "candidates": (None, None) if setting.votes else (evidence.consensus, evidence.consensus_confidence),
        "votes": (evidence.answered, evidence.answered_confidence),
    }[extra]
    if proposed is None or confidence is None:
        problem = "candidates: the verified calibration rows have none of this kind to judge new ones by"
        raise InputError(problem, "leave them out")
    verified_rows = np.flatnonzero(label != MISSING)
    by_design = evidence.truth is None
    needs: list[str | Premise] = ["truth_is_candidate" if by_design else "verified"]
    if extra != "nothing":
        like = "same_annotators" if extra == "votes" else "same_candidates"
        needs.append(Premise(like, "stated by you"))

    def claim(event: Literal["accepted", "overall"], probability: float, source: str, **options: Any) -> Claim:
        return judged.claim(event, probability, source, *needs, **options)

    verified = Proposals(proposed, confidence, evidence.noise if rows.noise is not None else None)
    if random_state is not None:
        seed = draw_seed(random_state)
        verified, rows = (replace(part, noise=_redraw_noise(part.noise, seed)) for part in (verified, rows))
    looks, (error, mode) = _as_looks(look), as_error(max_error, mode)
    ranked = OrderedRows(verified[verified_rows], label[verified_rows], rows, new=True, delta=DELTA / looks)
    places = _positions(evidence, verified_rows)
    decision = _Decision(np.arange(len(rows)), places, ranked, calibration.classes, mode, error, claim, looks)
    if by is None or isinstance(by, str):
        return _decide_by(decision, by)
    if calibration.categories is None or calibration.category is None:
        raise InputError("by: the calibration rows have no categories", "pass by=… to conformalize too")
    known = np.asarray(calibration.category_names, dtype=object)
    of_rows = categories(by, len(rows)).astype(object)
    return _decide_within(decision, of_rows, known[calibration.category[verified_rows]])


def _positions(evidence: Evidence, rows: Ints) -> Ints:
    """The positions of some calibration rows among the rows that were passed."""
    return rows if evidence.position is None else evidence.position[rows]


def _redraw_noise(noise: Floats | None, seed: int) -> Floats | None:
    """New noise from the same rows and another seed."""
    return None if noise is None else uniforms(noise[:, None], seed)


def _add_verified(judged: Judgement) -> Ints:
    """The code of each verified label, `MISSING` elsewhere; refuses what the theory does not cover."""
    evidence = judged.evidence
    if judged.setting.truth not in {"", "one"}:
        problem = "triage: one label is proposed for each row, and it cannot be all of several right ones"
        raise InputError(problem, Remedy("truth", "one", "when you calibrate, so that any right label counts"))
    if evidence.shares is not None:
        raise InputError("triage: no method is known for weighted or grouped rows", "calibrate without them")
    if evidence.chance is not None:
        problem = "triage: rows were verified with unequal probabilities, but it counts all verified rows alike"
        raise InputError(problem, "verify rows drawn at random")
    if evidence.label is None or (evidence.truth is None and judged.setting.miss_rate):
        raise InputError(
            "triage needs verified labels, to see how often proposals are wrong",
            Remedy("verified", None, "for the true labels of rows drawn at random, missing elsewhere"),
        )
    return evidence.label


@dataclass(frozen=True)
class _Decision:
    """What is to be decided, and what makes claims.

    `numbers` are the positions of the rows to decide, and `verified` those of the verified rows among the
    calibration rows; `looks` is how many looks were planned; `subject` names the rows of a category.
    """

    numbers: Ints
    verified: Ints
    ranked: OrderedRows
    classes: Array
    mode: Mode
    error: Fraction
    claim: Callable[..., Claim]
    looks: int = 1
    subject: str = ""

    def decide(self) -> Triage:
        """The triage."""
        return self.triage(self.ranked.accept(self.mode, self._level))

    @property
    def _level(self) -> Fraction:
        """The error to decide at: averages over looks add up, and other modes have divided `delta` already."""
        return self.error / self.looks if self.mode == "average" else self.error

    def of(self, name: Any, rows: Ints, verified: Ints) -> _Decision:
        """The decision within a category, by positions among rows to decide and verified rows."""
        ranked = self.ranked
        part = replace(
            ranked, verified=ranked.verified[verified], truth=ranked.truth[verified], rows=ranked.rows[rows]
        )
        subject = f" of category {name!r}"
        return replace(
            self, numbers=self.numbers[rows], verified=self.verified[verified], ranked=part, subject=subject
        )

    def triage(self, taken: int) -> Triage:
        """The triage that accepts so many of the most confident rows."""
        ranked = self.ranked
        accepted = np.zeros(len(ranked.rows), dtype=bool)
        accepted[ranked.order[:taken]] = True
        above = int(ranked.above[taken - 1]) if taken else 0
        deciding = ranked.contradicted[: max(above + 1, _LOOKED_AT)]
        claims, bound = self._claims(taken)
        if not taken:  # there is nothing to guarantee, but what the data contradict is worth knowing
            claims = tuple(claim for claim in claims if claim.refuted or not len(ranked.rows))
        unit = "verified rows" if ranked.m != 1 else "verified row"
        guarantee = Guarantee(
            f"Triage at max error {format_share(float(self.error))} ({self.mode})",
            "",
            ranked.m,
            float(1 - self.error),
            claims,
            remarks=tuple(self._remarks(taken, bound)),
            unit=unit,
            look_first=self._look_first(deciding),
        )
        return Triage(
            frozen(self.numbers),
            np.asarray(self.classes)[ranked.rows.label],
            frozen(ranked.rows.confidence),
            frozen(accepted),
            guarantee,
            self.mode,
            float(self.error),
            ranked.m,
            bound,
            frozen(self.verified[deciding]),
            decision=self,
        )

    def _claims(self, taken: int) -> tuple[tuple[Claim, ...], float | None]:
        """What is guaranteed, the bound for this draw first, and that bound."""
        ranked, share = self.ranked, float(self.error)
        labels = f"the {taken:,} accepted labels{self.subject}"
        if self.mode == "overall":
            limit, total, left = ranked.limit(self.error), max(ranked.total, 1), len(ranked.rows) - taken
            of = f"the {total:,} new" if ranked.new else f"all {total:,}"
            may = f"at most {limit:,} of {of} labels{self.subject} are wrong ({format_share(limit / total, 1)})"
            subject = f"once the {left:,} are corrected, {may}" if left else may
            return (self._bound("overall", limit / total, "hypergeometric law", subject),), limit / total
        if self.mode == "accepted":
            return (self._bound("accepted", share, "joint hypergeometric laws", labels),), share
        note = "A draw in which nothing is accepted counts as 0 %"
        if self.looks > 1:
            note += f". This holds at whichever of {self.looks} looks you stop"
        average = self.claim("accepted", 1 - share, "conformal selection", subject="the accepted labels", note=note)
        if not taken:
            return (average,), None
        bound = ranked.wrong_in_this_draw(taken) / taken
        return (self._bound("accepted", bound, "joint hypergeometric laws", labels), average), bound

    def _bound(self, event: Literal["overall", "accepted"], bound: float, source: str, subject: str) -> Claim:
        note = f"This holds at whichever of {self.looks} looks you stop" if self.looks > 1 else ""
        return self.claim(event, 1 - bound, source, subject=subject, note=note, delta=DELTA)

    def _remarks(self, taken: int, bound: float | None) -> list[str]:
        """Why nothing is accepted, and what would change the decision: sentences."""
        ranked, m = self.ranked, self.ranked.m
        if not len(ranked.rows):
            return []
        if taken:
            if self.mode == "average" and bound is not None and bound > _FAR * float(self.error):
                return ["The bound for this draw is far above the max error: rely on it, and not on the average."]
            return self._more(taken)
        fewest = ranked.fewest(self.mode, self._level)
        if fewest is None or m < fewest:
            needed = "more rows than there are" if fewest is None else f"at least {fewest:,} verified rows"
            error = format_share(float(self.error))
            # So it is whatever the verified labels are: to go on from here by the curve is to choose from it alone.
            return [f"Nothing is accepted: max error {error} needs {needed}, and there are {m:,}.", *self._least()]
        why = f"{int(ranked.wrong.sum()):,} of {m:,} labels proposed for verified rows are wrong"
        return [f"Nothing is accepted: {why}, too many of them with high confidence."]

    def _least(self) -> list[str]:
        """The smallest error of the curve that would accept something."""
        curve = self.ranked.curve(self.error)
        if self.mode != "overall" or curve.least is None:
            return []
        place = int(np.searchsorted(curve.max_error, curve.least))
        share = format_share(curve.least)
        return [f"By the curve, max error {share} would accept {curve.accepted[place]:,} labels."]

    def _more(self, taken: int) -> list[str]:
        """What twice as many verified rows would accept, where that is worth it; an estimate."""
        ranked, m = self.ranked, 2 * self.ranked.m
        if self.mode != "overall" or taken == len(ranked.rows) or (not ranked.new and m >= ranked.n):
            return []
        share = ranked.expect(m, self.error)
        if share < taken / len(ranked.rows) + _WORTH_IT:
            return []
        return [f"With {m:,} verified rows about {format_share(share, 0)} would be accepted (an estimate)."]

    def _look_first(self, deciding: Ints) -> str:
        """The verified rows that decide most: their proposals are confident, and their labels say otherwise."""
        first = self.verified[deciding[:_LOOKED_AT]].tolist()
        if not first:
            return ""
        where = "calibration row" if self.ranked.new else "row"
        if len(first) == 1:
            rows = f"{where} {first[0]}, the only one whose verified label contradicts the proposal."
            return f"{rows} See whether that label is a slip, or the row is hard."
        rows = f"{where}s {', '.join(map(str, first[:-1]))} and {first[-1]}"
        why = "whose verified labels contradict the most confident proposals."
        return f"{rows}, {why} See whether a label is a slip, or the row is hard."


def _decide_by(decision: _Decision, by: str | None) -> Triage:
    """All rows together, or those with each proposed label."""
    if by is None:
        return decision.decide()
    if by != "predicted":
        raise InputError(f"by: {by!r} is not known", Remedy("by", "predicted", "to decide each label by itself"))
    names, ranked = np.asarray(decision.classes), decision.ranked
    return _decide_within(decision, names[ranked.rows.label], names[ranked.verified.label])


def _decide_within(decision: _Decision, of_rows: Array, of_verified: Array) -> Triage:
    """The rows of each category by its own verified rows."""
    names = Vocabulary.infer(np.concatenate([of_rows, of_verified])).classes.tolist()
    picked = {name: (np.flatnonzero(of_rows == name), np.flatnonzero(of_verified == name)) for name in names}
    picked = {name: places for name, places in picked.items() if len(places[0])}
    parts = {name: decision.of(name, *places).decide() for name, places in picked.items()}
    if not parts:
        return decision.decide()
    accepted = np.zeros(len(of_rows), dtype=bool)
    for name, (rows, _) in picked.items():
        accepted[rows] = parts[name].accepted
    return replace(
        decision.triage(0),
        accepted=frozen(accepted),
        guarantee=Guarantee.of_categories({name: part.guarantee for name, part in parts.items()}),
        bound=None,
        deciding=np.concatenate([part.deciding for part in parts.values()]),
        by_category=parts,
        decision=None,
    )


def _as_looks(look: Any) -> int:
    """How many looks were planned."""
    if isinstance(look, bool) or not isinstance(look, (int, np.integer)) or look < 1:
        raise InputError(f"look: {look!r} is no number of looks", Remedy("look", 1, "for a single look"))
    return int(look)
